//! What a statement is: its kind, the tables that it names, and its shape without literals. A light look at words outside
//! of quotes and comments, not a parser; `safety` says whether it may write.

use super::words::{Words, comment, is_word, line, quoted};

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
    let mut tables = Vec::new();
    let mut wanted = false;
    for word in Words::of(statement) {
        if wanted {
            let is_more = is_one_of(
                word,
                &[
                    "if",
                    "not",
                    "exists",
                    "only",
                    "ignore",
                    "low_priority",
                    "select",
                ],
            );
            if is_more {
                continue;
            }
            tables.push(word.to_vec());
            wanted = false;
        } else {
            wanted = is_one_of(word, &["from", "join", "into", "update", "table"]);
        }
    }
    tables
}

/// The statement with `?` for every literal, and runs of blanks as one.
pub fn shape(statement: &[u8]) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(statement.len().min(1024));
    let mut at = 0;
    while at < statement.len() && out.len() < 1000 {
        let rest = &statement[at..];
        match rest {
            [b'\'', ..] => {
                at += quoted(rest, b'\'', true);
                out.push(b'?');
            }
            [b'#', ..] | [b'-', b'-', ..] => {
                at += line(rest);
            }
            [b'/', b'*', ..] => {
                at += comment(rest, false);
            }
            [b'"', ..] => {
                at += quoted(rest, b'"', true);
                out.push(b'?');
            }
            [first, ..] if first.is_ascii_whitespace() => {
                if out.last().is_some_and(|last| *last != b' ') {
                    out.push(b' ');
                }
                at += 1;
            }
            [first, ..] if is_word(*first) => {
                let end = rest.iter().position(|byte| !is_word(*byte));
                let word = &rest[..end.unwrap_or(rest.len())];
                match word[0].is_ascii_digit() {
                    true => out.push(b'?'),
                    false => out.extend_from_slice(word),
                }
                at += word.len();
            }
            [first, ..] => {
                out.push(*first);
                at += 1;
            }
            [] => break,
        }
    }
    String::from_utf8_lossy(&out).trim().to_owned()
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
        assert_eq!(tables(text), [b"t1".to_vec(), b"db.t2".to_vec()]);
        assert_eq!(tables(b"INSERT INTO t VALUES ('from x')"), [b"t".to_vec()]);
    }
}
