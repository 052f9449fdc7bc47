//! Arm, head and platter at work: a range of blocks becomes legs, each a stretch of one track
//! passing under the head.

use crate::angle::Angle;
use crate::command::{Kind, MediaTimes};
use crate::drive::faults::Faults;
use crate::drive::noise::Noise;
use crate::drive::spindle::Spindle;
use crate::geometry::Run;
use crate::model::Model;
use crate::rotation::sectors_time;
use crate::time::{Dur, Time};

/// Consecutive LBNs that pass under the head in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// First LBN.
    pub lbn: u64,
    /// LBNs.
    pub count: u32,
    /// When the head had arrived on the track (the end of the leg before, when it was there
    /// already).
    pub arrived: Time,
    /// When the first LBN begins to pass.
    pub start: Time,
    /// Time a sector takes, in ns times 2^32.
    pub sector_fx: u64,
    /// The track's cylinder.
    pub cylinder: u32,
    /// The track's surface.
    pub surface: u16,
}

impl Leg {
    /// One past the last LBN.
    #[inline]
    pub fn end_lbn(&self) -> u64 {
        self.lbn + self.count as u64
    }

    /// When `n` of its LBNs have passed.
    #[inline]
    pub fn passed(&self, n: u32) -> Time {
        self.start + sectors_time(self.sector_fx, n as u64)
    }

    /// When all have passed.
    #[inline]
    pub fn end(&self) -> Time {
        self.passed(self.count)
    }

    /// How many LBNs have passed whole by `t`.
    #[inline]
    pub fn count_at(&self, t: Time) -> u32 {
        if t < self.start {
            return 0;
        }
        let ns = t.since(self.start).0 as u128;
        // The rounding up of `passed` is undone: n have passed when sectors_time(n) <= ns.
        let n = ((ns << 32) / self.sector_fx.max(1) as u128).min(self.count as u128) as u32;
        if n > 0 && self.passed(n) > t { n - 1 } else { n }
    }
}

/// When data that must be written becomes available in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    /// When the bus begins to bring it.
    pub begin: Time,
    /// Picoseconds a sector takes on the bus.
    pub sector_ps: u64,
    /// The first LBN it brings.
    pub lbn: u64,
    /// No sector counts as there before this many are.
    pub burst: u32,
    /// Sectors it brings.
    pub count: u32,
}

impl Feed {
    /// When `lbn` is in the buffer.
    pub fn there(&self, lbn: u64) -> Time {
        let nth = (lbn - self.lbn + 1).max(self.burst.min(self.count) as u64);
        self.begin + Dur((self.sector_ps * nth).div_ceil(1000))
    }
}

/// A range that is to pass under the head.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// First LBN.
    pub lbn: u64,
    /// LBNs.
    pub count: u64,
    /// Read or write.
    pub kind: Kind,
    /// When the arm sets out.
    pub begin: Time,
    /// The first move takes this long at least.
    pub least: Dur,
    /// A sector passes only once its data is there; the head goes round again until it is.
    pub feed: Option<&'a Feed>,
    /// From front to back even on a drive that begins on arrival: a prefetch adds to what a segment
    /// holds.
    pub in_order: bool,
}

impl Pass<'_> {
    /// A read of a request.
    pub fn read(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { lbn, count, kind: Kind::Read, begin, least: Dur::ZERO, feed: None, in_order: false }
    }

    /// A prefetch.
    pub fn ahead(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { in_order: true, ..Pass::read(lbn, count, begin) }
    }

    /// A write, its data being in the buffer.
    pub fn write(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { kind: Kind::Write, ..Pass::read(lbn, count, begin) }
    }
}

/// The moving parts of a virtual drive, as they really are.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Geometry and mechanics.
    pub model: Model,
    /// The platter.
    pub spindle: Spindle,
    /// Chance.
    pub noise: Noise,
    /// Planted faults.
    pub faults: Faults,
    /// Cylinder and surface the arm is at (or was sent to last).
    pub arm: (u32, u16),
    /// Sums as DiskSim does: holes inside a track cost no time, a missed turn is as long as the
    /// track's data.
    pub disksim_exact: bool,
    next_recalibration: Time,
}

impl Mechanism {
    /// A mechanism at rest on cylinder 0, surface 0.
    pub fn new(model: Model, spindle: Spindle, mut noise: Noise, faults: Faults, exact: bool) -> Mechanism {
        let next_recalibration = if noise.spec().recalibrate_every == Dur::ZERO {
            Time::NEVER
        } else {
            Time::ZERO + noise.recalibration_interval()
        };
        Mechanism { model, spindle, noise, faults, arm: (0, 0), disksim_exact: exact, next_recalibration }
    }

    /// An internal recalibration, if one is due by `now`: how long the mechanism is away.
    pub fn recalibration(&mut self, now: Time) -> Dur {
        if now < self.next_recalibration {
            return Dur::ZERO;
        }
        self.next_recalibration = now + self.noise.recalibration_interval();
        self.noise.spec().recalibrate_takes
    }

    /// How long the move to `to` takes, this time.
    fn reposition(&mut self, to: (u32, u16), kind: Kind) -> Dur {
        if self.arm == to {
            return Dur::ZERO;
        }
        let table = self.model.mechanics.reposition(self.arm, to, kind);
        table.saturating_add_signed(self.noise.seek_difference_ns())
    }

