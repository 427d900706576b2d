//! Every reader on real logs, on damaged ones, and what filters and spools make of them.

use super::filter::{Filter, From, parse_from};
use super::spool::{PerThread, Spool, Wanted};
use super::statement::Kind;
use super::summary::Summary;
use super::{Format, LONGEST, Listener, Logged, NotUnderstood, read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Connection, user, database, time, text, line.
type Said = (u64, String, String, Option<i64>, Vec<u8>, u64);

#[derive(Default)]
struct Heard {
    statements: Vec<Said>,
    places: Vec<NotUnderstood>,
}

impl Listener for Heard {
    fn statement(&mut self, logged: &Logged<'_>) -> ControlFlow<()> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.statements.push((
            logged.connection,
            text(logged.user),
            text(logged.database),
            logged.at_us,
            logged.text.to_vec(),
            logged.line,
        ));
        ControlFlow::Continue(())
    }

    fn not_understood(&mut self, place: NotUnderstood) {
        self.places.push(place);
    }
}

impl Heard {
    fn texts(&self) -> Vec<String> {
        let texts = self.statements.iter();
        texts
            .map(|(.., text, _)| String::from_utf8_lossy(text).into_owned())
            .collect()
    }
}

fn hear(text: &[u8], format: Format) -> (Heard, Format) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    std::fs::write(&path, text).expect("written");
    let mut heard = Heard::default();
    let format = read(&path, format, &mut heard).expect("read");
    (heard, format)
}

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/samples")
        .join(name);
    std::fs::read(path).expect("the sample")
}

#[test]
fn a_real_general_log_is_read_whole() {
    let (heard, format) = hear(&sample("general.log"), Format::Auto);
    assert_eq!(format, Format::MysqlGeneral);
    assert_eq!(heard.places, []);
    let texts = heard.texts();
    // Prepared statements stand once, as executed; headers in the middle and `Quit` are none.
    assert_eq!(
        texts
            .iter()
            .filter(|text| text.starts_with("SELECT s, d"))
            .count(),
        2
    );
    assert!(
        texts
            .iter()
            .all(|text| !text.contains(" = ?") && !text.contains("Tcp port"))
    );
    assert!(texts.contains(&"SELECT id,\n       s,\n       d\n  FROM t\n WHERE id > 10\n   AND s = 'two\nlines'\n ORDER BY id".to_owned()));
    assert!(texts.contains(&"select\n\tnumber\nfrom\n\n\tincr\nwhere 1=1".to_owned()));
    assert!(texts.contains(
        &"insert into t(s,d) values('tab\there', now()), ('quote''s', now())".to_owned()
    ));
    let at = |text: &str| {
        let found = heard
            .statements
            .iter()
            .find(|(.., said, _)| said == text.as_bytes());
        found.unwrap_or_else(|| panic!("{text}"))
    };
    // The database comes from `Connect`, later from `Init DB`.
    let (connection, user, database, time, ..) = at("select count(*)\nfrom incr");
    assert_eq!(
        (*connection, user.as_str(), database.as_str()),
        (33, "bench", "bench")
    );
    let expected: jiff::Timestamp = "2026-11-30T20:58:55Z".parse().expect("a time");
    assert_eq!(*time, Some(expected.as_microsecond()));
    // The fake entry inside a literal is undecidable only where it looks like a real one.
    assert!(texts.iter().any(|text| text.contains("fake")));
}

#[test]
fn a_real_slow_log_is_read_whole() {
    let (heard, format) = hear(&sample("slow.log"), Format::Auto);
    assert_eq!(format, Format::MysqlSlow);
    assert_eq!(heard.places, []);
    let texts = heard.texts();
    assert!(texts.contains(&"SET AUTOCOMMIT = 0".to_owned()));
    assert!(
        texts
            .iter()
            .all(|text| !text.starts_with("use ") && !text.starts_with("SET timestamp"))
    );
    assert!(
        texts
            .iter()
            .all(|text| !text.ends_with(';') && !text.contains("# Query_time"))
    );
    let (connection, user, database, time, ..) = heard
        .statements
        .iter()
        .find(|(.., text, _)| text.starts_with(b"create table if not exists t"))
        .expect("the table");
    assert_eq!(
        (*connection, user.as_str(), database.as_str()),
        (28, "bench", "bench")
    );
    assert_eq!(*time, Some(1_796_072_327_000_000));
}

