//! Every embedded store of this build through the engine: what a phase of sets wrote, a phase of verified gets finds.

use dbbench::driver::Target;
use dbbench::driver::spec::{Endpoint, Options, Store, Transport};
use dbbench::engine::phase::{self, Listener, PhaseRun, Stop};
use dbbench::measure::record::{PhaseRecord, WindowRecord};
use dbbench::op::Verb;
use dbbench::plan::{ClientPlan, GroupPlan, PhasePlan, Share};
use dbbench::registry::DRIVERS;
use dbbench::workload::generator::{GroupWorkload, Prepared};
use dbbench::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, MixEntry, SizeSpec, ValueSpec,
};
use std::time::Duration;

struct Deaf;

impl Listener for Deaf {
    fn window(&mut self, _: &WindowRecord) -> Result<(), String> {
        Ok(())
    }
}

fn phase_of(operation: &str, threads: u32, operations: u64) -> PhasePlan {
    PhasePlan {
        prepare: Vec::new(),
        cleanup: Vec::new(),
        prepare_timeout_ns: 0,
        restart_servers: Vec::new(),
        faults: Vec::new(),
        name: operation.to_owned(),
        ordinal: 0,
        measured: true,
        duration_ns: None,
        warmup_ns: 0,
        at_least_ns: 0,
        groups: vec![GroupPlan {
            name: String::new(),
            replay: None,
            mix: vec![MixEntry {
                operation: operation.to_owned(),
                weight: 1.0,
            }],
            threads,
            operations: Some(operations),
            share: Share::Blocks,
            timeout_ns: 10_000_000_000,
            pipeline: 1,
            verify: operation == "get",
            endpoints: String::new(),
            keys: KeySpec {
                format: "stress-test-%010d".to_owned(),
                digest: Digest::Md5,
                count: None,
                uses_per_key: 10,
                distribution: KeyDistribution::Sequential,
            },
            values: ValueSpec {
                size: SizeSpec::Fixed { bytes: 41_960 },
                content: Content::RepeatIndex,
                compressible: 0.0,
            },
        }],
    }
}

#[test]
fn what_sets_wrote_verified_gets_find() {
    for entry in DRIVERS {
        let spec = (entry.spec)();
        if !matches!(spec.store, Store::Embedded) {
            continue;
        }
        for threads in [1, 4, 8] {
            let directory = tempfile::tempdir().expect("a private directory");
            let endpoint = Endpoint {
                text: String::new(),
                label: String::new(),
                transport: Transport::Directory {
                    path: directory.path().to_owned(),
                },
            };
            let target = Target {
                name: spec.name.to_owned(),
                endpoints: vec![endpoint.clone()],
                options: Options::new(spec.options, serde_json::Map::new()),
                operations: Vec::new(),
                directory: directory.path().to_owned(),
                connect_timeout: Duration::from_secs(1),
            };
            let driver = (entry.open)(target).expect("the store opens");
            for (operation, verb) in [("set", Verb::Set), ("get", Verb::Get)] {
                let phase = phase_of(operation, threads, 2_000);
                let group = &phase.groups[0];
                let workload = GroupWorkload {
                    keys: group.keys.clone(),
                    values: group.values.clone(),
                    mix: vec![(verb, 1.0)],
                    verify: group.verify,
                    keys_total: 200,
                };
                let client = ClientPlan {
                    workers: None,
                    cpus: Vec::new(),
                    window_ns: 1_000_000_000,
                    connect_rate_per_second: 0.0,
                };
                let run = PhaseRun {
                    phase: &phase,
                    driver: &*driver,
                    endpoints: &[vec![endpoint.clone()]],
                    workloads: &[Prepared::new(&workload).expect("the workload is valid")],
                    blocking: true,
                    takes_all: false,
                    client: &client,
                    connect_timeout: Duration::from_secs(1),
                    seed: 1,
                    repeat: 1,
                    deadline: None,
                    stop: &Stop::default(),
                };
                let record = phase::run(&run, &mut Deaf).expect("the phase runs");
                check(&record, spec.name, threads);
            }
        }
    }
}

fn check(record: &PhaseRecord, store: &str, threads: u32) {
    let operation = &record.groups[0].operations[0];
    println!(
        "{store:8} {:4} {threads:2} threads: {:8.0}/s, p50 {:6} us, p99 {:7} us, max {:7} us, cpu {:?}",
        record.name,
        operation.counts.operations as f64 / record.measured_time.as_secs_f64(),
        operation.succeeded.histogram.value_at_quantile(0.5) / 1000,
        operation.succeeded.histogram.value_at_quantile(0.99) / 1000,
        operation.succeeded.max_ns / 1000,
        record.groups[0].client_cpu
    );
    assert_eq!(
        operation.counts.succeeded, 2_000,
        "{store}: {:?}",
        record.errors
    );
    if record.name == "get" {
        assert_eq!(
            operation.counts.found, 2_000,
            "{store}: {:?}",
            record.errors
        );
    }
}
