//! What `check` lets pass and what it refuses; the wording is shown by `tests/scenario_errors`.

use super::*;
use crate::scenario::{model, parse};

fn codes(text: &str, kind: &Kind, templates: Templates) -> Vec<&'static str> {
    let mut diagnostics = Diagnostics::default();
    let node = parse::document(text, 0, &mut diagnostics).expect("valid TOML");
    check(&node, kind, templates, &mut diagnostics);
    diagnostics.list.iter().map(|fault| fault.code).collect()
}

const PHASE: Kind = Kind::Table(model::PHASE);

#[test]
fn a_template_stands_for_any_value_until_it_is_evaluated() {
    let text = "name = 'a'\nthreads = '{{ t }}'\ntimeout = '{{ t }}ms'\nverify = '{{ v }}'\nmix = '{{ m }}'\n";
    assert!(codes(text, &PHASE, Templates::Allowed).is_empty());
    let after = codes(text, &PHASE, Templates::None);
    assert_eq!(
        after,
        ["wrong-type", "bad-unit", "wrong-type", "wrong-type"]
    );
}

#[test]
fn a_list_is_given_by_one_whole_expression_only() {
    let kind = Kind::Table(model::TARGET);
    let text = |endpoints: &str| format!("driver = 'redis'\nendpoints = '{endpoints}'\n");
    assert!(codes(&text("{{ all }}"), &kind, Templates::Allowed).is_empty());
    assert_eq!(
        codes(&text("redis://{{ host }}"), &kind, Templates::Allowed),
        ["wrong-type"]
    );
}

#[test]
fn every_fault_of_a_table_is_collected() {
    let text = "threads = 0\ntimeout = 5\nshare = 'block'\nverfy = true\n";
    let found = codes(text, &PHASE, Templates::Allowed);
    assert_eq!(
        found,
        [
            "out-of-range",
            "missing-unit",
            "unknown-choice",
            "unknown-key",
            "missing-key"
        ]
    );
}

#[test]
fn an_integer_is_a_number_but_no_float_is_an_integer() {
    let text = |weight: &str| format!("name = 'a'\nmix = {{ get = {weight} }}\n");
    assert!(codes(&text("1"), &PHASE, Templates::None).is_empty());
    assert!(codes(&text("0.5"), &PHASE, Templates::None).is_empty());
    assert_eq!(
        codes("name = 'a'\nthreads = 2.0\n", &PHASE, Templates::None),
        ["wrong-type"]
    );
}

#[test]
fn alternatives_are_told_apart_by_type_and_key() {
    let kind = Kind::Table(model::SERVER);
    let ready = |ready: &str| {
        codes(
            &format!("command = ['x']\nready = {ready}\n"),
            &kind,
            Templates::Allowed,
        )
    };
    assert!(ready("{ tcp = 'main' }").is_empty());
    assert!(ready("{ command = ['redis-cli', 'ping'] }").is_empty());
    assert_eq!(ready("{ command = 'ping' }"), ["wrong-type"]);
    assert_eq!(ready("{ tcp = 'main', http = '/' }"), ["unknown-key"]);
    assert_eq!(ready("'tcp'"), ["wrong-type"]);
}

#[test]
fn every_row_is_documented_and_named_once() {
    let tables: [&[Row]; 9] = [
        model::TOP,
        model::RUNS,
        model::CLIENT,
        model::SERVER,
        model::TARGET,
        model::KEYS,
        model::VALUES,
        model::PHASE,
        model::TABLE,
    ];
    for rows in tables {
        for (position, row) in rows.iter().enumerate() {
            assert!(row.doc.ends_with('.'), "{}", row.name);
            assert!(
                rows[..position].iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
            // Defaults of the language stand in defaults.toml, once.
            assert_eq!(row.default, "", "{}", row.name);
        }
    }
}
