//! What the `fjall` driver is: options, operations and durability.

use crate::driver::embedded::SCAN_LIMIT;
use crate::driver::spec::{
    DriverSpec, Durability, HeldIn, NO_ROWS, Options, Store, no_fault, no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

/// The crate's version, as in the lock file.
pub const VERSION: &str = "3.1.13";

pub static SPEC: DriverSpec = DriverSpec {
    name: "fjall",
    summary: "fjall, an embedded log-structured merge-tree store in Rust.",
    options: OPTIONS,
    check_options: no_fault,
    verbs: &Verb::BUILT_IN,
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: false,
    replay: false,
    store: Store::Embedded,
    sessions: "all sessions share one database; writers share its journal",
    durability: |options| Some(durability(options)),
    held_in: HeldIn::Disk,
    library: "fjall 3.1.13",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "persist",
        Kind::Choice(&["none", "os", "fdatasync", "fsync"]),
        "How far a write is carried before it counts as done: `none` leaves it in the journal's buffer inside the \
         process, `os` (as fjall has it by itself) hands it to the operating system, `fdatasync` and `fsync` force it \
         to the disk.",
    )
    .default("\"os\""),
    Row::new(
        "cache_size",
        Kind::Size { zero: true },
        "Upper limit of the memory that holds blocks read from disk; memtables are beside it.",
    )
    .default("\"32MiB\""),
    Row::new(
        "compression",
        Kind::Choice(&["default", "lz4", "none"]),
        "How the journal, blocks and separated values are compressed: `default` is fjall's own choice (LZ4 for values of \
         4 KiB and more in the journal, for separated values and for blocks below the two uppermost levels).",
    )
    .default("\"default\""),
    Row::new(
        "separate_values",
        Kind::Bool,
        "Whether values of 1 KiB and more are kept in files of their own, away from the keys.",
    )
    .default("false"),
    SCAN_LIMIT,
];

pub fn durability(options: &Options) -> Durability {
    match options.text("persist").as_deref() {
        Some("none") => Durability::Memory,
        Some("os") => Durability::Os,
        _ => Durability::Fsync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::embedded::kit;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        assert_eq!(kit::locked_version("fjall"), VERSION);
        assert_eq!(SPEC.library, format!("fjall {VERSION}"));
    }

    #[test]
    fn each_option_has_a_default_that_can_be_read() {
        let options = kit::options(&SPEC, &[]);
        assert_eq!(options.text("persist").as_deref(), Some("os"));
        assert_eq!(options.size("cache_size"), Some(32 << 20));
        assert_eq!(options.text("compression").as_deref(), Some("default"));
        assert!(!options.bool("separate_values"));
        assert_eq!(options.integer("scan_limit"), Some(100));
    }

    #[test]
    fn durability_is_what_persist_says() {
        let of = |persist| durability(&kit::options(&SPEC, &[("persist", persist)]));
        assert_eq!(of("none"), Durability::Memory);
        assert_eq!(of("os"), Durability::Os);
        assert_eq!(of("fdatasync"), Durability::Fsync);
        assert_eq!(of("fsync"), Durability::Fsync);
    }
}
