//! The null driver's harness.

use crate::inside::inside;

inside!(Null, dbbench::driver::null::Null, {});
