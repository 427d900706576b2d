//! Logs replayed into SQLite by the real program: who replays what, exactly; what is refused; when statements start.

use crate::kit::{Ended, Place, Row};

const HEAD: &str = "schema = 1\nname = \"replay\"\n[targets.sqlite]\ndriver = \"sqlite\"\n";

/// `more` is what stands in the replay beside its file, `phase` what stands in the phase beside the replay.
fn scenario(more: &str, phase: &str) -> String {
    format!(
        "{HEAD}[operations.make]\nsqlite = {{ statements = [\"CREATE TABLE t (a)\"] }}\n\
         [operations.rows]\nsqlite = {{ statements = [\"SELECT count(*) FROM t\"] }}\n\
         [[phases]]\nname = \"queries\"\nprepare = [\"make\"]\nreplay = {{ file = \"queries.log\"{more} }}\n{phase}\n\
         [[probes]]\nname = \"rows\"\nafter = \"queries\"\noperation = \"rows\"\n"
    )
}

fn run(log: &str, more: &str, phase: &str) -> (Place, Ended) {
    let place = Place::with(&scenario(more, phase));
    place.write("queries.log", log);
    let ended = place.scenario(&[]).expect(0);
    (place, ended)
}

fn queries(place: &Place) -> Row {
    let rows = place.rows("operations.csv");
    let mut rows = rows.into_iter().filter(|row| row["phase"] == "queries");
    rows.next().expect("a row of the replay")
}

fn number(row: &Row, column: &str) -> f64 {
    let cell = &row[column];
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} is `{cell}`"))
}

fn rows_in_table(place: &Place) -> String {
    place.rows("probes.csv")[0]["value"].clone()
}

fn inserts(count: usize) -> String {
    (0..count)
        .map(|number| format!("INSERT INTO t VALUES ({number});\n"))
        .collect()
}

#[test]
fn every_client_replays_the_whole_log_or_they_share_it() {
    for (more, expected) in [
        (", allow_writes = true", 300),
        (", allow_writes = true, per_thread = \"share\"", 100),
        (", allow_writes = true, first = 10", 30),
    ] {
        let (place, _) = run(&inserts(100), more, "threads = 3");
        let row = queries(&place);
        assert_eq!(number(&row, "operations"), f64::from(expected), "{more}");
        assert_eq!(row["succeeded"], row["operations"]);
        assert_eq!(row["operation"], "statement");
        assert_eq!(row["load_model"], "closed");
        // What the store holds is what was replayed.
        assert_eq!(rows_in_table(&place), expected.to_string());
    }
}

#[test]
fn at_least_repeats_whole_passes_of_the_log() {
    let (place, _) = run(
        &inserts(50),
        ", allow_writes = true, per_thread = \"share\"",
        "threads = 3\nat_least = \"200ms\"",
    );
    let row = queries(&place);
    let passes = number(&row, "passes");
    assert!(passes >= 1.0);
    assert_eq!(number(&row, "operations"), 50.0 * passes);
    assert_eq!(rows_in_table(&place), (50.0 * passes).to_string());
}

#[test]
fn with_a_duration_the_log_is_begun_again_when_it_ends() {
    let (place, _) = run("SELECT 1;\nSELECT 2;\n", "", "duration = \"500ms\"");
    let row = queries(&place);
    assert!(number(&row, "operations") > 20.0, "{row:?}");
    assert!((number(&row, "elapsed_seconds") - 0.5).abs() < 0.01);
}

#[test]
fn a_log_with_a_drop_table_is_harmless_and_what_the_store_rejects_is_counted() {
    let log = "DROP TABLE t;\nSELECT 1;\nSELECT * FROM nowhere;\nDELETE FROM t;\nSELECT 2;\n";
    let (place, ended) = run(log, "", "threads = 2");
    let row = queries(&place);
    assert_eq!(number(&row, "operations"), 6.0);
    assert_eq!(number(&row, "succeeded"), 4.0);
    assert_eq!(number(&row, "failed"), 2.0);
    let errors = place.rows("errors.csv");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["count"], "2");
    assert!(errors[0]["first_message"].contains("nowhere"));
    // The table is still there.
    assert_eq!(rows_in_table(&place), "0");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("2 statements may write"), "{said}");
}

/// A general log whose statements stand at these seconds of its first minute.
fn general(seconds: &[u32]) -> String {
    let mut log = String::from("261130 20:00:00\t     1 Connect\ta@h on one using TCP/IP\n");
    let mut before = 0;
    for second in seconds {
        let time = match *second == before {
            true => "\t".to_owned(),
            false => format!("261130 20:{:02}:{:02}", second / 60, second % 60),
        };
        log += &format!("{time}\t     1 Query\tSELECT {second}\n");
        before = *second;
    }
    log
}

fn assert_on_time(row: &Row) {
    assert_eq!(row["load_model"], "recorded");
    assert!(number(row, "start_lag_p50_us") < 100_000.0, "{row:?}");
    // A statement is answered after it was meant to start, at the earliest when it was answered.
    assert!(number(row, "response_time_p50_us") >= number(row, "service_time_p50_us"));
}

#[test]
fn statements_start_at_their_recorded_times_and_speed_2_halves_them() {
    let mut seconds = vec![0; 20];
    seconds.extend([1; 20]);
    seconds.push(2);
    for (speed, expected) in [(1, 2.0), (2, 1.0)] {
        let more = format!(", timing = \"recorded\", speed = {speed}");
        let (place, _) = run(&general(&seconds), &more, "");
        let row = queries(&place);
        let elapsed = number(&row, "elapsed_seconds");
        assert!(
            (expected..expected + 0.4).contains(&elapsed),
            "speed {speed}: {elapsed} s"
        );
        assert_eq!(number(&row, "operations"), 41.0);
        assert_on_time(&row);
    }
}

#[test]
fn a_log_that_is_begun_again_goes_on_at_its_own_pace() {
    let mut seconds = vec![0; 20];
    seconds.extend([1; 20]);
    let (place, _) = run(
        &general(&seconds),
        ", timing = \"recorded\", speed = 4",
        "duration = \"2s\"",
    );
    // 40 statements in the 2 seconds of the log, so 80 in a second of ours.
    let row = queries(&place);
    let operations = number(&row, "operations");
    assert!((140.0..=161.0).contains(&operations), "{operations}");
    assert_on_time(&row);
}

#[test]
fn no_statement_is_waited_for_past_the_end_of_a_phase() {
    let (place, _) = run(
        &general(&[0, 3000]),
        ", timing = \"recorded\"",
        "duration = \"300ms\"\nthreads = 2",
    );
    let row = queries(&place);
    assert_eq!(number(&row, "operations"), 2.0);
    let run = &place.rows("runs.csv")[0];
    assert!(number(run, "elapsed_seconds") < 30.0, "{run:?}");
}

#[test]
fn what_a_log_was_stands_in_the_manifest() {
    let log = "SELECT 1;\nDROP TABLE t;\n";
    let (place, _) = run(log, "", "");
    let manifest: serde_json::Value = serde_json::from_str(&place.text("manifest.json")).unwrap();
    let facts = &manifest["logs"][0];
    assert_eq!(facts["file"], "queries.log");
    assert_eq!(facts["bytes"], log.len());
    assert_eq!(facts["format"], "sql");
    assert_eq!(facts["statements"], 1);
    assert_eq!(facts["refused"], 1);
    assert_eq!(
        facts["sha256"],
        "de908f8f548571b874369d1aaf43837e2b7b7876e10e40cbdfd82065f02b7f7e"
    );
}
