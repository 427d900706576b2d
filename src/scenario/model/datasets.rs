//! Rows of `[datasets.NAME]`.

use super::{PHASE, TEXTS};
use crate::rows::{Kind, NameKind, Row};

pub const DATASET: &[Row] = &[
    Row::new(
        "servers",
        TEXTS,
        "Which of the target's servers hold it; all of them where it is not said.",
    ),
    Row::new(
        "phases",
        Kind::List(&Kind::Table(PHASE)),
        "How it is filled, through the target's driver: each a `[[datasets.NAME.phases]]`; not measured.",
    )
    .required(),
    Row::new(
        "artifacts",
        Kind::Map(NameKind::Free, &Kind::Text),
        "Files that filling it produces, kept with it: `{ \"queries.log\" = \"{{ dir('mariadb') }}/queries.log\" }`; \
         `dataset_file('NAME', 'queries.log')` says where one is.",
    ),
    Row::new(
        "restore",
        Kind::Choice(&["copy", "in_place"]),
        "`copy`: each start of its servers is on a copy of their directories; `in_place`: its servers stay up over the \
         runs that use it, which change it as they do.",
    ),
    Row::new(
        "keep",
        Kind::Bool,
        "Whether later invocations find it under `results/datasets/`.",
    ),
];
