//! Rates and shares between two snapshots of a server's counters.

use std::collections::BTreeMap;

use headtime_serve::control::v1::{ExportCounts, InfoReply, Overdue, SessionCounts, Snapshot, Spread, StreamCounts};
use serde::Serialize;

use crate::words::plain;

/// Time constant of the smoothed rate behind a finish estimate: gaps arrive as unevenly as the
/// foreground's requests.
const SMOOTHED_S: f64 = 30.0;
const NS: f64 = 1e9;
const MB: f64 = 1e6;

/// All figures of one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// The drive.
    pub disk: String,
    /// Seconds since the server began.
    pub up_seconds: f64,
    /// Length of the interval, seconds.
    pub interval_seconds: f64,
    /// By export; the control interface counts as one.
    pub exports: Vec<Export>,
    /// Head time by activity.
    pub head_time: HeadTime,
    /// Requests pending or at the drive.
    pub under_way: u64,
    /// Commands at the drive.
    pub at_device: u64,
    /// Rate of commands.
    pub commands_per_second: f64,
    /// Failed commands since the server began.
    pub failed_commands: u64,
    /// Time from dispatch of a command to its completion, since the server began.
    pub service: Distribution,
    /// Delay until completions were noticed, since the server began.
    pub lateness: Distribution,
    /// Background throughput.
    pub free_mb_s: f64,
    /// Background bytes since the server began.
    pub free_bytes: u64,
    /// Share of this interval's predictions within 150 us; none without predictions.
    pub predicted_within_150us: Option<f64>,
    /// State of gap filling.
    pub fill: Fill,
    /// Freeblock sessions.
    pub sessions: Vec<Session>,
    /// Exports with a guarantee.
    pub streams: Vec<Stream>,
    /// Commands that exceeded the worst case behind the guarantees, since the server began.
    pub overdue: u64,
    /// The last of them.
    pub last_overdue: Option<Broken>,
}

/// A command that exceeded the worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Broken {
    /// Its first sector.
    pub lbn: u64,
    /// Its length in sectors.
    pub sectors: u32,
    /// Its service time.
    pub took_ms: f64,
    /// The worst case assumed.
    pub worst_ms: f64,
}

/// An export with a guarantee. Counts are since the stream was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stream {
    /// The export's name.
    pub export: String,
    /// Requests in each period.
    pub requests: u32,
    /// The period.
    pub period_ms: f64,
    /// Share of requests guaranteed within the period; 1: mandatory.
    pub quality: f64,
    /// Share completed within the period; none before the first request.
    pub achieved: Option<f64>,
    /// Reservation per period; none: mandatory.
    pub reservation_ms: Option<f64>,
    /// The stream accepts no more requests, and ends with its last one.
    pub closing: bool,
    /// Requests that belong to a period.
    pub asked: u64,
    /// Completed within the period.
    pub in_time: u64,
    /// Not completed within the period.
    pub late: u64,
    /// Of these, dropped.
    pub given_up: u64,
    /// Deferred to a later period than the current one.
    pub deferred: u64,
}

fn stream(s: &StreamCounts) -> Stream {
    let asked = s.stream.unwrap_or_default();
    Stream {
        export: plain(&s.export),
        requests: asked.requests,
        period_ms: asked.period_ns as f64 / 1e6,
        quality: f64::from(asked.quality_ppm) / 1e6,
        // Requests pending until the end of their period count as neither.
        achieved: ratio(s.in_time as f64, (s.in_time + s.late) as f64),
        reservation_ms: s.reservation_ns.map(|ns| ns as f64 / 1e6),
        closing: s.closing,
        asked: s.asked,
        in_time: s.in_time,
        late: s.late,
        given_up: s.given_up,
        deferred: s.deferred,
    }
}

fn broken(o: &Overdue) -> Broken {
    Broken { lbn: o.lbn, sectors: o.count, took_ms: o.took_ns as f64 / 1e6, worst_ms: o.worst_ns as f64 / 1e6 }
}

/// One export's clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Reads per second.
    pub reads_per_second: f64,
    /// Writes per second.
    pub writes_per_second: f64,
    /// Throughput in 10^6 bytes per second.
    pub mb_s: f64,
    /// Mean response time in the interval; none without requests.
    pub response_mean_ms: Option<f64>,
    /// Response times since the server began.
    pub response: Distribution,
    /// Requests that failed since the server began.
    pub failed: u64,
    /// Dirty bytes in its write cache; none if it has no cache.
    pub dirty_bytes: Option<u64>,
    /// Its weight in force; none: the control interface.
    pub weight: Option<u32>,
    /// Its limits and latency target in force; none: it has none.
    pub max_mb_s: Option<f64>,
    /// See `max_mb_s`.
    pub max_iops: Option<f64>,
    /// See `max_mb_s`.
    pub latency_target_ms: Option<f64>,
    /// Requests that wait for its limit now.
    pub limited: u64,
    /// The parts of the mean response time in the interval; none without requests.
    pub waits: Option<Waits>,
}

