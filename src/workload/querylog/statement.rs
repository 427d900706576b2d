//! What a statement is: its kind, the tables that it names, and its shape without literals. A light look at words outside
//! of quotes and comments, not a parser; `safety` says whether it may write.

use super::words::{Dialect, Unread, Words, is_word, quoted};

/// Kinds, as filters and summaries name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Select,
    Insert,
    Update,
    Delete,
    Replace,
    Ddl,
    Set,
    Transaction,
    Show,
    Call,
    Other,
}

impl Kind {
    pub const NAMES: [&str; 11] = [
        "select",
        "insert",
        "update",
        "delete",
        "replace",
        "ddl",
        "set",
        "transaction",
        "show",
        "call",
        "other",
    ];

    pub fn name(self) -> &'static str {
        Kind::NAMES[self as usize]
    }

    pub fn of(statement: &[u8]) -> Kind {
        let mut words = Words::of(statement);
        let Some(first) = words.next() else {
            return Kind::Other;
        };
        let is = |names: &[&str]| {
            names
                .iter()
                .any(|name| first.eq_ignore_ascii_case(name.as_bytes()))
        };
        if is(&["select", "values", "table"]) {
            Kind::Select
        } else if is(&["with"]) {
            let writes = ["insert", "update", "delete", "merge"];
            match words.any(|word| is_one_of(word, &writes)) {
                true => Kind::Other,
                false => Kind::Select,
            }
        } else if is(&["insert"]) {
            Kind::Insert
        } else if is(&["update"]) {
            Kind::Update
        } else if is(&["delete"]) {
            Kind::Delete
        } else if is(&["replace"]) {
            Kind::Replace
        } else if is(&[
            "create", "alter", "drop", "truncate", "rename", "grant", "revoke", "comment",
        ]) {
            Kind::Ddl
        } else if is(&["set"]) {
            Kind::Set
        } else if is(&[
            "begin",
            "start",
            "commit",
            "rollback",
            "savepoint",
            "release",
            "end",
        ]) {
            Kind::Transaction
        } else if is(&["show", "explain", "desc", "describe", "use"]) {
            Kind::Show
        } else if is(&["call", "do", "exec"]) {
            Kind::Call
        } else {
            Kind::Other
        }
    }
}

/// Whether a statement begins as one does that some server knows. Pieces of a text that was taken apart wrongly do not, and
/// may be somebody's data.
pub fn is_known(statement: &[u8]) -> bool {
    const OTHERS: [&str; 42] = [
        "abort",
        "analyze",
        "attach",
        "binlog",
        "cache",
        "change",
        "check",
        "checkpoint",
        "checksum",
        "close",
        "cluster",
        "copy",
        "deallocate",
        "declare",
        "detach",
        "discard",
        "execute",
        "fetch",
        "flush",
        "handler",
        "import",
        "install",
        "kill",
        "listen",
        "load",
        "lock",
        "merge",
        "move",
        "notify",
        "optimize",
        "pragma",
        "prepare",
        "purge",
        "reassign",
        "refresh",
        "reindex",
        "repair",
        "reset",
        "stop",
        "unlock",
        "vacuum",
        "xa",
    ];
    let first = Words::of(statement).next();
    Kind::of(statement) != Kind::Other
        || first.is_some_and(|word| is_one_of(word, &OTHERS) || is_one_of(word, &["with"]))
}

