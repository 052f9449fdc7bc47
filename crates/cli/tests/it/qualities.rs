//! `headtime simulate` with streams: qualities for requests unlike those of the drive's measured
//! service times.

use crate::common::{Scratch, headtime};

/// Each stream of a scenario by name, with its requested and its achieved quality.
fn qualities(scenario: &str) -> Vec<(String, f64, f64)> {
    let there = Scratch::new("qualities");
    let path = there.file("scenario.toml", scenario);
    let said = headtime(&["simulate", &path, "--json"]).json();
    let streams = said["streams"].as_object().unwrap();
    let figure = |stream: &serde_json::Value, key: &str| stream[key].as_f64().unwrap();
    streams.iter().map(|(name, s)| (name.clone(), figure(s, "quality_asked"), figure(s, "quality"))).collect()
}

fn assert_kept(scenario: &str) {
    for (name, asked, had) in qualities(scenario) {
        assert!(had >= asked, "{name}: asked for {asked}, had {had}");
    }
}

/// The reservation is below a request's mean service time. With best effort at the other end of the
/// drive the first request uses it up.
#[test]
fn a_stream_at_the_other_end_of_the_drive_than_best_effort_has_its_quality() {
    assert_kept(
        r#"
        disk = "ultrastar36z15"
        admit = "das"
        seconds = 240
        exhausted = "skip"
        [[task]]
        name = "others"
        size = "256k"
        tasks = 16
        place = "part"
        from = 0.9
        to = 1.0
        [[stream]]
        name = "few"
        requests = 5
        period = "777ms"
        quality = "30%"
        size = "64k"
        place = "part"
        from = 0.0
        to = 0.1
        "#,
    );
}

/// Of two adjacent requests neither is nearer than the other, so the first takes as long as a
/// single one.
#[test]
fn a_stream_that_reads_in_order_has_its_quality_beside_others() {
    assert_kept(
        r#"
        disk = "ultrastar36z15"
        admit = "das"
        seconds = 300
        exhausted = "skip"
        [[stream]]
        name = "many"
        requests = 20
        period = "250ms"
        quality = "30%"
        size = "4k"
        [[stream]]
        name = "three"
        requests = 3
        period = "333ms"
        quality = "50%"
        size = "4k"
        [[stream]]
        name = "in order"
        requests = 2
        period = "999ms"
        quality = "95%"
        size = "64k"
        place = "sequential"
        "#,
    );
}
