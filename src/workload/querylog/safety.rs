//! Whether a statement may change what is stored, or the server: a DROP TABLE in a log must be harmless.
//!
//! A text may hold several statements, and servers differ in what they take for a string or a comment. So each part is
//! judged, by the rules of every dialect, and one that may write is enough. What is not known to read may write.

use super::words::{Dialect, Words};

/// Whether this text, sent to a server, may write. Functions of the user's own that it calls are not known.
pub fn may_write(statement: &[u8]) -> bool {
    let dialects = match Dialect::differ_on(statement) {
        true => &Dialect::ALL[..],
        false => &Dialect::ALL[..1],
    };
    let mut said = dialects
        .iter()
        .map(|dialect| may_write_in(statement, *dialect));
    // One that is a comment to every server: nobody knows what for.
    let mut seen = false;
    said.any(|may| {
        seen |= may.is_some();
        may == Some(true)
    }) || !seen
}

/// What the words so far are of.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Begin,
    /// SELECT and its like; whether a WITH may hold something else.
    Reads {
        with: bool,
    },
    /// Nothing that follows does anything.
    Shows,
    /// Options of EXPLAIN; whether it executes what it explains.
    Explains {
        executes: bool,
    },
    /// Whether the word that comes is the one after SET.
    Sets {
        first: bool,
    },
    Transaction,
}

/// None: there is not a word in it.
fn may_write_in(statement: &[u8], dialect: Dialect) -> Option<bool> {
    let mut words = Words::with_ends(statement, dialect);
    let mut part = Part::Begin;
    let mut before: [&[u8]; 2] = [b"", b""];
    let mut seen = false;
    while let Some(word) = words.next() {
        if word == b";" {
            part = Part::Begin;
            before = [b"", b""];
            continue;
        }
        seen = true;
        let called = words.is_called();
        if calls_a_writer(word, called) {
            return Some(true);
        }
        // REPLACE(a, b, c) and INSERT(...) are functions, too.
        let function = called && part != Part::Begin && is_one_of(word, &["replace", "insert"]);
        // What is quoted is a name or a string, never a keyword.
        let word: &[u8] = match words.was_quoted() || function {
            true => b"",
            false => word,
        };
        match next(part, word, before) {
            None => return Some(true),
            Some(after) => part = after,
        }
        before = [before[1], word];
    }
    seen.then_some(false)
}

/// The part after one more word; None: it may write.
fn next(part: Part, word: &[u8], before: [&[u8]; 2]) -> Option<Part> {
    match part {
        Part::Begin => begin(word),
        Part::Reads { with } => reads(word, before, with).then_some(part),
        Part::Shows => Some(part),
        Part::Explains { executes } => explains(word, executes),
        Part::Sets { first } => sets(word, first).then_some(Part::Sets { first: false }),
        Part::Transaction => in_transaction(word, before[1]).then_some(part),
    }
}

fn begin(word: &[u8]) -> Option<Part> {
    if is_one_of(word, &["select", "values", "table"]) {
        Some(Part::Reads { with: false })
    } else if is_one_of(word, &["with"]) {
        Some(Part::Reads { with: true })
    } else if is_one_of(word, &["show", "use"]) {
        Some(Part::Shows)
    } else if is_one_of(word, &["explain", "desc", "describe"]) {
        Some(Part::Explains { executes: false })
    } else if is_one_of(word, &["set"]) {
        Some(Part::Sets { first: true })
    } else if is_one_of(word, &TRANSACTION) {
        Some(Part::Transaction)
    } else {
        None
    }
}

fn reads(word: &[u8], before: [&[u8]; 2], with: bool) -> bool {
    // INTO OUTFILE, INTO a new table; NEXT VALUE FOR a sequence. FOR UPDATE locks, and changes nothing.
    let locks = is_one_of(before[1], &["for", "key"]);
    let draws = is_one_of(word, &["for"]) && is_pair(before, "next", "value");
    let changes = with && !locks && is_one_of(word, &CHANGES);
    let writes = draws || changes || is_one_of(word, &["into"]);
    !writes
}

