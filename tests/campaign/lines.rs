//! What the command line changes, what the run directory's files look like, and that no secret is ever in them.

use crate::kit::Place;
use crate::support::installed;
use crate::texts;

/// The columns as the contract of the run directory lists them.
fn columns(text: &str) -> Vec<String> {
    let percentiles = ["p50", "p90", "p95", "p99", "p99_9", "p99_99"];
    let mut columns = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('{') {
            None => columns.push(word.to_owned()),
            Some((before, rest)) => {
                let (list, after) = rest.split_once('}').unwrap();
                let list = list.replace("PERCENTILES", &percentiles.join(","));
                columns.extend(list.split(',').map(|each| format!("{before}{each}{after}")));
            }
        }
    }
    columns
}

fn header(place: &Place, file: &str) -> Vec<String> {
    let path = place.out().join(file);
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap();
    header.iter().map(str::to_owned).collect()
}

#[test]
fn every_csv_file_has_the_columns_of_the_contract() {
    let place = Place::with(
        &texts::on_redb(texts::SET)
            .replace(
                "[targets.redb]",
                "[labels]\nos = \"a, b\"\n[sweep]\nn = [1, 2]\nsize = [10, 20]\n[targets.redb]",
            )
            .replace("size = 100", "size = \"{{ size }}\""),
    );
    place.scenario(&["--label", "who=me"]).expect(0);
    let run = "run label_os label_who sweep_n sweep_size repeat target driver stand_in_for ";
    let counts = "operations succeeded found missing failed timed_out wrong_value unknown dropped length_changed \
                  success_percent throughput_per_second attempted_per_second bytes_sent bytes_received ";
    let service =
        "service_time_{PERCENTILES}_us succeeded_service_time_{min,mean,PERCENTILES,max}_us ";
    let response = "response_time_{PERCENTILES}_us succeeded_response_time_{min,mean,PERCENTILES,max}_us start_lag_{p50,p99,max}_us ";
    let runs = format!("{run} status reason doubts started_at elapsed_seconds server_version");
    assert_eq!(header(&place, "runs.csv"), columns(&runs));
    let operations = format!(
        "{run} phase group operation measured load_model threads workers connections endpoints started_at elapsed_seconds passes \
         {counts} {service} {response} intended_rate_per_second reconnections reconnecting_seconds client_cpu_seconds \
         client_cpu_us_per_operation client_turn_{{p50,p99,max}}_us warnings connect_time_{{p50,p99,max}}_us first_byte_time_{{p50,p99,max}}_us"
    );
    assert_eq!(header(&place, "operations.csv"), columns(&operations));
    let windows = header(&place, "windows.csv");
    let first =
        columns("run phase group operation stage window_start_seconds window_seconds operations");
    assert_eq!(windows[..first.len()], first);
    assert_eq!(windows.last().map(String::as_str), Some("faults"));
    let errors = "run phase group operation class code count first_at first_message";
    assert_eq!(header(&place, "errors.csv"), columns(errors));
    let servers = "run process at_seconds cpu_seconds rss_bytes read_bytes written_bytes threads time_wait_sockets load";
    assert_eq!(header(&place, "servers.csv"), columns(servers));
    let rows = place.rows("operations.csv");
    assert_eq!(rows.len(), 4);
    let axes: Vec<_> = rows
        .iter()
        .map(|row| format!("{},{}", row["sweep_n"], row["sweep_size"]))
        .collect();
    assert_eq!(axes, ["1,10", "1,20", "2,10", "2,20"]);
    assert!(
        rows.iter()
            .all(|row| row["label_os"] == "a, b" && row["label_who"] == "me")
    );
    assert!(
        rows.iter()
            .all(|row| row["measured"] == "true" && row["load_model"] == "closed")
    );
}

