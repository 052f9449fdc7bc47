//! Words and columns for the terminal and for files.

use super::figures::{Export, HeadTime, Session, Stream, View, Waits};
use crate::screen::columns;
use crate::words::{bytes, time};

/// Width of a bar in plain text, cells.
const BAR: usize = 40;

/// The whole view as plain text.
pub fn page(view: &View) -> String {
    let mut text = format!("{}\n\n", title(view));
    text += &format!("head time  [{}]  {}\n", bar(&view.head_time, BAR), legend(&view.head_time));
    for line in lines(view) {
        text += &format!("{line}\n");
    }
    text += "\n";
    text += &columns(&table(EXPORT_HEADS, view.exports.iter().map(export)), &[1, 2, 3, 4, 5, 6, 7]);
    text += "\n";
    text += &columns(&table(WAIT_HEADS, view.exports.iter().map(wait)), &[1, 2, 3, 4, 5, 6, 7, 8]);
    if !view.streams.is_empty() {
        text += "\n";
        text += &columns(&table(STREAM_HEADS, view.streams.iter().map(stream)), &[1, 2, 3, 4, 5, 6, 7, 8]);
    }
    if !view.sessions.is_empty() {
        text += "\n";
        text += &columns(&table(SESSION_HEADS, view.sessions.iter().map(session)), &[0, 2, 4, 5, 6, 7]);
    }
    text
}

fn table<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Vec<Vec<String>> {
    std::iter::once(heads.map(String::from)).chain(rows).map(Vec::from).collect()
}

/// The server, and its uptime.
pub fn title(view: &View) -> String {
    format!("{}, up {}; rates of {:.1} s", view.disk, time(view.up_seconds), view.interval_seconds)
}

/// Queues, background work and predictions, in words.
pub fn lines(view: &View) -> Vec<String> {
    let failed = match view.failed_commands {
        0 => String::new(),
        n => format!(", {n} FAILED since start"),
    };
    let mut lines = vec![format!(
        "queue      {} under way, {} at the drive, {:.1} commands/s{failed}",
        view.under_way, view.at_device, view.commands_per_second
    )];
    let fill = match (view.fill.fills, view.fill.stopped, view.fill.times_stopped) {
        (false, ..) => "nothing fills gaps".to_string(),
        (true, true, n) => format!("filling is STOPPED, the drive surprises ({n} times since start)"),
        (true, false, 0) => "filling".to_string(),
        (true, false, n) => format!("filling (was stopped {n} times since start)"),
    };
    lines.push(format!("free       {:.2} MB/s, {} since start; {fill}", view.free_mb_s, bytes(view.free_bytes)));
    if let Some(on) = view.fill.write_cache {
        let (is, said) = if on { ("ON", "off") } else { ("OFF", "on") };
        lines.push(format!("cache      the drive's write cache is {is}, by its answers; it was said to be {said}"));
    }
    let predicted = match view.predicted_within_150us {
        Some(share) => format!("{:.1}% within 150 us", share * 100.0),
        None => "none in this interval".into(),
    };
    lines.push(format!("predicted  {predicted}"));
    let s = &view.service;
    lines.push(format!("service    mean {:.2} ms, p99 {:.2} ms since start", s.mean_ms, s.p99_ms));
    if let Some(last) = &view.last_overdue {
        lines.push(format!(
            "promises   BROKEN {} times since start: {} sectors at {} took {:.2} ms, at worst {:.2} ms were expected",
            view.overdue, last.sectors, last.lbn, last.took_ms, last.worst_ms
        ));
    }
    if view.lateness.count > 0 {
        let l = &view.lateness;
        lines.push(format!(
            "lateness   p50 {:.0} us, p99 {:.0} us, at most {:.0} us since start",
            l.p50_ms * 1e3,
            l.p99_ms * 1e3,
            l.max_ms * 1e3
        ));
    }
    lines
}

/// Headings of [`export`]'s columns.
pub const EXPORT_HEADS: [&str; 8] =
    ["export", "reads/s", "writes/s", "MB/s", "mean ms", "p99 ms (start)", "failed", "unwritten MB"];

