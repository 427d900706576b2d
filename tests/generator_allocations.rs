//! The generator runs in the engine's loop: once its buffers have grown it must not allocate. Counted by the allocator
//! of this test's own process, so this file holds one test alone.

use dbbench::op::{Operation, Verb};
use dbbench::workload::generator::{Generator, GroupWorkload};
use dbbench::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, SizeSpec, Stream, ValueSpec,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STREAM: Stream = Stream {
    seed: 1,
    repeat: 1,
    phase: 0,
    group: 0,
    warmup: false,
};

fn workload(digest: Digest, content: Content, distribution: KeyDistribution) -> GroupWorkload {
    GroupWorkload {
        keys: KeySpec {
            format: "user%010d".to_owned(),
            digest,
            count: Some(1000),
            uses_per_key: 1,
            distribution,
        },
        values: ValueSpec {
            size: SizeSpec::Fixed { bytes: 5_000 },
            content,
            compressible: 0.5,
        },
        mix: vec![(Verb::Get, 1.0), (Verb::Set, 1.0)],
        verify: false,
        keys_total: 1000,
    }
}

#[test]
fn filling_operations_does_not_allocate() {
    let laws = [
        (Digest::None, Content::Random, KeyDistribution::Uniform),
        (
            Digest::Md5,
            Content::RepeatIndex,
            KeyDistribution::Sequential,
        ),
        (
            Digest::Fnv1a,
            Content::Text,
            KeyDistribution::Zipfian {
                theta: 0.99,
                scrambled: true,
            },
        ),
    ];
    for (digest, content, distribution) in laws {
        let workload = workload(digest, content, distribution);
        let mut generator = Generator::new(&workload, STREAM).expect("the workload is valid");
        let mut operation = Operation::default();
        (0..20).for_each(|index| assert!(generator.fill(index, &mut operation)));
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        (20..1020).for_each(|index| assert!(generator.fill(index, &mut operation)));
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        // The test runner's own thread may allocate a little meanwhile; once per operation would be a thousand.
        assert!(made < 20, "{made} allocations in 1,000 operations");
    }
}
