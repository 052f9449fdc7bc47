use super::*;

fn spread(count: u64, mean_us: f64) -> Option<Spread> {
    Some(Spread { count, mean_us, p50_us: 5_000, p99_us: 20_000, max_us: 30_000 })
}

fn snapshot(at_s: u64, reads: u64, mean_us: f64, done: u64, wanted: u64) -> Snapshot {
    Snapshot {
        at_ns: at_s * 1_000_000_000,
        exports: vec![ExportCounts {
            name: "data".into(),
            reads,
            bytes: reads * 4096,
            response: spread(reads, mean_us),
            limit_ns: reads * 3_000_000,
            turn_ns: reads * 2_000_000,
            drive_ns: reads * reads * 20_000,
            weight: Some(100),
            max_iops: Some(40.0),
            limited: 5,
            ..ExportCounts::default()
        }],
        seek_ns: reads * 5_000_000,
        rotate_ns: reads * 3_000_000,
        transfer_ns: reads * 100_000,
        busy_ns: reads * 9_000_000,
        free_bytes: done,
        predictions: reads,
        predictions_within_150us: reads / 2,
        sessions: vec![SessionCounts {
            session: 7,
            name: "scrub\u{1b}[2J".into(),
            priority: 100,
            done_bytes: done,
            wanted_bytes: wanted,
            ..SessionCounts::default()
        }],
        ..Snapshot::default()
    }
}

#[test]
fn rates_are_those_between_two_snapshots() {
    let mut history = History::default();
    history.info(&InfoReply { disk: "Atlas".into(), fills: true, ..InfoReply::default() });
    assert_eq!(history.view(snapshot(10, 100, 8_000.0, 0, 40_000_000)), None);
    let v = history.view(snapshot(12, 300, 9_000.0, 8_000_000, 32_000_000)).unwrap();
    let e = &v.exports[0];
    assert_eq!((e.reads_per_second, e.mb_s), (100.0, 0.4096));
    // 300 at 9 ms less 100 at 8 ms: 200 at 9.5 ms.
    assert!((e.response_mean_ms.unwrap() - 9.5).abs() < 1e-9);
    assert_eq!(e.response.p99_ms, 20.0);
    // At the drive: 300 * 300 less 100 * 100 times 20 us, for 200 requests.
    let waits = Waits { limit_ms: 3.0, turn_ms: 2.0, idle_ms: 0.0, drive_ms: 8.0 };
    assert_eq!((e.waits, e.limited, e.weight), (Some(waits), 5, Some(100)));
    assert_eq!((e.max_iops, e.max_mb_s, e.latency_target_ms), (Some(40.0), None, None));
    let h = v.head_time;
    assert!((h.seek - 0.5).abs() < 1e-9 && (h.rotate - 0.3).abs() < 1e-9 && (h.idle - 0.1).abs() < 1e-9);
    assert!((h.free - 0.09).abs() < 1e-9, "{h:?}");
    assert_eq!((v.free_mb_s, v.predicted_within_150us), (4.0, Some(0.5)));
    let s = &v.sessions[0];
    assert_eq!((s.name.as_str(), s.share(), s.mb_s, s.finish_seconds), ("scrub[2J", 0.2, 4.0, Some(8.0)));
}

#[test]
fn a_server_that_began_anew_is_not_compared_with_the_one_before() {
    let mut history = History::default();
    let info = InfoReply::default();
    history.info(&info);
    history.view(snapshot(1_000, 50_000, 8_000.0, 0, 1));
    history.info(&info);
    assert_eq!(history.view(snapshot(1, 10, 8_000.0, 0, 1)), None);
    // A restart of the server is detected without a new `info`.
    assert_eq!(history.view(snapshot(1, 10, 8_000.0, 0, 1)), None);
    assert_eq!(history.view(snapshot(2, 20, 8_000.0, 0, 1)).unwrap().exports[0].reads_per_second, 10.0);
}

#[test]
fn more_head_time_than_time_fills_the_interval_and_no_more() {
    let mut history = History::default();
    history.view(snapshot(0, 0, 0.0, 0, 0));
    let h = history.view(snapshot(1, 1_000, 8_000.0, 0, 0)).unwrap().head_time;
    assert!((h.seek + h.rotate + h.transfer - 1.0).abs() < 1e-9 && h.free + h.idle < 1e-9, "{h:?}");
}

#[test]
fn what_does_not_move_has_no_finish() {
    let mut history = History::default();
    history.view(snapshot(0, 0, 0.0, 5, 10));
    let v = history.view(snapshot(1, 0, 0.0, 5, 10)).unwrap();
    assert_eq!((v.sessions[0].finish_seconds, v.exports[0].response_mean_ms), (None, None));
    assert_eq!(v.predicted_within_150us, None);
}