/// EXPLAIN ANALYZE executes what it explains, and that is judged as if it stood alone.
fn explains(word: &[u8], executes: bool) -> Option<Part> {
    const OPTIONS: [&str; 26] = [
        "verbose",
        "costs",
        "buffers",
        "timing",
        "summary",
        "settings",
        "wal",
        "memory",
        "format",
        "text",
        "json",
        "xml",
        "yaml",
        "tree",
        "traditional",
        "extended",
        "partitions",
        "on",
        "off",
        "true",
        "false",
        "none",
        "query",
        "plan",
        "generic_plan",
        "serialize",
    ];
    if is_one_of(word, &["analyze", "analyse"]) {
        Some(Part::Explains { executes: true })
    } else if is_one_of(word, &OPTIONS) || word.iter().all(u8::is_ascii_digit) && !word.is_empty() {
        Some(Part::Explains { executes })
    } else if executes || is_one_of(word, &CHANGES) {
        begin(word)
    } else {
        Some(Part::Shows)
    }
}

fn sets(word: &[u8], first: bool) -> bool {
    // `@@global.x` is one word with its dot; SET STATEMENT x = 1 FOR ... executes what follows.
    let name = word.split(|byte| *byte == b'.').next().unwrap_or_default();
    let server = ["global", "persist", "persist_only", "password", "role"];
    let writes = is_one_of(name, &server) || first && is_one_of(word, &["statement"]);
    !writes
}

const CHANGES: [&str; 5] = ["insert", "update", "delete", "replace", "merge"];

const TRANSACTION: [&str; 7] = [
    "begin",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "release",
    "end",
];

/// Words of BEGIN, COMMIT and their like; a name only where one belongs. Not `START SLAVE`, `COMMIT PREPARED`, nor a block
/// of statements (`BEGIN NOT ATOMIC ...`).
fn in_transaction(word: &[u8], before: &[u8]) -> bool {
    const MORE: [&str; 28] = [
        "work",
        "transaction",
        "tran",
        "and",
        "no",
        "chain",
        "release",
        "to",
        "savepoint",
        "with",
        "consistent",
        "snapshot",
        "isolation",
        "level",
        "read",
        "only",
        "write",
        "committed",
        "uncommitted",
        "repeatable",
        "serializable",
        "deferrable",
        "not",
        "deferred",
        "immediate",
        "exclusive",
        "concurrent",
        "commit",
    ];
    is_one_of(word, &MORE) || is_one_of(before, &["savepoint", "to", "release"])
}

/// Functions of the servers that change what is stored, send signals or execute a text.
fn calls_a_writer(word: &[u8], called: bool) -> bool {
    const NAMES: [&str; 30] = [
        "nextval",
        "setval",
        "lo_create",
        "lo_creat",
        "lo_unlink",
        "lo_import",
        "lo_export",
        "lo_put",
        "lo_from_bytea",
        "lo_truncate",
        "lo_truncate64",
        "lowrite",
        "lo_write",
        "pg_terminate_backend",
        "pg_cancel_backend",
        "pg_reload_conf",
        "pg_rotate_logfile",
        "pg_switch_wal",
        "pg_promote",
        "pg_notify",
        "pg_logical_emit_message",
        "query_to_xml",
        "query_to_xml_and_xmlschema",
        "cursor_to_xml",
        "load_extension",
        "writefile",
        "sys_exec",
        "sys_eval",
        "dblink",
        "dblink_exec",
    ];
    const BEGINNINGS: [&[u8]; 4] = [b"pg_create_", b"pg_drop_", b"pg_file_", b"pg_replication_"];
    if !called {
        return false;
    }
    let name = word.rsplit(|byte| *byte == b'.').next().unwrap_or(word);
    let begins = |beginning: &&[u8]| {
        name.get(..beginning.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(beginning))
    };
    is_one_of(name, &NAMES) || BEGINNINGS.iter().any(begins)
}

