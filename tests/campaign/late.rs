//! Servers that answer late at random: no late answer is ever read as that of a later request, and timeouts shorter than
//! the server's answers cost no storm of connections.

use crate::kit::{Place, Row};
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What clients wait for an answer.
const TIMEOUT: Duration = Duration::from_millis(6);

/// Nodes of a cluster of scripts, which share their keys.
const NODES: usize = 2;

/// Scripts that speak Redis, keep what they are given, and take for each get as long as `delay` says.
struct Late {
    nodes: Vec<ScriptedServer>,
}

type Keys = Mutex<HashMap<Vec<u8>, Vec<u8>>>;

impl Late {
    fn start(delay: impl Fn() -> Duration + Send + Sync + 'static) -> Late {
        let keys = Arc::new(Keys::default());
        let ports: Arc<OnceLock<Vec<u16>>> = Arc::default();
        let delay = Arc::new(delay);
        let node = |_| {
            let (keys, ports, delay) = (Arc::clone(&keys), Arc::clone(&ports), Arc::clone(&delay));
            let script = move |_, request: &[u8]| answer(request, &keys, ports.get(), || delay());
            ScriptedServer::start(Framing::Resp, script).unwrap()
        };
        let nodes: Vec<ScriptedServer> = (0..NODES).map(node).collect();
        let known = ports.set(nodes.iter().map(ScriptedServer::port).collect());
        known.expect("they are known once");
        Late { nodes }
    }

    fn accepted(&self) -> usize {
        self.nodes.iter().map(ScriptedServer::accepted).sum()
    }

    /// Keys are loaded first, in peace; then come `phases`.
    fn run(&self, cluster: bool, phases: &str) -> Place {
        let port = self.nodes[0].port();
        let place = Place::with(&format!(
            "schema = 1\nname = \"late\"\n[targets.it]\ndriver = \"redis\"\n\
             endpoints = [\"redis://127.0.0.1:{port}\"]\noptions = {{ cluster = {cluster} }}\n\
             [workload.keys]\nformat = \"key%08d\"\ncount = 1_000\ndistribution = \"uniform\"\n\
             [workload.values]\nsize = {{ distribution = \"uniform\", from = 20, to = 400 }}\n\
             [[phases]]\nname = \"load\"\noperation = \"set\"\noperations = 1_000\n\
             keys = {{ distribution = \"sequential\" }}\nmeasured = false\n{phases}"
        ));
        place.scenario(&[]).expect(0);
        place
    }
}

fn answer(
    request: &[u8],
    keys: &Keys,
    ports: Option<&Vec<u16>>,
    delay: impl Fn() -> Duration,
) -> Vec<Step> {
    let words = words(request);
    let of = |number: usize| words.get(number).copied().unwrap_or_default();
    match (of(0), of(1)) {
        (b"GET", key) => {
            let keys = keys.lock().unwrap();
            let value = keys.get(key).map_or("$-1\r\n".into(), |value| bulk(value));
            match delay() {
                Duration::ZERO => vec![Step::Send(value)],
                time => vec![Step::Wait(time), Step::Send(value)],
            }
        }
        (b"SET", key) => {
            keys.lock().unwrap().insert(key.to_vec(), of(2).to_vec());
            vec![Step::send("+OK\r\n")]
        }
        (b"INFO", _) => vec![Step::Send(bulk(b"redis_version:7.0.0\r\n"))],
        (b"CONFIG", _) => vec![Step::send("*0\r\n")],
        (b"CLIENT" | b"PING", _) => vec![Step::send("+OK\r\n")],
        (b"CLUSTER", b"INFO") => {
            let information = "cluster_state:ok\r\ncluster_slots_ok:16384\r\n";
            vec![Step::Send(bulk(information.as_bytes()))]
        }
        (b"CLUSTER", b"SLOTS") => vec![Step::send(slots(ports.expect("nobody asks so early")))],
        _ => vec![Step::send("-ERR unknown command\r\n")],
    }
}

fn bulk(value: &[u8]) -> Vec<u8> {
    let header = format!("${}\r\n", value.len());
    [header.as_bytes(), value, b"\r\n"].concat()
}

/// Each node has an equal share of the slots.
fn slots(ports: &[u16]) -> String {
    let share = 16_384 / ports.len();
    let ranges = ports.iter().enumerate().map(|(number, port)| {
        let first = number * share;
        let last = first + share - 1;
        format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
    });
    format!("*{}\r\n{}", ports.len(), ranges.collect::<String>())
}

/// The arguments of a request; its values have no ends of lines in them.
fn words(request: &[u8]) -> Vec<&[u8]> {
    let mut rest = request;
    let mut line = |length: Option<usize>| {
        let end = length.or_else(|| rest.iter().position(|byte| *byte == b'\r'))?;
        let (line, after) = rest.split_at_checked(end)?;
        rest = after.get(2..)?;
        Some(line)
    };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.get(1..)?.parse().ok();
    let mut words = Vec::new();
    line(None);
    while let Some(length) = line(None).and_then(number) {
        words.extend(line(Some(length)));
    }
    words
}

