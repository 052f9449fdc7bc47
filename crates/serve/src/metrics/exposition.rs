//! The metrics page, in Prometheus's text format (version 0.0.4).
//!
//! Names and units follow Prometheus's conventions: seconds and bytes, `_total` for counters.
//! Counters start at zero with the server, which Prometheus's `rate` expects. Distributions are
//! summaries since the server started; quantiles of several servers cannot be aggregated.
//!
//! Written by hand, because prometheus-client (0.25) writes only OpenMetrics, which has other names
//! of counters in its headers, and has no summaries.

use std::fmt::{Display, Write};

use crate::control::v1::{Snapshot, Spread, StreamCounts};

const NS: f64 = 1e9;
const US: f64 = 1e6;

/// A metric being written: its header is written once, before its first sample.
struct Metric<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Metric<'_> {
    /// Writes a sample. Writing to a string does not fail.
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.suffixed("", labels, value)
    }

    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        let _ = write!(self.out, "{}{suffix}", self.name);
        for (at, (name, text)) in labels.iter().enumerate() {
            let _ = write!(self.out, "{}{name}=\"{}\"", if at == 0 { '{' } else { ',' }, escaped(text));
        }
        let _ = writeln!(self.out, "{} {value}", if labels.is_empty() { "" } else { "}" });
        self
    }

    /// Writes quantiles, sum and count in seconds.
    fn summary(&mut self, labels: &[(&str, &str)], spread: Option<&Spread>) -> &mut Self {
        let none = Spread::default();
        let s = spread.unwrap_or(&none);
        for (quantile, us) in [("0.5", s.p50_us), ("0.99", s.p99_us), ("1", s.max_us)] {
            let labels = [labels, &[("quantile", quantile)]].concat();
            self.sample(&labels, us as f64 / US);
        }
        self.suffixed("_sum", labels, s.mean_us * s.count as f64 / US);
        self.suffixed("_count", labels, s.count)
    }
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn metric<'a>(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Metric<'a> {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    Metric { out, name }
}

