//! Scans that begin again when they end, and the observer that ends a run once it has seen enough.
//!
//! One scan of the simulated drive may take seconds, in which a lightly loaded drive gets only a
//! few requests: too few to tell how it answers, or whether it serves all of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_disk::{Dur, Time};
use headtime_sched::{Core, TaskError, TaskEvent};
use headtime_sim::background::{Background, Job, Jobs, PROMOTED_PART, scan_unit};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::{Ask, READER, Refusals, StreamCall, Target, Workload, WorkloadError};

/// A run ends with the first scan that ends after this many of the clients' requests: the standard
/// error of their number is then 1.1%. The time of a scan is that of what they leave, so that its
/// error is a few times as large on a drive that is almost saturated.
const LEAST_REQUESTS: u64 = 8_000;
/// Or after this time, at loads at which they leave most of the drive.
pub(super) const LEAST_SECONDS: u64 = 3_000;
/// Queue length from which a drive is saturated: more than ten seconds of its work.
const MOST_WAITING: u64 = 2_000;

/// Clients and a reader: counts the clients' requests, and lets the reader, whose disk is many
/// times as large as the drive, begin again at the drive's first sector.
pub(super) struct Counted<'a, W> {
    pub(super) inner: W,
    /// The clients' requests so far.
    pub(super) arrived: &'a Cell<u64>,
    /// Sectors of a scan.
    pub(super) scan: u64,
}

impl<W: Workload> Workload for Counted<'_, W> {
    fn next_due(&self) -> Option<Time> {
        self.inner.next_due()
    }
    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let mut ask = self.inner.take()?;
        match ask.owner {
            READER => ask.lbn %= self.scan,
            _ => self.arrived.set(self.arrived.get() + 1),
        }
        Ok(ask)
    }
    fn finished(&mut self, owner: u32, now: Time) {
        self.inner.finished(owner, now);
    }
    fn completed(&mut self, ask: &Ask, now: Time) {
        self.inner.completed(ask, now);
    }
    fn ended(&mut self, now: Time) {
        self.inner.ended(now);
    }
    fn endless(&self) -> bool {
        self.inner.endless()
    }
    fn classes(&self) -> &[String] {
        self.inner.classes()
    }
    fn next_call(&self) -> Option<Time> {
        self.inner.next_call()
    }
    fn call(&mut self) -> Option<StreamCall> {
        self.inner.call()
    }
    fn opened(&mut self, owner: u32, begins: Time) {
        self.inner.opened(owner, begins);
    }
    fn refusals(&self) -> Option<&Refusals> {
        self.inner.refusals()
    }
}

/// Scans in gaps and idle time, one after another.
pub(super) struct Scans {
    now: Jobs,
    capacity: u64,
    unit: u32,
}

impl Scans {
    pub(super) fn new(target: &Target) -> Scans {
        let (capacity, unit) = (target.capacity, scan_unit(target.capacity, target.sector_bytes));
        Scans { now: Scans::one(capacity, unit), capacity, unit }
    }

    fn one(capacity: u64, unit: u32) -> Jobs {
        Jobs::new(vec![Job::scan(capacity, unit)]).promoting_last(capacity / PROMOTED_PART)
    }
}

impl Background for Scans {
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        self.now.start(core, now)
    }

    fn event(&mut self, event: &TaskEvent, core: &mut Core, now: Time) -> Result<(), TaskError> {
        self.now.event(event, core, now)?;
        if let TaskEvent::Done { session, .. } = *event {
            core.close(session, now)?;
            self.now = Scans::one(self.capacity, self.unit);
            self.now.start(core, now)?;
        }
        Ok(())
    }
}

/// Counts scans and the clients' requests, and ends the run when there were enough of them, when
/// the drive is saturated, or when the study is stopped.
pub(super) struct Watch<'a> {
    pub(super) arrived: &'a Cell<u64>,
    pub(super) stop: &'a AtomicBool,
    /// Reads of a scan, if a reader scans.
    pub(super) reads_per_scan: u64,
    reads: u64,
    pub(super) finished: u64,
    pub(super) scans: u64,
    /// The end of the last scan.
    pub(super) scanned_at: Time,
    pub(super) overloaded: bool,
    enough: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(arrived: &'a Cell<u64>, stop: &'a AtomicBool, reads_per_scan: u64) -> Watch<'a> {
        let scanned_at = Time::ZERO;
        let (reads, finished, scans, overloaded, enough) = (0, 0, 0, false, false);
        Watch { arrived, stop, reads_per_scan, reads, finished, scans, scanned_at, overloaded, enough }
    }

    fn scanned(&mut self, now: Time) {
        self.scans += 1;
        self.scanned_at = now;
        let long = now >= Time::ZERO + Dur::from_ms(LEAST_SECONDS * 1_000);
        self.enough = self.finished >= LEAST_REQUESTS || long;
    }
}

impl Observer for Watch<'_> {
    fn background(&mut self, event: &TaskEvent, now: Time) {
        if matches!(event, TaskEvent::Done { .. }) {
            self.scanned(now);
        }
    }

    fn finished(&mut self, done: &Done) {
        if done.owner == READER {
            self.reads += 1;
            if self.reads.is_multiple_of(self.reads_per_scan) {
                self.scanned(done.done);
            }
            return;
        }
        self.finished += 1;
        self.overloaded |= self.arrived.get().saturating_sub(self.finished) >= MOST_WAITING;
    }

    fn stops(&self) -> bool {
        self.enough || self.overloaded || self.stop.load(Ordering::Relaxed)
    }
}
