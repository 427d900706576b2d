//! What the `null` driver is: its one option.

use crate::driver::spec::{
    DriverSpec, HeldIn, NO_ROWS, Options, Store, no_fault, no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

pub static SPEC: DriverSpec = DriverSpec {
    name: "null",
    summary: "Does nothing and succeeds: measures dbbench itself.",
    options: OPTIONS,
    check_options: no_fault,
    verbs: &Verb::BUILT_IN,
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: false,
    replay: false,
    store: Store::Nothing,
    sessions: "no connection",
    durability: nothing_is_kept,
    held_in: HeldIn::Memory,
    library: "",
};

const OPTIONS: &[Row] = &[Row::new(
    "delay",
    Kind::Duration { zero: true },
    "How long each operation takes. Without one it is complete at once; with one it waits for a timer of \
     1 ms resolution while other sessions of its thread go on.",
)
.default("\"0s\"")];

fn nothing_is_kept(_: &Options) -> Option<crate::driver::spec::Durability> {
    None
}
