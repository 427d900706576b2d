//! The fjall driver's harnesses: ways to persist, to compress and to lay out values.

use crate::inside::inside;
use dbbench::driver::fjall::Fjall;

inside!(Os, Fjall, {});
inside!(None, Fjall, { "persist": "none", "compression": "none" });
inside!(Fdatasync, Fjall, { "persist": "fdatasync", "compression": "lz4" });
inside!(SeparateValues, Fjall, { "separate_values": true, "compression": "none" });
