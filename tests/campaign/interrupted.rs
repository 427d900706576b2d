//! Ctrl-C, SIGTERM, `kill -9` at any moment, and going on afterwards.

use crate::guarded::within;
use crate::kit::{Place, Row, SOON};
use crate::support::installed;
use crate::texts;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Four runs on Redis: two that are done at once, then one that would last ten minutes.
fn third_run_lasts() -> String {
    let long = texts::LONG.replace("name = \"set\"", "name = \"long\"\nwhen = \"{{ n == 3 }}\"");
    texts::swept("[1, 2, 3, 4]", "", &[texts::SET, &long].concat())
}

/// The table but for its notes: whether the client was busy in so short a phase is another matter each time.
fn counts(place: &Place) -> Vec<Row> {
    let mut rows = place.rows("tables/counts.csv");
    for row in &mut rows {
        row.remove("notes").expect("a column of notes");
    }
    rows
}

#[track_caller]
fn wait_for_runs(place: &Place, count: usize) {
    let there = within(Duration::from_secs(60), || place.runs_so_far() >= count);
    assert!(there, "run {count} never ended");
    assert!(
        within(Duration::from_secs(20), || !place.servers().is_empty()),
        "the server of the next run never came"
    );
}

#[test]
fn ctrl_c_keeps_the_finished_runs_and_leaves_nothing_behind() {
    if !installed("redis-server") {
        return;
    }
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::with(&third_run_lasts());
        let going = place.start(&[]);
        wait_for_runs(&place, 2);
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        going.signal(signal);
        let ended = going.wait().expect(130);
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        assert!(ended.stderr.contains("--resume out"), "{}", ended.stderr);
        place.assert_nothing_left();
        let expected = ["n=1#1", "n=2#1"].map(|run| (run.to_owned(), "valid".to_owned()));
        assert_eq!(place.statuses(), BTreeMap::from(expected));
        for file in ["operations.csv", "windows.csv", "servers.csv"] {
            let rows = place.rows(file);
            assert!(rows.iter().all(|row| row["run"] != "n=3#1"), "{file}");
        }
        assert!(place.text("manifest.json").contains("\"exit_code\": 130"));
    }
}

/// With windows that close faster than anybody looks, events never pause; ctrl-C is seen all the same.
#[test]
fn ctrl_c_is_seen_in_a_phase_of_short_windows() {
    let scenario = texts::on_redb(texts::LONG).replace(
        "[targets.redb]",
        "[client]\nwindow = \"5ms\"\n[targets.redb]",
    );
    let place = Place::with(&scenario.replace("threads = 2", "threads = 1"));
    let going = place.start(&[]);
    let grows =
        || std::fs::metadata(place.out().join("windows.csv")).is_ok_and(|file| file.len() > 10_000);
    assert!(within(Duration::from_secs(30), grows));
    let asked = Instant::now();
    going.signal(Signal::SIGINT);
    going.wait().expect(130);
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    place.assert_nothing_left();
}

#[test]
fn the_second_ctrl_c_ends_at_once_and_the_servers_with_it() {
    if !installed("redis-server") {
        return;
    }
    let place = Place::with(&texts::on_redis(texts::LONG));
    let going = place.start(&[]);
    wait_for_runs(&place, 0);
    going.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(20));
    going.signal(Signal::SIGINT);
    let asked = Instant::now();
    let ended = going.wait().expect(130);
    assert!(asked.elapsed() < Duration::from_secs(2), "{ended:?}");
    place.assert_nothing_left();
}

#[test]
fn a_resumed_campaign_ends_with_the_table_of_an_undisturbed_one() {
    if !installed("redis-server") {
        return;
    }
    let undisturbed = Place::with(&texts::small());
    undisturbed.scenario(&[]).expect(0);
    let place = Place::with(&texts::small());
    let going = place.start(&[]);
    wait_for_runs(&place, 1);
    going.signal(Signal::SIGINT);
    going.wait();
    assert!(place.statuses().len() < 8);
    let ended = place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(0);
    assert!(
        ended.stderr.contains("are done already"),
        "{}",
        ended.stderr
    );
    let mut expected = undisturbed.statuses();
    assert_eq!(expected.len(), 8);
    assert_eq!(place.statuses(), expected);
    assert_eq!(counts(&place), counts(&undisturbed));
    // Once more, and there is nothing to do.
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(0);
    expected = place.statuses();
    assert_eq!(expected.len(), 8);
    place.assert_nothing_left();
}

#[test]
fn a_changed_scenario_is_not_resumed() {
    let scenario = texts::on_redb(texts::SET);
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(0);
    let before = place.text("runs.csv");
    place.write(
        "s.toml",
        &scenario.replace("operations = 200", "operations = 201"),
    );
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(1)
        .says("holds the runs of another plan");
    assert_eq!(place.text("runs.csv"), before);
    // A title changes no run.
    place.write("s.toml", &format!("title = \"other\"\n{scenario}"));
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(0);
    place
        .run(&["scenario", "s.toml", "--resume", "nowhere"])
        .expect(1);
}

/// Fifty kills at moments spread over all that a small campaign does. What was finished stays to the byte, the rest is done.
#[test]
fn killed_at_fifty_moments_a_campaign_loses_only_the_run_it_was_in() {
    if !installed("redis-server") {
        return;
    }
    let undisturbed = Place::with(&texts::small());
    let began = Instant::now();
    undisturbed.scenario(&[]).expect(0);
    // A run and a half, so that a kill now and then comes after one was finished.
    let reach = began
        .elapsed()
        .mul_f64(1.5 / 8.0)
        .max(Duration::from_millis(100));
    let table = counts(&undisturbed);
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()));
    println!("the kills come from {random:?}, within {reach:?}");
    let mut kills = 0;
    while kills < 50 {
        let place = Place::with(&texts::small());
        let mut known = String::new();
        for attempt in 0.. {
            let mut going = match place.out().join("manifest.json").exists() {
                true => {
                    crate::kit::Going::of(place.command(&["scenario", "s.toml", "--resume", "out"]))
                }
                false => {
                    let _ = std::fs::remove_dir_all(place.out());
                    place.start(&[])
                }
            };
            if kills < 50 && attempt < 12 {
                std::thread::sleep(reach.mul_f64(random.fraction()));
                if !going.is_over() {
                    going.signal(Signal::SIGKILL);
                    kills += 1;
                }
            }
            let ended = going.wait();
            let runs = std::fs::read_to_string(place.out().join("runs.csv")).unwrap_or_default();
            assert!(
                runs.starts_with(&known),
                "finished runs changed:\n{known}\n{runs}"
            );
            known = whole_rows(&runs).to_owned();
            match ended.code {
                None => continue,
                Some(code) => assert_eq!(code, 0, "{}", ended.stderr),
            }
            break;
        }
        assert_eq!(place.statuses(), undisturbed.statuses());
        assert_eq!(counts(&place), table);
        let operations = place.rows("operations.csv");
        assert_eq!(operations.len(), 8, "one row per run");
        let alive = || place.servers().is_empty();
        assert!(within(SOON, alive), "alive: {:?}", place.servers());
        place.assert_nothing_left();
    }
}

/// A row that was being written when the kill came is not there yet.
fn whole_rows(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

/// xorshift: enough for moments.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