/// Returns the metrics page.
pub(crate) fn page(s: &Snapshot) -> String {
    let mut out = String::with_capacity(8 << 10);
    let o = &mut out;
    metric(o, "headtime_build_info", "gauge", "1, with the server's version.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    metric(o, "headtime_uptime_seconds", "gauge", "Time since the server began.").sample(&[], s.at_ns as f64 / NS);
    exports(o, s);
    drive(o, s);
    background(o, s);
    streams(o, s);
    out
}

fn exports(o: &mut String, s: &Snapshot) {
    let mut requests = metric(o, "headtime_requests_total", "counter", "Requests of clients that were finished.");
    for e in &s.exports {
        for (kind, count) in [("read", e.reads), ("write", e.writes), ("flush", e.flushes)] {
            requests.sample(&[("export", &e.name), ("kind", kind)], count);
        }
    }
    let mut failures = metric(o, "headtime_request_failures_total", "counter", "Requests of clients that failed.");
    for e in &s.exports {
        failures.sample(&[("export", &e.name)], e.failed);
    }
    let mut bytes = metric(o, "headtime_request_bytes_total", "counter", "Bytes that clients read and wrote.");
    for e in &s.exports {
        bytes.sample(&[("export", &e.name)], e.bytes);
    }
    let help = "Time of finished requests of clients: waiting for the limit of their export, waiting for their turn, \
                waiting while the disk idled for another application, and at the drive.";
    let mut waits = metric(o, "headtime_request_wait_seconds_total", "counter", help);
    for e in &s.exports {
        for (reason, ns) in [("limit", e.limit_ns), ("turn", e.turn_ns), ("idle", e.idle_ns), ("drive", e.drive_ns)] {
            waits.sample(&[("export", &e.name), ("reason", reason)], ns as f64 / NS);
        }
    }
    let mut limited =
        metric(o, "headtime_requests_limited", "gauge", "Requests that wait for the limit of their export.");
    for e in &s.exports {
        limited.sample(&[("export", &e.name)], e.limited);
    }
    let help = "Time from taking a request to its end, since the server began.";
    let mut response = metric(o, "headtime_response_seconds", "summary", help);
    for e in &s.exports {
        response.summary(&[("export", &e.name)], e.response.as_ref());
    }
    let help = "Bytes in an export's write cache that are not on the disk.";
    let mut dirty = metric(o, "headtime_write_cache_dirty_bytes", "gauge", help);
    for (e, bytes) in s.exports.iter().filter_map(|e| Some((e, e.dirty_bytes?))) {
        dirty.sample(&[("export", &e.name)], bytes);
    }
    metric(o, "headtime_requests_under_way", "gauge", "Requests that wait or are at the drive.")
        .sample(&[], s.under_way);
}

fn drive(o: &mut String, s: &Snapshot) {
    metric(o, "headtime_commands_total", "counter", "Commands that the drive carried out.").sample(&[], s.commands);
    metric(o, "headtime_command_failures_total", "counter", "Commands that failed.").sample(&[], s.failed);
    metric(o, "headtime_commands_at_device", "gauge", "Commands at the drive.").sample(&[], s.at_device);
    let help = "Time from sending a command to its end, since the server began.";
    metric(o, "headtime_service_seconds", "summary", help).summary(&[], s.service.as_ref());
    let help = "How late completions were heard of, where their moment was known: a virtual drive.";
    metric(o, "headtime_completion_lateness_seconds", "summary", help).summary(&[], s.lateness.as_ref());
    let help = "Head time of clients' requests, as predicted when they were sent to the drive.";
    let mut head_time = metric(o, "headtime_head_time_seconds_total", "counter", help);
    for (part, ns) in [("seek", s.seek_ns), ("rotate", s.rotate_ns), ("transfer", s.transfer_ns)] {
        head_time.sample(&[("part", part)], ns as f64 / NS);
    }
    let help = "Time for which the drive had a command.";
    metric(o, "headtime_busy_seconds_total", "counter", help).sample(&[], s.busy_ns as f64 / NS);
    let help = "Predictions that were compared with what happened.";
    metric(o, "headtime_predictions_total", "counter", help).sample(&[], s.predictions);
    let help = "1 while answers to writes contradict what the profile or the kernel says of the drive's write cache.";
    metric(o, "headtime_write_cache_contradicted", "gauge", help).sample(&[], u8::from(s.write_cache.is_some()));
    let help = "Predictions that were right to 150 microseconds.";
    metric(o, "headtime_predictions_within_150us_total", "counter", help).sample(&[], s.predictions_within_150us);
}

fn background(o: &mut String, s: &Snapshot) {
    metric(o, "headtime_free_bytes_total", "counter", "Bytes moved for free.").sample(&[], s.free_bytes);
    let help = "1 while gaps are not filled because the drive surprises.";
    metric(o, "headtime_fill_stopped", "gauge", help).sample(&[], u8::from(s.fill_stopped));
    metric(o, "headtime_fill_stops_total", "counter", "How often filling stopped.").sample(&[], s.times_stopped);
    metric(o, "headtime_sessions", "gauge", "Freeblock sessions that are open.").sample(&[], s.sessions.len());
    type Figure = fn(&crate::control::v1::SessionCounts) -> u64;
    let figures: [(&'static str, &str, Figure); 5] = [
        ("headtime_session_done_bytes", "Bytes that a session's tasks got or wrote.", |s| s.done_bytes),
        ("headtime_session_wanted_bytes", "Bytes that a session's tasks still want.", |s| s.wanted_bytes),
        ("headtime_session_tasks", "Tasks of a session that have not ended.", |s| s.tasks),
        ("headtime_session_priority", "A session's priority.", |s| u64::from(s.priority)),
        ("headtime_session_suspended", "1 while nothing is picked up for a session.", |s| u64::from(s.suspended)),
    ];
    for (name, help, figure) in figures {
        let mut m = metric(o, name, "gauge", help);
        for session in &s.sessions {
            let id = session.session.to_string();
            m.sample(&[("session", &id), ("name", &session.name)], figure(session));
        }
    }
}

fn streams(o: &mut String, s: &Snapshot) {
    type Figure<T> = fn(&StreamCounts) -> T;
    let counts: [(&'static str, &str, Figure<u64>); 5] = [
        ("headtime_stream_requests_total", "Requests of a stream.", |s| s.asked),
        ("headtime_stream_in_time_total", "Requests of a stream that were done in their period.", |s| s.in_time),
        ("headtime_stream_late_total", "Requests of a stream that were not done by the end of their period.", |s| {
            s.late
        }),
        ("headtime_stream_given_up_total", "Late requests of a stream for which nothing was done.", |s| s.given_up),
        ("headtime_stream_deferred_total", "Requests of a stream that a later period took.", |s| s.deferred),
    ];
    for (name, help, figure) in counts {
        let mut m = metric(o, name, "counter", help);
        for s in &s.streams {
            m.sample(&[("export", &s.export)], figure(s));
        }
    }
    let figures: [(&'static str, &str, Figure<f64>); 2] = [
        ("headtime_stream_quality", "Part of a stream's requests that was promised to be done in their period.", |s| {
            s.stream.map_or(0.0, |s| f64::from(s.quality_ppm) / 1e6)
        }),
        ("headtime_stream_reserved_seconds", "Time reserved for an optional stream in each period.", |s| {
            s.reservation_ns.unwrap_or(0) as f64 / NS
        }),
    ];
    for (name, help, figure) in figures {
        let mut m = metric(o, name, "gauge", help);
        for s in &s.streams {
            m.sample(&[("export", &s.export)], figure(s));
        }
    }
    let help = "Commands that took longer than the worst case that streams are promised from.";
    metric(o, "headtime_overdue_total", "counter", help).sample(&[], s.overdue);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::v1::{ExportCounts, SessionCounts, Stream};

    fn snapshot() -> Snapshot {
        let spread = Spread { count: 4, mean_us: 2_500.0, p50_us: 2_000, p99_us: 9_000, max_us: 9_100 };
        Snapshot {
            at_ns: 1_500_000_000,
            exports: vec![ExportCounts {
                name: "a \"b\"\n\\c".into(),
                reads: 3,
                writes: 1,
                bytes: 16_384,
                response: Some(spread),
                dirty_bytes: Some(4_096),
                limit_ns: 3_000_000_000,
                idle_ns: 250_000_000,
                limited: 7,
                ..ExportCounts::default()
            }],
            seek_ns: 250_000_000,
            sessions: vec![SessionCounts { session: 9, name: "scrub".into(), suspended: true, ..Default::default() }],
            streams: vec![StreamCounts {
                export: "film".into(),
                stream: Some(Stream { quality_ppm: 950_000, ..Stream::default() }),
                reservation_ns: Some(20_500_000),
                asked: 100,
                in_time: 97,
                late: 3,
                given_up: 2,
                ..StreamCounts::default()
            }],
            overdue: 4,
            ..Snapshot::default()
        }
    }

    #[test]
    fn figures_are_in_base_units_with_their_labels() {
        let page = page(&snapshot());
        for line in [
            "headtime_uptime_seconds 1.5",
            r#"headtime_requests_total{export="a \"b\"\n\\c",kind="read"} 3"#,
            r#"headtime_response_seconds{export="a \"b\"\n\\c",quantile="0.99"} 0.009"#,
            r#"headtime_response_seconds_sum{export="a \"b\"\n\\c"} 0.01"#,
            r#"headtime_response_seconds_count{export="a \"b\"\n\\c"} 4"#,
            r#"headtime_request_wait_seconds_total{export="a \"b\"\n\\c",reason="limit"} 3"#,
            r#"headtime_request_wait_seconds_total{export="a \"b\"\n\\c",reason="idle"} 0.25"#,
            r#"headtime_requests_limited{export="a \"b\"\n\\c"} 7"#,
            r#"headtime_write_cache_dirty_bytes{export="a \"b\"\n\\c"} 4096"#,
            r#"headtime_head_time_seconds_total{part="seek"} 0.25"#,
            r#"headtime_session_suspended{session="9",name="scrub"} 1"#,
            "headtime_service_seconds_count 0",
            r#"headtime_stream_in_time_total{export="film"} 97"#,
            r#"headtime_stream_given_up_total{export="film"} 2"#,
            r#"headtime_stream_quality{export="film"} 0.95"#,
            r#"headtime_stream_reserved_seconds{export="film"} 0.0205"#,
            "headtime_overdue_total 4",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
        }
    }

    /// Checks the rules of the format: every sample belongs to the metric above it, each metric
    /// occurs once, and the page ends with a newline.
    #[test]
    fn the_page_is_what_prometheus_reads() {
        let page = page(&snapshot());
        assert!(page.ends_with('\n'));
        let mut seen: Vec<&str> = Vec::new();
        let mut lines = page.lines().peekable();
        while let Some(line) = lines.next() {
            let name = line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()).expect(line);
            assert!(!seen.contains(&name), "{name} is there twice");
            seen.push(name);
            let kind = lines.next().and_then(|l| l.strip_prefix("# TYPE ")?.strip_prefix(name)).expect(name).trim();
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            while let Some(sample) = lines.next_if(|l| !l.starts_with('#')) {
                let rest = sample.strip_prefix(name).expect(sample);
                let rest = rest.strip_prefix("_sum").or(rest.strip_prefix("_count")).unwrap_or(rest);
                assert!(rest.starts_with(['{', ' ']), "{sample}");
                assert!(rest.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{sample}");
            }
        }
        assert!(seen.len() > 15);
    }
}
