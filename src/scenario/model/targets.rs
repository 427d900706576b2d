//! Rows of `[targets.NAME]`.

use super::{DURATION, TEXTS};
use crate::rows::{Kind, NameKind, Row};

pub const TARGET: &[Row] = &[
    Row::new("driver", Kind::Text, "One of `dbbench drivers`.").required(),
    Row::new(
        "endpoints",
        Kind::OneOf(&[TEXTS, Kind::Map(NameKind::Variable, &TEXTS)]),
        "Where it is: a list, or named lists (`{ primary = [...], replicas = [...] }`) of which each phase or group names one. Threads are dealt over them in turn.",
    ),
    Row::new("servers", TEXTS, "Servers started for it."),
    Row::new(
        "dataset",
        Kind::Text,
        "One of `[datasets]`, that its runs find loaded.",
    ),
    Row::new(
        "options",
        Kind::Map(NameKind::Free, &Kind::Any),
        "The driver's own, printed by `dbbench drivers NAME`.",
    ),
    Row::new("label", Kind::Text, "Shown in tables instead of its name."),
    Row::new(
        "stand_in_for",
        Kind::Text,
        "What it stands for, where the real one cannot be had; shown in every table. Empty: none.",
    ),
    Row::new(
        "copies",
        Kind::Integer { min: 1, max: 1000 },
        "Copies that the store keeps of everything, for the estimate.",
    ),
    Row::new(
        "held_in",
        Kind::Choice(&["memory", "disk"]),
        "Where it keeps its data, for the estimate; else the driver's.",
    ),
    Row::new(
        "unavailable",
        Kind::Choice(&["skip", "fail"]),
        "When a program of its servers is missing: its runs are skipped and say so, or it is an error.",
    ),
    Row::new(
        "allow_reset",
        Kind::Bool,
        "Whether dbbench may clear a store that it did not start itself.",
    ),
    Row::new(
        "connect_timeout",
        DURATION,
        "Limit of one connection's opening.",
    ),
    Row::new(
        "durability",
        Kind::Choice(&crate::driver::spec::Durability::NAMES),
        "What an acknowledged write survives, as the author claims; stands in the results, checked where the driver can ask.",
    ),
];
