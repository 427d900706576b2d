//! A value of 80 KB costs the cassandra driver no copy that the client crate does not make: bytes allocated for an
//! operation are those of the crate's own call, but for less than a kilobyte.
//!
//! A binary of its own, since it counts every allocation of the thread that runs it.
#![cfg(feature = "cassandra")]

#[path = "support/cassandra.rs"]
mod cassandra_nodes;
#[path = "conformance/client.rs"]
mod client;
mod support;

use client::{Client, set, verify};
use dbbench::driver::Session as _;
use dbbench::driver::cassandra::Cassandra;
use dbbench::op::{Outcome, Reply};
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use serde_json::Map;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    // A thread that ends may allocate when its counter is gone.
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROUNDS: usize = 50;
const VALUE: usize = 80_000;

/// Bytes allocated for one of many calls, once all buffers have grown.
async fn each(mut call: impl AsyncFnMut()) -> usize {
    for _ in 0..10 {
        call().await;
    }
    let before = BYTES.get();
    for _ in 0..ROUNDS {
        call().await;
    }
    (BYTES.get() - before) / ROUNDS
}

#[test]
fn a_large_value_is_copied_only_by_the_client_crate() {
    let Some(address) = cassandra_nodes::one() else {
        return;
    };
    let endpoint = format!("cassandra://{address}/copies");
    let client: Client<Cassandra> =
        Client::open(&[endpoint], Map::new(), Vec::new()).expect("the driver opens");
    let mut session = client.session();
    let value = vec![7; VALUE];
    let (written, wanted) = (set("k", &value), verify(b"k", &value));
    client.run(async {
        let mut reply = Reply::default();
        let writes = each(async || {
            assert_eq!(session.execute(&written, &mut reply).await, Outcome::Done);
        })
        .await;
        let reads = each(async || {
            assert_eq!(session.execute(&wanted, &mut reply).await, Outcome::Found);
        })
        .await;

        let bare = SessionBuilder::new().known_node(&address).build().await;
        let bare = bare.expect("the crate connects");
        let prepare = async |cql: &str| {
            let mut statement = bare.prepare(cql).await.expect("a statement");
            statement.set_consistency(Consistency::One);
            statement
        };
        let insert = prepare("INSERT INTO copies.kv (key, value) VALUES (?, ?)").await;
        let select = prepare("SELECT value FROM copies.kv WHERE key = ?").await;
        let key = b"k".as_slice();
        let of_writes = each(async || {
            let done = bare.execute_unpaged(&insert, (key, value.as_slice())).await;
            done.expect("written");
        })
        .await;
        let of_reads = each(async || {
            let found = bare.execute_unpaged(&select, (key,)).await.expect("read");
            let rows = found.into_rows_result().expect("rows");
            let (read,) = rows.first_row::<(&[u8],)>().expect("a row");
            assert_eq!(read.len(), VALUE);
        })
        .await;
        eprintln!(
            "bytes allocated: set {writes}, crate {of_writes}; get {reads}, crate {of_reads}"
        );
        assert!(writes < of_writes + 1_000, "{writes}, crate {of_writes}");
        assert!(reads < of_reads + 1_000, "{reads}, crate {of_reads}");
    });
}
