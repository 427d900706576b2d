//! What is measured is true: the whole program, from a scenario to the rows of its run directory, on a server whose every
//! answer comes after a known time.
//!
//! The margins: a figure is never better than the truth. It may be worse by what the machine adds, which other work on the
//! machine makes larger and nothing makes smaller; so a test of times has three tries, and one must be within 1 ms and 15 % of
//! the truth (p95: 50 %, since there a few interruptions decide). What does not depend on the machine (counts, sums, Little's law) must hold in every try.

#[path = "support/guarded.rs"]
mod guarded;
#[path = "campaign/kit.rs"]
mod kit;

use dbbench::driver::scripted::{Framing, ScriptedServer, Step, stores};
use dbbench::results::hlog;
use kit::{Place, Row};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    Redis,
    Memcached,
}

impl Store {
    fn framing(self) -> Framing {
        match self {
            Store::Redis => Framing::Resp,
            Store::Memcached => Framing::Memcached,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Store::Redis => "redis",
            Store::Memcached => "memcached",
        }
    }
}

/// What a store answers to one request, after its time.
type Script = Box<dyn Fn(usize, &[u8]) -> Vec<Step> + Send + Sync>;

/// A store whose gets give `value(key)` and whose operations take `delay(key number)`.
fn store(
    store: Store,
    delay: impl Fn(u64) -> Duration + Send + Sync + 'static,
    value: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
) -> Script {
    let value = move |key: &[u8]| Some(value(number(key)));
    let answer: Script = match store {
        Store::Redis => Box::new(stores::redis(Duration::ZERO, value)),
        Store::Memcached => Box::new(stores::memcached(Duration::ZERO, value)),
    };
    Box::new(move |connection, request| {
        if let Some(told) = told(store, request) {
            return vec![told];
        }
        let mut steps = answer(connection, request);
        // Only gets and sets have a time, and only they have a key.
        if let Some(Step::Wait(time)) = steps.first_mut() {
            *time = delay(number(request));
        }
        steps
    })
}

/// What a real server says of itself, and a scripted one must.
fn told(store: Store, request: &[u8]) -> Option<Step> {
    let has = |word: &[u8]| request.windows(word.len()).any(|window| window == word);
    match store {
        Store::Redis if has(b"INFO") => Some(Step::send("$21\r\nredis_version:7.0.0\r\n\r\n")),
        Store::Redis if has(b"CONFIG") => Some(Step::send("*0\r\n")),
        _ => None,
    }
}

/// The number in the first `key<digits>` of these bytes.
fn number(bytes: &[u8]) -> u64 {
    let at = bytes.windows(3).position(|window| window == b"key");
    let digits = bytes[at.map_or(bytes.len(), |at| at + 3)..].iter();
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// What the scenario language defines: `%010d` of the key's index, over and over.
fn repeated(index: u64, size: usize) -> Vec<u8> {
    let mut value = format!("{index:010}")
        .into_bytes()
        .repeat(size.div_ceil(10));
    value.truncate(size);
    value
}

fn serve(store: Store, script: Script) -> ScriptedServer {
    ScriptedServer::start(store.framing(), script).unwrap()
}

fn scenario(store: Store, server: &ScriptedServer, size: usize, phases: &str) -> String {
    let name = store.name();
    format!(
        "schema = 1\nname = \"truth\"\n[client]\nwindow = \"100ms\"\n\
         [targets.it]\ndriver = \"{name}\"\nendpoints = [\"{name}://127.0.0.1:{}\"]\n\
         [workload.keys]\nformat = \"key%08d\"\ncount = 1_000\n[workload.values]\nsize = {size}\ncontent = \"repeat-index\"\n{phases}",
        server.port()
    )
}

fn run(scenario: &str, code: i32) -> Place {
    let place = Place::with(scenario);
    place.scenario(&[]).expect(code);
    place
}

fn only_row(place: &Place) -> Row {
    let mut rows = place.rows("operations.csv");
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

fn figure(row: &Row, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} is `{}` in {row:?}", row[column]))
}

fn count(row: &Row, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column} is `{}` in {row:?}", row[column]))
}

