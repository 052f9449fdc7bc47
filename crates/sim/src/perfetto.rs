//! Export of a [`Timeline`] as Chrome trace JSON, which ui.perfetto.dev opens.
//!
//! Two tracks (the "Trace Event Format" of the Chromium project): the head, as complete events
//! (`X`) that never overlap; and requests, as nestable asynchronous events (`b`, `e`), because many
//! are in flight at once. Each request extends from due to done and contains two parts: waiting in
//! the scheduler, and at the drive. Times are microseconds with three decimals, so nothing is lost.

use std::io::{self, Write};

use headtime_disk::{Kind, Time};

use crate::stats::Done;
use crate::timeline::{Slice, Timeline};

/// Writes a timeline. `disk` names the process in the viewer.
pub fn write(timeline: &Timeline, disk: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = serde_json::to_string(disk)?;
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    write!(out, "\n{{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"process_name\",\"args\":{{\"name\":{name}}}}}")?;
    write!(out, ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{{\"name\":\"head\"}}}}")?;
    for s in timeline.slices() {
        slice(s, out)?;
    }
    for d in timeline.requests() {
        request(d, out)?;
    }
    writeln!(out, "\n]}}")
}

fn slice(s: &Slice, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"head\",\"name\":\"{}\",\"ts\":{},\"dur\":{}",
        s.doing.name(),
        Us(s.from.0),
        Us(s.to.0 - s.from.0)
    )?;
    if let Some(c) = &s.command {
        write!(
            out,
            ",\"args\":{{\"command\":{},\"kind\":\"{}\",\"lbn\":{},\"sectors\":{}}}",
            c.id,
            kind(c.kind),
            c.lbn,
            c.count
        )?;
    }
    write!(out, "}}")
}

fn request(d: &Done, out: &mut dyn Write) -> io::Result<()> {
    let mut event = |phase: char, name: &str, at: Time, args: &str| {
        write!(
            out,
            ",\n{{\"ph\":\"{phase}\",\"pid\":1,\"tid\":2,\"cat\":\"request\",\"id\":{},\"name\":\"{name}\",\
             \"ts\":{}{args}}}",
            d.sequence,
            Us(at.0)
        )
    };
    let args = format!(
        ",\"args\":{{\"owner\":{},\"lbn\":{},\"sectors\":{},\"submitted_us\":{}}}",
        d.owner,
        d.lbn,
        d.count,
        Us(d.submitted.0)
    );
    let name = kind(d.kind);
    event('b', name, d.due, &args)?;
    if d.dispatched > d.due {
        event('b', "waiting", d.due, "")?;
        event('e', "waiting", d.dispatched, "")?;
    }
    event('b', "at drive", d.dispatched, "")?;
    event('e', "at drive", d.done, "")?;
    event('e', name, d.done, "")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Flush => "flush",
    }
}

/// Nanoseconds, formatted as microseconds.
struct Us(u64);

impl std::fmt::Display for Us {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::recorded;
    use serde_json::Value;

    #[test]
    fn the_export_is_json_with_a_head_track_and_balanced_requests() {
        let timeline = recorded(30, None);
        let mut text = Vec::new();
        write(&timeline, "a \"disk\"", &mut text).unwrap();
        let v: Value = serde_json::from_slice(&text).unwrap();
        let events = v["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "a \"disk\"");
        let count = |ph: &str| events.iter().filter(|e| e["ph"] == ph).count();
        assert_eq!(count("X"), timeline.slices().len());
        assert_eq!(count("b"), count("e"));
        assert!(count("b") >= 60);
        let head: f64 = events.iter().filter(|e| e["ph"] == "X").map(|e| e["dur"].as_f64().unwrap()).sum();
        assert!((head - timeline.slices().last().unwrap().to.0 as f64 / 1000.0).abs() < 1e-3);
        for (e, d) in events.iter().filter(|e| e["ph"] == "b" && e["args"].is_object()).zip(timeline.requests()) {
            assert_eq!(e["id"], d.sequence);
            assert_eq!(e["ts"].as_f64().unwrap(), d.due.0 as f64 / 1000.0);
        }
    }
}
