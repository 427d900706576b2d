//! Facts about the sqlite driver on real files: its files, locks, and the user's own statements.

use super::*;
use crate::driver::CustomOperation;
use crate::driver::embedded::kit::{self, Kit};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn a_clean_close_keeps_everything() {
    Kit::<Sqlite>::new(&[]).reopens();
    Kit::<Sqlite>::new(&[("journal_mode", "delete"), ("synchronous", "extra")]).reopens();
}

#[test]
fn an_acknowledged_write_survives_a_kill_where_os_is_claimed() {
    kit::survives_a_kill::<Sqlite>(
        "driver::sqlite::tests::an_acknowledged_write_survives_a_kill_where_os_is_claimed",
        &[],
    );
}

#[test]
fn a_full_disk_is_a_failure_with_its_code() {
    kit::tells_a_full_disk::<Sqlite>(
        "driver::sqlite::tests::a_full_disk_is_a_failure_with_its_code",
        &[],
    );
}

#[test]
fn a_directory_that_cannot_be_made_is_a_client_failure() {
    kit::refuses_a_file_for_a_directory::<Sqlite>();
}

#[test]
fn settings_are_those_in_force() {
    let kit = Kit::<Sqlite>::new(&[
        ("journal_mode", "delete"),
        ("synchronous", "full"),
        ("cache_size", "8MiB"),
        ("page_size", "8KiB"),
        ("busy_timeout", "1500ms"),
        ("without_rowid", "true"),
    ]);
    let driver = kit.open();
    let settings = kit.control(&driver).settings(LIMIT).expect("settings");
    let of = |name: &str| {
        let found = settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).expect("a setting")
    };
    assert_eq!(of("journal_mode"), "delete");
    assert_eq!(of("synchronous"), "full");
    assert_eq!(of("cache_size"), "-8192");
    assert_eq!(of("page_size"), "8192");
    assert_eq!(of("busy_timeout"), "1500");
    assert!(of("table").contains("WITHOUT ROWID"));
}

#[test]
fn a_lock_that_does_not_come_is_a_failure_of_the_server_with_its_code() {
    let kit = Kit::<Sqlite>::new(&[("busy_timeout", "50ms")]);
    let driver = kit.open();
    let mut session = kit::session(&driver);
    let holder = driver.config.open().expect("a connection");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let start = Instant::now();
    let busy = kit::failed(kit::run(&mut session, Verb::Set, b"a", b"1"));
    assert!(start.elapsed() >= Duration::from_millis(40));
    assert_eq!(busy.class, ErrorClass::Server);
    assert_eq!(busy.code, "SQLITE_BUSY");
    assert!(!busy.broken);
    let both = kit::failed(kit::run(&mut session, Verb::ReadModifyWrite, b"a", b"1"));
    assert_eq!(both.code, "SQLITE_BUSY");
    holder.execute_batch("ROLLBACK").expect("the lock is free");
    assert_eq!(kit::run(&mut session, Verb::Set, b"a", b"1"), Outcome::Done);
}

#[test]
fn a_full_disk_is_told_by_its_code_and_the_session_goes_on() {
    // As many pages as the table needs and a few: then the file is as full as a full disk.
    let kit = Kit::<Sqlite>::new(&[]);
    let driver = kit.open();
    let mut session = kit::session(&driver);
    session
        .connection
        .execute_batch("PRAGMA max_page_count = 20")
        .expect("a limit");
    let full = kit::failed(kit::run(&mut session, Verb::Set, b"a", &vec![0; 1 << 20]));
    assert_eq!(
        (full.class, full.code.as_str()),
        (ErrorClass::Client, "ENOSPC")
    );
    assert_eq!(
        kit::run(&mut session, Verb::Set, b"a", b"small"),
        Outcome::Done
    );
    kit::holds(&mut session, b"a", b"small");
}

#[test]
fn a_statement_gives_its_first_value_and_keeps_to_its_limit() {
    let kit = Kit::<Sqlite>::new(&[]);
    let driver = kit.open();
    let mut control = kit.control(&driver);
    let mut say = |sql: &str| control.statement(sql, LIMIT);
    assert_eq!(say("CREATE TABLE t (n INTEGER)"), Ok(String::new()));
    assert_eq!(say("INSERT INTO t VALUES (41), (43)"), Ok(String::new()));
    assert_eq!(say("SELECT sum(n), 'more' FROM t"), Ok("84".to_owned()));
    assert_eq!(say("SELECT n FROM t WHERE n > 99"), Ok(String::new()));
    let endless =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT sum(n) FROM c";
    let start = Instant::now();
    let stopped = control.statement(endless, Duration::from_millis(100));
    assert_eq!(stopped.expect_err("endless").class, ErrorClass::Timeout);
    assert!(start.elapsed() < LIMIT);
    control.reset(LIMIT).expect("the store can be emptied");
    let gone = control.statement("SELECT count(*) FROM t", LIMIT);
    assert!(
        gone.expect_err("no table")
            .message
            .contains("no such table")
    );
}

