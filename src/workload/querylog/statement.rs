//! What a statement is: its kind, whether it may write, the tables that it names, and its shape without literals. A light
//! look at words outside of quotes and comments, not a parser: where it cannot be sure, a statement may write.

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

/// Whether a statement may change what is stored, or the server. Functions that it calls are not known.
pub fn may_write(kind: Kind, statement: &[u8]) -> bool {
    match kind {
        Kind::Select => {
            // SELECT ... INTO OUTFILE, DUMPFILE or a new table; sleeping writers are not.
            let mut words = Words::of(statement);
            words.any(|word| is_one_of(word, &["into"]))
        }
        Kind::Show => {
            // EXPLAIN ANALYZE executes what it explains.
            let mut words = Words::of(statement);
            words.any(|word| is_one_of(word, &["insert", "update", "delete", "replace", "merge"]))
        }
        Kind::Set => {
            let text = String::from_utf8_lossy(statement).to_ascii_lowercase();
            let words = ["global", "persist", "password", "role", "@@persist"];
            let mut all = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            all.any(|word| words.contains(&word))
        }
        Kind::Transaction => false,
        _ => true,
    }
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

/// The words of a statement outside of quotes and comments; names in backticks or double quotes count as words.
pub struct Words<'s> {
    text: &'s [u8],
    at: usize,
}

impl<'s> Words<'s> {
    pub fn of(text: &'s [u8]) -> Words<'s> {
        Words { text, at: 0 }
    }

    /// Passes over what is no word; false at the end.
    fn skip(&mut self) -> bool {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            match rest {
                [b'\'', ..] => self.at += quoted(rest, b'\''),
                [b'#', ..] | [b'-', b'-', ..] => {
                    self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                }
                // What stands in /*! ... */ is executed.
                [b'/', b'*', b'!', ..] => self.at += 3,
                [b'/', b'*', ..] => {
                    let end = memchr::memmem::find(&rest[2..], b"*/");
                    self.at += end.map_or(rest.len(), |end| end + 4);
                }
                [first, ..] if is_word(*first) || matches!(first, b'`' | b'"') => return true,
                _ => self.at += 1,
            }
        }
        false
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || byte >= 0x80
}

/// Bytes of a quoted text that begins here.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => {
                if text.get(at + 1) == Some(&quote) {
                    at += 2;
                } else {
                    return at + 1;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

impl<'s> Iterator for Words<'s> {
    type Item = &'s [u8];

    fn next(&mut self) -> Option<&'s [u8]> {
        if !self.skip() {
            return None;
        }
        let rest = &self.text[self.at..];
        let (word, length) = match rest[0] {
            quote @ (b'`' | b'"') => {
                let length = quoted(rest, quote).min(rest.len());
                let end = length.saturating_sub(1).max(1);
                (&rest[1..end], length)
            }
            _ => {
                let end = rest.iter().position(|byte| !is_word(*byte));
                let end = end.unwrap_or(rest.len());
                (&rest[..end], end)
            }
        };
        self.at += length;
        Some(word)
    }
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
                at += quoted(rest, b'\'');
                out.push(b'?');
            }
            [b'#', ..] | [b'-', b'-', ..] => {
                at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            }
            [b'/', b'*', ..] => {
                let end = memchr::memmem::find(&rest[2..], b"*/");
                at += end.map_or(rest.len(), |end| end + 4);
            }
            [b'"', ..] => {
                at += quoted(rest, b'"');
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
    fn what_may_write_is_told_from_what_reads() {
        let writes = |text: &str| may_write(Kind::of(text.as_bytes()), text.as_bytes());
        for text in [
            "DROP TABLE t",
            "SELECT * INTO OUTFILE '/tmp/x' FROM t",
            "SELECT 1 INTO t2",
            "SET GLOBAL max_connections = 1",
            "SET PASSWORD = 'x'",
            "EXPLAIN ANALYZE DELETE FROM t",
            "CALL p()",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "/*! DROP TABLE t */",
            "nonsense",
        ] {
            assert!(writes(text), "{text}");
        }
        for text in [
            "SELECT 'into' FROM t",
            "select * from t -- into outfile\n where a = 1",
            "SHOW TABLES",
            "SET NAMES utf8mb4",
            "SET @@session.autocommit = OFF",
            "COMMIT",
            "USE bench",
            "SELECT * FROM t FOR UPDATE",
        ] {
            assert!(!writes(text), "{text}");
        }
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