fn is_one_of(word: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether a statement begins with this word, in any case.
pub fn begins_with(statement: &[u8], word: &[u8]) -> bool {
    let text = statement.trim_ascii_start();
    text.len() >= word.len()
        && text[..word.len()].eq_ignore_ascii_case(word)
        && text
            .get(word.len())
            .is_none_or(|next| !next.is_ascii_alphanumeric() && *next != b'_')
}

/// Names of tables: what follows FROM, JOIN, INTO, UPDATE and TABLE.
pub fn tables(statement: &[u8]) -> Vec<Vec<u8>> {
    const MORE: [&str; 8] = [
        "if",
        "not",
        "exists",
        "only",
        "ignore",
        "low_priority",
        "lateral",
        "select",
    ];
    // TRIM(BOTH 'x' FROM y) and their like: no table follows, but maybe somebody's data.
    const FUNCTIONS: [&str; 5] = ["trim", "extract", "substring", "substr", "overlay"];
    let mut tables = Vec::new();
    let (mut wanted, mut in_function) = (false, false);
    let mut words = Words::of(statement);
    while let Some(word) = words.next() {
        if !wanted {
            let from = is_one_of(word, &["from"]);
            wanted = from && !in_function || is_one_of(word, &["join", "into", "update", "table"]);
            in_function = match from {
                true => false,
                false => in_function || words.is_called() && is_one_of(word, &FUNCTIONS),
            };
        } else if !is_one_of(word, &MORE) {
            if !is_number(word) {
                tables.push(word.to_vec());
            }
            wanted = false;
        }
    }
    tables
}

/// The statement with `?` for every literal, and runs of blanks as one. Where servers differ in what is a literal, it ends
/// (with `...`) at the first place at which they do, so that none of them is shown.
pub fn shape(statement: &[u8]) -> String {
    let usual = shape_in(statement, Dialect::ALL[0]);
    let mut same = usual.len();
    if Dialect::differ_on(statement) {
        for dialect in &Dialect::ALL[1..] {
            let other = shape_in(statement, *dialect);
            let until = usual.iter().zip(&other).position(|(a, b)| a != b);
            let until = until.unwrap_or(usual.len().min(other.len()));
            let differs = until < usual.len() || until < other.len();
            same = if differs { same.min(until) } else { same };
        }
    }
    let shown = String::from_utf8_lossy(&usual[..same]);
    match same == usual.len() {
        true => shown.trim().to_owned(),
        false => format!("{} ...", shown.trim()),
    }
}

/// By the rules of one dialect.
fn shape_in(statement: &[u8], dialect: Dialect) -> Vec<u8> {
    let dialect = dialect.without_executed_comments();
    let mut out: Vec<u8> = Vec::with_capacity(statement.len().min(1024));
    let mut at = 0;
    while at < statement.len() && out.len() < 1000 {
        let rest = &statement[at..];
        at += match dialect.unread(rest) {
            Some(Unread::Comment(length)) => length,
            Some(Unread::String(length)) => {
                out.push(b'?');
                length
            }
            None => shape_of_code(rest, dialect, &mut out),
        };
    }
    out
}

/// What is neither string in single quotes nor comment; gives its length.
fn shape_of_code(rest: &[u8], dialect: Dialect, out: &mut Vec<u8>) -> usize {
    match rest[0] {
        // A string to one server, a name to another.
        b'"' => {
            out.push(b'?');
            dialect.double_quoted(rest)
        }
        b'`' => {
            let length = quoted(rest, b'`', false);
            out.extend_from_slice(&rest[..length]);
            length
        }
        first if first.is_ascii_whitespace() => {
            if out.last().is_some_and(|last| *last != b' ') {
                out.push(b' ');
            }
            1
        }
        first if is_word(first) => {
            let end = rest.iter().position(|byte| !is_word(*byte));
            let word = &rest[..end.unwrap_or(rest.len())];
            match is_number(word) {
                true => out.push(b'?'),
                false => out.extend_from_slice(word),
            }
            word.len()
        }
        first => {
            out.push(first);
            1
        }
    }
}

fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b".").unwrap_or(word);
    digits.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_first_word_that_counts() {
        let kind = |text: &str| Kind::of(text.as_bytes());
        assert_eq!(kind("-- a comment\n  /* b */ select 1"), Kind::Select);
        assert_eq!(kind("(SELECT 1) UNION (SELECT 2)"), Kind::Select);
        assert_eq!(kind("WITH a AS (SELECT 1) SELECT * FROM a"), Kind::Select);
        assert_eq!(
            kind("WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a"),
            Kind::Other
        );
        assert_eq!(kind("drop table t"), Kind::Ddl);
        assert_eq!(kind("START TRANSACTION"), Kind::Transaction);
        assert_eq!(kind("selectx"), Kind::Other);
        assert_eq!(kind(""), Kind::Other);
    }

    #[test]
    fn shapes_have_no_literals_and_tables_are_found() {
        let text =
            b"SELECT a,  b FROM `t1` x JOIN db.t2 ON x.id=7 WHERE s = 'it''s' AND u IN (1, 2.5)";
        assert_eq!(
            shape(text),
            "SELECT a, b FROM `t1` x JOIN db.t2 ON x.id=? WHERE s = ? AND u IN (?, ?)"
        );
        assert_eq!(shape(b"SELECT $1, x'00'"), "SELECT $1, x?");
        assert_eq!(
            shape(b"SELECT /*!40001 SQL_NO_CACHE */ a /* b */ FROM t"),
            "SELECT a FROM t"
        );
        assert_eq!(tables(text), [b"t1".to_vec(), b"db.t2".to_vec()]);
        assert_eq!(tables(b"INSERT INTO t VALUES ('from x')"), [b"t".to_vec()]);
    }

    #[test]
    fn pieces_of_a_text_are_no_statements() {
        assert!(is_known(b"VACUUM t") && is_known(b"select 1"));
        assert!(is_known(b"WITH a AS (SELECT 1) DELETE FROM t"));
        assert!(!is_known(b"secret', 'more')") && !is_known(b"-- nothing"));
    }

    #[test]
    fn no_server_sees_a_literal_of_its_own_in_a_shape_or_a_table() {
        for text in [
            "SELECT * FROM t WHERE a = '\\' AND pw = 'secret' AND b = 'x'",
            "SELECT * FROM t WHERE a = 'it\\'s' AND pw = 'secret'",
            "SELECT * FROM t WHERE a = 'a\\\\' AND pw = 'secret'",
            "SELECT $$secret$$",
            "SELECT $a$ ' $a$, 'secret'",
            "SELECT E'\\'secret'",
            "SELECT 5--'a\n secret'",
            "SELECT 1 # 'a\n , 'secret'",
            "SELECT 1 /* /* */ ' */ , 'secret'",
            "SELECT TRIM(BOTH 'x' FROM \"secret\")",
            "SELECT EXTRACT(year FROM \"secret\")",
            "SELECT \"secret\" FROM t",
            "SELECT 'secret",
        ] {
            let shown = shape(text.as_bytes());
            assert!(!shown.contains("secret"), "{text}: {shown}");
            let tables = tables(text.as_bytes());
            assert!(!tables.contains(&b"secret".to_vec()), "{text}");
        }
        assert_eq!(
            shape(b"SELECT a FROM t WHERE p = .125"),
            "SELECT a FROM t WHERE p = ?"
        );
        assert!(tables(b"SELECT SUBSTRING(a FROM 7) FROM t") == [b"t".to_vec()]);
    }
}