const POSTGRES_CSV: &[u8] = b"2026-11-30 20:41:15.123 UTC,\"app\",\"shop\",77,\"[local]\",x.1,1,\"SELECT\",2026-11-30 20:41:10 UTC,3/4,0,LOG,00000,\"execute s1: SELECT \"\"a\"\"\nFROM t WHERE b = $1\",\"parameters: $1 = '5'\",,,,,,,,\"psql\",\"client backend\",,0\n2026-11-30 20:41:16.123 UTC,\"app\",\"shop\",77,\"[local]\",x.1,2,\"SELECT\",2026-11-30 20:41:10 UTC,3/4,0,LOG,00000,\"statement: SELECT 2\",,,,,,,,,\"psql\",\"client backend\",,0\n";

const POSTGRES_LOG: &[u8] =
    b"2026-11-30 20:41:15.123 UTC [77] bench@shop LOG:  statement: SELECT 1\n\
    2026-11-30 20:41:15.200 UTC [78] bench@shop LOG:  duration: 0.1 ms  statement: SELECT a\n\tFROM t\n\
    2026-11-30 20:41:15.300 UTC [77] bench@shop LOG:  execute s: SELECT $1\n\
    2026-11-30 20:41:15.300 UTC [77] bench@shop DETAIL:  parameters: $1 = 'x'\n\
    2026-11-30 20:41:15.400 UTC [77] bench@shop LOG:  statement: SELECT 3\n";

#[test]
fn a_log_cut_at_any_byte_gives_no_panic_and_never_a_statement_less_than_before() {
    let logs = [
        sample("general.log"),
        sample("slow.log"),
        POSTGRES_LOG.to_vec(),
        POSTGRES_CSV.to_vec(),
        b"SELECT 1;\nSELECT ';';\nSELECT 3 /* ; */;\n".to_vec(),
    ];
    for whole in logs {
        let (all, format) = hear(&whole, Format::Auto);
        let mut most = 0;
        for end in 0..whole.len() {
            let (heard, _) = hear(&whole[..end], format);
            let count = heard.statements.len();
            // Only the one in which the log is cut may be taken back, and that is told.
            let name = format.name();
            assert!(count <= all.statements.len(), "{name} {end}");
            assert!(count + 1 >= most, "{name} {end}: {count} after {most}");
            if count < most && format != Format::Sql {
                assert!(!heard.places.is_empty(), "{name} {end}");
            }
            most = most.max(count);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]
    /// Whatever statements are written to a general log, with line breaks and bytes that are no text: they are read back.
    #[test]
    fn what_is_written_to_a_general_log_is_read_back(
        statements in proptest::collection::vec(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 1..40),
            1..20,
        ),
    ) {
        let mut log = b"Time\t\t    Id Command\tArgument\n".to_vec();
        // A blank at its end would be taken for the log's.
        let ended = |text: &Vec<u8>| [b"SELECT ", text.as_slice(), b"."].concat();
        let written: Vec<Vec<u8>> = statements.iter().map(ended).collect();
        for (number, statement) in written.iter().enumerate() {
            log.extend_from_slice(format!("\t\t{:6} Query\t", number % 3).as_bytes());
            log.extend_from_slice(statement);
            log.push(b'\n');
        }
        let (heard, _) = hear(&log, Format::MysqlGeneral);
        let read: Vec<Vec<u8>> = heard.statements.iter().map(|(.., text, _)| text.clone()).collect();
        proptest::prop_assert_eq!(read, written);
        proptest::prop_assert_eq!(heard.places, []);
    }

    /// Noise is no statement and no panic in any format.
    #[test]
    fn noise_makes_no_reader_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        for name in Format::NAMES {
            hear(&bytes, Format::parse(name).expect("a format"));
        }
    }
}

