//! What the benches share: phases of their own making, medians.

use dbbench::driver::Target;
use dbbench::driver::null::Null;
pub use dbbench::driver::spec::Endpoint;
use dbbench::driver::spec::{Options, Store, Transport};
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use dbbench::engine::phase::{self, Listener, PhaseRun, Stop};
use dbbench::measure::record::{PhaseRecord, WindowRecord};
use dbbench::op::Verb;
use dbbench::plan::{ClientPlan, GroupPlan, PhasePlan, Share};
use dbbench::workload::generator::{Generator, GroupWorkload, Prepared};
use dbbench::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, MixEntry, SizeSpec, Stream, ValueSpec,
};
use std::sync::Arc;
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

/// A phase by count, one group; `mixed` is 9 gets to 1 set, any other name that one operation.
fn one_group(
    operation: &str,
    threads: u32,
    operations: u64,
    keys: KeySpec,
    bytes: u64,
) -> PhasePlan {
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
            mix: mix_of(operation),
            threads,
            operations: Some(operations),
            share: Share::Blocks,
            timeout_ns: 10_000_000_000,
            pipeline: 1,
            verify: false,
            endpoints: String::new(),
            keys,
            values: ValueSpec {
                size: SizeSpec::Fixed { bytes },
                content: Content::RepeatIndex,
                compressible: 0.0,
            },
        }],
    }
}

fn mix_of(operation: &str) -> Vec<MixEntry> {
    let entry = |operation: &str, weight| MixEntry {
        operation: operation.to_owned(),
        weight,
    };
    match operation {
        "mixed" => vec![entry("get", 9.0), entry("set", 1.0)],
        operation => vec![entry(operation, 1.0)],
    }
}

/// Gets of index keys with empty values.
pub fn phase_of(threads: u32, operations: u64) -> PhasePlan {
    let keys = KeySpec {
        format: "%d".to_owned(),
        digest: Digest::None,
        count: None,
        uses_per_key: 1,
        distribution: KeyDistribution::Sequential,
    };
    one_group("get", threads, operations, keys, 0)
}

/// As the experiment kvs-* has it: MD5 keys, each ten times in a row, values of their number.
pub fn kvs_phase(operation: &str, threads: u32, operations: u64, bytes: u64) -> PhasePlan {
    let keys = KeySpec {
        format: "stress-test-%010d".to_owned(),
        digest: Digest::Md5,
        count: Some(1_000),
        uses_per_key: 10,
        distribution: KeyDistribution::Sequential,
    };
    one_group(operation, threads, operations, keys, bytes)
}

/// One worker, pinned where a CPU is given.
pub fn client_on(cpu: Option<u32>) -> ClientPlan {
    ClientPlan {
        workers: Some(1),
        cpus: cpu.into_iter().collect(),
        window_ns: 1_000_000_000,
        connect_rate_per_second: 0.0,
    }
}

/// Opens a driver on one endpoint.
pub fn open(entry: &DriverEntry, text: &str) -> (Arc<dyn OpenDriver>, Endpoint) {
    open_with(entry, text, serde_json::Map::new())
}

/// Opens a driver on one endpoint, with options.
pub fn open_with(
    entry: &DriverEntry,
    text: &str,
    options: serde_json::Map<String, serde_json::Value>,
) -> (Arc<dyn OpenDriver>, Endpoint) {
    let spec = (entry.spec)();
    let endpoint = match spec.store {
        Store::Server { parse, .. } => {
            parse(text).expect("the endpoint of the bench can be parsed")
        }
        _ => Endpoint {
            text: String::new(),
            label: "none".to_owned(),
            transport: Transport::Nothing,
        },
    };
    let target = Target {
        name: spec.name.to_owned(),
        endpoints: vec![endpoint.clone()],
        options: Options::new(spec.options, options),
        operations: Vec::new(),
        directory: std::env::temp_dir(),
        connect_timeout: Duration::from_secs(5),
    };
    ((entry.open)(target).expect("the driver opens"), endpoint)
}

/// The generator of a phase of one operation.
pub fn generator(phase: &PhasePlan) -> Generator {
    let stream = Stream {
        seed: 1,
        repeat: 1,
        phase: 0,
        group: 0,
        warmup: false,
    };
    Generator::of(&prepared(phase), stream)
}

fn prepared(phase: &PhasePlan) -> Arc<Prepared> {
    let group = &phase.groups[0];
    let verb = |name: &str| Verb::built_in(name).expect("a built-in operation");
    let workload = GroupWorkload {
        keys: group.keys.clone(),
        values: group.values.clone(),
        mix: group
            .mix
            .iter()
            .map(|entry| (verb(&entry.operation), entry.weight))
            .collect(),
        verify: group.verify,
        keys_total: group.keys.count.or(group.operations).unwrap_or(1),
    };
    Prepared::new(&workload).expect("the workload is valid")
}

/// Runs a phase of one operation to its end.
pub fn drive(
    driver: &dyn OpenDriver,
    endpoint: &Endpoint,
    phase: &PhasePlan,
    client: &ClientPlan,
) -> PhaseRecord {
    let run = PhaseRun {
        phase,
        driver,
        endpoints: &[vec![endpoint.clone()]],
        workloads: &[prepared(phase)],
        blocking: false,
        takes_all: false,
        client,
        connect_timeout: Duration::from_secs(5),
        seed: 1,
        repeat: 1,
        deadline: None,
        stop: &Stop::default(),
    };
    phase::run(&run, &mut Deaf).expect("the phase runs")
}

/// Nanoseconds per operation of a phase on the null driver, one worker.
pub fn run_null(phase: &PhasePlan) -> f64 {
    let (driver, endpoint) = open(&DriverEntry::of::<Null>(), "");
    let record = drive(&*driver, &endpoint, phase, &client_on(None));
    record.measured_time.as_nanos() as f64 / record.groups[0].operations[0].counts.operations as f64
}
