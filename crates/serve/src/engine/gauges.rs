//! What the engine counts: for `headtime top`, the metrics and the closing line.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use headtime_disk::command::{Command, Kind};
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::streams::{Overdue, Standing};
use headtime_sched::fill::report::Report;
use headtime_sched::request::Finished;
use headtime_sched::scheduler::Scheduler;

use super::telling::Ask;
use crate::device::Done;

/// Two significant digits from 1 us to an hour, in 20 KiB.
fn micros() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000, 2).expect("the bounds are in order")
}

/// A distribution, as far as it is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Samples.
    pub count: u64,
    /// Microseconds.
    pub mean_us: f64,
    /// Half are at most this.
    pub p50_us: u64,
    /// 99 of 100 are.
    pub p99_us: u64,
    /// All are.
    pub max_us: u64,
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

/// What one export's clients had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Owned {
    /// Reads finished.
    pub reads: u64,
    /// Writes finished.
    pub writes: u64,
    /// Flushes finished.
    pub flushes: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Sectors moved.
    pub sectors: u64,
    /// From the engine taking a request to its end.
    pub response: Spread,
}

#[derive(Debug)]
struct Owner {
    counts: Owned,
    response: Histogram<u64>,
}

/// Predicted head time of the foreground, for shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadTime {
    /// Moving.
    pub seek: Dur,
    /// Waiting for the sector.
    pub rotate: Dur,
    /// Sectors passing.
    pub transfer: Dur,
}

/// All that is counted, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the engine began.
    pub at: Time,
    /// Requests that wait or are at the device.
    pub under_way: usize,
    /// Commands at the device.
    pub at_device: usize,
    /// By the number of the export.
    pub owners: BTreeMap<u32, Owned>,
    /// Commands carried out.
    pub commands: u64,
    /// Commands that failed.
    pub failed: u64,
    /// From sending a command to hearing of its end.
    pub service: Spread,
    /// How late completions were heard of, where the moment was known: a virtual drive.
    pub lateness: Spread,
    /// Head time of foreground requests, as predicted when they were sent.
    pub head_time: HeadTime,
    /// Time for which the device had a command.
    pub busy: Dur,
    /// Sectors moved for free.
    pub free_sectors: u64,
    /// Predictions compared with what happened, and of these within 150 us.
    pub predictions: (u64, u64),
    /// What the freeblock subsystem says of itself; `None` without one.
    pub freeblock: Option<Report>,
    /// Whether the drive's write cache is on, where its answers contradict what was said of it.
    pub write_cache: Option<bool>,
    /// The streams at work, and how they fare.
    pub streams: Vec<Standing>,
    /// Commands for which the device took longer than its worst case, and the last of them.
    pub overdue: (u64, Option<Overdue>),
}

/// The counters.
#[derive(Debug)]
pub struct Gauges {
    owners: BTreeMap<u32, Owner>,
    commands: u64,
    failed: u64,
    service: Histogram<u64>,
    lateness: Histogram<u64>,
    head_time: HeadTime,
    busy: Dur,
    /// Since when the device has had a command, up to when that was counted.
    busy_since: Option<Time>,
    free_sectors: u64,
    overdue: (u64, Option<Overdue>),
}

impl Gauges {
    /// All at zero.
    pub fn new() -> Gauges {
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
        }
    }

    /// The device took longer than what promises rest on.
    pub fn overdue(&mut self, overdue: &Overdue) {
        self.overdue = (self.overdue.0 + 1, Some(*overdue));
    }

    /// From now on the device has a command, or has none.
    pub fn at_work(&mut self, works: bool, now: Time) {
        if let Some(since) = self.busy_since.take() {
            self.busy += now.saturating_since(since);
        }
        self.busy_since = works.then_some(now);
    }

    /// A command has completed: so many sectors at its front were moved for free, and it took so
    /// long.
    pub fn completed(&mut self, command: &Command, free: u32, took: Dur, done: &Done) {
        self.commands += 1;
        self.service.saturating_record(took.0 / 1_000);
        if let Some(late) = done.late {
            self.lateness.saturating_record(late.0 / 1_000);
        }
        match done.fault {
            None if command.kind != Kind::Flush => self.free_sectors += u64::from(free),
            None => {}
            Some(_) => self.failed += 1,
        }
    }

    /// A request has finished.
    pub fn finished(&mut self, ask: &Ask, finished: &Finished) {
        let new = || Owner { counts: Owned::default(), response: micros() };
        let owner = self.owners.entry(ask.owner).or_insert_with(new);
        match ask.kind {
            Kind::Read => owner.counts.reads += 1,
            Kind::Write => owner.counts.writes += 1,
            Kind::Flush => owner.counts.flushes += 1,
        }
        owner.counts.sectors += u64::from(ask.count);
        owner.counts.failed += u64::from(finished.outcome != headtime_disk::command::Outcome::Ok);
        owner.response.saturating_record(finished.done.saturating_since(finished.submitted).0 / 1_000);
        if let Some(p) = finished.prediction.filter(|p| !p.cached) {
            self.head_time.seek += p.seek;
            self.head_time.rotate += p.latency;
            self.head_time.transfer += p.transfer;
        }
    }

    /// All of it, at `now`.
    pub fn snapshot<S: Scheduler>(&self, now: Time, core: &S, under_way: usize, at_device: usize) -> Snapshot {
        let owners = self.owners.iter().map(|(&k, o)| (k, Owned { response: spread(&o.response), ..o.counts }));
        Snapshot {
            at: now,
            under_way,
            at_device,
            owners: owners.collect(),
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
        }
    }
}

impl Default for Gauges {
    fn default() -> Gauges {
        Gauges::new()
    }
}
