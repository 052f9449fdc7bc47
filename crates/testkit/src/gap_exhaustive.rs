//! The best plan for a gap by exhaustive search: each pair of wanted units on consecutive LBNs is
//! the beginning and the end of a leg, each sequence of two legs is tried, and a predicate decides
//! which are valid.
//!
//! No bound, no pruning, no arithmetic on tracks: only for small disks and a few hundred units.

use headtime_disk::Kind;
use headtime_sched::TaskRange;
use headtime_sched::internals::gap::{Gap, Leg};
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;

/// Units of one session, as a plain list.
#[derive(Clone, Debug, Default)]
pub struct UnitList {
    /// Kind and range of each wanted unit, by ascending LBN.
    pub units: Vec<(Kind, TaskRange)>,
}

impl UnitList {
    /// Every unit of `unit` sectors of a disk that `keep` accepts.
    pub fn of_disk(capacity: u64, unit: u64, kind: Kind, mut keep: impl FnMut(u64) -> bool) -> UnitList {
        let all = (0..capacity / unit).filter(|&i| keep(i));
        UnitList { units: all.map(|i| (kind, TaskRange { lbn: i * unit, count: unit })).collect() }
    }

    /// Removes units that lie entirely within a range.
    pub fn take(&mut self, kind: Kind, range: TaskRange) {
        self.units.retain(|(k, u)| *k != kind || u.lbn < range.lbn || u.end() > range.end());
    }

    /// Wanted sectors of units that lie entirely in a range.
    pub fn within(&self, kind: Kind, range: TaskRange) -> u32 {
        let inside = self.units.iter().filter(|(k, u)| *k == kind && u.lbn >= range.lbn && u.end() <= range.end());
        inside.map(|(_, u)| u.count as u32).sum()
    }
}

impl Wants for UnitList {
    fn wanted(&self, _who: Who, kind: Kind, out: &mut Wanted) {
        let (from, end) = (out.from(), out.end());
        for (k, u) in &self.units {
            if *k == kind && u.lbn >= from && u.end() <= end {
                out.set(u.lbn, u.end());
            }
        }
    }

    fn any(&self, _who: Who, kind: Kind) -> bool {
        self.units.iter().any(|(k, _)| *k == kind)
    }
}

/// The best plan of at most `legs` separate legs and a merged one: its legs and its value.
/// `longest`: sectors of the longest leg tried. `may` validates a plan, `value` rates a leg.
pub fn best_plan(
    gap: &Gap,
    units: &UnitList,
    legs: usize,
    longest: u64,
    may: impl Fn(&[Leg]) -> bool,
    value: impl Fn(&Leg) -> u64,
) -> (Vec<Leg>, u64) {
    let mut own = Vec::new();
    for (i, (kind, first)) in units.units.iter().enumerate() {
        let mut run_to = first.lbn;
        for (k, last) in &units.units[i..] {
            // A write covers only wanted sectors.
            if k != kind || !kind.is_read() && last.lbn != run_to || last.end() - first.lbn > longest {
                break;
            }
            run_to = last.end();
            let count = (last.end() - first.lbn) as u32;
            own.push(Leg { kind: *kind, lbn: first.lbn, count, merged: false });
        }
    }
    let mut fronts = Vec::new();
    for (kind, first) in &units.units {
        let count = gap.dest.lbn.saturating_sub(first.lbn);
        if *kind == gap.dest_kind && count > 0 && count <= longest {
            let front = Leg { kind: *kind, lbn: first.lbn, count: count as u32, merged: true };
            let wanted = units.within(*kind, front.range());
            if kind.is_read() || u64::from(wanted) == count {
                fronts.push(front);
            }
        }
    }
    let mut best: (Vec<Leg>, u64) = (Vec::new(), 0);
    let mut open: Vec<Vec<Leg>> = vec![Vec::new()];
    for round in 0..=legs {
        let mut longer = Vec::new();
        for plan in &open {
            let so_far: u64 = plan.iter().map(&value).sum();
            for front in &fronts {
                let apart = plan.iter().all(|l: &Leg| !l.range().overlaps(&front.range()));
                let total = so_far + value(front);
                let whole = [plan.as_slice(), &[*front]].concat();
                if apart && total > best.1 && may(&whole) {
                    best = (whole, total);
                }
            }
            if round == legs {
                continue;
            }
            for leg in &own {
                if plan.iter().any(|l| l.range().overlaps(&leg.range())) {
                    continue;
                }
                let whole = [plan.as_slice(), &[*leg]].concat();
                if may(&whole) {
                    let total = so_far + value(leg);
                    if total > best.1 {
                        best = (whole.clone(), total);
                    }
                    longer.push(whole);
                }
            }
        }
        open = longer;
    }
    best
}
