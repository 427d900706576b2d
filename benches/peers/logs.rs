//! How fast a general log is read, beside a plain count of its lines.

use super::{add, rounds, row};
use dbbench::workload::querylog::{self, Format, Listener, Logged, NotUnderstood};
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

const BYTES: u64 = 300_000_000;

#[derive(Default)]
struct Counting {
    statements: u64,
    bytes: u64,
}

impl Listener for Counting {
    fn statement(&mut self, logged: &Logged<'_>) -> ControlFlow<()> {
        self.statements += 1;
        self.bytes += logged.text.len() as u64;
        ControlFlow::Continue(())
    }

    fn not_understood(&mut self, place: NotUnderstood) {
        panic!("{place:?} is not understood");
    }
}

/// A log as MariaDB writes it: connections, one-line statements, some of several lines. Returns how many statements.
fn write_log(path: &Path) -> u64 {
    let mut file = BufWriter::new(std::fs::File::create(path).expect("a file for the log"));
    let mut say = |text: &str| {
        file.write_all(text.as_bytes()).expect("the log is written");
        text.len() as u64
    };
    let (mut written, mut statements) = (0, 0);
    written += say(
        "mariadbd, Version: 10.11.6-MariaDB-log (Debian 12). started with:\nTcp port: 3306  Unix socket: /run/s.sock\nTime\t\t    Id Command\tArgument\n",
    );
    written += say("261130 20:58:47\t    28 Connect\tbench@127.0.0.1 on  using TCP/IP\n");
    while written < BYTES {
        let id = statements * 7919 % 1_000_003;
        written += match statements % 20 {
            0 => say(&format!(
                "261130 20:58:47\t    28 Query\tSELECT id,\n       name,\n       added\n  FROM customers\n WHERE id = {id}\n   AND name <> 'it\\'s'\n"
            )),
            _ => say(&format!(
                "\t\t    28 Query\tSELECT * FROM orders WHERE customer = {id} AND state = 'open' ORDER BY added DESC LIMIT 10\n"
            )),
        };
        statements += 1;
    }
    statements
}

fn count_lines(path: &Path) -> u64 {
    let mut file = std::fs::File::open(path).expect("the log");
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer).expect("the log is read") {
            0 => return lines,
            count => lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64,
        }
    }
}

pub fn querylog() {
    let place = tempfile::tempdir().expect("a directory for the log");
    let path = place.path().join("general.log");
    let written = write_log(&path);
    let bytes = std::fs::metadata(&path).expect("the log").len() as f64;
    let (mut speed, mut ratio) = Default::default();
    rounds(|_| {
        let began = Instant::now();
        let lines = count_lines(&path);
        let counting = began.elapsed().as_secs_f64();
        assert!(lines > written);
        let began = Instant::now();
        let mut heard = Counting::default();
        querylog::read(&path, Format::Auto, &mut heard).expect("the log is read");
        let reading = began.elapsed().as_secs_f64();
        assert_eq!(heard.statements, written);
        add(&mut speed, Some(bytes / 1e6 / reading));
        add(&mut ratio, Some(reading / counting));
    });
    let cells = [("MB/s", speed.value()), ("time/line count", ratio.value())];
    row("querylog", bytes as u64, "read", &cells);
}