    /// Lets a range pass under the head; the legs are appended to `legs` in the order in which they
    /// pass.
    ///
    /// Returns when the first sector began to pass and when the last one had passed.
    pub fn pass(&mut self, job: &Pass, legs: &mut Vec<Leg>) -> MediaTimes {
        let Pass { lbn, count, kind, begin, .. } = *job;
        let mut times =
            MediaTimes { start: begin, seek_end: begin, transfer_start: begin, end: begin, turned: Dur::ZERO };
        let mut at = begin;
        let (mut done, mut settled) = (0u64, 0);
        while done < count {
            let want = u32::try_from(count - done).unwrap_or(u32::MAX);
            let mut run =
                self.model.geometry.run_at(lbn + done, want).expect("a range was checked against the capacity");
            if run.span != run.count && !self.disksim_exact {
                run = self.up_to_hole(run);
            }
            let first = done == 0;
            let track = (run.start.cylinder, run.start.surface);
            let mut move_time = self.reposition(track, kind);
            if first {
                move_time = move_time.max(job.least);
            }
            if track != self.arm {
                let turns = self.noise.settle_turns(settled);
                // A read-ahead that does not settle at once is given up when a command comes:
                // nobody waits for it.
                let turns = if job.in_order { 0 } else { turns };
                settled += turns;
                move_time += Dur(self.model.mechanics.rotation.period().0 * turns as u64);
            }
            self.arm = track;
            let arrived = at + move_time;
            let begun = legs.len();
            let (end, turned) = self.along(&run, job, arrived, legs);
            at = end;
            times.turned += turned;
            if !self.faults.is_empty() {
                let turns = self.faults.extra_turns(run.lbn, run.count as u64);
                let extra = Dur(self.model.mechanics.rotation.period().0 * turns as u64);
                for leg in &mut legs[begun..] {
                    leg.start += extra;
                }
                at += extra;
            }
            if first {
                times.seek_end = arrived;
                times.transfer_start = legs[begun..].iter().map(|l| l.start.max(arrived)).min().unwrap_or(arrived);
            }
            done += run.count as u64;
        }
        times.end = at;
        times
    }

    /// The part of a run before its first hole.
    #[cold]
    fn up_to_hole(&self, run: Run) -> Run {
        let geometry = &self.model.geometry;
        let whole = |k: u32| geometry.locate(run.lbn + k as u64).is_some_and(|p| p.sector == run.start.sector + k);
        // Whether the first k LBNs follow each other without a hole falls from true to false once.
        let (mut good, mut bad) = (0, run.count);
        while bad - good > 1 {
            let mid = good + (bad - good) / 2;
            if whole(mid) { good = mid } else { bad = mid }
        }
        Run { count: good + 1, span: good + 1, ..run }
    }

    /// One stretch of one track: waits for it and lets it pass. Returns when it had passed, and how
    /// long of that nothing wanted did.
    fn along(&mut self, run: &Run, job: &Pass, arrived: Time, legs: &mut Vec<Leg>) -> (Time, Dur) {
        let here = self.spindle.angle_at(arrived);
        let rotation = *self.spindle.rotation();
        let sector_fx = rotation.sector_fx(run.start.spt);
        let leg = |lbn: u64, count: u32, start: Time| Leg {
            lbn,
            count,
            arrived,
            start,
            sector_fx,
            cylinder: run.start.cylinder,
            surface: run.start.surface,
        };
        let begins = |here: Angle, target: Angle| {
            Time((arrived + rotation.wait(here, target)).0.saturating_sub(rotation.passed(here, target).0))
        };
        let feed = job.feed;
        let on_arrival = !job.in_order
            && self.model.mechanics.on_arrival(job.kind)
            && feed.is_none_or(|f| f.there(run.lbn + run.count as u64 - 1) <= arrived);
        if on_arrival && let Some(landing) = self.model.mechanics.land(here, run) {
            let skipped = landing.sector;
            if skipped < run.count {
                let start = arrived + landing.latency;
                let again = begins(here, run.start.angle);
                legs.push(leg(run.lbn + skipped as u64, run.count - skipped, start));
                legs.push(leg(run.lbn, skipped, again));
                let turned = rotation.period().saturating_sub(rotation.sectors(run.span as u64, run.start.spt));
                return (start + rotation.period(), turned);
            }
        }
        let mut next = leg(run.lbn, run.count, begins(here, run.start.angle));
        let Some(feed) = feed else {
            legs.push(next);
            return (next.end(), Dur::ZERO);
        };
        if feed.there(run.lbn + run.count as u64 - 1) <= next.start {
            legs.push(next);
            return (next.end(), Dur::ZERO);
        }
        let round = if self.disksim_exact {
            let lbns = self.model.geometry.track_of(run.lbn).map_or(run.start.spt, |t| t.lbns);
            rotation.sectors(lbns as u64, run.start.spt)
        } else {
            rotation.period()
        };
        // Both the head and the bus go on evenly, so data can be late only for the first sector, or
        // from some sector on when the bus is the slower one.
        loop {
            let late = (0..next.count).find(|&i| feed.there(next.lbn + i as u64) > next.passed(i));
            match late {
                None => {
                    legs.push(next);
                    return (next.end(), Dur::ZERO);
                }
                Some(i) => {
                    if i > 0 {
                        legs.push(Leg { count: i, ..next });
                    }
                    next =
                        Leg { lbn: next.lbn + i as u64, count: next.count - i, start: next.passed(i) + round, ..next };
                }
            }
        }
    }
}
