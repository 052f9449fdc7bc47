//! Output of `simulate --json` on background work and the host's write cache.

use std::collections::BTreeMap;

use headtime_sched::write_cache;
use serde::Serialize;

use super::{About, round6};
use crate::stats::Stats;

/// Results of the background.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Freeblock {
    /// Bytes moved.
    pub bytes: u64,
    /// Megabytes (10^6) per second of virtual time.
    pub mb_s: f64,
    /// Share of the media bandwidth.
    pub share_of_media_bandwidth: f64,
    /// Of these, bytes that came with foreground requests or were sent as such: not free.
    pub by_foreground_bytes: u64,
    /// Freeblock requests: separate commands in gaps and in idle time, and fronts of foreground
    /// commands.
    pub requests: u64,
    /// Share of the wanted blocks that were delivered.
    pub scanned_fraction: f64,
    /// When all of them were delivered; `null` if they were not.
    pub scan_seconds: Option<f64>,
    /// Number of times that gap filling was stopped because of too many mispredictions.
    pub times_stopped: u64,
    /// Whether it was stopped at the end of the run.
    pub stopped: bool,
    /// Why no gap was filled in the whole run; `null` if some were or could have been.
    pub not_filled: Option<NotFilled>,
    /// Results by session.
    pub by_session: BTreeMap<String, Session>,
}

/// Results of the host's write cache, in bytes and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WriteCache {
    /// Memory limit in bytes.
    pub memory: u64,
    /// Bytes written by applications.
    pub accepted: u64,
    /// Bytes written in gaps and in idle time found by FILL.
    pub free: u64,
    /// Bytes written by foreground requests: with FUA, for a flush, for lack of memory, or without
    /// FILL.
    pub through: u64,
    /// Reads that hit the cache.
    pub hits: u64,
    /// Reads that missed it.
    pub misses: u64,
    /// Bytes still dirty at the end.
    pub dirty: u64,
}

/// Why no gap is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotFilled {
    /// There is no FILL.
    NoFill,
    /// There is no background work.
    NothingWanted,
    /// The drive has no queue: a gap requires a command queued behind the one in service.
    OneCommandAtATime,
    /// It was stopped before any work fitted.
    DriveSurprises,
}

/// Results of a freeblock session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Session {
    /// Its priority.
    pub priority: u32,
    /// Bytes delivered or written.
    pub bytes: u64,
    /// Megabytes (10^6) per second of virtual time.
    pub mb_s: f64,
    /// Share of the wanted blocks that were delivered.
    pub scanned_fraction: f64,
    /// When all of them were delivered; `null` if they were not.
    pub scan_seconds: Option<f64>,
}

/// Computes the results of the background.
pub(super) fn freeblock(about: &About, stats: &Stats) -> Freeblock {
    let Some(report) = &stats.freeblock else {
        return Freeblock { not_filled: Some(NotFilled::NoFill), ..Freeblock::default() };
    };
    let nothing_filled = report.commands + report.merged == 0;
    let not_filled = match () {
        _ if stats.background.by_session.is_empty() => Some(NotFilled::NothingWanted),
        _ if about.depth < 2 => Some(NotFilled::OneCommandAtATime),
        _ if nothing_filled && report.times_shut > 0 => Some(NotFilled::DriveSurprises),
        _ => None,
    };
    let seconds = stats.ended_at.as_secs_f64();
    let bytes = |sectors: u64| sectors * u64::from(about.sector_bytes);
    let rate = |sectors: u64| if seconds > 0.0 { bytes(sectors) as f64 / 1e6 / seconds } else { 0.0 };
    let p = &stats.background;
    let share =
        if about.media_bytes_per_second > 0.0 { rate(p.sectors) * 1e6 / about.media_bytes_per_second } else { 0.0 };
    let at = |t: Option<headtime_disk::Time>| t.map(|t| t.as_secs_f64());
    let mut by_session = BTreeMap::new();
    for (i, s) in p.by_session.iter().enumerate() {
        // Two sessions of the same name are distinguished by number.
        let name = if by_session.contains_key(&s.name) { format!("{} {}", s.name, i + 1) } else { s.name.clone() };
        let session = Session {
            priority: s.priority,
            bytes: bytes(s.sectors),
            mb_s: round6(rate(s.sectors)),
            scanned_fraction: round6(s.fraction),
            scan_seconds: at(s.done_at),
        };
        by_session.insert(name, session);
    }
    Freeblock {
        bytes: bytes(p.sectors),
        mb_s: round6(rate(p.sectors)),
        share_of_media_bandwidth: round6(share),
        by_foreground_bytes: bytes(report.by_foreground),
        requests: report.commands + report.merged + report.idle,
        scanned_fraction: round6(p.fraction),
        scan_seconds: at(p.done_at),
        times_stopped: report.times_shut,
        stopped: report.shut,
        not_filled,
        by_session,
    }
}

/// Computes the results of the cache with these limits.
pub(super) fn write_cache((limits, counts): &(write_cache::Limits, write_cache::Counts)) -> WriteCache {
    let write_cache::Counts { accepted, free, through, hits, misses, dirty } = *counts;
    WriteCache { memory: limits.memory, accepted, free, through, hits, misses, dirty }
}
