//! Exhaustive search of gaps: every range of consecutive LBNs that begins and ends with a wanted
//! unit is tried as a leg.
//!
//! Nothing is shared with the fast search except [`Gap::holds`], which tells whether a plan keeps
//! the gap.

use headtime_disk::{Angle, Dur, Head, Kind, Model, Time};
use headtime_sched::internals::conservatism::Margins;
use headtime_sched::internals::gap::{Gap, Leg};
use headtime_sched::internals::placement::Rules;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{SessionId, TaskRange};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profiles::between;

/// One range of one task, divided into units.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Its session.
    pub session: SessionId,
    /// Read or write.
    pub kind: Kind,
    /// The range.
    pub range: TaskRange,
    /// Sectors per unit; the last one may be shorter.
    pub unit: u32,
    /// By unit: still wanted.
    pub pending: Vec<bool>,
    /// Temporarily excluded.
    pub hidden: bool,
}

/// A list of wishes, which every query walks.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The wishes.
    pub list: Vec<Wish>,
}

impl Wish {
    /// Returns a wish of whole units.
    pub fn new(session: u32, kind: Kind, lbn: u64, units: u32, unit: u32) -> Wish {
        let range = TaskRange { lbn, count: u64::from(units) * u64::from(unit) };
        Wish { session: SessionId(session), kind, range, unit, pending: vec![true; units as usize], hidden: false }
    }

    /// Its pending units: first LBN, one past the last.
    pub fn units(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let low = |i: usize| self.range.lbn + i as u64 * u64::from(self.unit);
        (0..self.pending.len())
            .filter(|i| self.pending[*i])
            .map(move |i| (low(i), (low(i) + u64::from(self.unit)).min(self.range.end())))
    }

    fn asked_by(&self, who: Who, kind: Kind) -> bool {
        self.kind == kind && (who == Who::Anyone || who == Who::Session(self.session))
    }
}

impl Wishes {
    /// Pending units of `who` and `kind` that are not hidden, ascending.
    pub fn units(&self, who: Who, kind: Kind) -> Vec<(u64, u64)> {
        let asked = self.list.iter().filter(|w| !w.hidden && w.asked_by(who, kind));
        let mut units: Vec<_> = asked.flat_map(Wish::units).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// Completes every unit that lies entirely in a range, and returns them.
    pub fn complete(&mut self, kind: Kind, range: TaskRange) -> Vec<(SessionId, TaskRange)> {
        let mut done = Vec::new();
        for w in self.list.iter_mut().filter(|w| w.kind == kind) {
            for i in 0..w.pending.len() {
                let low = w.range.lbn + i as u64 * u64::from(w.unit);
                let high = (low + u64::from(w.unit)).min(w.range.end());
                if w.pending[i] && low >= range.lbn && high <= range.end() {
                    w.pending[i] = false;
                    done.push((w.session, TaskRange { lbn: low, count: high - low }));
                }
            }
        }
        done
    }

    fn mark(&self, who: Who, kind: Kind, out: &mut Wanted, hidden: bool) {
        let (from, len) = (out.from(), (out.end() - out.from()) as u32);
        out.reset(from, len);
        for w in self.list.iter().filter(|w| (hidden || !w.hidden) && w.asked_by(who, kind)) {
            // Units before the range are skipped by arithmetic, or the tests would take too long.
            let first = from.saturating_sub(w.range.lbn) / u64::from(w.unit);
            for i in first as usize..w.pending.len() {
                let low = w.range.lbn + i as u64 * u64::from(w.unit);
                let high = (low + u64::from(w.unit)).min(w.range.end());
                if low >= out.end() {
                    break;
                }
                if w.pending[i] && low >= from && high <= out.end() {
                    out.set(low, high);
                }
            }
        }
    }
}

impl Wants for Wishes {
    fn wanted(&self, who: Who, kind: Kind, out: &mut Wanted) {
        self.mark(who, kind, out, false);
    }

    fn pending(&self, who: Who, kind: Kind, out: &mut Wanted) {
        self.mark(who, kind, out, true);
    }

    fn any(&self, who: Who, kind: Kind) -> bool {
        self.list.iter().any(|w| !w.hidden && w.asked_by(who, kind) && w.pending.contains(&true))
    }
}

/// The yield of one leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasible {
    /// The leg.
    pub leg: Leg,
    /// By sector of the leg: in a wanted unit that lies entirely in its command.
    pub wanted: Vec<bool>,
    /// Number of wanted sectors.
    pub sectors: u32,
    /// Their angle, in 2^-32 of a revolution.
    pub turn: u64,
}

impl Feasible {
    /// Returns the yield of a leg for these units, which ascend.
    pub fn of(model: &Model, gap: &Gap, units: &[(u64, u64)], leg: Leg) -> Feasible {
        let (low, high) = (leg.lbn, leg.range().end());
        // A read merged with the destination also completes units that extend into it.
        let own = if leg.merged && leg.kind == Kind::Read { u64::from(gap.dest.count) } else { 0 };
        let mut wanted = covered(units, low, high + own);
        wanted.truncate(leg.count as usize);
        let turn = |i: u64| {
            let spt = model.geometry.locate(low + i).unwrap().spt;
            (((1u128 << 64) / u128::from(spt)) >> 32) as u64
        };
        let wants = (0..).zip(&wanted).filter(|f| *f.1);
        let (sectors, turn) = wants.fold((0, 0), |(n, t), (i, _)| (n + 1, t + turn(i)));
        Feasible { leg, wanted, sectors, turn }
    }