/// One of fifty gets takes up to twice as long as anybody waits. The same in every run.
fn at_random() -> impl Fn() -> Duration + Send + Sync + 'static {
    let count = AtomicU64::new(0);
    move || {
        let mut state = count.fetch_add(1, Ordering::Relaxed);
        state = state.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 27;
        match state % 50 {
            0 => TIMEOUT * 2 * ((state >> 32) as u32 % 1_000) / 1_000,
            _ => Duration::ZERO,
        }
    }
}

fn number(row: &Row, column: &str) -> u64 {
    let text = &row[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column}: `{text}`"))
}

/// Every value that is read is that of its key; what came too late is a timeout and nothing else.
fn no_late_answer_is_read(cluster: bool, operations: u64) {
    let late = Late::start(at_random());
    let limit = TIMEOUT.as_millis();
    let phase = |name: &str, operations: u64, more: &str| {
        format!(
            "[[phases]]\nname = \"{name}\"\noperation = \"get\"\nthreads = 20\noperations = {operations}\n\
             timeout = \"{limit}ms\"\nverify = true\n{more}"
        )
    };
    let single = phase("single", operations / 10 * 9, "");
    let batches = phase("batches", operations / 10, "pipeline = 5\n");
    let place = late.run(cluster, &[single, batches].concat());
    let mut all = 0;
    for row in place.rows("operations.csv") {
        if row["phase"] == "load" {
            continue;
        }
        println!(
            "{}: {} of {} timed out, {} connections anew, {}/s",
            row["phase"],
            row["timed_out"],
            row["operations"],
            row["reconnections"],
            row["throughput_per_second"]
        );
        assert_eq!(number(&row, "wrong_value"), 0, "{row:?}");
        assert_eq!(number(&row, "missing"), 0, "{row:?}");
        let (of, timed_out) = (number(&row, "operations"), number(&row, "timed_out"));
        assert!(timed_out > of / 200, "{timed_out} of {of} timed out");
        assert!(number(&row, "reconnections") > of / 1_000, "{row:?}");
        assert!(number(&row, "succeeded") > of / 2, "{row:?}");
        all += of;
    }
    assert_eq!(all, operations);
}

#[test]
fn of_100_000_answers_that_come_late_at_random_none_is_read_as_anothers() {
    no_late_answer_is_read(false, 100_000);
}

#[test]
fn of_100_000_answers_of_a_clusters_nodes_none_is_read_as_anothers() {
    no_late_answer_is_read(true, 100_000);
}

#[test]
#[ignore = "minutes: a million operations"]
fn of_a_million_answers_that_come_late_at_random_none_is_read_as_anothers() {
    no_late_answer_is_read(false, 1_000_000);
}

#[test]
#[ignore = "minutes: a million operations"]
fn of_a_million_answers_of_a_clusters_nodes_none_is_read_as_anothers() {
    no_late_answer_is_read(true, 1_000_000);
}

/// With each answer later than anybody waits, each session makes a new connection at most every tenth of a second.
#[test]
fn a_timeout_of_a_millisecond_brings_no_storm_of_connections() {
    const THREADS: u64 = 50;
    for cluster in [false, true] {
        let late = Late::start(|| Duration::from_millis(30));
        let phase = format!(
            "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = {THREADS}\nduration = \"3s\"\n\
             timeout = \"1ms\"\nverify = true\n"
        );
        let began = Instant::now();
        let place = late.run(cluster, &phase);
        assert!(began.elapsed() < Duration::from_secs(20));
        let rows = place.rows("operations.csv");
        let row = rows.iter().find(|row| row["phase"] == "get").unwrap();
        let (operations, reconnections) = (number(row, "operations"), number(row, "reconnections"));
        println!(
            "cluster {cluster}: {operations} operations, {} timed out, {reconnections} connections anew, {} accepted",
            row["timed_out"],
            late.accepted()
        );
        assert_eq!(number(row, "succeeded"), 0, "{row:?}");
        assert_eq!(number(row, "wrong_value"), 0);
        // Up to 50 ms where a node of a cluster is left alone, up to 100 where a server is.
        let most = THREADS * if cluster { 2 * 60 } else { 30 } + 10 * THREADS;
        assert!(
            late.accepted() as u64 <= most,
            "{} > {most}",
            late.accepted()
        );
        assert!(
            (THREADS..=most).contains(&reconnections),
            "{reconnections} are counted"
        );
    }
}

/// And when the server answers in time again, so do its sessions.
#[test]
fn sessions_that_were_paused_go_on_when_the_server_does() {
    let began = Instant::now();
    let slow = move || match began.elapsed() {
        early if early < Duration::from_secs(3) => Duration::from_millis(30),
        _ => Duration::ZERO,
    };
    let late = Late::start(slow);
    let place = late.run(
        false,
        "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = 4\nduration = \"6s\"\ntimeout = \"10ms\"\nverify = true\n",
    );
    let rows = place.rows("windows.csv");
    let last = rows
        .iter()
        .rfind(|row| row["phase"] == "get" && row["stage"] == "measured")
        .unwrap();
    assert!(number(last, "succeeded") > 1_000, "{last:?}");
    assert!(
        number(last, "timed_out") * 100 < number(last, "succeeded"),
        "{last:?}"
    );
}