#[test]
fn a_login_that_is_denied_changes_no_user() {
    let log = b"\t\t     5 Connect\tann@h on shop using TCP/IP\n\t\t     5 Connect\tAccess denied for user 'bob'@'h'\n\t\t     5 Query\tSELECT 1\n";
    let (heard, _) = hear(log, Format::MysqlGeneral);
    let (_, user, database, ..) = &heard.statements[0];
    assert_eq!((user.as_str(), database.as_str()), ("ann", "shop"));
}

#[test]
fn a_return_inside_a_statement_is_kept_and_one_at_the_end_of_every_line_is_not() {
    let (heard, _) = hear(
        b"Time\t\t    Id Command\tArgument\n\t\t     5 Query\tSELECT 'a\r\nb'\n\t\t     5 Quit\t\n",
        Format::MysqlGeneral,
    );
    assert_eq!(heard.texts(), ["SELECT 'a\r\nb'"]);
    let (heard, _) = hear(b"SELECT 1,\r\n2;\r\nSELECT 3;\r\n", Format::Sql);
    assert_eq!(heard.texts(), ["SELECT 1,\n2", "SELECT 3"]);
}

#[test]
fn a_slow_logs_head_may_tell_more_and_a_comment_in_a_statement_is_no_head() {
    let log = b"# Time: 261130 20:58:47\n# User@Host: a[a] @ h []\n# Thread_id: 3  Schema: shop  QC_hit: No\n\
        # Query_time: 0.1  Lock_time: 0.0  Rows_sent: 0  Rows_examined: 0\n# Stored_routine: shop.p\n#\n\
        # explain: id\tselect_type\n#\nSET timestamp=1796072327;\nSELECT 1\n#\n# a comment\n+ 2;\n";
    let (heard, format) = hear(log, Format::Auto);
    assert_eq!(format, Format::MysqlSlow);
    assert_eq!(heard.texts(), ["SELECT 1\n#\n# a comment\n+ 2"]);
    assert_eq!(heard.places, []);
}