#[test]
fn set_only_and_quick_change_a_campaign_and_stand_in_the_manifest() {
    let scenario = "schema = 1\nname = \"changed\"\n[vars]\nsets = 200\n[sweep]\ntarget = [\"redb\", \"fjall\"]\nthreads = [1, 2]\n\
                    [targets.redb]\ndriver = \"redb\"\n[targets.fjall]\ndriver = \"fjall\"\n[quick.vars]\nsets = 50\n";
    let phase = texts::SET
        .replace("200", "\"{{ sets }}\"")
        .replace("threads = 2", "threads = \"{{ threads }}\"");
    let place = Place::with(&[scenario, texts::DATA, &phase].concat());
    place
        .scenario(&[
            "--quick",
            "--only",
            "target=redb,threads=2",
            "--set",
            "runs.repeats=2",
        ])
        .expect(0);
    let runs: Vec<_> = place.statuses().into_keys().collect();
    assert_eq!(runs, ["target=redb,threads=2#1", "target=redb,threads=2#2"]);
    assert!(
        place
            .rows("operations.csv")
            .iter()
            .all(|row| row["operations"] == "50")
    );
    let manifest = place.text("manifest.json");
    for given in [
        "--quick",
        "--only target=redb,threads=2",
        "--set runs.repeats=2",
    ] {
        assert!(manifest.contains(given), "{given}");
    }
    // `--set` wins over `[quick]`.
    place
        .run(&[
            "scenario",
            "s.toml",
            "--out",
            "two",
            "--quick",
            "--set",
            "sets=70",
            "--only",
            "target=redb,threads=1",
        ])
        .expect(0);
    let rows = crate::kit::rows(&place.path().join("two/operations.csv"));
    assert_eq!(rows[0]["operations"], "70");
}

#[test]
fn several_files_run_one_after_another_each_into_its_own_directory() {
    let place = Place::with(&texts::on_redb(texts::SET));
    place.write(
        "other.toml",
        &texts::on_redb(texts::SET).replace("\"one\"", "\"two\""),
    );
    place.run(&["scenario", "s.toml", "other.toml"]).expect(0);
    for name in ["one", "two"] {
        let runs = crate::kit::rows(
            &place
                .path()
                .join("results")
                .join(name)
                .join("latest/runs.csv"),
        );
        assert_eq!(runs.len(), 1, "{name}");
    }
    // A fault in the last one comes before the first is run.
    place.write("wrong.toml", "schema = 1\n");
    std::fs::remove_dir_all(place.path().join("results")).unwrap();
    place.run(&["scenario", "s.toml", "wrong.toml"]).expect(2);
    assert!(!place.path().join("results").exists());
}

#[test]
fn a_secret_is_in_no_file_and_in_no_line() {
    if !installed("redis-server") {
        return;
    }
    const SECRET: &str = "hunter2-correct-horse";
    let protected = |arguments: &str| {
        texts::on_redis(texts::SET)
            .replace("\"--save\"", &format!("\"--requirepass\", \"{{{{ secret('DBBENCH_TEST_PASSWORD') }}}}\", {arguments} \"--save\""))
            .replace("redis://", "redis://:{{ secret('DBBENCH_TEST_PASSWORD') }}@")
    };
    let run = |place: &Place, password: &str| {
        let mut command = place.command(&["scenario", "s.toml", "--out", "out"]);
        let output = command
            .env("DBBENCH_TEST_PASSWORD", password)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), text)
    };
    let place = Place::with(&protected(""));
    let (code, text) = run(&place, SECRET);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(place.files_with(SECRET), Vec::<std::path::PathBuf>::new());
    assert_eq!(place.rows("operations.csv")[0]["succeeded"], "200");

    // A server that prints it when it fails.
    let telling = "[servers.redis]\ncommand = [\"sh\", \"-c\", \"echo wrong word: {{ secret('DBBENCH_TEST_PASSWORD') }}; exit 1\"]";
    let scenario = texts::on_redis(texts::SET);
    let command = scenario
        .lines()
        .find(|line| line.starts_with("command"))
        .unwrap();
    let place = Place::with(
        &scenario
            .replace(command, "")
            .replace("[servers.redis]", telling),
    );
    let (code, text) = run(&place, SECRET);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("wrong word: ***"), "{text}");
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(place.files_with(SECRET), Vec::<std::path::PathBuf>::new());
    assert!(place.reason().contains("wrong word: ***"));

    // One that is not set is a sentence.
    let place = Place::with(&protected(""));
    place.scenario(&[]).expect(3);
    assert!(
        place.reason().contains("DBBENCH_TEST_PASSWORD"),
        "{}",
        place.reason()
    );
}

#[test]
fn a_cell_that_a_spreadsheet_would_execute_is_escaped() {
    let place = Place::with(
        &texts::on_redb(texts::SET)
            .replace("[targets.redb]", "[labels]\nos = \"=1+1\"\n[targets.redb]"),
    );
    place.scenario(&[]).expect(0);
    assert_eq!(place.rows("runs.csv")[0]["label_os"], "'=1+1");
}