    /// Returns whether it begins with a wanted sector, ends with one (if not merged), and, if a
    /// write, contains no others.
    fn is_leg(&self) -> bool {
        let ends = self.leg.merged || self.wanted.last() == Some(&true);
        self.wanted.first() == Some(&true) && ends && (self.leg.kind != Kind::Write || !self.wanted.contains(&false))
    }
}

/// By sector of `low..high`: in a unit that lies entirely in it.
fn covered(units: &[(u64, u64)], low: u64, high: u64) -> Vec<bool> {
    let mut flags = vec![false; (high - low) as usize];
    let from = units.partition_point(|u| u.0 < low);
    for u in units[from..].iter().take_while(|u| u.0 < high).filter(|u| u.1 <= high) {
        flags[(u.0 - low) as usize..(u.1 - low) as usize].fill(true);
    }
    flags
}

/// Every single leg of `who` that a gap can hold under the rules, and that begins and ends with
/// wanted units.
pub fn every_leg(
    model: &Model,
    gap: &Gap,
    wishes: &Wishes,
    who: Who,
    rules: Rules,
    exclude: &[TaskRange],
) -> Vec<Feasible> {
    let mut found = Vec::new();
    for kind in [Kind::Read, Kind::Write] {
        let units = wishes.units(who, kind);
        let mut ends: Vec<u64> = units.iter().map(|u| u.1).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut lows: Vec<u64> = units.iter().map(|u| u.0).collect();
        lows.dedup();
        for low in lows {
            let first_end = ends.partition_point(|e| *e <= low);
            let own = ends[first_end..].iter().map(|high| (*high, false));
            let merged = (kind == gap.dest_kind && low < gap.dest.lbn).then_some((gap.dest.lbn, true));
            for (high, merged) in merged.into_iter().chain(own) {
                let leg = Leg { kind, lbn: low, count: (high - low) as u32, merged };
                match may_hold(model, gap, &leg, rules, exclude) {
                    // Longer ones do not fit either.
                    false if !merged => break,
                    false => continue,
                    true => {}
                }
                if gap.holds(model, &[leg]) {
                    found.push(Feasible::of(model, gap, &units, leg));
                }
            }
        }
    }
    found.retain(Feasible::is_leg);
    found
}

/// Returns whether the rules allow a leg, and its transfer is shorter than the gap.
fn may_hold(model: &Model, gap: &Gap, leg: &Leg, rules: Rules, exclude: &[TaskRange]) -> bool {
    let place = model.place(leg.lbn, leg.count, leg.kind).unwrap();
    if place.media > gap.ends.since(gap.head(leg.kind).at) || exclude.iter().any(|e| e.overlaps(&leg.range())) {
        return false;
    }
    let on = |track| {
        model.geometry.runs(leg.lbn, u64::from(leg.count)).any(|r| (r.start.cylinder, r.start.surface) == track)
    };
    let (source, dest) = (gap.source(), gap.destination());
    // A merged leg is on the destination's track under any rules, even if it is also the source's.
    let source_allowed = rules.source_track || leg.merged && source == dest;
    let dest_allowed = rules.dest_track || leg.merged;
    (source_allowed || !on(source)) && (dest_allowed || !on(dest))
}

/// A random gap on a drive, before a request of a few sectors; margins up to half a millisecond.
pub fn any_gap(model: &Model, rng: &mut Xoshiro256PlusPlus) -> Gap {
    loop {
        let capacity = model.geometry.capacity();
        let source = model.geometry.locate(between(rng, 0, capacity - 1)).unwrap();
        let lbn = between(rng, 0, capacity - 40);
        let kind = if between(rng, 0, 2) == 0 { Kind::Write } else { Kind::Read };
        let dest = model.place(lbn, between(rng, 1, 16) as u32, kind).unwrap();
        let now = Time(1_000_000_000 + between(rng, 0, 100_000_000));
        let head = |at: Time, angle| Head { cylinder: source.cylinder, surface: source.surface, angle, at };
        let read = head(now, Angle(rng.next_u64()));
        let later = Dur::from_us(between(rng, 0, 300));
        let write = head(now + later, read.angle + model.mechanics.rotation.angle_after(later));
        let margins = match between(rng, 0, 2) {
            0 => Margins::fixed(Dur::ZERO),
            _ => Margins::fixed(Dur::from_us(between(rng, 1, 500))),
        };
        let ready = if between(rng, 0, 1) == 0 { Time::ZERO } else { now + Dur::from_us(between(rng, 0, 3_000)) };
        if let Some(gap) = Gap::before(model, (read, write), &dest, kind, ready, &margins) {
            return gap;
        }
    }
}

/// Random wishes on a drive: large and small ones, of some sessions, overlapping, partly done.
pub fn any_wishes(capacity: u64, sessions: u32, rng: &mut Xoshiro256PlusPlus) -> Wishes {
    let mut list = Vec::new();
    for _ in 0..between(rng, 1, 6) {
        let unit = between(rng, 1, 9) as u32;
        let most = capacity / u64::from(unit);
        let units = if between(rng, 0, 2) == 0 { most } else { between(rng, 1, most.min(300)) };
        let lbn = between(rng, 0, capacity - units * u64::from(unit));
        let kind = if between(rng, 0, 2) == 0 { Kind::Write } else { Kind::Read };
        let session = between(rng, 0, u64::from(sessions) - 1) as u32;
        let mut wish = Wish::new(session, kind, lbn, units as u32, unit);
        let done = between(rng, 0, 100);
        for pending in &mut wish.pending {
            *pending = between(rng, 0, 99) >= done;
        }
        list.push(wish);
    }
    Wishes { list }
}