/// A driver with operations of the user's own on a table `incr (number)` of one row.
fn with_operations(kit: &Kit<Sqlite>, tables: &[Value]) -> Sqlite {
    let mut target = kit.target();
    target.operations = tables
        .iter()
        .map(|table| {
            Some(CustomOperation {
                name: "own".to_owned(),
                table: kit::table(table.clone()),
            })
        })
        .collect();
    let driver = Sqlite::open(target).expect("the store opens");
    let mut control = kit.control(&driver);
    for sql in [
        "CREATE TABLE incr (number INTEGER)",
        "INSERT INTO incr VALUES (0)",
    ] {
        control.statement(sql, LIMIT).expect("a table");
    }
    driver
}

#[test]
fn statements_of_one_transaction_are_done_together_or_not_at_all() {
    let kit = Kit::<Sqlite>::new(&[]);
    let increment = "UPDATE incr SET number = number + 1";
    let driver = with_operations(
        &kit,
        &[
            json!({ "transaction": true, "statements": [increment, "SELECT number FROM incr"], "expect": "^[0-9]+$" }),
            json!({ "transaction": true, "statements": [increment, "SELECT x FROM nowhere"] }),
            json!({ "transaction": true, "statements": [increment, "SELECT number FROM incr"], "expect": "^never$" }),
            json!({ "statements": ["BEGIN", increment] }),
        ],
    );
    let mut session = kit::session(&driver);
    let mut own = |number| kit::run(&mut session, Verb::Custom(number), b"", b"");
    assert_eq!(own(0), Outcome::Found);
    assert_eq!(own(0), Outcome::Found);
    assert!(kit::failed(own(1)).message.contains("no such table"));
    let unexpected = kit::failed(own(2));
    assert_eq!(unexpected.class, ErrorClass::UnexpectedReply);
    assert!(unexpected.message.contains("`3`"), "{unexpected}");
    assert!(
        kit::failed(own(3))
            .message
            .contains("left a transaction open")
    );
    let mut control = kit.control(&driver);
    let number = control.statement("SELECT number FROM incr", LIMIT);
    assert_eq!(number, Ok("2".to_owned()));
}

#[test]
fn many_sessions_can_increment_in_transactions_without_a_failure() {
    let kit = Kit::<Sqlite>::new(&[("busy_timeout", "60s")]);
    let driver = with_operations(
        &kit,
        &[json!({
            "transaction": true,
            "statements": ["SELECT number FROM incr", "UPDATE incr SET number = number + 1"],
        })],
    );
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = kit::session(&driver);
                for _ in 0..100 {
                    let outcome = kit::run(&mut session, Verb::Custom(0), b"", b"");
                    assert_eq!(outcome, Outcome::Found);
                }
            });
        }
    });
    let mut control = kit.control(&driver);
    let number = control.statement("SELECT number FROM incr", LIMIT);
    assert_eq!(number, Ok("400".to_owned()));
}

#[test]
fn arguments_are_bound_and_never_read_as_sql() {
    let kit = Kit::<Sqlite>::new(&[]);
    let driver = with_operations(
        &kit,
        &[
            json!({ "statements": ["INSERT INTO dbbench VALUES ($key, $value)"] }),
            json!({ "statements": ["SELECT value, $index FROM dbbench WHERE key = $key"], "expect": "^it's" }),
            json!({ "statements": ["SELECT typeof($index) || typeof($key) || typeof($text(3))"], "expect": "^integerblobtext$" }),
            json!({ "statements": ["SELECT $unknown"] }),
        ],
    );
    let mut session = kit::session(&driver);
    let (key, value) = (
        b"'; DROP TABLE dbbench; --".as_slice(),
        b"it's \x00 here".as_slice(),
    );
    let mut own = |number| kit::run(&mut session, Verb::Custom(number), key, value);
    assert_eq!(own(0), Outcome::Done);
    assert_eq!(kit::failed(own(0)).class, ErrorClass::Rejected);
    assert_eq!(own(1), Outcome::Found);
    assert_eq!(own(2), Outcome::Found);
    assert!(kit::failed(own(3)).message.contains("none of dbbench's"));
    kit::holds(&mut session, key, value);
}

#[test]
fn faults_of_an_operation_are_found_before_anything_runs() {
    let check = |table: Value| (spec::SPEC.check_operation)(&kit::table(table));
    assert_eq!(check(json!({ "statements": ["SELECT $key"] })), Ok(()));
    let key = |table: Value| check(table).expect_err("a fault").key;
    assert_eq!(key(json!({ "statements": [] })), "statements");
    assert_eq!(
        key(json!({ "statements": ["SELECT $random(9, 1)"] })),
        "statements"
    );
    assert_eq!(
        key(json!({ "statements": ["SELECT '$key'"] })),
        "statements"
    );
    assert_eq!(
        key(json!({ "statements": ["SELECT 1"], "expect": "(" })),
        "expect"
    );
}
