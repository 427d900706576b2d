//! The kyototycoon driver against the http driver on the same keys and values: client CPU per operation, one core each. The
//! server is the tests' stand-in for Kyoto Tycoon, in threads of this process on the server's core, so that only the clients
//! are compared: its own speed says nothing of Kyoto Tycoon's.

use super::kyototycoon_server::serve;
use super::{CLIENT_CPU, CONNECTIONS, SERVER_CPU, add, both, rounds, row};
use crate::common::{Endpoint, Median, client_on, drive, kvs_phase, open_with};
use dbbench::driver::http::Http;
use dbbench::driver::kyototycoon::KyotoTycoon;
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use dbbench::plan::PhasePlan;
use serde_json::{Map, json};
use std::net::TcpListener;

/// The most that the driver may cost: times the CPU of the http driver.
const GOAL: f64 = 1.15;

pub fn kyototycoon() {
    let port = stand_in();
    let http = format!("http://127.0.0.1:{port}");
    let (http, http_at) = open_with(&DriverEntry::of::<Http>(), &http, Map::new());
    for protocol in ["rest", "rpc", "binary"] {
        let options = json!({ "protocol": protocol });
        let options = options.as_object().expect("a table").clone();
        let endpoint = format!("kyototycoon://127.0.0.1:{port}");
        let (mine, mine_at) = open_with(&DriverEntry::of::<KyotoTycoon>(), &endpoint, options);
        for (bytes, operations) in [
            (100, 100_000),
            (2_560, 80_000),
            (41_960, 20_000),
            (80_000, 10_000),
        ] {
            let fill = kvs_phase("set", CONNECTIONS, 10_000, bytes);
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
                row(protocol, bytes, operation, &cells);
            }
        }
    }
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

/// Threads of this process, all on the server's core; they end with it.
fn stand_in() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use nix::sched::{CpuSet, sched_setaffinity};
        let mut cpus = CpuSet::new();
        let core = SERVER_CPU.parse().expect("a number");
        cpus.set(core).expect("the server's core is there");
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &cpus).expect("the stand-in is pinned");
        serve(&listener, 1);
    });
    port
}
