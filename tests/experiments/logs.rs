//! What logging costs, and a query log replayed.

use super::{assert_consistent, count, number, quick};

const LOGS: &[&str] = &[
    "apache2",
    "/usr/lib/apache2/modules/mod_log_sql_mysql.so",
    "mariadbd",
];

#[test]
fn every_request_is_logged_in_all_four_cases() {
    let Some(experiment) = quick("access-log", LOGS, &["--strict"]) else {
        return;
    };
    let experiment = experiment.expect(0);
    let requests = experiment.operations("requests");
    assert_eq!(requests.len(), 4);
    assert_consistent(&requests);
    for row in &requests {
        let probe = match row["sweep_case"].as_str() {
            "1" | "2" => "file_rows",
            _ => "table_rows",
        };
        let logged = experiment.probe(&row["run"], probe);
        assert_eq!(logged, count(row, "succeeded") as f64, "{row:?}");
        assert_eq!(row["succeeded"], row["operations"], "{row:?}");
    }
    for (name, value) in [
        ("access-log-throughput", "requests_per_second"),
        ("access-log-size", "kilobytes"),
    ] {
        let rows = experiment.table(name);
        let cases: Vec<&str> = rows.iter().map(|row| row["case"].as_str()).collect();
        assert_eq!(cases, ["1", "2", "3", "4"]);
        let first = number(&rows[0], value);
        for row in &rows {
            let percent = 100.0 * number(row, value) / first;
            assert!((number(row, "percent_of_case_1") - percent).abs() < 1e-6);
        }
    }
}

#[test]
fn both_engines_hold_the_published_rows() {
    let Some(experiment) = quick("access-log-select", &["mariadbd"], &["--strict"]) else {
        return;
    };
    let experiment = experiment.expect(0);
    let rows = experiment.table("access-log-select");
    let cells: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["query"].as_str(), row["engine"].as_str()))
        .collect();
    let expected = [
        ("full_scan", "myisam"),
        ("full_scan", "archive"),
        ("time_range", "myisam"),
        ("time_range", "archive"),
    ];
    assert_eq!(cells, expected);
    for pair in rows.chunks(2) {
        assert_eq!(number(&pair[0], "percent_of_myisam"), 100.0);
        let ratio = 100.0 * number(&pair[1], "seconds") / number(&pair[0], "seconds");
        assert!((number(&pair[1], "percent_of_myisam") - ratio).abs() < 1e-6);
    }
    for row in experiment.place.rows("runs.csv") {
        assert_eq!(experiment.probe(&row["run"], "rows_found"), 11_907.0);
        assert_eq!(experiment.probe(&row["run"], "hits"), 7_147.0);
    }
}

#[test]
fn a_recorded_log_is_replayed_whole_by_every_client() {
    let label = ["--strict", "--label", "configuration=as tested"];
    let Some(experiment) = quick("myisam-innodb", &["mariadbd"], &label) else {
        return;
    };
    let experiment = experiment.expect(0);
    for name in ["myisam-innodb-bench1", "myisam-innodb-bench2"] {
        let rows = experiment.table(name);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["clients"], "4");
        assert_eq!(rows[0]["configuration"], "as tested");
        assert!(number(&rows[0], "myisam") > 0.0, "{rows:?}");
        assert!(number(&rows[0], "innodb") > 0.0, "{rows:?}");
    }
    let queries = experiment.operations("queries");
    assert_consistent(&queries);
    assert_eq!(queries.len(), 4, "2 engines, 2 logs");
    for row in &queries {
        // Every client runs the whole file, in every pass.
        let passes = count(row, "passes");
        assert_eq!(count(row, "operations"), 4 * 500 * passes, "{row:?}");
        assert_eq!(row["succeeded"], row["operations"], "{row:?}");
    }
    for row in experiment.place.rows("runs.csv") {
        assert_eq!(experiment.probe(&row["run"], "disk_reads"), 0.0);
    }
}
