//! A long run holds no more memory than a short one: windows are written, not kept.

use crate::guarded::within;
use crate::kit::Place;
use crate::texts;
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Resident memory in KiB.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_phase() {
    let scenario = format!(
        "schema = 1\nname = \"long\"\n[client]\nwindow = \"10ms\"\nworkers = 2\n[targets.null]\ndriver = \"null\"\n{}{}",
        texts::DATA,
        texts::LONG
    );
    let place = Place::with(&scenario);
    let going = place.start(&[]);
    let began = || {
        std::fs::metadata(place.out().join("windows.csv")).is_ok_and(|file| file.len() > 100_000)
    };
    assert!(within(Duration::from_secs(60), began));
    // The largest of several looks, since memory goes up and down with the windows under way.
    let largest = |length: Duration| {
        let until = Instant::now() + length;
        let mut largest = 0;
        while Instant::now() < until {
            largest = largest.max(resident(going.pid()));
            std::thread::sleep(Duration::from_millis(50));
        }
        largest
    };
    std::thread::sleep(Duration::from_secs(2));
    let early = largest(Duration::from_secs(2));
    std::thread::sleep(Duration::from_secs(14));
    let late = largest(Duration::from_secs(2));
    println!("{early} KiB after 4 s, {late} KiB after 20 s");
    assert!(
        late < early + early / 4 + 4_096,
        "{early} KiB, then {late} KiB"
    );
    going.signal(Signal::SIGINT);
    going.wait().expect(130);
    // 16 seconds of windows of 10 ms, of one operation each.
    assert!(place.rows("runs.csv").is_empty());
}