/// An export's row.
pub fn export(e: &Export) -> [String; 8] {
    [
        name(&e.name),
        format!("{:.1}", e.reads_per_second),
        format!("{:.1}", e.writes_per_second),
        format!("{:.2}", e.mb_s),
        e.response_mean_ms.map_or("-".into(), |ms| format!("{ms:.2}")),
        if e.response.count > 0 { format!("{:.2}", e.response.p99_ms) } else { "-".into() },
        e.failed.to_string(),
        e.dirty_bytes.map_or("-".into(), |bytes| format!("{:.2}", bytes as f64 / 1e6)),
    ]
}

/// Headings of [`wait`]'s columns. The last four are the parts of the mean response time: waiting
/// for the export's own limit, waiting for its turn, waiting while the disk idled for another
/// application, and at the drive.
pub const WAIT_HEADS: [&str; 9] =
    ["waits of", "weight", "limit", "target ms", "limited", "limit ms", "turn ms", "idle ms", "drive ms"];

/// An export's settings in force, and where its requests spend their time.
pub fn wait(e: &Export) -> [String; 9] {
    let limits = [e.max_mb_s.map(|mb| format!("{mb} MB/s")), e.max_iops.map(|n| format!("{n}/s"))];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let part = |of: fn(&Waits) -> f64| e.waits.as_ref().map_or("-".into(), |w| format!("{:.2}", of(w)));
    [
        name(&e.name),
        e.weight.map_or("-".into(), |w| w.to_string()),
        if limits.is_empty() { "-".into() } else { limits.join(", ") },
        e.latency_target_ms.map_or("-".into(), |ms| ms.to_string()),
        e.limited.to_string(),
        part(|w| w.limit_ms),
        part(|w| w.turn_ms),
        part(|w| w.idle_ms),
        part(|w| w.drive_ms),
    ]
}

fn name(name: &str) -> String {
    if name.is_empty() { "(unnamed)".into() } else { name.into() }
}

/// Headings of [`stream`]'s columns.
pub const STREAM_HEADS: [&str; 9] =
    ["stream", "requests", "in ms", "reserved ms", "quality asked", "achieved", "late", "given up", "deferred"];

/// A stream's row.
pub fn stream(s: &Stream) -> [String; 9] {
    let name = name(&s.export);
    [
        if s.closing { format!("{name} (ends)") } else { name },
        s.requests.to_string(),
        s.period_ms.to_string(),
        s.reservation_ms.map_or("mandatory".into(), |ms| format!("{ms:.2}")),
        format!("{:.2}%", s.quality * 100.0),
        s.achieved.map_or("-".into(), |a| format!("{:.2}%", a * 100.0)),
        s.late.to_string(),
        s.given_up.to_string(),
        s.deferred.to_string(),
    ]
}

/// Headings of [`session`]'s columns.
pub const SESSION_HEADS: [&str; 8] = ["session", "name", "priority", "state", "MB/s", "done", "of", "finish in"];

/// A session's row.
pub fn session(s: &Session) -> [String; 8] {
    let state = match (s.suspended, s.wanted_bytes) {
        (true, _) => "paused",
        (false, 0) => "nothing to do",
        (false, _) => "at work",
    };
    [
        s.session.to_string(),
        if s.name.is_empty() { "-".into() } else { s.name.clone() },
        s.priority.to_string(),
        state.into(),
        format!("{:.2}", s.mb_s),
        format!("{:.1}%", s.share() * 100.0),
        bytes(s.done_bytes + s.wanted_bytes),
        s.finish_seconds.map_or("-".into(), time),
    ]
}

/// Head time as a bar of `width` characters: s, r, t, f for background work, dots for idle time.
pub fn bar(h: &HeadTime, width: usize) -> String {
    cells(h, width).into_iter().zip(["s", "r", "t", "f", "."]).map(|(n, sign)| sign.repeat(n)).collect()
}

