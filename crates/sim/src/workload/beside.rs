//! A conventional background reader beside another workload.
//!
//! Backup, scrub and `dd` read a disk from its first sector to its last, one read after another,
//! and their impact on others is limited without knowledge of the head's position: they run in the
//! idle class, with a rate limit, or without any limit. This is the baseline for gap filling.
//!
//! The meaning of the idle class varies. In Linux it was CFQ's (until 5.0): with 2.6 kernels a
//! process of that class was served when no other had finished a request for `CFQ_IDLE_GRACE`
//! (HZ/10: 100 ms), counted from `last_end_request`, the last completion of any other class; it
//! could starve. BFQ, its current implementation, idles for `bfq_slice_idle` (NSEC_PER_SEC/125: 8
//! ms) where the process served last usually submits again within that time, serves the class when
//! no other process waits, and serves one of its requests when it has had none for
//! `BFQ_CL_IDLE_TIMEOUT` (HZ/5: 200 ms). (block/cfq-iosched.c, block/bfq-iosched.c and
//! block/bfq-iosched.h of the kernel.)

use headtime_disk::{Dur, Kind, Time};

use super::size::sectors;
use super::{Ask, Refusals, StreamCall, Target, Workload, WorkloadError};

/// The reader's class in statistics.
pub const SCAN: &str = "scan";
/// The class of the foreground, if it has no classes of its own.
pub const FOREGROUND: &str = "foreground";
/// The reader's application number.
pub const READER: u32 = u32::MAX;

/// Pacing of a background reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Read only when no other request is outstanding.
    Idle {
        /// Time without other outstanding requests before a read.
        grace: Dur,
        /// A read is due after this time since the previous one was due, whatever the others do;
        /// `None`: never.
        turn: Option<Dur>,
    },
    /// A fixed rate, whatever the others do: the n-th read is due when the bytes before it are due
    /// at this rate and the previous read is finished. A reader that is behind catches up.
    Rate {
        /// Bytes per second, 1 or more.
        bytes_per_second: u64,
    },
    /// As fast as possible: always one read outstanding.
    Fast,
}

impl Pace {
    /// CFQ's idle class, in the kernels with a grace period.
    pub const CFQ: Pace = Pace::Idle { grace: Dur::from_ms(100), turn: None };
    /// BFQ's idle class. Here the 8 ms apply after every process, so it interferes slightly less
    /// than the real one.
    pub const BFQ: Pace = Pace::Idle { grace: Dur::from_ms(8), turn: Some(Dur::from_ms(200)) };
}

/// A background reader of the whole disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderSpec {
    /// Pacing.
    pub pace: Pace,
    /// Bytes per read; the last one has the remainder.
    pub read_bytes: u64,
    /// Whether all workloads stop when the whole disk was read, which ends the run.
    pub ends_run: bool,
}

impl ReaderSpec {
    /// Creates a reader with reads of 128 KiB: the page cache's request size for sequential reads
    /// (VM_READAHEAD_PAGES of the kernel), and so that of `dd` and of backups of a block device.
    pub const fn new(pace: Pace) -> ReaderSpec {
        ReaderSpec { pace, read_bytes: 128 << 10, ends_run: false }
    }
}

/// A workload with a background reader beside it.
///
/// The reader is a class of its own in statistics ([`SCAN`], the last); the other classes are those
/// of the workload, or [`FOREGROUND`] if it has none, so that response times are separate. It reads
/// the disk once and stops.
#[derive(Clone, Debug)]
pub struct Beside<W> {
    inner: W,
    spec: ReaderSpec,
    /// Sectors per read and of the disk, and bytes per sector.
    read: u64,
    capacity: u64,
    sector_bytes: u64,
    /// Sectors requested, where the next read begins.
    asked: u64,
    /// Sectors delivered.
    got: u64,
    waiting: bool,
    /// When its last read was finished and when it was due.
    finished_at: Time,
    due_at: Option<Time>,
    /// When it had read the whole disk.
    read_at: Option<Time>,
    /// Others' requests outstanding, and when the last of them finished.
    others: u64,
    others_at: Time,
    classes: Vec<String>,
}

