//! What is missing or full: programs, the results' place, the disk.

use crate::kit::Place;
use crate::texts;
use std::process::{Command, Stdio};

/// Two targets, of which one has no program.
fn half_missing(more: &str) -> String {
    let head = "schema = 1\nname = \"half\"\n[sweep]\ntarget = [\"absent\", \"redb\"]\n[targets.redb]\ndriver = \"redb\"\n";
    [head, &absent(more), texts::DATA, texts::SET].concat()
}

fn absent(more: &str) -> String {
    format!(
        "[servers.absent]\ncommand = [\"no-such-server-here\"]\ninstall = \"apt-get install nothing\"\n\
         [targets.absent]\ndriver = \"redis\"\nservers = [\"absent\"]\n\
         endpoints = [\"redis://127.0.0.1:{{{{ port('absent') }}}}\"]\n{more}\n"
    )
}

#[test]
fn a_missing_program_leaves_visible_rows_with_the_hint() {
    let place = Place::with(&half_missing(""));
    place
        .scenario(&[])
        .expect(0)
        .says("apt-get install nothing");
    let rows = place.rows("runs.csv");
    let row = rows.iter().find(|row| row["target"] == "absent").unwrap();
    assert_eq!(row["status"], "skipped");
    assert_eq!(
        row["reason"],
        "`no-such-server-here` is not installed; apt-get install nothing"
    );
    assert_eq!(place.statuses()["target=redb#1"], "valid");
    // Its run was never begun.
    assert!(
        place
            .rows("operations.csv")
            .iter()
            .all(|row| row["target"] == "redb")
    );
}

#[test]
fn where_nothing_ran_it_could_not_run() {
    let text = [
        "schema = 1\nname = \"none\"\n",
        &absent(""),
        texts::DATA,
        texts::SET,
    ]
    .concat();
    let place = Place::with(&text);
    place
        .scenario(&[])
        .expect(1)
        .says("apt-get install nothing");
    assert_eq!(place.rows("runs.csv")[0]["status"], "skipped");
}

#[test]
fn a_program_that_must_be_there_is_asked_for_before_anything_starts() {
    let place = Place::with(&half_missing("unavailable = \"fail\""));
    place
        .scenario(&[])
        .expect(1)
        .says("apt-get install nothing");
    assert!(!place.out().exists());
    let place = Place::with(&half_missing(""));
    place
        .scenario(&["--strict"])
        .expect(1)
        .says("target `absent` cannot run");
    assert!(!place.out().exists());
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let place = Place::with(&texts::on_redb(texts::SET));
    place.write("file", "");
    place
        .run(&["scenario", "s.toml", "--out", "file/out"])
        .expect(1)
        .says("file/out");
    place.write("results", "a file where the directory belongs");
    place
        .run(&["scenario", "s.toml"])
        .expect(1)
        .says("results/one");
    let full = Place::with(&texts::on_redb(texts::SET));
    std::fs::create_dir(full.out()).unwrap();
    full.write("out/something", "");
    full.scenario(&[]).expect(1).says("is not empty");
}

#[test]
fn every_exit_code_has_its_cause() {
    let place = Place::with("schema = 1\nname = \"wrong\"\nphase = 3\n");
    place.scenario(&[]).expect(2).says("did you mean");
    assert!(!place.out().exists());
    place
        .run(&["scenario", "absent.toml"])
        .expect(2)
        .says("absent.toml");
    place.run(&["scenario"]).expect(2);
    place.run(&["no-such-command"]).expect(2);
    let place = Place::with(&texts::on_redb(texts::SET));
    place.scenario(&["--set", "nothing.here=1"]).expect(2);
    place.scenario(&[]).expect(0);
    place
        .run(&["scenario", "s.toml", "s.toml", "--out", "both"])
        .expect(2)
        .says("--out");
}

/// Standard output that nobody reads and standard error that is full stop no campaign.
#[test]
fn results_do_not_depend_on_who_reads_the_output() {
    let place = Place::with(
        &(texts::on_redb(texts::SET)
            + "[[tables]]\nname = \"t\"\nrows = []\nvalues = { n = \"{{ set.operations }}\" }\n"),
    );
    let full = || {
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let status = place
        .command(&["scenario", "s.toml", "--out", "out"])
        .stderr(full())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(place.statuses().len(), 1);
    assert!(place.text("tables/t.csv").contains("200"));
}

/// A file system of 400 KiB, in a mount namespace of the program's own: nothing to clean up.
#[test]
fn on_a_full_disk_the_finished_runs_stay_whole() {
    let short = texts::LONG.replace("10min", "300ms");
    let head = "[client]\nwindow = \"2ms\"\n[sweep]\nn = { from = 1, to = 16 }\n[targets.redb]";
    let text = texts::on_redb(&short).replace("[targets.redb]", head);
    // A store that does nothing fills many windows in a short time.
    let place = Place::with(&text.replace("redb", "null"));
    std::fs::create_dir(place.path().join("small")).unwrap();
    let copy = place.path().join("copy");
    let script = "mount -t tmpfs -o size=400k none small || exit 77\n\
                  \"$0\" scenario s.toml --out small/out; code=$?\n\
                  cp -r small/out copy && exit $code";
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_dbbench")])
        .current_dir(place.path())
        .env("TMPDIR", place.path().join("tmp"))
        .stdin(Stdio::null());
    let Ok(output) = unshare.output() else {
        eprintln!("SKIPPED: unshare is not installed");
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || stderr.contains("unshare failed") {
        eprintln!("SKIPPED: no mount namespace here: {stderr}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the disk is full"), "{stderr}");
    let runs = crate::kit::rows(&copy.join("runs.csv"));
    assert!(!runs.is_empty() && runs.len() < 16, "{} runs", runs.len());
    assert!(runs.iter().all(|row| row["status"] == "valid"));
    place.assert_nothing_left();
    // With room again, the rest is done.
    place
        .run(&["scenario", "s.toml", "--resume", "copy"])
        .expect(0);
    assert_eq!(crate::kit::rows(&copy.join("runs.csv")).len(), 16);
    assert_eq!(crate::kit::rows(&copy.join("operations.csv")).len(), 16);
}
