//! The redb driver's harnesses: each durability.

use crate::inside::inside;
use dbbench::driver::redb::Redb;

inside!(Immediate, Redb, {});
inside!(None, Redb, { "durability": "none" });
