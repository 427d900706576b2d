//! Whole phases of a driver whose times are known.

use super::*;
use crate::driver::Target;
use crate::driver::null::Null;
use crate::driver::spec::Options;
use crate::engine::entry::DriverEntry;
use crate::op::Verb;
use crate::plan::{GroupPlan, Share};
use crate::workload::generator::GroupWorkload;
use crate::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, MixEntry, SizeSpec, ValueSpec,
};

const MILLISECOND: u64 = 1_000_000;

#[derive(Default)]
struct Windows(Vec<(Stage, Duration)>);

impl Listener for Windows {
    fn window(&mut self, window: &WindowRecord) -> Result<(), String> {
        self.0.push((window.stage, window.start));
        Ok(())
    }
}

fn gets(threads: u32) -> GroupPlan {
    GroupPlan {
        name: String::new(),
        replay: None,
        mix: vec![MixEntry {
            operation: "get".to_owned(),
            weight: 1.0,
        }],
        threads,
        operations: None,
        share: Share::Blocks,
        timeout_ns: 10_000 * MILLISECOND,
        pipeline: 1,
        verify: false,
        endpoints: String::new(),
        keys: KeySpec {
            format: "key%d".to_owned(),
            digest: Digest::None,
            count: Some(10),
            uses_per_key: 1,
            distribution: KeyDistribution::Sequential,
        },
        values: ValueSpec {
            size: SizeSpec::Fixed { bytes: 10 },
            content: Content::RepeatIndex,
            compressible: 0.0,
        },
    }
}

/// Runs a phase of one group on null, whose operations take 1 ms.
fn run_on_null(phase: &PhasePlan, window_ns: u64, listener: &mut dyn Listener) -> PhaseRecord {
    let entry = DriverEntry::of::<Null>();
    let nothing = Endpoint {
        text: String::new(),
        label: "none".to_owned(),
        transport: Transport::Nothing,
    };
    let options = serde_json::Map::from_iter([("delay".to_owned(), "1ms".into())]);
    let target = Target {
        name: "null".to_owned(),
        endpoints: vec![nothing.clone()],
        options: Options::new((entry.spec)().options, options),
        operations: Vec::new(),
        directory: std::path::PathBuf::new(),
        connect_timeout: Duration::from_secs(1),
    };
    let driver = (entry.open)(target).expect("null opens");
    let group = &phase.groups[0];
    let workload = GroupWorkload {
        keys: group.keys.clone(),
        values: group.values.clone(),
        mix: vec![(Verb::Get, 1.0)],
        verify: false,
        keys_total: 10,
    };
    let client = ClientPlan {
        workers: Some(2),
        cpus: Vec::new(),
        window_ns,
        connect_rate_per_second: 0.0,
    };
    let run = PhaseRun {
        phase,
        driver: &*driver,
        endpoints: &[vec![nothing]],
        workloads: &[Prepared::new(&workload).expect("the workload is valid")],
        blocking: false,
        takes_all: false,
        client: &client,
        connect_timeout: Duration::from_secs(1),
        seed: 1,
        repeat: 1,
        deadline: None,
        stop: &Stop::default(),
    };
    super::run(&run, listener).expect("the phase runs")
}

#[test]
fn a_phase_is_dated_from_its_first_common_start() {
    let phase = PhasePlan {
        prepare: Vec::new(),
        cleanup: Vec::new(),
        prepare_timeout_ns: 0,
        restart_servers: Vec::new(),
        faults: Vec::new(),
        name: "steady".to_owned(),
        ordinal: 0,
        measured: true,
        duration_ns: Some(200 * MILLISECOND),
        warmup_ns: 300 * MILLISECOND,
        at_least_ns: 0,
        groups: vec![gets(4)],
    };
    let before = Timestamp::now();
    let mut windows = Windows::default();
    let record = run_on_null(&phase, 100 * MILLISECOND, &mut windows);
    let after = Timestamp::now();
    let first = |stage| {
        let of_stage = windows.0.iter().find(|(known, _)| *known == stage);
        of_stage.map(|(_, start)| *start).expect("a window of it")
    };
    assert_eq!(first(Stage::Warmup), Duration::ZERO);
    let measured = first(Stage::Measured);
    assert!(measured >= Duration::from_millis(300), "{measured:?}");
    assert_eq!(record.measured_time, Duration::from_millis(200));
    // The measured time lies within the wall clock of the call, as the offsets say.
    assert!(record.started_at >= before);
    assert!(record.started_at + measured + record.measured_time <= after + LEAD);
}
