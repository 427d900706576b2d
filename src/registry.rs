//! The one list of drivers; the only file that names them all.

use crate::driver::spec::DriverSpec;
use crate::engine::entry::DriverEntry;

/// Every driver of this build, in the order of `dbbench drivers`.
pub const DRIVERS: &[DriverEntry] = &[];

/// What they are, as data.
pub fn specs() -> Vec<&'static DriverSpec> {
    DRIVERS.iter().map(|entry| (entry.spec)()).collect()
}
