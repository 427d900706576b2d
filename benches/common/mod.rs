//! What the benches share: phases of their own making, medians.

use dbbench::driver::null::Null;
use dbbench::driver::spec::{Endpoint, Options, Transport};
use dbbench::driver::{Driver, Target};
use dbbench::engine::entry::DriverEntry;
use dbbench::engine::phase::{self, Listener, PhaseRun, Stop};
use dbbench::measure::record::WindowRecord;
use dbbench::op::Verb;
use dbbench::plan::{ClientPlan, GroupPlan, PhasePlan, Share};
use dbbench::workload::generator::{GroupWorkload, Prepared};
use dbbench::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, MixEntry, SizeSpec, ValueSpec,
};
use std::time::Duration;

#[derive(Default)]
pub struct Median {
    values: Vec<f64>,
}

impl Median {
    pub fn add(&mut self, value: f64) {
        self.values.push(value);
    }

    pub fn value(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

struct Deaf;

impl Listener for Deaf {
    fn window(&mut self, _: &WindowRecord) -> Result<(), String> {
        Ok(())
    }
}

/// Gets of index keys with empty values.
pub fn phase_of(threads: u32, operations: u64, value_bytes: u64) -> PhasePlan {
    PhasePlan {
        name: "get".to_owned(),
        ordinal: 0,
        measured: true,
        duration_ns: None,
        warmup_ns: 0,
        at_least_ns: 0,
        groups: vec![GroupPlan {
            name: String::new(),
            mix: vec![MixEntry {
                operation: "get".to_owned(),
                weight: 1.0,
            }],
            threads,
            operations: Some(operations),
            share: Share::Blocks,
            timeout_ns: 10_000_000_000,
            pipeline: 1,
            verify: false,
            endpoints: String::new(),
            keys: KeySpec {
                format: "%d".to_owned(),
                digest: Digest::None,
                count: None,
                uses_per_key: 1,
                distribution: KeyDistribution::Sequential,
            },
            values: ValueSpec {
                size: SizeSpec::Fixed { bytes: value_bytes },
                content: Content::RepeatIndex,
                compressible: 0.0,
            },
        }],
    }
}

pub fn client() -> ClientPlan {
    ClientPlan {
        workers: Some(1),
        cpus: Vec::new(),
        window_ns: 1_000_000_000,
        connect_rate_per_second: 0.0,
    }
}

/// Nanoseconds per operation of a phase on the null driver, one worker.
pub fn run_null(phase: &PhasePlan) -> f64 {
    let entry = DriverEntry::of::<Null>();
    let endpoint = Endpoint {
        text: String::new(),
        label: "none".to_owned(),
        transport: Transport::Nothing,
    };
    let target = Target {
        name: "null".to_owned(),
        endpoints: vec![endpoint.clone()],
        options: Options::new(Null::spec().options, serde_json::Map::new()),
        operations: Vec::new(),
        directory: std::env::temp_dir(),
        connect_timeout: Duration::from_secs(1),
    };
    let driver = (entry.open)(target).expect("the null driver opens");
    let group = &phase.groups[0];
    let workload = GroupWorkload {
        keys: group.keys.clone(),
        values: group.values.clone(),
        mix: vec![(Verb::Get, 1.0)],
        verify: false,
        keys_total: group.operations.unwrap_or(1),
    };
    let run = PhaseRun {
        phase,
        driver: &*driver,
        endpoints: &[vec![endpoint]],
        workloads: &[Prepared::new(&workload).expect("the workload is valid")],
        blocking: false,
        takes_all: false,
        client: &client(),
        connect_timeout: Duration::from_secs(1),
        seed: 1,
        repeat: 1,
        deadline: None,
        stop: &Stop::default(),
    };
    let record = phase::run(&run, &mut Deaf).expect("the phase runs");
    let operations: u64 = record.groups[0].operations[0].counts.operations;
    record.measured_time.as_nanos() as f64 / operations as f64
}