impl<W: Workload> Beside<W> {
    /// Adds a reader of the disk `target` to `inner`.
    pub fn new(inner: W, target: &Target, spec: ReaderSpec) -> Result<Beside<W>, WorkloadError> {
        let read = sectors("background read", spec.read_bytes, target)?;
        if spec.pace == (Pace::Rate { bytes_per_second: 0 }) {
            return Err(WorkloadError::range("background reader's bytes per second", 0, 1, u64::MAX));
        }
        let mut classes = inner.classes().to_vec();
        if classes.is_empty() {
            classes.push(FOREGROUND.to_owned());
        }
        if classes.iter().any(|c| c == SCAN) || classes.len() >= usize::from(u16::MAX) {
            return Err(WorkloadError::Conflict(format!("\"{SCAN}\" is the background reader's class")));
        }
        classes.push(SCAN.to_owned());
        Ok(Beside {
            inner,
            spec,
            read,
            capacity: target.capacity,
            sector_bytes: u64::from(target.sector_bytes),
            asked: 0,
            got: 0,
            waiting: false,
            finished_at: Time::ZERO,
            due_at: None,
            read_at: (target.capacity == 0).then_some(Time::ZERO),
            others: 0,
            others_at: Time::ZERO,
            classes,
        })
    }

    /// Returns the bytes read so far. A failed read counts: the reader continues after it.
    pub fn bytes_read(&self) -> u64 {
        self.got * self.sector_bytes
    }

    /// Returns the share of the disk read, for reports.
    pub fn fraction_read(&self) -> f64 {
        if self.capacity == 0 { 1.0 } else { self.got as f64 / self.capacity as f64 }
    }

    /// Returns when the reader had read the whole disk; `None` before.
    pub fn read_at(&self) -> Option<Time> {
        self.read_at
    }

    /// Returns the other workload.
    pub fn inner(&self) -> &W {
        &self.inner
    }

    /// Returns when the reader's next read is due, if known.
    fn own_due(&self) -> Option<Time> {
        if self.waiting || self.asked == self.capacity {
            return None;
        }
        let at = match self.spec.pace {
            Pace::Fast => Time::ZERO,
            Pace::Rate { bytes_per_second } => {
                let bytes = u128::from(self.asked) * u128::from(self.sector_bytes);
                let ns = bytes * 1_000_000_000 / u128::from(bytes_per_second);
                Time(u64::try_from(ns).unwrap_or(u64::MAX))
            }
            Pace::Idle { grace, turn } => {
                let quiet = (self.others == 0).then_some(self.others_at + grace);
                let turn = turn.map(|t| self.due_at.unwrap_or(Time::ZERO) + t);
                quiet.into_iter().chain(turn).min()?
            }
        };
        Some(at.max(self.finished_at))
    }

    /// Whether the run ends because everything was read.
    fn over(&self) -> bool {
        self.spec.ends_run && self.read_at.is_some()
    }
}

impl<W: Workload> Workload for Beside<W> {
    fn next_due(&self) -> Option<Time> {
        if self.over() {
            return None;
        }
        self.inner.next_due().into_iter().chain(self.own_due()).min()
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let theirs = self.inner.next_due();
        // Of two requests due at once the foreground's comes first.
        match self.own_due().filter(|own| theirs.is_none_or(|t| *own < t)) {
            Some(due) => {
                let count = self.read.min(self.capacity - self.asked);
                let lbn = self.asked;
                self.asked += count;
                self.waiting = true;
                self.due_at = Some(due);
                let class = (self.classes.len() - 1) as u16;
                Ok(Ask {
                    due,
                    kind: Kind::Read,
                    lbn,
                    count: count as u32,
                    fua: false,
                    sync: true,
                    owner: READER,
                    class,
                })
            }
            None => {
                let ask = self.inner.take()?;
                if ask.owner == READER {
                    return Err(WorkloadError::Conflict(format!(
                        "application {READER} is the background reader; a request of the workload beside it has this \
                         number"
                    )));
                }
                self.others += 1;
                Ok(ask)
            }
        }
    }

    fn finished(&mut self, owner: u32, now: Time) {
        if owner == READER {
            assert!(self.waiting, "the background reader was told of a read it had not asked for");
            self.waiting = false;
            self.finished_at = now;
            self.got = self.asked;
            if self.got == self.capacity {
                self.read_at = Some(now);
            }
        } else {
            self.others -= 1;
            self.others_at = now;
            self.inner.finished(owner, now);
        }
    }

    fn completed(&mut self, ask: &Ask, now: Time) {
        if ask.owner == READER {
            return self.finished(READER, now);
        }
        self.others -= 1;
        self.others_at = now;
        self.inner.completed(ask, now);
    }