#[test]
fn postgres_lines_that_are_not_understood_are_told() {
    let log = b"\tgoes on with nothing\n2026-11-30 20:41:15.123 UTC [77] LOG:  statement: SELECT 1\nnoise\n\
        2026-11-30 20:41:15.2 UTC [77] LOG:  execute fetch from s1/p1: SELECT 2\n";
    let (heard, _) = hear(log, Format::PostgresLog);
    assert_eq!(heard.texts(), ["SELECT 1"], "fetching is no statement");
    let lines: Vec<u64> = heard.places.iter().map(|place| place.line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn a_csvlog_that_is_cut_or_damaged_says_where() {
    let (heard, _) = hear(POSTGRES_CSV, Format::Auto);
    assert_eq!(
        heard.texts(),
        ["SELECT \"a\"\nFROM t WHERE b = '5'", "SELECT 2"]
    );
    assert_eq!(heard.statements[1].5, 3, "its line");
    let cut = &POSTGRES_CSV[..POSTGRES_CSV.len() - 60];
    let (heard, _) = hear(cut, Format::PostgresCsv);
    assert_eq!((heard.texts().len(), heard.places[0].line), (1, 3));
    // A quote that is never closed ends with the longest record, not with the log.
    let mut damaged = b"2026-11-30 20:41:15.1 UTC,\"app\n".to_vec();
    let filler = [b'x'; 1023];
    for _ in 0..(LONGEST >> 10) + 1 {
        damaged.extend_from_slice(&filler);
        damaged.push(b'\n');
    }
    damaged.extend_from_slice(POSTGRES_CSV);
    let (heard, _) = hear(&damaged, Format::PostgresCsv);
    assert_eq!(heard.texts().len(), 2);
    assert_eq!((heard.places.len(), heard.places[0].line), (1, 1));
}

#[test]
fn a_statement_longer_than_the_longest_is_refused_with_its_line() {
    let mut log = b"\t\t     5 Query\tSELECT 1\n\t\t     5 Query\tSELECT '".to_vec();
    for _ in 0..65 {
        log.resize(log.len() + (1 << 20), b'x');
        log.push(b'\n');
    }
    log.extend_from_slice(b"'\n\t\t     5 Query\tSELECT 2\n");
    let (heard, _) = hear(&log, Format::MysqlGeneral);
    assert_eq!(heard.texts(), ["SELECT 1", "SELECT 2"]);
    assert_eq!((heard.places.len(), heard.places[0].line), (1, 2));
}

#[test]
fn bytes_that_are_no_text_and_noise_are_kept_or_told() {
    let log = b"261130 20:41:15\t     5 Query\tSELECT '\xff\xfe'\n\t\t     5 Query\tSELECT 2\n";
    let (heard, _) = hear(log, Format::MysqlGeneral);
    assert_eq!(heard.statements[0].4, b"SELECT '\xff\xfe'");
    let (heard, _) = hear(
        b"nonsense\n\t\t     5 Query\tSELECT 2\n",
        Format::MysqlGeneral,
    );
    assert_eq!((heard.places.len(), heard.places[0].line), (1, 1));
    assert_eq!(heard.texts(), ["SELECT 2"]);
    let (heard, _) = hear(
        b"\t\t     5 Query\tSELECT 1\n\t\t     5 Query\tSELECT 'a",
        Format::MysqlGeneral,
    );
    assert_eq!(heard.places.len(), 1, "the last statement is cut off");
}

#[test]
fn the_hour_may_be_padded_and_the_time_be_mysqls() {
    let log = b"261130  5:47:12\t     3 Connect\troot@localhost on  using Socket\n\t\t     3 Query\tselect 1\n\
        2026-11-30T05:47:13.250000Z\t    4 Query\tselect 2\n";
    let (heard, _) = hear(log, Format::Auto);
    assert_eq!(heard.texts(), ["select 1", "select 2"]);
    let (first, second) = (heard.statements[0].3, heard.statements[1].3);
    assert_eq!(second.zip(first).map(|(b, a)| b - a), Some(1_250_000));
    assert_eq!(heard.statements[0].1, "root");
}

#[test]
fn statements_by_the_text_protocol_stand_once() {
    let log = b"\t\t     5 Query\tprepare p from 'select ?'\n\t\t     5 Prepare\tselect ?\n\
        \t\t     5 Query\texecute p using @a\n\t\t     5 Execute\tselect 7\n";
    let (heard, _) = hear(log, Format::MysqlGeneral);
    assert_eq!(heard.texts(), ["select 7"]);
}

#[test]
fn postgres_logs_are_read_with_their_parameters() {
    let log = b"2026-11-30 20:41:15.123 UTC [77] bench@shop LOG:  statement: SELECT 1\n\
        2026-11-30 20:41:15.200 UTC [78] user=app,db=shop LOG:  duration: 0.123 ms  statement: SELECT a\n\tFROM t\n\
        2026-11-30 20:41:15.300 UTC [77] bench@shop LOG:  execute <unnamed>: SELECT * FROM t WHERE a = $1 AND b = $2 AND c = '$1'\n\
        2026-11-30 20:41:15.300 UTC [77] bench@shop DETAIL:  parameters: $1 = 'it''s, so', $2 = NULL\n\
        2026-11-30 20:41:15.400 UTC [77] bench@shop ERROR:  relation \"x\" does not exist\n\
        2026-11-30 20:41:15.400 UTC [77] bench@shop STATEMENT:  SELECT * FROM x\n\
        2026-11-30 20:41:15.500 UTC [77] bench@shop LOG:  checkpoint starting: time\n";
    let (heard, format) = hear(log, Format::Auto);
    assert_eq!(format, Format::PostgresLog);
    assert_eq!(
        heard.texts(),
        [
            "SELECT 1",
            "SELECT a\nFROM t",
            "SELECT * FROM t WHERE a = 'it''s, so' AND b = NULL AND c = '$1'",
        ]
    );
    assert_eq!(heard.statements[0].0, 77);
    assert_eq!(heard.statements[0].1, "bench");
    assert_eq!(heard.statements[1].1, "app");
    assert_eq!(heard.statements[1].2, "shop");
    let csv = b"2026-11-30 20:41:15.123 UTC,\"app\",\"shop\",77,\"[local]\",x.1,1,\"SELECT\",2026-11-30 20:41:10 UTC,3/4,0,LOG,00000,\"execute s1: SELECT \"\"a\"\"\nFROM t WHERE b = $1\",\"parameters: $1 = '5'\",,,,,,,,\"psql\",\"client backend\",,0\n";
    let (heard, format) = hear(csv, Format::Auto);
    assert_eq!(format, Format::PostgresCsv);
    assert_eq!(heard.texts(), ["SELECT \"a\"\nFROM t WHERE b = '5'"]);
    assert_eq!(
        (heard.statements[0].1.as_str(), heard.statements[0].0),
        ("app", 77)
    );
}

#[test]
fn a_script_ends_statements_outside_of_quotes_and_comments() {
    let script = b"-- first; comment\nSELECT ';', \"a;b\" -- more;\n FROM t;\nSELECT 2; SELECT /* ; */ 3;\nDELIMITER $$\nCREATE PROCEDURE p() BEGIN SELECT 1; END$$\nDELIMITER ;\nSELECT 'it\\'s;';\nSELECT 4";
    let (heard, format) = hear(script, Format::Auto);
    assert_eq!(format, Format::Sql);
    assert_eq!(
        heard.texts(),
        [
            "SELECT ';', \"a;b\" \n FROM t",
            "SELECT 2",
            "SELECT /* ; */ 3",
            "CREATE PROCEDURE p() BEGIN SELECT 1; END",
            "SELECT 'it\\'s;'",
            "SELECT 4",
        ]
    );
    let (heard, format) = hear(b"SELECT 1\nSELECT 2\n\n", Format::Auto);
    assert_eq!(format, Format::Lines);
    assert_eq!(heard.texts(), ["SELECT 1", "SELECT 2"]);
    let (heard, _) = hear(b"SELECT 1;\nSELECT 'never ends;\n", Format::Sql);
    assert_eq!((heard.texts().len(), heard.places.len()), (1, 1));
}

fn log_of(directory: &Path) -> PathBuf {
    let path = directory.join("general.log");
    let mut log = String::from(
        "261130 20:00:00\t     1 Connect\ta@h on one using TCP/IP\n\t\t     2 Connect\tb@h on two using TCP/IP\n",
    );
    for number in 0..10 {
        log += &format!("\t\t     1 Query\tSELECT {number}\n\t\t     2 Query\tSELECT 1{number}\n");
    }
    log += "261130 20:00:05\t     1 Query\tDROP TABLE t\n\t\t     1 Query\tUPDATE t SET a = 1\n\t\t     2 Query\tSELECT 99\n";
    std::fs::write(&path, log).expect("written");
    path
}

fn replayed(
    filter: Filter,
    first: Option<u64>,
    per_thread: PerThread,
    threads: u32,
) -> (Vec<Vec<String>>, Spool) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = log_of(directory.path());
    let wanted = Wanted {
        path: &path,
        format: Format::Auto,
        filter,
        first,
        per_thread,
        threads,
    };
    let spool = Spool::make(&wanted, directory.path(), &mut |_| true).expect("made");
    let of_thread = |thread: u32| {
        let mut cursor = spool.cursor(thread).expect("there");
        let mut text = Vec::new();
        let mut texts = Vec::new();
        while cursor.next(&mut text).expect("read") {
            texts.push(String::from_utf8(text.clone()).expect("text"));
        }
        texts
    };
    ((0..threads).map(of_thread).collect(), spool.clone())
}

#[test]
fn what_may_write_is_left_out_unless_it_is_allowed() {
    let (threads, spool) = replayed(Filter::default(), None, PerThread::Whole, 1);
    assert_eq!(threads[0].len(), 21);
    assert_eq!(spool.report.refused, 2);
    assert!(threads[0].iter().all(|text| text.starts_with("SELECT")));
    let all = Filter {
        allow_writes: true,
        ..Filter::default()
    };
    let (threads, spool) = replayed(all, None, PerThread::Whole, 1);
    assert_eq!((threads[0].len(), spool.report.refused), (23, 0));
    assert!(threads[0].contains(&"DROP TABLE t".to_owned()));
}

#[test]
fn every_thread_gets_all_or_its_share_or_its_connections() {
    let (threads, _) = replayed(Filter::default(), None, PerThread::Whole, 3);
    assert!(
        threads
            .iter()
            .all(|texts| texts.len() == 21 && *texts == threads[0])
    );
    let (threads, _) = replayed(Filter::default(), None, PerThread::Share, 4);
    let lengths: Vec<usize> = threads.iter().map(Vec::len).collect();
    assert_eq!(lengths, [6, 5, 5, 5]);
    assert_eq!(threads[1][0], "SELECT 10");
    let (threads, _) = replayed(Filter::default(), None, PerThread::Connection, 2);
    assert_eq!(threads[0][..2], ["SELECT 0", "SELECT 1"]);
    assert_eq!((threads[0].len(), threads[1].len()), (10, 11));
}

#[test]
fn filters_choose_by_user_database_pattern_kind_count_and_time() {
    let count = |filter: Filter, first: Option<u64>| {
        let (threads, _) = replayed(filter, first, PerThread::Whole, 1);
        threads[0].len()
    };
    let none = Filter::default;
    assert_eq!(
        count(
            Filter {
                user: b"a".to_vec(),
                ..none()
            },
            None
        ),
        10
    );
    assert_eq!(
        count(
            Filter {
                database: b"two".to_vec(),
                ..none()
            },
            None
        ),
        11
    );
    let matching = regex::bytes::Regex::new("^SELECT 1\\d$").ok();
    assert_eq!(count(Filter { matching, ..none() }, None), 10);
    assert_eq!(count(none(), Some(3)), 3);
    let only = vec![Kind::Update];
    let updates = Filter {
        only,
        allow_writes: true,
        ..none()
    };
    assert_eq!(count(updates, None), 1);
    let late = |text: &str| Filter {
        from: parse_from(text),
        ..none()
    };
    assert_eq!(count(late("+5s"), None), 1);
    assert_eq!(count(late("2026-11-30 20:00:05"), None), 1);
    assert_eq!(parse_from("+10min"), Some(From::After(600_000_000)));
    assert_eq!(parse_from("yesterday"), None);
}

#[test]
fn statements_of_one_second_are_spread_over_it_in_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = log_of(directory.path());
    let wanted = Wanted {
        path: &path,
        format: Format::Auto,
        filter: Filter::default(),
        first: None,
        per_thread: PerThread::Whole,
        threads: 1,
    };
    let spool = Spool::make(&wanted, directory.path(), &mut |_| true).expect("made");
    let mut cursor = spool.cursor(0).expect("there");
    let (mut text, mut offsets) = (Vec::new(), Vec::new());
    while cursor.next(&mut text).expect("read") {
        offsets.push(cursor.offset_us());
    }
    assert_eq!(offsets[..3], [0, 50_000, 100_000]);
    assert_eq!(offsets[19..], [950_000, 5_000_000]);
}

#[test]
fn a_summary_counts_what_a_log_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = log_of(directory.path());
    let summary = Summary::of(&path, Format::Auto, Filter::default(), None).expect("read");
    assert_eq!((summary.statements, summary.may_write), (23, 2));
    assert_eq!(summary.kinds["select"], 21);
    assert_eq!(summary.connections.len(), 2);
    assert_eq!(summary.databases.keys().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(summary.tables["t"], 2);
    assert_eq!(summary.shapes(1)[0].0, 21);
    assert_eq!(summary.shapes(1)[0].1, "SELECT ?");
    assert_eq!(
        summary.last_us.zip(summary.first_us).map(|(b, a)| b - a),
        Some(5_000_000)
    );
}