/// Tries until what is measured is near enough to the truth.
fn tries(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut faults = Vec::new();
    for _ in 0..TRIES {
        match attempt() {
            Ok(()) => return,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("{}", faults.join("\n"));
}

/// Never less than the truth, and not much more.
fn near(row: &Row, column: &str, truth: Duration, margin: f64) -> Result<(), String> {
    let (found, truth) = (figure(row, column), truth.as_secs_f64() * 1e6);
    // Three digits of a histogram round by a thousandth, both ways.
    assert!(
        found >= truth * 0.999,
        "{column} is {found}, better than the truth, {truth}"
    );
    match found <= truth * (1.0 + margin) + 1_000.0 {
        true => Ok(()),
        false => Err(format!("{column} is {found}, the truth {truth}")),
    }
}

/// One key in ten takes five times as long.
fn mixed(short: Duration) -> impl Fn(u64) -> Duration + Send + Sync {
    move |key| if key % 10 == 9 { short * 5 } else { short }
}

fn times_are_true(kind: Store, sessions: u32, short: Duration, operations: u64) {
    let server = serve(kind, store(kind, mixed(short), |key| repeated(key, 41_960)));
    let phase = format!(
        "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = {sessions}\noperations = {operations}\nverify = true\n"
    );
    let text = scenario(kind, &server, 41_960, &phase);
    tries(|| {
        let row = only_row(&run(&text, 0));
        for (column, expected) in [
            ("operations", operations),
            ("succeeded", operations),
            ("found", operations),
            ("wrong_value", 0),
        ] {
            assert_eq!(count(&row, column), expected, "{column}");
        }
        assert!(count(&row, "bytes_received") >= operations * 41_960);
        assert_eq!(count(&row, "connections"), u64::from(sessions));
        near(&row, "succeeded_service_time_min_us", short, 0.15)?;
        near(&row, "service_time_p50_us", short, 0.15)?;
        near(&row, "service_time_p95_us", short * 5, 0.5)?;
        // One operation in a hundred: how much it is over the truth is the machine's affair.
        near(&row, "service_time_p99_us", short * 5, 100.0)?;
        let mean = short.mul_f64(1.4);
        near(&row, "succeeded_service_time_mean_us", mean, 0.15)?;
        let throughput = figure(&row, "throughput_per_second");
        let most = f64::from(sessions) / mean.as_secs_f64();
        assert!(
            throughput <= most * 1.001,
            "{throughput}, better than the truth, {most}"
        );
        // Little's law: sessions = throughput x time, but for the time between operations and the uneven end.
        let busy = throughput * figure(&row, "succeeded_service_time_mean_us") / 1e6;
        assert!(busy <= f64::from(sessions) * 1.001, "{busy}");
        match throughput >= most * 0.7 && busy >= f64::from(sessions) * 0.85 {
            true => Ok(()),
            false => Err(format!(
                "{throughput} of {most} per second, {busy} of {sessions} sessions busy"
            )),
        }
    });
}

#[test]
fn the_times_of_one_session_are_true() {
    times_are_true(Store::Redis, 1, Duration::from_millis(1), 1_000);
    times_are_true(Store::Memcached, 1, Duration::from_millis(1), 1_000);
}

#[test]
fn the_times_of_fifty_sessions_are_true() {
    times_are_true(Store::Redis, 50, Duration::from_millis(20), 2_000);
    times_are_true(Store::Memcached, 50, Duration::from_millis(20), 2_000);
}

#[test]
fn a_wrong_value_of_42_kilobytes_is_seen_wherever_it_differs() {
    for kind in [Store::Redis, Store::Memcached] {
        // One key in ten has a byte wrong, one in ten is short of its last one.
        let value = |key: u64| {
            let mut value = repeated(key, 41_960);
            match key % 10 {
                3 => value[41_000] ^= 1,
                7 => drop(value.pop()),
                _ => {}
            }
            value
        };
        let server = serve(kind, store(kind, |_| Duration::ZERO, value));
        let phase = |threads, verify| {
            format!(
                "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = {threads}\noperations = 100\nverify = {verify}\n"
            )
        };
        let place = run(&scenario(kind, &server, 41_960, &phase(3, true)), 0);
        let row = only_row(&place);
        assert_eq!(
            (count(&row, "succeeded"), count(&row, "wrong_value")),
            (80, 20),
            "{kind:?}"
        );
        assert_eq!(figure(&row, "success_percent"), 80.0);
        // The slowest fifth is wrong: what is beyond is not known, however fast it was.
        assert_ne!(row["service_time_p50_us"], "");
        assert_eq!(row["service_time_p90_us"], "");
        let errors = place.rows("errors.csv");
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (errors[0]["class"].as_str(), errors[0]["count"].as_str()),
            ("wrong_value", "20")
        );
        // Without verify, what differs from the first answer in length is a remark; of one thread, that is the first key's.
        let alone = scenario(kind, &server, 41_960, &phase(1, false));
        let row = only_row(&run(&alone, 0));
        assert_eq!(
            (count(&row, "succeeded"), count(&row, "length_changed")),
            (100, 10),
            "{kind:?}"
        );
    }
}

/// The median of what a timeout is seen too late is at most 2 ms; none is seen early.
#[test]
fn a_timeout_is_seen_within_two_milliseconds() {
    const LIMIT: Duration = Duration::from_millis(20);
    for kind in [Store::Redis, Store::Memcached] {
        tries(|| {
            let hanging: Script = Box::new(move |_, request| {
                let own = told(kind, request).map(|step| vec![step]);
                own.unwrap_or_else(|| match number(request) {
                    0 if !request.windows(3).any(|window| window == b"key") => {
                        greeting(kind, request)
                    }
                    _ => vec![Step::Hang],
                })
            });
            let server = serve(kind, hanging);
            let phase = "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = 4\noperations = 100\ntimeout = \"20ms\"\n";
            let place = run(&scenario(kind, &server, 100, phase), 0);
            let row = only_row(&place);
            assert_eq!(
                (count(&row, "operations"), count(&row, "timed_out")),
                (100, 100)
            );
            assert_eq!(count(&row, "unknown"), 100);
            assert_eq!(row["service_time_p50_us"], "", "the timeout is no latency");
            assert!(
                (97..=100).contains(&count(&row, "reconnections")),
                "{row:?}"
            );
            // Four sessions, and a connection after each timeout but the last of each.
            assert!(server.accepted() >= 100, "{}", server.accepted());
            let times = hlog::read(&only_log(&place)).unwrap();
            let times = &times["get.get.service"];
            assert!(
                times.min_ns as f64 >= LIMIT.as_nanos() as f64 * 0.999,
                "{}",
                times.min_ns
            );
            let median = times.histogram.value_at_quantile(0.5) as f64 / 1e6 - 20.0;
            println!("{kind:?}: timeouts are seen {median:.3} ms late (median)");
            match median <= 2.0 {
                true => Ok(()),
                false => Err(format!("seen {median} ms late")),
            }
        });
    }
}

fn greeting(kind: Store, request: &[u8]) -> Vec<Step> {
    match kind {
        Store::Redis => stores::redis(Duration::ZERO, |_| None)(0, request),
        Store::Memcached => stores::memcached(Duration::ZERO, |_| None)(0, request),
    }
}

fn only_log(place: &Place) -> std::path::PathBuf {
    let mut logs = std::fs::read_dir(place.out().join("hlog")).unwrap();
    let log = logs.next().expect("a log").unwrap().path();
    assert!(logs.next().is_none());
    log
}

/// Every answer to key 5 comes late and with the value of another key. Were it read, the next answer would be taken for it.
#[test]
fn a_late_reply_is_never_read_as_the_answer_to_the_next_request() {
    for kind in [Store::Redis, Store::Memcached] {
        let delay = |key| Duration::from_millis(if key % 10 == 5 { 60 } else { 0 });
        let value = |key| repeated(if key % 10 == 5 { 999 } else { key }, 100);
        let server = serve(kind, store(kind, delay, value));
        let phase = "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = 2\noperations = 200\ntimeout = \"30ms\"\nverify = true\n";
        tries(|| {
            let row = only_row(&run(&scenario(kind, &server, 100, phase), 0));
            assert_eq!(
                (count(&row, "wrong_value"), count(&row, "operations")),
                (0, 200),
                "{kind:?}"
            );
            assert!(count(&row, "timed_out") >= 20);
            // A machine that stands still for 30 ms makes others time out as well.
            match (count(&row, "timed_out"), count(&row, "succeeded")) {
                (20, 180) => Ok(()),
                (timed_out, _) => Err(format!("{timed_out} of 20 timed out")),
            }
        });
    }
}

/// Failing fast is no merit: a fifth of the operations fails at once, and no percentile from there on is known.
#[test]
fn failures_rank_above_every_success() {
    let inner = store(
        Store::Redis,
        |_| Duration::from_millis(2),
        |key| repeated(key, 100),
    );
    let failing: Script = Box::new(move |connection, request| {
        let is_get = request.windows(3).any(|window| window == b"key");
        match is_get && number(request) % 5 == 4 {
            true => vec![Step::send("-OOM command not allowed\r\n")],
            false => inner(connection, request),
        }
    });
    let server = serve(Store::Redis, failing);
    let phase = "[[phases]]\nname = \"get\"\noperation = \"get\"\noperations = 500\n";
    let place = run(&scenario(Store::Redis, &server, 100, phase), 0);
    let row = only_row(&place);
    assert_eq!(
        (count(&row, "succeeded"), count(&row, "failed")),
        (400, 100)
    );
    assert!(figure(&row, "service_time_p50_us") >= 1_998.0);
    for unknown in ["service_time_p90_us", "service_time_p95_us"] {
        assert_eq!(row[unknown], "", "{unknown}");
    }
    assert!(figure(&row, "succeeded_service_time_p95_us") >= 1_998.0);
    assert!(figure(&row, "succeeded_service_time_min_us") >= 1_998.0);
    let (successes, all) = (
        figure(&row, "throughput_per_second"),
        figure(&row, "attempted_per_second"),
    );
    assert!(
        (all / successes - 1.25).abs() < 0.001,
        "{all} / {successes}"
    );
    let errors = place.rows("errors.csv");
    assert_eq!(
        (errors[0]["class"].as_str(), errors[0]["code"].as_str()),
        ("server", "OOM")
    );
}

#[test]
fn warm_up_and_drain_are_marked_and_windows_add_up() {
    let server = serve(
        Store::Redis,
        store(Store::Redis, mixed(Duration::from_millis(10)), |key| {
            repeated(key, 100)
        }),
    );
    let phase = "[[phases]]\nname = \"get\"\nthreads = 10\nwarmup = \"500ms\"\nduration = \"1s\"\n\
                 mix = { get = 80, set = 20 }\n";
    let place = run(&scenario(Store::Redis, &server, 100, phase), 0);
    let windows = place.rows("windows.csv");
    let sum = |stages: &[&str], operation: &str, column: &str| {
        let of = windows
            .iter()
            .filter(|row| stages.contains(&row["stage"].as_str()) && row["operation"] == operation);
        of.map(|row| count(row, column)).sum::<u64>()
    };
    let (mut all, mut drained) = (0, 0);
    let rows = place.rows("operations.csv");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let operation = &row["operation"];
        for column in [
            "operations",
            "succeeded",
            "found",
            "bytes_sent",
            "bytes_received",
        ] {
            assert_eq!(
                count(row, column),
                sum(&["measured", "drain"], operation, column),
                "{operation} {column}"
            );
        }
        // By duration: exactly the time asked for, and what was drained is no part of the throughput.
        assert_eq!(figure(row, "elapsed_seconds"), 1.0);
        let inside = sum(&["measured"], operation, "succeeded");
        assert!((figure(row, "throughput_per_second") - inside as f64).abs() < 0.001);
        all += count(row, "operations");
        drained += sum(&["drain"], operation, "operations");
    }
    assert!(
        (1..=10).contains(&drained),
        "each session has one in flight at most: {drained}"
    );
    assert!(sum(&["warmup"], "get", "operations") > 0);
    // By duration thread t of 10 takes every tenth key: nine of them always take 10 ms, one 50 ms. 920 per second, never more.
    assert!((100..=930).contains(&all), "{all}");
    let expected =
        all + sum(&["warmup"], "get", "operations") + sum(&["warmup"], "set", "operations");
    let asked = server.requests() as u64;
    assert!(
        asked >= expected && asked <= expected + 10 * 5 + 40,
        "{asked} requests, {expected} operations"
    );
    let starts: Vec<f64> = windows
        .iter()
        .filter(|row| row["stage"] == "measured" && row["operation"] == "get")
        .map(|row| figure(row, "window_start_seconds"))
        .collect();
    assert!(
        starts.windows(2).all(|pair| pair[0] < pair[1]),
        "{starts:?}"
    );
}

