//! The riak driver, by both interfaces, against the http driver on the same keys and values: client CPU per operation, one
//! core each. The server is the tests' stand-in for Riak, in threads of this process on the server's core, so that only the
//! clients are compared: its own speed says nothing of Riak's.

use super::riak_stand_in::StandIn;
use super::{CLIENT_CPU, CONNECTIONS, SERVER_CPU, add, both, rounds, row};
use crate::common::{Endpoint, Median, client_on, drive, kvs_phase, open_with};
use dbbench::driver::http::Http;
use dbbench::driver::riak::Riak;
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use dbbench::plan::PhasePlan;
use serde_json::{Map, Value, json};

/// The most that the driver may cost: times the CPU of the http driver.
const GOAL: f64 = 1.15;

pub fn riak() {
    let server = stand_in();
    let node = server.node(0);
    // The request that the driver makes by HTTP; the http driver puts the key behind the path.
    let path = format!("http://127.0.0.1:{}/buckets/dbbench/keys/", node.http_port);
    let headers = table(json!({ "headers": { "Content-Type": "application/octet-stream" } }));
    let (http, http_at) = open_with(&DriverEntry::of::<Http>(), &path, headers);
    for (interface, port) in [("http", node.http_port), ("pb", node.pb_port)] {
        let options = table(json!({ "interface": interface }));
        let endpoint = format!("127.0.0.1:{port}");
        let (mine, mine_at) = open_with(&DriverEntry::of::<Riak>(), &endpoint, options);
        for (bytes, operations) in [(100, 60_000), (2_560, 50_000), (80_000, 10_000)] {
            let fill = kvs_phase("set", CONNECTIONS, operations, bytes);
            drive(&*mine, &mine_at, &fill, &client_on(None));
            for operation in ["set", "get"] {
                let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
                let (mut ratio, mut cpu) = (Median::default(), Median::default());
                rounds(|first| {
                    let (mine, theirs) = both(
                        first,
                        || cpu_us(&*mine, &mine_at, &phase),
                        || Some(cpu_us(&*http, &http_at, &phase)),
                    );
                    add(&mut cpu, Some(mine));
                    add(&mut ratio, theirs.map(|theirs| mine / theirs));
                });
                let cells = [
                    ("client CPU us/operation", cpu.value()),
                    ("/http driver", ratio.value()),
                    ("goal", GOAL),
                ];
                row(&format!("riak {interface}"), bytes, operation, &cells);
            }
        }
    }
}

fn table(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

/// Client CPU of an operation, in microseconds.
fn cpu_us(driver: &dyn OpenDriver, endpoint: &Endpoint, phase: &PhasePlan) -> f64 {
    let record = drive(driver, endpoint, phase, &client_on(Some(CLIENT_CPU)));
    let group = &record.groups[0];
    let counts = &group.operations[0].counts;
    assert_eq!(
        counts.operations, counts.succeeded,
        "all succeeds: {:?}",
        record.errors
    );
    assert_eq!(counts.missing, 0, "all is there");
    group.client_cpu.as_secs_f64() * 1e6 / counts.operations as f64
}

/// Its threads inherit the core of the one that starts it.
fn stand_in() -> StandIn {
    let start = || {
        use nix::sched::{CpuSet, sched_setaffinity};
        let mut cpus = CpuSet::new();
        let core = SERVER_CPU.parse().expect("a number");
        cpus.set(core).expect("the server's core is there");
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &cpus).expect("the stand-in is pinned");
        StandIn::start()
    };
    std::thread::spawn(start).join().expect("it starts")
}