/// Cells of a bar for each of the five parts; they add up to the width.
pub fn cells(h: &HeadTime, width: usize) -> [usize; 5] {
    let transferred = h.seek + h.rotate + h.transfer;
    let ends = [h.seek, h.seek + h.rotate, transferred, transferred + h.free];
    let mut ends = ends.map(|end| ((end * width as f64).round() as usize).min(width));
    ends.sort_unstable();
    [ends[0], ends[1] - ends[0], ends[2] - ends[1], ends[3] - ends[2], width - ends[3]]
}

/// The legend of the bar.
pub fn legend(h: &HeadTime) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    format!(
        "seek {}, rotate {}, transfer {}, free {}, idle {}",
        percent(h.seek),
        percent(h.rotate),
        percent(h.transfer),
        percent(h.free),
        percent(h.idle)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top::figures::{Broken, Fill};

    #[test]
    fn a_bar_is_as_wide_as_it_should_be_whatever_the_shares() {
        let h = HeadTime { seek: 0.5, rotate: 0.2, transfer: 0.05, free: 0.15, idle: 0.1 };
        assert_eq!(bar(&h, 20), "ssssssssssrrrrtfff..");
        let odd = HeadTime { seek: 0.333, rotate: 0.333, transfer: 0.334, free: 0.0, idle: 0.0 };
        for width in 0..50 {
            assert_eq!(cells(&odd, width).iter().sum::<usize>(), width);
        }
        let none = HeadTime { seek: f64::NAN, ..HeadTime::default() };
        assert_eq!(cells(&none, 10).iter().sum::<usize>(), 10);
    }

    #[test]
    fn a_page_says_what_is_wrong() {
        let mut view = View { disk: "Atlas".into(), ..View::default() };
        assert!(page(&view).contains("nothing fills gaps"), "{}", page(&view));
        view.fill = Fill { fills: true, stopped: true, times_stopped: 3, write_cache: Some(true) };
        view.failed_commands = 2;
        let text = page(&view);
        assert!(text.contains("STOPPED") && text.contains("2 FAILED"), "{text}");
        assert!(!text.contains("session"), "{text}");
        assert!(!text.contains("promises") && !text.contains("stream"), "{text}");
        let film =
            Stream { export: "film".into(), quality: 0.95, achieved: Some(0.9712), late: 3, ..Stream::default() };
        view.streams = vec![film, Stream { export: "key".into(), closing: true, ..Stream::default() }];
        view.overdue = 2;
        view.last_overdue = Some(Broken { lbn: 77, sectors: 128, took_ms: 41.5, worst_ms: 29.96 });
        let text = page(&view);
        let row = text.lines().find(|l| l.starts_with("film")).unwrap_or_else(|| panic!("{text}"));
        assert!(row.contains("95.00%") && row.contains("97.12%") && row.contains(" 3 "), "{row}");
        assert!(text.contains("key (ends)") && text.contains("mandatory"), "{text}");
        assert!(text.contains("BROKEN 2 times since start: 128 sectors at 77 took 41.50 ms"), "{text}");
    }

    #[test]
    fn a_page_says_what_an_export_waits_for() {
        let waits = Waits { limit_ms: 41.25, turn_ms: 3.5, idle_ms: 1.0, drive_ms: 7.75 };
        let slow = Export {
            name: "slow".into(),
            weight: Some(300),
            max_mb_s: Some(2.5),
            max_iops: Some(50.0),
            latency_target_ms: Some(20.0),
            limited: 12,
            waits: Some(waits),
            ..Export::default()
        };
        let view = View { exports: vec![slow, Export { name: "new".into(), ..Export::default() }], ..View::default() };
        let text = page(&view);
        let row = |name: &str| {
            let after = text.split("waits of").nth(1).unwrap_or_else(|| panic!("{text}"));
            let row = after.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
            row.split_whitespace().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(row("slow"), ["slow", "300", "2.5", "MB/s,", "50/s", "20", "12", "41.25", "3.50", "1.00", "7.75"]);
        assert_eq!(row("new"), ["new", "-", "-", "-", "0", "-", "-", "-", "-"]);
    }
}
