//! What stands around the phases of a run: probes, conditions, what is prepared and cleaned up, servers started anew.

use crate::kit::{Place, Row};
use crate::support::installed;
use crate::texts;

const HEAD: &str = "schema = 1\nname = \"around\"\n[sweep]\ntarget = [\"sqlite\"]\n[targets.sqlite]\ndriver = \"sqlite\"\n";

/// A counter in a table of its own, three increments by one session.
const COUNTER: &str = r#"
[operations.make]
sqlite = { statements = ["CREATE TABLE c (n)", "INSERT INTO c VALUES (5)"] }
[operations.add]
sqlite = { statements = ["UPDATE c SET n = n + 1"] }
[operations.count]
sqlite = { statements = ["SELECT n FROM c"] }
[[phases]]
name = "adding"
prepare = ["make"]
operation = "add"
threads = 1
operations = 3
"#;

fn values(place: &Place) -> Vec<(String, String, String)> {
    let cells = |row: &Row| {
        (
            row["probe"].clone(),
            row["value"].clone(),
            row["unit"].clone(),
        )
    };
    place.rows("probes.csv").iter().map(cells).collect()
}

fn owned(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let own = |text: &str| text.to_owned();
    rows.iter()
        .map(|(a, b, c)| (own(a), own(b), own(c)))
        .collect()
}

