//! A damaged scenario gives diagnostics that can be drawn, never a panic: bytes are removed, doubled or replaced at random.

#[path = "support/specs.rs"]
mod specs;

use dbbench::diag;
use dbbench::scenario::{self, Overrides};
use proptest::prelude::*;

const TEXT: &str = include_str!("../scenarios/kvs-2.5k.toml");

/// What is put somewhere: pieces of syntax that change the meaning of what stands around.
const PIECES: &[&str] = &[
    "",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "#",
    "1",
    "-",
    "'",
    "{{",
    "}}",
    "é",
    "\u{0}",
    "[[phases]]\n",
    "size = 1\n",
    "name = \"x\"\n",
    "true",
    ".",
    "\\",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_it_panic(
        damages in prop::collection::vec((0.0..1.0f64, 0usize..40, 0..PIECES.len()), 1..6)
    ) {
        // Without its fragments, which are not beside the damaged file.
        let mut text = TEXT.replacen("extends", "# extends", 1).into_bytes();
        for (place, removed, piece) in damages {
            let start = (place * text.len() as f64) as usize;
            let end = (start + removed).min(text.len());
            text.splice(start..end, PIECES[piece].bytes());
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("damaged.toml");
        std::fs::write(&path, text).expect("written");
        let loaded = scenario::load(&path, &Overrides::default(), specs::ALL);
        let drawn = diag::render(&loaded.sources, &loaded.diagnostics, false);
        prop_assert_eq!(loaded.scenario.is_none(), drawn.contains("error"));
        for fault in &loaded.diagnostics.list {
            prop_assert!(fault.span.is_none() || loaded.sources.find(fault.span).is_some());
        }
    }
}
