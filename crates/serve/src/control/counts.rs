//! The engine's counters as messages.

use std::collections::BTreeMap;
use std::sync::Mutex;

use headtime_sched::SessionId;

use super::caches::Cached;
use super::{streams, v1};
use crate::engine::inbox::{Outbox, SendError};
use crate::engine::messages::EngineMessage;
use crate::engine::snapshot::{Snapshot, Spread};
use crate::net::exports::Exports;

/// Returns the engine's current counters.
pub(crate) async fn take(
    engine: &Outbox<EngineMessage>,
    exports: &Exports,
    sessions: &Mutex<BTreeMap<u32, String>>,
    cached: &Cached,
) -> Result<v1::Snapshot, SendError> {
    Ok(complete(engine.snapshot().await?, exports, sessions, cached))
}

/// Returns a snapshot as a message, with what the engine does not know.
pub(crate) fn complete(
    mut all: Snapshot,
    exports: &Exports,
    sessions: &Mutex<BTreeMap<u32, String>>,
    cached: &Cached,
) -> v1::Snapshot {
    // The engine knows an export with a cache only after the cache's first request.
    cached.exports().for_each(|owner| _ = all.owners.entry(owner).or_default());
    let settings = exports.settings();
    // What holds for an export is shown before its first request, too.
    let held = (0..).zip(&settings).filter(|(_, s)| !s.limit.is_none() || s.latency_target.is_some());
    held.for_each(|(owner, _)| _ = all.owners.entry(owner).or_default());
    let names: Vec<String> = exports.specs.iter().map(|s| s.name.clone()).collect();
    let sessions = sessions.lock().unwrap_or_else(|e| e.into_inner());
    let mut message = message(&all, &names, &sessions, exports.sector_bytes);
    for (&owner, counts) in all.owners.keys().zip(&mut message.exports) {
        counts.dirty_bytes = cached.dirty(owner);
        if let Some(s) = settings.get(owner as usize) {
            counts.weight = Some(s.share.weight);
            counts.max_mb_s = s.limit.bytes.map(|r| r.as_per_second() / 1e6);
            counts.max_iops = s.limit.requests.map(|r| r.as_per_second());
            counts.latency_target_ms = s.latency_target.map(|t| t.as_ms_f64());
        }
    }
    // A cache suspends its own session until its blocks are worth a gap.
    message.sessions.iter_mut().filter(|s| cached.owns(SessionId(s.session))).for_each(|s| s.suspended = false);
    message
}

fn spread(s: &Spread) -> v1::Spread {
    v1::Spread { count: s.count, mean_us: s.mean_us, p50_us: s.p50_us, p99_us: s.p99_us, max_us: s.max_us }
}

/// Converts a snapshot. `exports` lists the names of request owners by number; higher numbers are
/// the control interface's requests. `sessions` holds the names that clients gave their sessions.
pub(crate) fn message(
    s: &Snapshot,
    exports: &[String],
    sessions: &BTreeMap<u32, String>,
    sector_bytes: u32,
) -> v1::Snapshot {
    let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
    let owners = s.owners.iter().map(|(&owner, o)| v1::ExportCounts {
        name: exports.get(owner as usize).cloned().unwrap_or_else(|| "(control)".into()),
        reads: o.reads,
        writes: o.writes,
        flushes: o.flushes,
        failed: o.failed,
        bytes: bytes(o.sectors),
        response: Some(spread(&o.response)),
        dirty_bytes: None,
        limit_ns: o.parts.limit.0,
        turn_ns: o.parts.turn.0,
        idle_ns: o.parts.idle.0,
        drive_ns: o.parts.drive.0,
        limited: o.limited as u64,
        weight: None,
        max_mb_s: None,
        max_iops: None,
        latency_target_ms: None,
    });
    let report = s.freeblock.as_ref();
    let at_work = report.into_iter().flat_map(|r| &r.sessions).map(|i| v1::SessionCounts {
        session: i.id.0,
        name: sessions.get(&i.id.0).cloned().unwrap_or_default(),
        priority: i.priority,
        suspended: i.suspended,
        done_bytes: bytes(i.delivered_sectors),
        wanted_bytes: bytes(i.left_read_sectors + i.left_write_sectors),
        tasks: u64::from(i.tasks),
        max_mb_s: i.rate.map(|r| r.as_per_second() / 1e6),
    });
    v1::Snapshot {
        at_ns: s.at.0,
        under_way: s.under_way as u64,
        at_device: s.at_device as u64,
        commands: s.commands,
        failed: s.failed,
        exports: owners.collect(),
        service: Some(spread(&s.service)),
        lateness: Some(spread(&s.lateness)),
        seek_ns: s.head_time.seek.0,
        rotate_ns: s.head_time.rotate.0,
        transfer_ns: s.head_time.transfer.0,
        free_bytes: bytes(s.free_sectors),
        predictions: s.predictions.0,
        predictions_within_150us: s.predictions.1,
        sessions: at_work.collect(),
        fill_stopped: report.is_some_and(|r| r.shut),
        times_stopped: report.map_or(0, |r| r.times_shut),
        busy_ns: s.busy.0,
        streams: s.streams.iter().map(|s| streams::counts(s, exports, sector_bytes)).collect(),
        overdue: s.overdue.0,
        last_overdue: s.overdue.1.as_ref().map(streams::overdue),
        write_cache: s.write_cache,
    }
}