#[test]
fn probes_read_values_after_and_across_a_phase() {
    let place = Place::with(&format!(
        "{HEAD}{COUNTER}
[[phases]]
name = \"more\"
operation = \"add\"
threads = 1
operations = 4
[[probes]]
name = \"counted\"
after = \"adding\"
operation = \"count\"
unit = \"increments\"
[[probes]]
name = \"grown\"
across = \"more\"
operation = \"count\"
[[probes]]
name = \"said\"
after = \"stop\"
command = [\"echo\", \"a, b\"]
[[probes]]
name = \"size\"
after = \"stop\"
file_size = \"{{{{ run_dir }}}}/plan.json\"
unit = \"bytes\"
[[probes]]
name = \"left_out\"
after = \"more\"
operation = \"count\"
when = \"{{{{ 1 > 2 }}}}\"
[[conditions]]
require = \"{{{{ probe.counted == 8 and probe.grown == more.succeeded }}}}\"
message = \"{{{{ probe.counted }}}} and {{{{ probe.grown }}}}\"
[[tables]]
name = \"counted\"
rows = [\"target\"]
values = {{ counted = \"{{{{ probe.counted }}}}\", grown = \"{{{{ probe.grown }}}}\" }}
"
    ));
    place.scenario(&[]).expect(0);
    let plan = std::fs::metadata(place.out().join("plan.json"))
        .unwrap()
        .len()
        .to_string();
    assert_eq!(
        values(&place),
        owned(&[
            ("counted", "8", "increments"),
            ("grown", "4", ""),
            ("said", "a, b", ""),
            ("size", &plan, "bytes"),
        ])
    );
    assert!(
        place
            .text("tables/counted.csv")
            .starts_with("target,counted,grown")
    );
    assert!(place.text("tables/counted.csv").contains("\nsqlite,8,4"));
}

#[test]
fn a_condition_that_does_not_hold_makes_the_run_invalid_and_its_cells_empty() {
    let text = format!(
        "{HEAD}{COUNTER}
[[probes]]
name = \"counted\"
after = \"adding\"
operation = \"count\"
[[conditions]]
require = \"{{{{ probe.counted == 3 }}}}\"
message = \"{{{{ adding.succeeded }}}} added, {{{{ probe.counted }}}} counted\"
[[tables]]
name = \"hidden\"
rows = [\"target\"]
values = {{ counted = \"{{{{ probe.counted }}}}\" }}
[[tables]]
name = \"shown\"
rows = [\"target\"]
invalid = \"show\"
values = {{ counted = \"{{{{ probe.counted }}}}\" }}
"
    );
    let place = Place::with(&text);
    place.scenario(&[]).expect(3).says("3 added, 8 counted");
    assert_eq!(place.statuses().values().collect::<Vec<_>>(), ["invalid"]);
    assert!(
        place.reason().contains("3 added, 8 counted"),
        "{}",
        place.reason()
    );
    // What was measured stays in the rows.
    assert_eq!(place.rows("operations.csv")[0]["succeeded"], "3");
    assert!(!place.text("tables/hidden.csv").contains("sqlite,8"));
    assert!(place.text("tables/shown.csv").contains("sqlite,8"));
}

#[test]
fn a_probe_or_a_preparation_that_fails_fails_the_run_with_what_was_said() {
    let cases = [
        (
            COUNTER.replace("SELECT n FROM c", "SELECT n FROM nosuch"),
            "probe `counted`",
            "no such table: nosuch",
        ),
        (
            COUNTER.replace("INSERT INTO c VALUES", "INSERT INTO d VALUES"),
            "make",
            "no such table: d",
        ),
    ];
    for (text, what, why) in cases {
        let place = Place::with(&format!(
            "{HEAD}{text}[[probes]]\nname = \"counted\"\nafter = \"adding\"\noperation = \"count\"\n"
        ));
        place.scenario(&[]).expect(3);
        let reason = place.reason();
        assert!(reason.contains(what) && reason.contains(why), "{reason}");
        assert_eq!(place.statuses().values().collect::<Vec<_>>(), ["failed"]);
        place.assert_nothing_left();
    }
}

#[test]
fn cleanup_runs_after_its_phase_and_prepare_before() {
    let place = Place::with(&format!(
        "{HEAD}{}[operations.drop]\nsqlite = {{ statements = [\"DROP TABLE c\"] }}\n[operations.tables]\nsqlite = {{ statements = [\"SELECT count(*) FROM sqlite_master WHERE name = 'c'\"] }}\n\
         [[phases]]\nname = \"again\"\nprepare = [\"make\"]\noperation = \"add\"\nthreads = 1\noperations = 3\n\
         [[probes]]\nname = \"tables\"\nafter = \"adding\"\noperation = \"tables\"\n[[probes]]\nname = \"counted\"\nafter = \"again\"\noperation = \"count\"\n",
        COUNTER.replace(
            "prepare = [\"make\"]",
            "prepare = [\"make\"]\ncleanup = [\"drop\"]"
        )
    ));
    // `again` can make its table only because the first phase took its own away; a probe reads what is there before that.
    place.scenario(&[]).expect(0);
    assert_eq!(
        values(&place),
        owned(&[("tables", "1", ""), ("counted", "8", "")])
    );
}

#[test]
fn a_server_named_by_restart_servers_is_another_process_in_that_phase() {
    if !installed("redis-server") {
        return;
    }
    let place = Place::with(&format!(
        "schema = 1\nname = \"anew\"\n{}{}
[operations.size]
redis = {{ command = [\"DBSIZE\"] }}
[[phases]]
name = \"set\"
operation = \"set\"
keys = {{ distribution = \"sequential\" }}
threads = 1
operations = 100
[[phases]]
name = \"get\"
restart_servers = [\"redis\"]
operation = \"get\"
threads = 1
operations = 50
[[probes]]
name = \"before\"
after = \"set\"
operation = \"size\"
[[probes]]
name = \"behind\"
after = \"get\"
operation = \"size\"
",
        texts::REDIS,
        texts::DATA
    ));
    place.scenario(&[]).expect(0);
    // It keeps nothing on disk, so what was set is gone.
    assert_eq!(
        values(&place),
        owned(&[("before", "100", ""), ("behind", "0", "")])
    );
    let rows = place.rows("operations.csv");
    let get = rows.iter().find(|row| row["phase"] == "get").unwrap();
    assert_eq!(
        (get["missing"].as_str(), get["failed"].as_str()),
        ("50", "0")
    );
    place.assert_nothing_left();
}

#[test]
fn a_resumed_campaign_has_each_probe_once() {
    let place = Place::with(&format!(
        "{}{COUNTER}[[probes]]\nname = \"counted\"\nafter = \"adding\"\noperation = \"count\"\n",
        HEAD.replace("[targets", "[runs]\nrepeats = 3\n[targets")
    ));
    place.scenario(&[]).expect(0);
    let (runs, probes) = (place.text("runs.csv"), place.text("probes.csv"));
    assert_eq!(probes.lines().count(), 4);
    // As a kill leaves it: the rows of the last run are there, the run itself is not finished.
    let first_two: String = runs
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(place.out().join("runs.csv"), first_two).unwrap();
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(0);
    assert_eq!(place.text("probes.csv"), probes);
    assert_eq!(place.statuses().len(), 3);
}
