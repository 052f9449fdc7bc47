//! The engine's counters, for `headtime top`, the metrics and the summary at the end.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;
use headtime_disk::{Command, Dur, Kind, Time};
use headtime_sched::{Finished, Overdue, Scheduler};

use super::limited::Limited;
use super::messages::Submission;
use super::snapshot::{HeadTime, Owned, RecentCommand, Snapshot, Spread};
use crate::device::Done;

/// A histogram with two significant digits from 1 us to an hour, in 20 KiB.
fn micros() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2).expect("the bounds are in order")
}

fn spread(h: &Histogram<u64>) -> Spread {
    Spread {
        count: h.len(),
        mean_us: h.mean(),
        p50_us: h.value_at_quantile(0.5),
        p99_us: h.value_at_quantile(0.99),
        max_us: h.max(),
    }
}

#[derive(Debug)]
struct Owner {
    counts: Owned,
    response: Histogram<u64>,
}

impl Default for Owner {
    fn default() -> Owner {
        Owner { counts: Owned::default(), response: micros() }
    }
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Gauges {
    owners: BTreeMap<u32, Owner>,
    commands: u64,
    failed: u64,
    service: Histogram<u64>,
    lateness: Histogram<u64>,
    head_time: HeadTime,
    busy: Dur,
    /// Since when the device has been busy, or since the last count.
    busy_since: Option<Time>,
    free_sectors: u64,
    overdue: (u64, Option<Overdue>),
    recent: VecDeque<RecentCommand>,
}

/// The number of completed commands that are kept, for the live view: those of the last second of a
/// busy disk.
const RECENT: usize = 128;

impl Gauges {
    /// Creates counters at zero.
    pub(crate) fn new() -> Gauges {
        Gauges {
            owners: BTreeMap::new(),
            commands: 0,
            failed: 0,
            service: micros(),
            lateness: micros(),
            head_time: HeadTime::default(),
            busy: Dur::ZERO,
            busy_since: None,
            free_sectors: 0,
            overdue: (0, None),
            recent: VecDeque::with_capacity(RECENT),
        }
    }

    /// Counts a command that exceeded the worst-case service time.
    pub(crate) fn overdue(&mut self, overdue: &Overdue) {
        self.overdue = (self.overdue.0 + 1, Some(*overdue));
    }

    /// Notes that the device becomes busy or idle.
    pub(crate) fn at_work(&mut self, works: bool, now: Time) {
        if let Some(since) = self.busy_since.take() {
            self.busy += now.saturating_since(since);
        }
        self.busy_since = works.then_some(now);
    }

    /// Counts a command that was dispatched at `sent` and completed at `now`: `free` sectors at its
    /// front were background data.
    pub(crate) fn completed(&mut self, command: &Command, free: u32, (sent, now): (Time, Time), done: &Done) {
        self.commands += 1;
        self.service.saturating_record(now.saturating_since(sent).0 / 1_000);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        let (kind, lbn, count) = (command.kind, command.lbn, command.count);
        self.recent.push_back(RecentCommand { kind, lbn, count, free, sent, done: now, failed: done.fault.is_some() });
        if let Some(late) = done.late {
            self.lateness.saturating_record(late.0 / 1_000);
        }
        match done.fault {
            None if command.kind != Kind::Flush => self.free_sectors += u64::from(free),
            None => {}
            Some(_) => self.failed += 1,
        }
    }

    /// Counts a client's completed request, the first piece of which was dispatched at
    /// `dispatched`, and for which the disk idled for `idled` in favour of another application.
    /// `finished` is its last piece.
    pub(crate) fn finished(
        &mut self,
        submission: &Submission,
        finished: &Finished,
        has_failed: bool,
        dispatched: Time,
        idled: Dur,
    ) {
        let owner = self.owners.entry(submission.owner).or_default();
        match submission.kind {
            Kind::Read => owner.counts.reads += 1,
            Kind::Write => owner.counts.writes += 1,
            Kind::Flush => owner.counts.flushes += 1,
        }
        owner.counts.sectors += u64::from(submission.count);
        owner.counts.failed += u64::from(has_failed);
        let all = submission.limited + finished.done.saturating_since(finished.submitted);
        owner.response.saturating_record(all.0 / 1_000);
        let waited = dispatched.saturating_since(finished.submitted);
        let (idle, parts) = (idled.min(waited), &mut owner.counts.parts);
        parts.limit += submission.limited;
        parts.turn += waited.saturating_sub(idle);
        parts.idle += idle;
        parts.drive += finished.done.saturating_since(dispatched);
    }

    /// Counts the head's time for a request, or for a piece of one.
    pub(crate) fn positioned(&mut self, finished: &Finished) {
        if let Some(p) = finished.prediction.filter(|p| !p.cached) {
            self.head_time.seek += p.seek;
            self.head_time.rotate += p.latency;
            self.head_time.transfer += p.transfer;
        }
    }

    /// Returns all counters at `now`. `core` has `submitted` requests, of which the device has
    /// `at_device`.
    pub(crate) fn snapshot<S: Scheduler>(
        &self,
        now: Time,
        core: &S,
        limited: &Limited,
        (submitted, at_device): (usize, usize),
    ) -> Snapshot {
        let owners = self.owners.iter().map(|(&k, o)| (k, Owned { response: spread(&o.response), ..o.counts }));
        let mut owners: BTreeMap<u32, Owned> = owners.collect();
        limited.waiting().for_each(|(owner, waiting)| owners.entry(owner).or_default().limited = waiting);
        Snapshot {
            at: now,
            under_way: submitted + limited.len(),
            at_device,
            owners,
            commands: self.commands,
            failed: self.failed,
            service: spread(&self.service),
            lateness: spread(&self.lateness),
            head_time: self.head_time,
            busy: self.busy + self.busy_since.map_or(Dur::ZERO, |since| now.saturating_since(since)),
            free_sectors: self.free_sectors,
            predictions: core.prediction().map_or((0, 0), |p| (p.samples, p.within_150us)),
            freeblock: core.freeblock(),
            write_cache: core.write_cache(),
            streams: core.standings(),
            overdue: self.overdue,
            recent: self.recent.iter().copied().collect(),
        }
    }
}

impl Default for Gauges {
    fn default() -> Gauges {
        Gauges::new()
    }
}
