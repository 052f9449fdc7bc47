//! Arm, head and platter: a range of blocks becomes stretches, each a run on one track that passes
//! under the head.

use crate::angle::Angle;
use crate::command::{Kind, MediaTimes};
use crate::drive::faults::Faults;
use crate::drive::noise::Noise;
use crate::drive::spindle::Spindle;
use crate::geometry::TrackRun;
use crate::model::Model;
use crate::rotation::sectors_time;
use crate::time::{Dur, Time};

/// A run of consecutive LBNs that pass under the head without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// First LBN.
    pub lbn: u64,
    /// Number of LBNs.
    pub count: u32,
    /// When the head reached the track (the end of the previous stretch if it was already there).
    pub arrived: Time,
    /// When the first LBN begins to pass.
    pub start: Time,
    /// Time per sector, in ns times 2^32.
    pub sector_fx: u64,
    /// The track's cylinder.
    pub cylinder: u32,
    /// The track's surface.
    pub surface: u16,
}

impl Stretch {
    /// Returns one past the last LBN.
    #[inline]
    pub(super) fn end_lbn(&self) -> u64 {
        self.lbn + self.count as u64
    }

    /// Returns the time at which `n` of its LBNs have passed.
    #[inline]
    pub(super) fn passed(&self, n: u32) -> Time {
        self.start + sectors_time(self.sector_fx, n as u64)
    }

    /// Returns the time at which all have passed.
    #[inline]
    pub(super) fn end(&self) -> Time {
        self.passed(self.count)
    }

    /// Returns the number of LBNs that have passed completely by `t`.
    #[inline]
    pub(super) fn count_at(&self, t: Time) -> u32 {
        if t < self.start {
            return 0;
        }
        let ns = t.since(self.start).0 as u128;
        // Inverse of the rounding up in `passed`: n have passed when sectors_time(n) <= ns.
        let n = ((ns << 32) / self.sector_fx.max(1) as u128).min(self.count as u128) as u32;
        if n > 0 && self.passed(n) > t { n - 1 } else { n }
    }
}

/// Arrival of write data in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feed {
    /// When its transfer on the bus begins.
    pub begin: Time,
    /// Picoseconds per sector on the bus.
    pub sector_ps: u64,
    /// First LBN.
    pub lbn: u64,
    /// Nothing counts as buffered until this number of sectors is.
    pub burst: u32,
    /// Number of sectors.
    pub count: u32,
}

impl Feed {
    /// Returns the time at which `lbn` is in the buffer.
    pub(super) fn buffered_at(&self, lbn: u64) -> Time {
        let nth = (lbn - self.lbn + 1).max(self.burst.min(self.count) as u64);
        self.begin + Dur((self.sector_ps * nth).div_ceil(1000))
    }
}

/// A range to be read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass<'a> {
    /// First LBN.
    pub lbn: u64,
    /// Number of LBNs.
    pub count: u64,
    /// Read or write.
    pub kind: Kind,
    /// When the arm starts.
    pub begin: Time,
    /// Minimum time of the first move.
    pub least: Dur,
    /// A sector is written only once its data is buffered; until then the head waits whole
    /// revolutions.
    pub feed: Option<&'a Feed>,
    /// Front to back, even on a drive with zero-latency access: a prefetch appends to its segment.
    pub in_order: bool,
}

impl Pass<'_> {
    /// Makes a read of a request.
    pub(super) fn read(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { lbn, count, kind: Kind::Read, begin, least: Dur::ZERO, feed: None, in_order: false }
    }

    /// Makes a prefetch.
    pub(super) fn ahead(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { in_order: true, ..Pass::read(lbn, count, begin) }
    }

    /// Makes a write whose data is in the buffer.
    pub(super) fn write(lbn: u64, count: u64, begin: Time) -> Pass<'static> {
        Pass { kind: Kind::Write, ..Pass::read(lbn, count, begin) }
    }
}

/// The moving parts of a virtual drive, including noise and faults.
#[derive(Clone, Debug)]
pub(super) struct Mechanism {
    /// Geometry and mechanics.
    pub model: Model,
    /// The platter.
    pub spindle: Spindle,
    /// Random components.
    pub noise: Noise,
    /// Injected faults.
    pub faults: Faults,
    /// Cylinder and surface of the arm (or of its last target).
    pub arm: (u32, u16),
    /// Computes times as DiskSim does: holes inside a track take no time, and a missed revolution
    /// is as long as the track's data.
    pub disksim_exact: bool,
    next_recalibration: Time,
}

impl Mechanism {
    /// Creates a mechanism at rest on cylinder 0, surface 0.
    pub(super) fn new(model: Model, spindle: Spindle, mut noise: Noise, faults: Faults, exact: bool) -> Mechanism {
        let next_recalibration = if noise.spec().recalibrate_every == Dur::ZERO {
            Time::NEVER
        } else {
            Time::ZERO + noise.recalibration_interval()
        };
        Mechanism { model, spindle, noise, faults, arm: (0, 0), disksim_exact: exact, next_recalibration }
    }

