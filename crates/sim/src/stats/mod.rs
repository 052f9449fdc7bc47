//! What a run came to: constant memory, constant work per request.

pub mod confidence;
pub mod headtime;
pub mod histogram;
pub mod streams;

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::admission::Load;
use headtime_sched::admit::das::streams::Overdue;
use headtime_sched::fill::report::Report;
use headtime_sched::request::Prediction;
use headtime_sched::stats::{PredictionStats, SubsetStats};
use headtime_sched::write_cache;

use confidence::BatchMeans;
use headtime::HeadTime;
use histogram::Histogram;
use streams::StreamAccount;

use crate::background::Progress;
use crate::workload::{Refusals, stream_of};

/// A request from its cradle to its grave, with the four stamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// Number in the order of submission, from 0.
    pub sequence: u64,
    /// The application.
    pub owner: u32,
    /// Its class (an index into the workload's classes).
    pub class: u16,
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// When it should have been submitted.
    pub due: Time,
    /// When the scheduler took it (later than due only when the scheduler was full).
    pub submitted: Time,
    /// When its command was sent to the drive.
    pub dispatched: Time,
    /// When the drive answered.
    pub done: Time,
    /// How it ended.
    pub outcome: Outcome,
    /// What was foreseen, and what came.
    pub prediction: Option<Prediction>,
}

impl Done {
    /// Due to done: what the application waited. All response times in statistics are these.
    #[inline]
    pub fn response(&self) -> Dur {
        self.done.saturating_since(self.due)
    }

    /// Dispatched to done: what the drive took, its queue included.
    #[inline]
    pub fn service(&self) -> Dur {
        self.done.saturating_since(self.dispatched)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Its time was over.
    Time,
    /// So many requests were finished.
    Requests,
    /// The workload had nothing more.
    #[default]
    Workload,
    /// The background work had all it wanted.
    Scanned,
    /// The drive does not answer any more.
    DeadDrive,
}

/// Everything counted in one run.
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
    /// Sectors of foreground requests that were moved without error.
    pub sectors: u64,
    /// Response times of reads.
    pub reads: Histogram,
    /// Response times of writes.
    pub writes: Histogram,
    /// Response times of flushes.
    pub flushes: Histogram,
    /// Response times by class of the workload, with its name; empty when there is only one class.
    pub classes: Vec<(String, Histogram)>,
    /// What each stream asked for and had, in the order in which they began.
    pub streams: Vec<StreamAccount>,
    /// How much of the drive they take, as admission reckoned when the last of them began; `None`
    /// without guarantees.
    pub load: Option<Load>,
    /// Who might go at each decision; `None` without guarantees.
    pub subset: Option<SubsetStats>,
    /// Batch means of all response times in the order of completion.
    pub batches: BatchMeans,
    /// Where the head's time went.
    pub head: HeadTime,
    /// How good predictions were, as the scheduler counted them; empty where it makes none.
    pub prediction: PredictionStats,
    /// Whether the drive's write cache is on, as the scheduler found it, where that is not what it
    /// was told.
    pub drive_write_cache: Option<bool>,
    /// Commands the scheduler chose.
    pub decisions: u64,
    /// Wall time it took to choose those that were timed, when the caller passed a clock.
    pub decision_ns: Option<u64>,
    /// How many were timed: one in 64.
    pub timed_decisions: u64,
    /// Wall time of decisions that searched for freeblock work: those among them, and one in 64 of
    /// the searches at least, the first included.
    pub search_ns: Option<u64>,
    /// How many of these were timed.
    pub timed_searches: u64,
    /// What background work has come to.
    pub background: Progress,
    /// What the freeblock subsystem counted; `None` where there is none.
    pub freeblock: Option<Report>,
    /// What the host's write cache may take and has done; `None` where there is none.
    pub write_cache: Option<(write_cache::Limits, write_cache::Counts)>,
    /// What ADMIT took the disk's peak rate to be at the end, in sectors a second, where it
    /// measured one.
    pub peak_rate: Option<f64>,
    /// Requests of a trace that the disk has no sectors for.
    pub refused: Refusals,
    /// Most requests that were in the scheduler and the drive at once.
    pub most_waiting: usize,
    /// Requests of streams that were given up because their periods were over.
    pub given_up: u64,
    /// The first command for which the drive took longer than its worst case.
    pub overdue: Option<Overdue>,
    /// How many there were of these.
    pub overdue_commands: u64,
}

impl Stats {
    /// Empty statistics with these classes.
    pub fn new(classes: &[String]) -> Stats {
        Stats { classes: classes.iter().map(|n| (n.clone(), Histogram::default())).collect(), ..Stats::default() }
    }

    /// Counts one finished request.
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

    /// The account of the stream with this application number.
    pub fn stream(&mut self, owner: u32) -> Option<&mut StreamAccount> {
        stream_of(owner)?;
        self.streams.iter_mut().find(|s| s.owner == owner)
    }

    /// Response times of all requests.
    pub fn responses(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes);
        all.merge(&self.flushes);
        all
    }

    /// Requests finished per second of virtual time; 0 for a run of no time.
    pub fn per_second(&self) -> f64 {
        if self.ended_at == Time::ZERO { 0.0 } else { self.requests as f64 / self.ended_at.as_secs_f64() }
    }

    /// Foreground megabytes (10^6) per second of virtual time; 0 for a run of no time.
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
