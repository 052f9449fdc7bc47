//! Statistics of a run, with constant memory and constant work per request.

pub mod confidence;
pub mod headtime;
pub mod histogram;
pub mod streams;

use headtime_disk::{Dur, Kind, Outcome, Time};
use headtime_sched::streams::Load;
use headtime_sched::{FillReport, Overdue, Prediction, PredictionStats, SubsetStats, write_cache};

use confidence::BatchMeans;
use headtime::HeadTime;
use histogram::Histogram;
use streams::StreamAccount;

use crate::background::Progress;
use crate::workload::{Refusals, stream_of};

/// A finished request with its four timestamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Number in the order of submission, from 0.
    pub sequence: u64,
    /// The application's number.
    pub owner: u32,
    /// Its class (an index into the workload's classes).
    pub class: u16,
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// When it became due.
    pub due: Time,
    /// When the scheduler accepted it (after `due` only if the scheduler was full).
    pub submitted: Time,
    /// When its command was dispatched.
    pub dispatched: Time,
    /// When it completed.
    pub done: Time,
    /// Its outcome.
    pub outcome: Outcome,
    /// Predicted and observed head time.
    pub prediction: Option<Prediction>,
}

impl Done {
    /// Returns the response time, from due to done, as seen by the application and used in all
    /// statistics.
    #[inline]
    pub fn response(&self) -> Dur {
        self.done.saturating_since(self.due)
    }

    /// Returns the time from dispatch to completion, including the drive's queue.
    #[inline]
    pub fn service(&self) -> Dur {
        self.done.saturating_since(self.dispatched)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The time limit was reached.
    Time,
    /// The request limit was reached.
    Requests,
    /// The workload ended.
    #[default]
    Workload,
    /// The background work was complete.
    Scanned,
    /// The drive no longer responds.
    DeadDrive,
    /// An observer asked for it.
    Stopped,
}

/// Statistics of a run.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Why it ended.
    pub end: End,
    /// When it ended.
    pub ended_at: Time,
    /// Requests finished.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Sectors of foreground requests moved without error.
    pub sectors: u64,
    /// Response times of reads.
    pub reads: Histogram,
    /// Response times of writes.
    pub writes: Histogram,
    /// Response times of flushes.
    pub flushes: Histogram,
    /// Response times by class of the workload, with its name; empty for a single class.
    pub classes: Vec<(String, Histogram)>,
    /// Each stream's request and result, in the order of their begin.
    pub streams: Vec<StreamAccount>,
    /// Load of the drive by streams, as computed by admission when the last one began; `None`
    /// without guarantees.
    pub load: Option<Load>,
    /// Statistics of the active subsets; `None` without guarantees.
    pub subset: Option<SubsetStats>,
    /// Batch means of all response times in the order of completion.
    pub batches: BatchMeans,
    /// Head time.
    pub head: HeadTime,
    /// Accuracy of predictions, counted by the scheduler; empty if it makes none.
    pub prediction: PredictionStats,
    /// State of the drive's write cache as detected by the scheduler, if it differs from the
    /// configured one.
    pub drive_write_cache: Option<bool>,
    /// Commands dispatched.
    pub decisions: u64,
    /// Wall time of the timed decisions, if the caller passed a clock.
    pub decision_ns: Option<u64>,
    /// Number of timed decisions: one in 64.
    pub timed_decisions: u64,
    /// Wall time of the timed decisions that searched for freeblock work: at least one in 64 of the
    /// searches, including the first.
    pub search_ns: Option<u64>,
    /// Number of these decisions.
    pub timed_searches: u64,
    /// Progress of background work.
    pub background: Progress,
    /// Counters of the freeblock subsystem; `None` without it.
    pub freeblock: Option<FillReport>,
    /// Limits and counters of the host's write cache; `None` without one.
    pub write_cache: Option<(write_cache::Limits, write_cache::Counts)>,
    /// ADMIT's final estimate of the disk's peak rate in sectors per second, if it measured one.
    pub peak_rate: Option<f64>,
    /// Requests of a trace beyond the disk's capacity.
    pub refused: Refusals,
    /// Maximum number of requests in the scheduler and the drive at once.
    pub most_waiting: usize,
    /// Requests of streams dropped because their periods ended.
    pub given_up: u64,
    /// The first command that exceeded the worst case.
    pub overdue: Option<Overdue>,
    /// Number of such commands.
    pub overdue_commands: u64,
}

impl Stats {
    /// Creates empty statistics with these classes.
    pub fn new(classes: &[String]) -> Stats {
        Stats { classes: classes.iter().map(|n| (n.clone(), Histogram::default())).collect(), ..Stats::default() }
    }

    /// Counts a finished request.
    #[inline]
    pub fn record(&mut self, done: &Done) {
        let response = done.response();
        self.requests += 1;
        match done.outcome {
            Outcome::Ok => self.sectors += u64::from(done.count),
            Outcome::MediaError { .. } | Outcome::Dead => self.errors += 1,
        }
        match done.kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
            Kind::Flush => &mut self.flushes,
        }
        .record(response);
        if let Some((_, class)) = self.classes.get_mut(usize::from(done.class)) {
            class.record(response);
        }
        self.batches.record(response);
        if !self.streams.is_empty()
            && let Some(account) = self.stream(done.owner)
        {
            account.finished(done.due, done.done, u64::from(done.count), done.outcome != Outcome::Ok);
        }
    }

    /// Returns the account of the stream with this application number.
    pub fn stream(&mut self, owner: u32) -> Option<&mut StreamAccount> {
        stream_of(owner)?;
        self.streams.iter_mut().find(|s| s.owner == owner)
    }

    /// Returns the response times of all requests.
    pub fn responses(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all.merge(&self.flushes);
        all
    }

    /// Returns finished requests per second of virtual time; 0 for a run of zero length.
    pub fn per_second(&self) -> f64 {
        if self.ended_at == Time::ZERO { 0.0 } else { self.requests as f64 / self.ended_at.as_secs_f64() }
    }

    /// Returns foreground megabytes (10^6) per second of virtual time; 0 for a run of zero length.
    pub fn mb_per_second(&self, sector_bytes: u32) -> f64 {
        if self.ended_at == Time::ZERO {
            0.0
        } else {
            self.sectors as f64 * f64::from(sector_bytes) / 1e6 / self.ended_at.as_secs_f64()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_counts_from_due_and_failed_requests_move_nothing() {
        let mut s = Stats::new(&["a".to_owned(), "b".to_owned()]);
        let done = Done {
            sequence: 0,
            owner: 0,
            class: 1,
            kind: Kind::Read,
            lbn: 0,
            count: 8,
            due: Time(1_000),
            submitted: Time(2_000),
            dispatched: Time(3_000),
            done: Time(1_001_000),
            outcome: Outcome::Ok,
            prediction: None,
        };
        s.record(&done);
        s.record(&Done { kind: Kind::Write, class: 0, outcome: Outcome::MediaError { lbn: 3 }, ..done });
        assert_eq!(s.reads.max(), Some(Dur(1_000_000)));
        assert_eq!(done.service(), Dur(998_000));
        assert_eq!((s.requests, s.errors, s.sectors), (2, 1, 8));
        assert_eq!(s.responses().samples(), 2);
        assert_eq!(s.classes[1].1.samples(), 1);
        s.ended_at = Time(2_000_000_000);
        assert_eq!(s.per_second(), 1.0);
        assert_eq!(s.mb_per_second(512), 8.0 * 512.0 / 2e6);
    }
}
