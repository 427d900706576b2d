//! What the `sqlite` driver is: options, operations and durability.

use super::custom;
use crate::driver::embedded::SCAN_LIMIT;
use crate::driver::spec::{DriverSpec, Durability, HeldIn, OptionFault, Options, Store};
use crate::op::Verb;
use crate::rows::{Kind, Row};

/// The crate's version, as in the lock file; SQLite's own is asked from the library.
#[cfg(test)]
const VERSION: &str = "0.43.0";

pub static SPEC: DriverSpec = DriverSpec {
    name: "sqlite",
    summary: "SQLite, embedded: keys and values in one table, and SQL of the user's own.",
    options: OPTIONS,
    check_options,
    verbs: &Verb::BUILT_IN,
    operation: OPERATION,
    check_operation: custom::check,
    pipeline: false,
    replay: true,
    store: Store::Embedded,
    sessions: "one connection per session to one file; writers take turns",
    durability: |options| Some(durability(options)),
    held_in: HeldIn::Disk,
    library: "rusqlite 0.43.0",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "journal_mode",
        Kind::Choice(&["wal", "delete", "memory", "off"]),
        "How a transaction can be undone. With `wal` readers and one writer go on side by side; with `memory` and \
         `off` a killed process may leave a broken file.",
    )
    .default("\"wal\""),
    Row::new(
        "synchronous",
        Kind::Choice(&["off", "normal", "full", "extra"]),
        "When the disk is waited for. In the journal mode `wal`, `normal` waits at checkpoints only and `full` at every \
         commit; in `delete` only `extra` makes the commit itself certain.",
    )
    .default("\"normal\""),
    Row::new(
        "cache_size",
        Kind::Size { zero: false },
        "Memory for pages, per connection; SQLite's own default is about 2 MB.",
    ),
    Row::new(
        "mmap_size",
        Kind::Size { zero: true },
        "How much of the file is read by memory mapping; SQLite's own default is none.",
    ),
    Row::new(
        "busy_timeout",
        Kind::Duration { zero: true },
        "How long a connection waits for another's lock before it fails with SQLITE_BUSY. SQLite waits in sleeps of \
         up to 100 ms.",
    )
    .default("\"5s\""),
    Row::new(
        "page_size",
        Kind::Size { zero: false },
        "Bytes of a page of the file: a power of two from 512B to 64KiB.",
    )
    .default("\"4KiB\""),
    Row::new(
        "pragmas",
        Kind::List(&Kind::Text),
        "Further pragmas for every connection, as `temp_store = memory`.",
    ),
    Row::new(
        "without_rowid",
        Kind::Bool,
        "Whether the table `dbbench (key, value)` keeps its rows in the index of the keys; good for small values only.",
    )
    .default("false"),
    SCAN_LIMIT,
];

pub const OPERATION: &[Row] = &[
    Row::new(
        "statements",
        Kind::List(&Kind::Text),
        "SQL statements, executed in order. `$key`, `$value` and their like are bound as parameters: key and value as \
         BLOB, numbers as INTEGER, `$text(n)` as TEXT.",
    )
    .required(),
    Row::new(
        "transaction",
        Kind::Bool,
        "Whether the statements are one transaction (BEGIN IMMEDIATE where one of them writes).",
    )
    .default("false"),
    Row::new(
        "expect",
        Kind::Regex,
        "What the first column of the first row of the last statement that gives rows must match.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let page = options.size("page_size").unwrap_or(4096);
    if !page.is_power_of_two() || !(512..=65_536).contains(&page) {
        return Err(OptionFault::new(
            "page_size",
            format!("a page of {page} bytes is none that SQLite can have"),
            "page_size = \"4KiB\"",
        ));
    }
    pragmas(options)
        .iter()
        .try_for_each(|text| check_pragma(text))
}

/// A pragma that an option sets would make the results say something else than is done.
fn check_pragma(text: &str) -> Result<(), OptionFault> {
    let name_end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .unwrap_or(text.len());
    let name = text[..name_end].to_ascii_lowercase();
    let name = name.rsplit('.').next().unwrap_or_default();
    let fault = |message: String, help: String| Err(OptionFault::new("pragmas", message, help));
    if name.is_empty() || text.contains(';') {
        return fault(
            format!("`{text}` is no pragma"),
            "pragmas = [\"temp_store = memory\"]".to_owned(),
        );
    }
    if OPTIONS.iter().any(|row| row.name == name) {
        return fault(
            format!("`{name}` is an option of its own"),
            format!("say `{name} = ...` beside `pragmas`"),
        );
    }
    Ok(())
}

pub fn pragmas(options: &Options) -> Vec<String> {
    let value = options.value("pragmas");
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|text| text.as_str())
        .map(|text| text.trim().to_owned())
        .collect()
}

