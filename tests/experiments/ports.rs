//! What most likely happened in the published long run: the web server's host ran out of local ports, since each request
//! opened a connection to the database and left it in TIME_WAIT. Provoked in a network namespace of its own.

use super::{count, scenario_file};
use crate::kit::{Going, Place};
use crate::support::installed;
use std::process::Command;

const PORTS: u32 = 600;

/// A shell in a network namespace of its own: loopback up, few local ports, none of them reused early.
fn in_a_namespace(place: &Place, arguments: &str) -> Command {
    let first = 40_000;
    let script = format!(
        "ip link set lo up && \
         echo '{first} {last}' > /proc/sys/net/ipv4/ip_local_port_range && \
         echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && \
         exec '{program}' {arguments}",
        last = first + PORTS - 1,
        program = env!("CARGO_BIN_EXE_dbbench"),
    );
    let mut command = Command::new("unshare");
    command
        .args(["--net", "sh", "-c", &script])
        .current_dir(place.path())
        .env("TMPDIR", place.path().join("tmp"))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

#[test]
fn a_web_server_without_local_ports_is_named_as_the_cause() {
    let programs = [
        "apache2",
        "/usr/lib/apache2/modules/libphp8.2.so",
        "redis-server",
        "unshare",
        "ip",
    ];
    if !programs.iter().all(|program| installed(program)) || !can_unshare() {
        return;
    }
    let place = Place::new();
    let file = scenario_file("http-counter-soak").display().to_string();
    let arguments =
        format!("scenario '{file}' --quick --only target=redis --out out --set request_count=3000");
    let ended = Going::of(in_a_namespace(&place, &arguments)).wait();
    // The counter grew by what was answered, so the run is valid: what failed, failed visibly.
    let ended = ended.expect(0);
    drop(ended);
    let rows = place.rows("operations.csv");
    let requests = rows
        .iter()
        .find(|row| row["phase"] == "requests")
        .expect("the phase");
    let failed = count(requests, "failed");
    assert!(failed > 500, "{requests:?}");
    assert_eq!(count(requests, "operations"), 3_000);
    let errors = place.rows("errors.csv");
    let cause = errors
        .iter()
        .filter(|row| row["phase"] == "requests")
        .find(|row| row["first_message"].contains("Cannot assign requested address"));
    let cause = cause.unwrap_or_else(|| panic!("{errors:?}"));
    assert_eq!(cause["class"], "unexpected_reply", "{cause:?}");
    let table = place.rows("tables/http-counter-soak.csv");
    let percent: f64 = table[0]["failed_percent"].parse().unwrap();
    assert!((percent - 100.0 * failed as f64 / 3_000.0).abs() < 1e-6);
    // Sockets in TIME_WAIT over time stand in servers.csv.
    let servers = place.rows("servers.csv");
    let most = servers
        .iter()
        .filter_map(|row| row["time_wait_sockets"].parse::<u32>().ok())
        .max();
    assert!(most.is_some_and(|most| most >= PORTS / 2), "{most:?}");
    place.assert_nothing_left();
}

/// A namespace takes rights that a plain user may not have: then this is a visible skip.
fn can_unshare() -> bool {
    let tried = Command::new("unshare").args(["--net", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: no network namespace can be made here");
        let required = std::env::var_os("CI").is_some()
            || std::env::var_os("DBBENCH_REQUIRE_SERVERS").is_some();
        assert!(!required, "a network namespace is needed");
    }
    can
}
