//! Windows of many workers made one, and a phase's record made of them.

use super::*;
use crate::op::ErrorClass;

const SECOND: Duration = Duration::from_secs(1);

/// Two groups: `read` does get and scan, `write` does set.
fn rows() -> Vec<RowName> {
    vec![
        RowName::new((0, 0), "read", "get"),
        RowName::new((0, 1), "read", "scan"),
        RowName::new((1, 0), "write", "set"),
    ]
}

/// `succeeded` successes of 1 ms and `failed` failures of 2 ms.
fn cells(succeeded: u64, failed: u64) -> Cells {
    let mut cells = Cells::default();
    cells.counts.operations = succeeded + failed;
    cells.counts.succeeded = succeeded;
    cells.counts.failed = failed;
    (0..succeeded).for_each(|_| cells.succeeded.record(1_000_000));
    (0..failed).for_each(|_| cells.unsuccessful.record(2_000_000));
    cells
}

fn window(stage: Stage, index: u64, rows: Vec<(usize, Cells)>) -> WorkerWindow {
    WorkerWindow { stage, index, rows }
}

/// (start in seconds, length in seconds, stage, operations of each row in it).
type Shown = (f64, f64, Stage, Vec<(usize, usize, u64)>);

fn shown(windows: &[WindowRecord]) -> Vec<Shown> {
    let operations = |record: &WindowRecord| {
        let each = record.operations.iter();
        each.map(|one| (one.group, one.slot, one.counts.operations))
            .collect()
    };
    windows
        .iter()
        .map(|record| {
            (
                record.start.as_secs_f64(),
                record.length.as_secs_f64(),
                record.stage,
                operations(record),
            )
        })
        .collect()
}

#[test]
fn a_window_is_complete_when_the_slowest_worker_is_past_it() {
    let start = Instant::now();
    let mut merge = Merge::new(rows(), 2, SECOND);
    merge.begin(Stage::Measured, start, Some(start + 10 * SECOND));
    let measured = |index, rows| window(Stage::Measured, index, rows);
    assert!(
        merge
            .take(0, measured(0, vec![(0, cells(3, 0))]))
            .is_empty()
    );
    assert!(
        merge
            .take(0, measured(1, vec![(0, cells(1, 0))]))
            .is_empty()
    );
    let first = merge.take(1, measured(0, vec![(0, cells(2, 1)), (2, cells(5, 0))]));
    assert!(first.is_empty(), "worker 1 may go on in window 0");
    let complete = merge.take(1, measured(1, vec![(1, cells(4, 0))]));
    let expected = (0.0, 1.0, Stage::Measured, vec![(0, 0, 6), (1, 0, 5)]);
    assert_eq!(shown(&complete), [expected]);
    assert_eq!(complete[0].operations[0].counts.failed, 1);
    assert_eq!(complete[0].operations[0].succeeded.len(), 5);
    let rest = merge.end_pass(start + 2 * SECOND, true);
    let expected = (1.0, 1.0, Stage::Measured, vec![(0, 0, 1), (0, 1, 4)]);
    assert_eq!(shown(&rest), [expected]);
}

#[test]
fn a_phase_by_count_ends_its_last_window_with_its_last_operation() {
    let start = Instant::now();
    let mut merge = Merge::new(rows(), 1, SECOND);
    merge.begin(Stage::Measured, start, None);
    merge.take(0, window(Stage::Measured, 1, vec![(0, cells(1, 0))]));
    let last_end = start + SECOND + SECOND / 4;
    assert!(merge.end_pass(last_end, false).is_empty());
    let expected = (1.0, 0.25, Stage::Measured, vec![(0, 0, 1)]);
    assert_eq!(shown(&merge.end_stage()), [expected]);
}

