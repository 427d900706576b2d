//! What the `redb` driver is: options, operations and durability.

use crate::driver::embedded::SCAN_LIMIT;
use crate::driver::spec::{
    DriverSpec, Durability, HeldIn, NO_ROWS, Options, Store, no_fault, no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

/// The crate's version, as in the lock file.
pub const VERSION: &str = "4.6.0";

pub static SPEC: DriverSpec = DriverSpec {
    name: "redb",
    summary: "redb, an embedded copy-on-write B-tree store in Rust; one write transaction per write.",
    options: OPTIONS,
    check_options: no_fault,
    verbs: &Verb::BUILT_IN,
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: false,
    replay: false,
    store: Store::Embedded,
    sessions: "all sessions share one database; writers take turns, readers do not wait",
    durability: |options| Some(durability(options)),
    held_in: HeldIn::Disk,
    library: "redb 4.6.0",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "durability",
        Kind::Choice(&["immediate", "none"]),
        "What a commit waits for: `immediate` for the disk (fsync), `none` for nothing; then all writes since the last \
         commit of the other kind are lost with the process. redb knows no level between the two.",
    )
    .default("\"immediate\""),
    Row::new(
        "cache_size",
        Kind::Size { zero: true },
        "Upper limit of the memory that holds pages.",
    )
    .default("\"1GiB\""),
    SCAN_LIMIT,
];

/// A commit of durability `none` stays in this process's memory until a commit of the other kind or a clean close.
pub fn durability(options: &Options) -> Durability {
    match options.text("durability").as_deref() {
        Some("none") => Durability::Memory,
        _ => Durability::Fsync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::embedded::kit;

    #[test]
    fn the_version_is_that_of_the_lock_file() {
        assert_eq!(kit::locked_version("redb"), VERSION);
        assert_eq!(SPEC.library, format!("redb {VERSION}"));
    }

    #[test]
    fn each_option_has_a_default_that_can_be_read() {
        let options = kit::options(&SPEC, &[]);
        assert_eq!(options.text("durability").as_deref(), Some("immediate"));
        assert_eq!(options.size("cache_size"), Some(1 << 30));
        assert_eq!(options.integer("scan_limit"), Some(100));
    }

    #[test]
    fn only_immediate_commits_are_called_fsync() {
        assert_eq!(durability(&kit::options(&SPEC, &[])), Durability::Fsync);
        let none = kit::options(&SPEC, &[("durability", "none")]);
        assert_eq!(durability(&none), Durability::Memory);
    }
}