/// The mean times of an export's requests; their sum is the mean response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// Waiting for the export's own limit.
    pub limit_ms: f64,
    /// Waiting for their turn while the disk worked.
    pub turn_ms: f64,
    /// Waiting while the disk idled for another application.
    pub idle_ms: f64,
    /// At the drive.
    pub drive_ms: f64,
}

/// A distribution since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of samples.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 99% quantile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Shares of the interval. The first three are the foreground's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeadTime {
    /// Seeks.
    pub seek: f64,
    /// Rotational latency.
    pub rotate: f64,
    /// Transfers.
    pub transfer: f64,
    /// The disk was busy with none of the above: background work and command overheads.
    pub free: f64,
    /// The disk was idle.
    pub idle: f64,
}

/// State of gap filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fill {
    /// Whether the server fills gaps.
    pub fills: bool,
    /// Filling is suspended because of prediction errors.
    pub stopped: bool,
    /// Number of suspensions.
    pub times_stopped: u64,
    /// State of the drive's write cache, if its answers contradict its profile or the kernel.
    pub write_cache: Option<bool>,
}

/// One freeblock session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Session {
    /// Its number.
    pub session: u32,
    /// Its client's name for it.
    pub name: String,
    /// Weight of its share of free bandwidth.
    pub priority: u32,
    /// No task is served for it.
    pub suspended: bool,
    /// Unfinished tasks.
    pub tasks: u64,
    /// Bytes that its tasks have read or written.
    pub done_bytes: u64,
    /// Bytes still wanted.
    pub wanted_bytes: u64,
    /// Throughput.
    pub mb_s: f64,
    /// Estimated seconds to completion, at the rate of the last half minute; none while nothing
    /// moves.
    pub finish_seconds: Option<f64>,
}

impl Session {
    /// Completed fraction.
    pub fn share(&self) -> f64 {
        ratio(self.done_bytes as f64, (self.done_bytes + self.wanted_bytes) as f64).unwrap_or(0.0)
    }
}

/// Earlier observations of one run of a server.
#[derive(Debug, Default)]
pub struct History {
    disk: String,
    fills: bool,
    last: Option<Snapshot>,
    /// Bytes per second, by session.
    paces: BTreeMap<u32, f64>,
}

impl History {
    /// Starts anew after a connection to the same server or to another run of it.
    pub fn info(&mut self, info: &InfoReply) {
        (self.disk, self.fills) = (plain(&info.disk), info.fills);
        self.last = None;
        self.paces.clear();
    }

    /// Returns the figures since the previous snapshot, if there is one.
    pub fn view(&mut self, now: Snapshot) -> Option<View> {
        let before = self.last.replace(now)?;
        let now = self.last.as_ref()?;
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / NS;
        if seconds <= 0.0 {
            return None;
        }
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let exports = now.exports.iter().map(|e| {
            let none = ExportCounts::default();
            let b = before.exports.iter().find(|b| b.name == e.name).unwrap_or(&none);
            Export {
                name: plain(&e.name),
                reads_per_second: per_second(e.reads, b.reads),
                writes_per_second: per_second(e.writes, b.writes),
                mb_s: per_second(e.bytes, b.bytes) / MB,
                response_mean_ms: mean_between(e.response.as_ref(), b.response.as_ref()),
                response: distribution(e.response.as_ref()),
                failed: e.failed,
                dirty_bytes: e.dirty_bytes,
                weight: e.weight,
                max_mb_s: e.max_mb_s,
                max_iops: e.max_iops,
                latency_target_ms: e.latency_target_ms,
                limited: e.limited,
                waits: waits(e, b),
            }
        });
        let exports = exports.collect();
        let paces = &mut self.paces;
        paces.retain(|id, _| now.sessions.iter().any(|s| s.session == *id));
        let sessions = now.sessions.iter().map(|s| {
            let begun = before.sessions.iter().find(|b| b.session == s.session);
            session(s, begun, seconds, paces)
        });
        let sessions = sessions.collect();
        let predictions = now.predictions.saturating_sub(before.predictions) as f64;
        let within = now.predictions_within_150us.saturating_sub(before.predictions_within_150us) as f64;
        Some(View {
            disk: self.disk.clone(),
            up_seconds: now.at_ns as f64 / NS,
            interval_seconds: seconds,
            exports,
            head_time: head_time(now, &before, seconds),
            under_way: now.under_way,
            at_device: now.at_device,
            commands_per_second: per_second(now.commands, before.commands),
            failed_commands: now.failed,
            service: distribution(now.service.as_ref()),
            lateness: distribution(now.lateness.as_ref()),
            free_mb_s: per_second(now.free_bytes, before.free_bytes) / MB,
            free_bytes: now.free_bytes,
            predicted_within_150us: ratio(within, predictions),
            fill: Fill {
                fills: self.fills,
                stopped: now.fill_stopped,
                times_stopped: now.times_stopped,
                write_cache: now.write_cache,
            },
            sessions,
            streams: now.streams.iter().map(stream).collect(),
            overdue: now.overdue,
            last_overdue: now.last_overdue.as_ref().map(broken),
        })
    }
}