fn is_one_of(word: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

fn is_pair(before: [&[u8]; 2], first: &str, second: &str) -> bool {
    is_one_of(before[0], &[first]) && is_one_of(before[1], &[second])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(texts: &[&str]) {
        for text in texts {
            assert!(may_write(text.as_bytes()), "taken to read: {text}");
        }
    }

    fn allowed(texts: &[&str]) {
        for text in texts {
            assert!(!may_write(text.as_bytes()), "taken to write: {text}");
        }
    }

    #[test]
    fn what_changes_anything_is_refused() {
        refused(&[
            "DROP TABLE t",
            "INSERT INTO t VALUES (1)",
            "SELECT * INTO OUTFILE '/tmp/x' FROM t",
            "SELECT 1 INTO t2",
            "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a",
            "WITH a AS (SELECT 1) REPLACE INTO t SELECT * FROM a",
            "SET GLOBAL max_connections = 1",
            "SET @@global.max_connections = 1",
            "SET a = 1, PERSIST b = 2",
            "SET PERSIST_ONLY max_connections = 1",
            "SET PASSWORD = 'x'",
            "SET STATEMENT max_statement_time = 1 FOR DELETE FROM t",
            "EXPLAIN ANALYZE DELETE FROM t",
            "EXPLAIN (ANALYZE, BUFFERS) CREATE TABLE x AS SELECT 1",
            "EXPLAIN ANALYZE SELECT 1 INTO t2",
            "EXPLAIN ANALYZE EXECUTE p",
            "CALL p()",
            "DO $$ BEGIN DELETE FROM t; END $$",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "START SLAVE",
            "BEGIN NOT ATOMIC DROP TABLE t; END",
            "COMMIT PREPARED 'x'",
            "nonsense",
            "",
            "-- only a comment",
        ]);
    }

    #[test]
    fn what_only_reads_is_allowed() {
        allowed(&[
            "SELECT 'into' FROM t",
            "SELECT `into`, \"drop\" FROM t",
            "select * from t -- into outfile\n where a = 1",
            "(SELECT 1) UNION (SELECT 2);",
            "SELECT 1; SELECT 2;",
            "SELECT * FROM t WHERE a = 'x; DROP TABLE t'",
            "SELECT * FROM t WHERE a = 'it\\'s'",
            "SELECT /*!40001 SQL_NO_CACHE */ * FROM t",
            "/*!40101 SET NAMES utf8 */",
            "SELECT lo_revenue FROM lineorder",
            "SELECT * FROM t WHERE id = $1",
            "WITH a AS (SELECT 1) SELECT * FROM a FOR UPDATE",
            "WITH a AS (SELECT replace(b, 'x', 'y') FROM t) SELECT * FROM a",
            "SELECT * FROM t FOR UPDATE",
            "SHOW TABLES",
            "DESC t",
            "EXPLAIN SELECT * FROM t",
            "EXPLAIN ANALYZE SELECT * FROM t",
            "EXPLAIN FORMAT=JSON SELECT 1",
            "SET NAMES utf8mb4",
            "SET @@session.autocommit = OFF",
            "USE bench",
            "BEGIN",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "COMMIT AND NO CHAIN",
            "SAVEPOINT here",
            "ROLLBACK TO SAVEPOINT here",
            "RELEASE SAVEPOINT here",
        ]);
    }

    /// Servers take several statements in one text, and a log may hold such texts.
    #[test]
    fn every_statement_of_a_text_counts() {
        refused(&[
            "SELECT 1; DROP TABLE t",
            "SELECT 1;DROP TABLE t;",
            "BEGIN; DROP TABLE t; COMMIT",
            "SHOW TABLES; DELETE FROM t",
            "SET NAMES utf8; UPDATE t SET a = 1",
        ]);
    }

    /// What is a string to one server ends earlier at another.
    #[test]
    fn a_statement_hides_in_no_dialects_strings_or_comments() {
        refused(&[
            "SELECT '\\'; DROP TABLE t; --'",
            "SELECT 1 # 2; DROP TABLE t",
            "SELECT 5--1 INTO OUTFILE '/tmp/x'",
            "SELECT 1 /*M! INTO OUTFILE '/tmp/x' */",
            "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */",
            "SELECT $$'$$; DROP TABLE t; --'",
            "SELECT $a$'$a$; DROP TABLE t; --'",
            "SELECT E'\\''; DROP TABLE t; --'",
            "SELECT 1 /* /* */ ' */; DROP TABLE t; --'",
        ]);
    }

    #[test]
    fn functions_of_the_servers_that_change_something_are_known() {
        refused(&[
            "SELECT setval('s', 1)",
            "SELECT pg_catalog.nextval ('s')",
            "SELECT NEXT VALUE FOR s",
            "SELECT pg_terminate_backend(7)",
            "SELECT pg_drop_replication_slot('x')",
            "SELECT load_extension('x')",
            "SELECT \"setval\"('s', 1)",
        ]);
        allowed(&["SELECT nextval FROM t", "SELECT max(nextval) FROM t"]);
    }

    proptest::proptest! {
        /// Whatever stands before it: a statement of its own is seen, unless one dialect's quotes and all others' hide it.
        #[test]
        fn a_write_after_plain_words_is_always_seen(words in "[a-z0-9 ,=()']{0,40}") {
            let text = format!("SELECT {words}\n; DROP TABLE t");
            let open = words.bytes().filter(|byte| *byte == b'\'').count() % 2 == 1;
            proptest::prop_assert!(open || may_write(text.as_bytes()), "{}", text);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
            may_write(&bytes);
        }
    }
}