/// Two groups, two workers: both at the same time, for the time of the slower one.
#[test]
fn groups_work_at_the_same_time() {
    let delay = |_| Duration::from_millis(10);
    let server = serve(
        Store::Memcached,
        store(Store::Memcached, delay, |key| repeated(key, 100)),
    );
    let phase = "[[phases]]\nname = \"both\"\n[[phases.groups]]\nname = \"read\"\noperation = \"get\"\nthreads = 3\noperations = 90\n\
                 [[phases.groups]]\nname = \"write\"\noperation = \"set\"\nthreads = 2\noperations_per_thread = 30\n";
    let text = scenario(Store::Memcached, &server, 100, phase)
        .replace("[client]", "[client]\nworkers = 2");
    tries(|| {
        let place = run(&text, 0);
        let rows = place.rows("operations.csv");
        let by_group: HashMap<_, _> = rows
            .iter()
            .map(|row| (row["group"].as_str(), row))
            .collect();
        let (read, write) = (by_group["read"], by_group["write"]);
        assert_eq!((count(read, "found"), count(write, "succeeded")), (90, 60));
        assert_eq!((count(read, "threads"), count(write, "threads")), (3, 2));
        assert_eq!((count(read, "workers"), count(read, "connections")), (2, 3));
        let elapsed = figure(read, "elapsed_seconds");
        assert!(elapsed >= 0.3, "{elapsed}");
        match elapsed < 0.45 {
            true => Ok(()),
            false => Err(format!("{elapsed} s: one after the other would be 0.6 s")),
        }
    });
}