fn session(s: &SessionCounts, before: Option<&SessionCounts>, seconds: f64, paces: &mut BTreeMap<u32, f64>) -> Session {
    let moved = before.map_or(0, |b| s.done_bytes.saturating_sub(b.done_bytes)) as f64 / seconds;
    if before.is_some() {
        let weight = 1.0 - (-seconds / SMOOTHED_S).exp();
        let pace = paces.entry(s.session).or_insert(moved);
        *pace += weight * (moved - *pace);
    }
    let pace = paces.get(&s.session).copied().filter(|p| *p > 1.0 && !s.suspended);
    Session {
        session: s.session,
        name: plain(&s.name),
        priority: s.priority,
        suspended: s.suspended,
        tasks: s.tasks,
        done_bytes: s.done_bytes,
        wanted_bytes: s.wanted_bytes,
        mb_s: moved / MB,
        finish_seconds: pace.filter(|_| s.wanted_bytes > 0).map(|p| s.wanted_bytes as f64 / p),
    }
}

/// Predicted times are counted at dispatch, so their sum may exceed the interval a little.
fn head_time(now: &Snapshot, before: &Snapshot, seconds: f64) -> HeadTime {
    let part = |now: u64, before: u64| now.saturating_sub(before) as f64 / NS / seconds;
    let (seek, rotate) = (part(now.seek_ns, before.seek_ns), part(now.rotate_ns, before.rotate_ns));
    let transfer = part(now.transfer_ns, before.transfer_ns);
    let whole = (seek + rotate + transfer).max(1.0);
    let (seek, rotate, transfer) = (seek / whole, rotate / whole, transfer / whole);
    let rest = (1.0 - seek - rotate - transfer).max(0.0);
    let idle = (1.0 - part(now.busy_ns, before.busy_ns)).clamp(0.0, rest);
    HeadTime { seek, rotate, transfer, free: rest - idle, idle }
}

/// Derives the mean of an interval from two cumulative means.
fn mean_between(now: Option<&Spread>, before: Option<&Spread>) -> Option<f64> {
    let sum = |s: &Spread| s.mean_us * s.count as f64;
    let none = Spread::default();
    let (now, before) = (now?, before.unwrap_or(&none));
    let count = now.count.checked_sub(before.count)? as f64;
    ratio((sum(now) - sum(before)).max(0.0) / 1e3, count)
}

fn waits(now: &ExportCounts, before: &ExportCounts) -> Option<Waits> {
    let count = |e: &ExportCounts| e.response.as_ref().map_or(0, |r| r.count);
    let requests = count(now).saturating_sub(count(before)) as f64;
    let mean = |now: u64, before: u64| ratio(now.saturating_sub(before) as f64 / 1e6, requests);
    Some(Waits {
        limit_ms: mean(now.limit_ns, before.limit_ns)?,
        turn_ms: mean(now.turn_ns, before.turn_ns)?,
        idle_ms: mean(now.idle_ns, before.idle_ns)?,
        drive_ms: mean(now.drive_ns, before.drive_ns)?,
    })
}

fn distribution(s: Option<&Spread>) -> Distribution {
    let none = Spread::default();
    let s = s.unwrap_or(&none);
    let ms = |us: u64| us as f64 / 1e3;
    let mean_ms = s.mean_us / 1e3;
    Distribution { count: s.count, mean_ms, p50_ms: ms(s.p50_us), p99_ms: ms(s.p99_us), max_ms: ms(s.max_us) }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests;