fn durability(options: &Options) -> Durability {
    durability_of(
        &options.text("journal_mode").unwrap_or_default(),
        &options.text("synchronous").unwrap_or_default(),
    )
}

/// What an acknowledged commit survives.
pub fn durability_of(journal_mode: &str, synchronous: &str) -> Durability {
    match (journal_mode, synchronous) {
        // A process killed in the middle of one transaction may leave a file that cannot be read: with it go the
        // commits before.
        ("memory" | "off", _) => Durability::Memory,
        ("wal", "full" | "extra") => Durability::Fsync,
        // Commits are written to the log, but forced to the disk by the next checkpoint only.
        ("wal", _) => Durability::Os,
        // A commit is the removal of the journal file. Its data is forced to the disk, the directory only by `extra`:
        // after a power cut the journal may be there again, and the commit is then undone.
        (_, "extra") => Durability::Fsync,
        _ => Durability::Os,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::embedded::kit;
    use serde_json::{Map, Value, json};
    use std::time::Duration;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        assert_eq!(kit::locked_version("rusqlite"), VERSION);
        assert_eq!(SPEC.library, format!("rusqlite {VERSION}"));
    }

    #[test]
    fn each_option_has_a_default_that_can_be_read() {
        let options = kit::options(&SPEC, &[]);
        assert_eq!(options.text("journal_mode").as_deref(), Some("wal"));
        assert_eq!(options.text("synchronous").as_deref(), Some("normal"));
        assert_eq!(options.size("cache_size"), None);
        assert_eq!(options.size("mmap_size"), None);
        assert_eq!(
            options.duration("busy_timeout"),
            Some(Duration::from_secs(5))
        );
        assert_eq!(options.size("page_size"), Some(4096));
        assert!(pragmas(&options).is_empty());
        assert!(!options.bool("without_rowid"));
        assert_eq!(options.integer("scan_limit"), Some(100));
        assert_eq!((SPEC.check_options)(&options), Ok(()));
    }

    #[test]
    fn durability_is_never_more_than_sqlite_promises() {
        use Durability::{Fsync, Memory, Os};
        let cases = [
            ("wal", "off", Os),
            ("wal", "normal", Os),
            ("wal", "full", Fsync),
            ("wal", "extra", Fsync),
            ("delete", "normal", Os),
            ("delete", "full", Os),
            ("delete", "extra", Fsync),
            ("memory", "extra", Memory),
            ("off", "full", Memory),
        ];
        for (journal, synchronous, expected) in cases {
            let said = [("journal_mode", journal), ("synchronous", synchronous)];
            let claimed = (SPEC.durability)(&kit::options(&SPEC, &said));
            assert_eq!(claimed, Some(expected), "{journal} {synchronous}");
        }
    }

    #[test]
    fn a_page_size_that_sqlite_cannot_have_is_a_fault() {
        for size in ["4000B", "256B", "128KiB"] {
            let options = kit::options(&SPEC, &[("page_size", size)]);
            let fault = check_options(&options).expect_err(size);
            assert_eq!(fault.key, "page_size");
        }
    }

    #[test]
    fn a_pragma_that_is_an_option_is_a_fault() {
        let check = |pragma: &str| {
            let mut values = Map::new();
            values.insert("pragmas".to_owned(), json!([Value::from(pragma)]));
            check_options(&Options::new(OPTIONS, values))
        };
        assert_eq!(check("temp_store = memory"), Ok(()));
        assert_eq!(check("wal_autocheckpoint(100)"), Ok(()));
        for wrong in [
            "Synchronous = off",
            "main.journal_mode=wal",
            "",
            "a = 1; DROP TABLE dbbench",
        ] {
            assert_eq!(check(wrong).expect_err(wrong).key, "pragmas");
        }
    }
}