#[test]
fn passes_go_on_in_one_grid_and_share_the_window_between_them() {
    let start = Instant::now();
    let mut merge = Merge::new(rows(), 1, SECOND);
    merge.begin(Stage::Measured, start, None);
    let pass = |merge: &mut Merge, index, end| {
        let mut seen = merge.take(0, window(Stage::Measured, index, vec![(0, cells(2, 0))]));
        seen.extend(merge.end_pass(end, false));
        seen
    };
    let mut seen = pass(&mut merge, 0, start + SECOND / 2);
    merge.begin(Stage::Measured, start, None);
    seen.extend(pass(&mut merge, 0, start + SECOND * 3 / 4));
    seen.extend(merge.end_stage());
    let expected = (0.0, 0.75, Stage::Measured, vec![(0, 0, 4)]);
    assert_eq!(shown(&seen), [expected]);
    assert_eq!(merge.into_totals()[0].counts.operations, 4);
}

#[test]
fn what_drains_is_counted_but_not_in_the_throughput() {
    let start = Instant::now();
    let mut merge = Merge::new(rows(), 1, SECOND);
    let until = start + SECOND * 3 / 2;
    merge.begin(Stage::Measured, start, Some(until));
    merge.take(0, window(Stage::Measured, 1, vec![(0, cells(7, 1))]));
    merge.take(0, window(Stage::Drain, 0, vec![(0, cells(2, 1))]));
    let rest = merge.end_pass(until + SECOND, true);
    let expected = [
        (1.0, 0.5, Stage::Measured, vec![(0, 0, 8)]),
        (1.5, 1.0, Stage::Drain, vec![(0, 0, 3)]),
    ];
    assert_eq!(shown(&rest), expected);
    let totals = merge.into_totals();
    let total = &totals[0];
    assert_eq!(total.counts.operations, 11);
    assert_eq!((total.succeeded_inside, total.ended_inside), (7, 8));
    assert_eq!((total.succeeded.len(), total.unsuccessful.len()), (9, 2));
}

#[test]
fn a_warm_up_shows_in_windows_and_not_in_totals() {
    let start = Instant::now();
    let mut merge = Merge::new(rows(), 1, SECOND);
    merge.begin(Stage::Warmup, start, Some(start + SECOND));
    merge.take(0, window(Stage::Warmup, 0, vec![(0, cells(9, 0))]));
    let warmup = merge.end_pass(start + SECOND, true);
    let measured = start + 2 * SECOND;
    merge.begin(Stage::Measured, measured, Some(measured + SECOND));
    merge.take(0, window(Stage::Measured, 0, vec![(0, cells(1, 0))]));
    let rest = merge.end_pass(measured + SECOND, true);
    let expected = (0.0, 1.0, Stage::Warmup, vec![(0, 0, 9)]);
    assert_eq!(shown(&warmup), [expected]);
    // Dated from the warm-up's start.
    let expected = (2.0, 1.0, Stage::Measured, vec![(0, 0, 1)]);
    assert_eq!(shown(&rest), [expected]);
    assert_eq!(merge.into_totals()[0].counts.operations, 1);
}

#[test]
fn the_same_error_of_several_workers_is_one_row_with_the_first_message() {
    let error = |code: &str, count, seconds, message: &str| ErrorRecord {
        group: "read".to_owned(),
        operation: "get".to_owned(),
        class: ErrorClass::Server,
        code: code.to_owned(),
        count,
        first_at: seconds * SECOND,
        first_message: message.to_owned(),
    };
    let rows = joined(vec![
        error("BUSY", 3, 5, "late"),
        error("OOM", 1, 1, "other"),
        error("BUSY", 4, 2, "early"),
    ]);
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.code.as_str(),
                row.count,
                row.first_at,
                row.first_message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("BUSY", 7, 2 * SECOND, "early"),
            ("OOM", 1, SECOND, "other")
        ]
    );
}

#[test]
fn operations_are_told_per_endpoint() {
    let seat = |label: &str, operations| SeatReport {
        group: 0,
        label: label.to_owned(),
        operations,
        reconnections: 0,
        reconnecting: Duration::ZERO,
    };
    let seats = [seat("b:2", 5), seat("a:1", 1), seat("b:2", 2)];
    let expected = [("a:1".to_owned(), 1), ("b:2".to_owned(), 7)];
    assert_eq!(endpoints(seats.iter()), expected);
}