    fn endless(&self) -> bool {
        // A starved reader never ends a run.
        let starves = matches!(self.spec.pace, Pace::Idle { turn: None, .. });
        self.inner.endless() && (starves || !self.spec.ends_run)
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn refusals(&self) -> Option<&Refusals> {
        self.inner.refusals()
    }

    fn next_call(&self) -> Option<Time> {
        self.inner.next_call().filter(|_| !self.over())
    }

    fn call(&mut self) -> Option<StreamCall> {
        self.inner.call()
    }

    fn opened(&mut self, owner: u32, begins: Time) {
        self.inner.opened(owner, begins);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Population, closed, oltp};
    use super::*;
    use crate::device::fixed::Fixed;
    use crate::observe::Observer;
    use crate::run::{Limits, RunError, run};
    use crate::stats::{Done, End, Stats};
    use headtime_sched::Firmware;

    /// 300 MiB and a little more: the size of the tests' device.
    fn target() -> Target {
        Target { capacity: 1_000_000, sector_bytes: 512, geometry: None }
    }

    fn beside(foreground: &super::super::GroupSpec, spec: ReaderSpec) -> Beside<Population> {
        Beside::new(Population::of(foreground, &target(), 1).unwrap(), &target(), spec).unwrap()
    }

    #[derive(Default)]
    struct Scan(Vec<Done>);
    impl Observer for Scan {
        fn finished(&mut self, done: &Done) {
            if done.owner == READER {
                self.0.push(*done);
            }
        }
    }

    fn go<W: Workload>(w: &mut W, takes: Dur, limits: Limits) -> (Stats, Vec<Done>) {
        let mut seen = Scan::default();
        let mut device = Fixed::new(takes, 1);
        let stats = run(&mut device, &mut Firmware::new(1, 100), w, limits, None, &mut seen).unwrap();
        (stats, seen.0)
    }

    fn seconds(s: u64) -> Limits {
        Limits { until: Some(Time(s * 1_000_000_000)), ..Limits::default() }
    }

    #[test]
    fn the_disk_is_read_once_from_its_first_sector_to_its_last_and_that_ends_the_run() {
        let mut w = beside(&closed(1), ReaderSpec { ends_run: true, ..ReaderSpec::new(Pace::Fast) });
        let (stats, reads) = go(&mut w, Dur::from_ms(5), Limits::default());
        let mut next = 0;
        for d in &reads {
            assert_eq!((d.lbn, d.kind), (next, Kind::Read));
            next += u64::from(d.count);
        }
        assert_eq!((next, reads[0].count, reads.last().unwrap().count), (1_000_000, 256, 1_000_000 % 256));
        assert_eq!((w.bytes_read(), w.fraction_read()), (512_000_000, 1.0));
        assert_eq!(w.read_at(), Some(reads.last().unwrap().done));
        assert_eq!(stats.end, End::Workload);
        // Reads and foreground requests alternate.
        assert!(reads.windows(2).all(|p| p[1].due == p[0].done && p[1].done == p[0].done + Dur::from_ms(10)));
    }

    #[test]
    fn the_foreground_and_the_reader_are_classes_of_their_own() {
        let mut w = beside(&closed(2), ReaderSpec::new(Pace::Fast));
        assert_eq!(w.classes(), ["foreground", "scan"]);
        let (stats, reads) = go(&mut w, Dur::from_ms(5), seconds(3));
        let [(_, foreground), (_, scan)] = &stats.classes[..] else { panic!("{:?}", stats.classes.len()) };
        assert_eq!(scan.samples(), reads.len() as u64);
        assert_eq!((foreground.samples(), scan.samples(), stats.requests), (400, 200, 600));
        let named = [super::super::GroupSpec { name: "a".into(), ..closed(1) }, closed(2)];
        let two = Population::new(&named, &target(), 1).unwrap();
        let w = Beside::new(two, &target(), ReaderSpec::new(Pace::Fast)).unwrap();
        assert_eq!(w.classes(), ["a", "closed:2", "scan"]);
        let clash = [super::super::GroupSpec { name: "scan".into(), ..closed(1) }, closed(2)];
        let clash = Population::new(&clash, &target(), 1).unwrap();
        assert!(Beside::new(clash, &target(), ReaderSpec::new(Pace::Fast)).is_err());
    }

    #[test]
    fn the_idle_class_is_let_in_a_grace_time_after_the_last_answer() {
        let grace = Dur::from_ms(100);
        let mut w = beside(&closed(2), ReaderSpec::new(Pace::CFQ));
        // The two foreground requests come first, and no read is due while one of them is
        // outstanding.
        let (a, b) = (w.take().unwrap(), w.take().unwrap());
        assert_eq!((a.due, b.due, w.next_due()), (Time::ZERO, Time::ZERO, None));
        w.others -= 1;
        assert_eq!(w.own_due(), None);
        w.others -= 1;
        w.others_at = Time(7_000_000);
        assert_eq!(w.next_due(), Some(Time(7_000_000) + grace));
        // Once served, the reader continues read by read until another request arrives.
        let first = w.take().unwrap();
        assert_eq!((first.owner, first.due, w.next_due()), (READER, Time(107_000_000), None));
        w.finished(READER, Time(110_000_000));
        assert_eq!((w.next_due(), w.take().unwrap().lbn), (Some(Time(110_000_000)), 256));
    }

    #[test]
    fn an_idle_class_without_turns_starves_and_costs_the_others_nothing() {
        let mut w = beside(&oltp(), ReaderSpec { ends_run: true, ..ReaderSpec::new(Pace::CFQ) });
        let (stats, reads) = go(&mut w, Dur::from_ms(5), seconds(60));
        assert_eq!((reads.len(), w.bytes_read(), w.read_at()), (0, 0, None));
        let (alone, _) = go(&mut Population::of(&oltp(), &target(), 1).unwrap(), Dur::from_ms(5), seconds(60));
        assert_eq!((stats.requests, stats.responses().mean()), (alone.requests, alone.responses().mean()));
        assert_eq!(stats.classes[0].1.quantile(990), alone.responses().quantile(990));
        // Such a run needs another limit.
        let mut d = Fixed::new(Dur::from_ms(5), 1);
        let e = run(&mut d, &mut Firmware::new(1, 100), &mut w, Limits::default(), None, &mut ()).unwrap_err();
        assert!(matches!(e, RunError::Endless), "{e}");
    }

    #[test]
    fn an_idle_class_with_turns_gets_one_read_in_each() {
        let mut w = beside(&closed(3), ReaderSpec::new(Pace::BFQ));
        let (_, reads) = go(&mut w, Dur::from_ms(5), seconds(60));
        assert!(reads.windows(2).all(|p| p[1].due == p[0].due + Dur::from_ms(200)));
        assert_eq!(reads.len(), 299);
        assert_eq!(reads[0].due, Time(200_000_000));
    }

    #[test]
    fn a_rate_is_kept_whatever_the_others_do() {
        let pace = Pace::Rate { bytes_per_second: 2_000_000 };
        let mut w = beside(&closed(1), ReaderSpec::new(pace));
        let (_, reads) = go(&mut w, Dur::from_ms(5), seconds(60));
        let got = w.bytes_read() as f64;
        assert!((got / 60.0 - 2e6).abs() < 2.0 * 131_072.0 / 60.0, "{got}");
        for (n, d) in reads.iter().enumerate() {
            assert_eq!(d.due, Time(n as u64 * 131_072 * 500));
        }
        // More than the disk's rate: one outstanding, as fast as possible.
        let mut w = beside(&closed(1), ReaderSpec::new(Pace::Rate { bytes_per_second: 1 << 40 }));
        let (_, reads) = go(&mut w, Dur::from_ms(5), seconds(5));
        assert_eq!(reads.len(), 500);
        assert!(reads[1..].windows(2).all(|p| p[1].due == p[0].done));
    }

    #[test]
    fn a_reader_that_was_held_up_catches_up() {
        let mut w = beside(&closed(1), ReaderSpec::new(Pace::Rate { bytes_per_second: 1_310_720 }));
        w.take().unwrap();
        assert_eq!(w.take().unwrap().due, Time::ZERO);
        w.finished(READER, Time(250_000_000));
        // Those due at 100 and 200 ms are late; the one at 300 ms is on time again.
        let mut due = Vec::new();
        for _ in 0..3 {
            let a = w.take().unwrap();
            due.push(a.due.0);
            w.finished(READER, a.due + Dur::from_ms(10));
        }
        assert_eq!(due, [250_000_000, 260_000_000, 300_000_000]);
    }

    #[test]
    fn impossible_readers_are_refused() {
        let new = |spec| Beside::new(Population::of(&closed(1), &target(), 1).unwrap(), &target(), spec);
        let fast = ReaderSpec::new(Pace::Fast);
        for read_bytes in [0, 100, 1 << 40] {
            assert!(new(ReaderSpec { read_bytes, ..fast }).is_err(), "{read_bytes}");
        }
        assert!(new(ReaderSpec::new(Pace::Rate { bytes_per_second: 0 })).is_err());
    }
}