    /// Returns the duration of an internal recalibration if one is due by `now`.
    pub(super) fn recalibration(&mut self, now: Time) -> Dur {
        if now < self.next_recalibration {
            return Dur::ZERO;
        }
        self.next_recalibration = now + self.noise.recalibration_interval();
        self.noise.spec().recalibrate_takes
    }

    /// Returns the time of the next move to `to`, including noise.
    fn reposition(&mut self, to: (u32, u16), kind: Kind) -> Dur {
        if self.arm == to {
            return Dur::ZERO;
        }
        let table = self.model.mechanics.reposition(self.arm, to, kind);
        let error = self.noise.move_error_ns(self.arm.0.abs_diff(to.0), to.1);
        table.saturating_add_signed(error + self.noise.seek_difference_ns())
    }

    /// Passes a range under the head; appends the stretches to `stretches` in order of time.
    ///
    /// Returns the times of its phases.
    pub(super) fn pass(&mut self, job: &Pass, stretches: &mut Vec<Stretch>) -> MediaTimes {
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
                // Read-ahead never takes extra revolutions here: the next command would cancel it,
                // and no client waits for it.
                let turns = if job.in_order { 0 } else { turns };
                settled += turns;
                move_time += Dur(self.model.mechanics.rotation.period().0 * turns as u64);
            }
            self.arm = track;
            let arrived = at + move_time;
            let begun = stretches.len();
            let (end, turned) = self.along(&run, job, arrived, stretches);
            at = end;
            times.turned += turned;
            if !self.faults.is_empty() {
                let turns = self.faults.extra_turns(run.lbn, run.count as u64);
                let extra = Dur(self.model.mechanics.rotation.period().0 * turns as u64);
                for stretch in &mut stretches[begun..] {
                    stretch.start += extra;
                }
                at += extra;
            }
            if first {
                times.seek_end = arrived;
                times.transfer_start = stretches[begun..].iter().map(|l| l.start.max(arrived)).min().unwrap_or(arrived);
            }
            done += run.count as u64;
        }
        times.end = at;
        times
    }

    /// Returns the part of a run before its first hole.
    #[cold]
    fn up_to_hole(&self, run: TrackRun) -> TrackRun {
        let geometry = &self.model.geometry;
        let whole = |k: u32| geometry.locate(run.lbn + k as u64).is_some_and(|p| p.sector == run.start.sector + k);
        // "The first k LBNs are contiguous" changes from true to false once.
        let (mut good, mut bad) = (0, run.count);
        while bad - good > 1 {
            let mid = good + (bad - good) / 2;
            if whole(mid) { good = mid } else { bad = mid }
        }
        TrackRun { count: good + 1, span: good + 1, ..run }
    }

    /// Waits for a run on one track and passes it. Returns when it ended, and how long no wanted
    /// sector passed between its first and its last one.
    fn along(&mut self, run: &TrackRun, job: &Pass, arrived: Time, stretches: &mut Vec<Stretch>) -> (Time, Dur) {
        let here = self.spindle.angle_at(arrived);
        let rotation = *self.spindle.rotation();
        let sector_fx = rotation.sector_fx(run.start.spt);
        let stretch = |lbn: u64, count: u32, start: Time| Stretch {
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
            && feed.is_none_or(|f| f.buffered_at(run.lbn + run.count as u64 - 1) <= arrived);
        if on_arrival && let Some(landing) = self.model.mechanics.land(here, run) {
            let skipped = landing.sector;
            if skipped < run.count {
                let start = arrived + landing.latency;
                let again = begins(here, run.start.angle);
                stretches.push(stretch(run.lbn + skipped as u64, run.count - skipped, start));
                stretches.push(stretch(run.lbn, skipped, again));
                let turned = rotation.period().saturating_sub(rotation.sectors(run.span as u64, run.start.spt));
                return (start + rotation.period(), turned);
            }
        }
        let mut next = stretch(run.lbn, run.count, begins(here, run.start.angle));
        let Some(feed) = feed else {
            stretches.push(next);
            return (next.end(), Dur::ZERO);
        };
        if feed.buffered_at(run.lbn + run.count as u64 - 1) <= next.start {
            stretches.push(next);
            return (next.end(), Dur::ZERO);
        }
        let round = if self.disksim_exact {
            let lbns = self.model.geometry.track_of(run.lbn).map_or(run.start.spt, |t| t.lbns);
            rotation.sectors(lbns as u64, run.start.spt)
        } else {
            rotation.period()
        };
        // Head and bus run at constant rates, so data can be late only for the first sector, or
        // from some sector on if the bus is slower.
        loop {
            let late = (0..next.count).find(|&i| feed.buffered_at(next.lbn + i as u64) > next.passed(i));
            match late {
                None => {
                    stretches.push(next);
                    return (next.end(), Dur::ZERO);
                }
                Some(i) => {
                    if i > 0 {
                        stretches.push(Stretch { count: i, ..next });
                    }
                    next = Stretch {
                        lbn: next.lbn + i as u64,
                        count: next.count - i,
                        start: next.passed(i) + round,
                        ..next
                    };
                }
            }
        }
    }
}