#[test]
fn passes_are_whole_and_their_seconds_are_those_of_one() {
    let server = serve(
        Store::Redis,
        store(
            Store::Redis,
            |_| Duration::from_millis(2),
            |key| repeated(key, 100),
        ),
    );
    let phase = "[[phases]]\nname = \"get\"\noperation = \"get\"\nthreads = 2\noperations = 50\nat_least = \"400ms\"\nverify = true\n";
    let place = run(&scenario(Store::Redis, &server, 100, phase), 0);
    let row = only_row(&place);
    let passes = count(&row, "passes");
    assert!((2..=8).contains(&passes), "{passes}");
    assert_eq!(count(&row, "operations"), passes * 50);
    assert_eq!(count(&row, "found"), passes * 50);
    let one = figure(&row, "elapsed_seconds");
    assert!(one >= 0.05, "25 operations of 2 ms in a row: {one}");
    assert!(one * passes as f64 >= 0.4);
    let throughput = figure(&row, "throughput_per_second");
    assert!(
        (throughput * one - 50.0).abs() < 0.5,
        "{throughput} in {one} s"
    );
    let windows = place.rows("windows.csv");
    let sum: u64 = windows.iter().map(|row| count(row, "operations")).sum();
    assert_eq!(sum, passes * 50);
    let mut starts: Vec<&str> = windows
        .iter()
        .map(|row| row["window_start_seconds"].as_str())
        .collect();
    let all = starts.len();
    starts.dedup();
    assert_eq!(starts.len(), all, "a window is there twice");
}

/// A batch of four is one round trip: the answers come together, and each operation took as long as its batch.
#[test]
fn a_pipeline_sends_a_batch_at_once() {
    let most = std::sync::Arc::new(Mutex::new(HashMap::<usize, usize>::new()));
    let gets = std::sync::Arc::new(AtomicUsize::new(0));
    let (seen, counted) = (std::sync::Arc::clone(&most), std::sync::Arc::clone(&gets));
    let inner = store(
        Store::Redis,
        |key| Duration::from_millis(if key % 4 == 0 { 8 } else { 0 }),
        |key| repeated(key, 100),
    );
    let counting: Script = Box::new(move |connection, request| {
        if request.windows(3).any(|window| window == b"key") {
            counted.fetch_add(1, Ordering::SeqCst);
            *seen.lock().unwrap().entry(connection).or_default() += 1;
        }
        inner(connection, request)
    });
    let server = serve(Store::Redis, counting);
    let phase = "[[phases]]\nname = \"get\"\noperation = \"get\"\noperations = 200\npipeline = 4\nverify = true\n";
    tries(|| {
        let before = gets.load(Ordering::SeqCst);
        let row = only_row(&run(&scenario(Store::Redis, &server, 100, phase), 0));
        assert_eq!(
            (count(&row, "operations"), count(&row, "found")),
            (200, 200)
        );
        assert_eq!(gets.load(Ordering::SeqCst) - before, 200);
        let elapsed = figure(&row, "elapsed_seconds");
        // Fifty batches of 8 ms. One at a time they would take as long, but only a quarter of them would see any of it.
        assert!(elapsed >= 0.4, "{elapsed}");
        assert!(
            figure(&row, "succeeded_service_time_min_us") >= 7_990.0,
            "{row:?}"
        );
        near(&row, "service_time_p50_us", Duration::from_millis(8), 0.15)
    });
}
