//! V, the time for which others keep the drive busy in a stream's period ([`super::ledger`] lists
//! its summands).
//!
//! A sum of independent times is a convolution, and with many streams these dominate the time of
//! admission. So each group caches its sum: while its summands are unchanged, only groups added
//! since are convolved.

use std::sync::Arc;

use headtime_disk::Dur;

use super::super::demand::Demand;
use super::super::distribution::Distribution;
use super::super::stream::Stream;
use super::{Grid, Group, Ledger};

/// A group's V, and the inputs from which it was computed.
#[derive(Debug)]
pub(in crate::admit::das) struct Sum {
    /// V, in wide bins of the group's grid.
    pub all: Distribution,
    /// The commands in flight, and the time kept free before mandatory streams are released.
    at_drive: Distribution,
    free: Dur,
    /// Whether the stream itself is excluded.
    own: bool,
    /// Number of groups included, and the ledger's version.
    groups: usize,
    version: u64,
}

impl Ledger {
    /// Returns V of a stream of group `i`; excluding the stream itself if `own`.
    pub(in crate::admit::das) fn sum(&mut self, i: usize, own: bool, demand: &Demand) -> Arc<Sum> {
        let me = &self.groups[i];
        let worst = self.disk.longest_of(&me.stream, &me.service);
        let (at_drive, free) = (self.at_drive(me.grid), self.kept_free(worst, demand));
        let count = |j: usize| self.groups[j].count - u64::from(own && j == i);
        let as_it_was = |s: &&Arc<Sum>| {
            let unchanged = |j: usize| count(j) == 0 || self.groups[j].changed_at <= s.version;
            s.own == own && s.free == free && s.at_drive == at_drive && (0..s.groups).all(unchanged)
        };
        let (mut all, from) = match me.sum.as_ref().filter(as_it_was) {
            Some(sum) => (sum.all.clone(), sum.groups),
            None => (at_drive.clone(), 0),
        };
        for j in (from..self.groups.len()).filter(|&j| count(j) > 0) {
            all = me.with(all, &self.groups[j], count(j), free);
        }
        let sum = Arc::new(Sum { all, at_drive, free, own, groups: self.groups.len(), version: self.version });
        self.groups[i].sum = Some(sum.clone());
        sum
    }

    /// Returns the time of the commands in flight when a period begins.
    fn at_drive(&self, grid: Grid) -> Distribution {
        let limit = grid.limit() + 1;
        let optional = self.groups.iter().filter(|g| !g.stream.is_mandatory()).map(|g| &g.service);
        // Best effort, too, is only likely to complete by then.
        let late = optional.fold(self.disk.largest().late(), |late, service| late.longer_of(&service.late()));
        let done_soon = u64::from(self.disk.outstanding() - self.crossing);
        let late = late.in_bins(grid.wide(), limit).times(done_soon, limit);
        let Some(waiting) = self.crossing.checked_sub(1) else { return late };
        // One is in service, and the others wait for it.
        let whole = self.disk.largest().times.fewest();
        let left = whole.residual().in_bins(grid.wide(), limit).plus(&late, limit);
        left.plus(&whole.in_bins(grid.wide(), limit).times(u64::from(waiting), limit), limit)
    }
}

impl Group {
    /// Returns a sum with the time of `count` streams of another group in a period of this one's.
    /// `free`: the time kept free before mandatory streams are released.
    fn with(&self, sum: Distribution, other: &Group, count: u64, free: Dur) -> Distribution {
        let (grid, limit) = (self.grid, self.grid.limit() + 1);
        if !other.stream.is_mandatory() {
            return sum.plus(&other.within(&self.stream, grid).times(count, limit), limit);
        }
        let takes = |periods: u64| other.takes.in_bins(grid.wide(), limit).times(periods * count, limit);
        let (ours, theirs) = (self.stream.period.0, other.stream.period.0);
        let (whole, rest) = (ours / theirs, ours % theirs);
        // Their periods that begin in ours, and one more for which time is kept free.
        let (all, released) = if rest == 0 {
            // The release at the period's own end is included in x.
            (takes(whole), whole - 1)
        } else if theirs.is_multiple_of(ours) {
            (takes(1), 0)
        } else {
            // Either one more than lie in ours, or those and parts of two that are limited to the
            // remaining time: work carried over completes before the first ends, and that of the
            // last counts only before ours ends.
            let parts = takes(2).at_most_bins(grid.in_wide(Dur(rest)));
            (takes(whole + 1).longer_of(&takes(whole).plus(&parts, limit)), whole + 2)
        };
        let idle = Dur(free.0 * released);
        sum.plus(&all, limit).plus(&Distribution::certain(grid.wide(), grid.in_wide(idle)), limit)
    }

    /// Returns the time of one of these streams in its periods that end within one of `stream`.
    fn within(&self, stream: &Stream, grid: Grid) -> Distribution {
        let (limit, wide) = (grid.limit() + 1, grid.wide());
        let (ours, theirs) = (stream.period.0, self.stream.period.0);
        let takes = self.takes.in_bins(wide, limit);
        let whole = takes.times(ours / theirs, limit);
        let rest = grid.in_wide(Dur(ours % theirs));
        if rest == 0 {
            return whole;
        }
        // One more ends soon after this period's start: it is limited to the time until then, and
        // its last request's overrun.
        let cut = takes.at_most_bins(rest).plus(&self.service.late().in_bins(wide, limit), limit);
        whole.plus(if rest + 1 < takes.end() { &cut } else { &takes }, limit)
    }
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::super::super::disk::{Disk, Service};
    use super::super::super::stream::Quality;
    use super::*;
    use headtime_testkit::profiles::{between, rng};

    /// If no command may cross the start of a period, best effort is only likely to complete by
    /// then: its time beyond that is in V, even if the stream's own requests are smaller.
    #[test]
    fn what_best_effort_takes_longer_than_is_likely_is_at_the_drive_beside_small_streams() {
        let (ms, bin) = (Dur::from_ms, Dur::from_us(500));
        let service = |sectors, longest| {
            let mut samples = vec![ms(5); 19];
            samples.push(ms(longest));
            Service::new(sectors, ms(30), Distribution::from_samples(&samples, bin, ms(30)).expect("samples"))
        };
        let disk = Disk::new(vec![service(16, 6), service(128, 25)], 1).expect("a drive");
        let stream = Stream::new(1, ms(500), Quality::from_ppm(900_000).expect("a quality"), 16).expect("a stream");
        let mut ledger = Ledger::new(disk);
        ledger.add(stream).expect("an idle drive");
        ledger.crossing = 0;
        let grid = ledger.groups[0].grid;
        // 25 ms where 5 were likely.
        assert_eq!(ledger.at_drive(grid).end(), 1 + grid.in_wide(ms(20)));
    }

    /// Streams of few kinds are added one by one, some of them repeatedly, with equal and different
    /// periods.
    #[test]
    fn what_is_kept_is_what_is_found_anew() {
        let mut kept = 0;
        for seed in 0..12 {
            let rng = &mut rng(seed);
            let samples: Vec<Dur> = (0..400).map(|_| Dur::from_us(between(rng, 2_000, 9_000))).collect();
            let times = Distribution::from_samples(&samples, Dur::from_us(100), Dur::from_ms(30)).expect("samples");
            let disk = Disk::new(vec![Service::new(128, Dur::from_ms(30), times)], 2).expect("a drive");
            let (mut ledger, mut anew) = (Ledger::new(disk.clone()), Ledger::new(disk));
            for _ in 0..24 {
                let ms = if seed % 2 == 0 { 1_000 } else { between(rng, 4, 8) * 250 };
                let ppm = [1_000_000, 900_000, 500_000][(rng.next_u64() % 3) as usize];
                let quality = Quality::from_ppm(ppm).expect("a quality");
                let stream = Stream::new(between(rng, 1, 3) as u32, Dur::from_ms(ms), quality, 128).expect("a stream");
                kept += ledger.groups.iter().filter(|g| g.sum.is_some()).count();
                anew.groups.iter_mut().for_each(|g| g.sum = None);
                assert_eq!(ledger.add(stream), anew.add(stream), "seed {seed}");
                assert_eq!(ledger.admitted(), anew.admitted(), "seed {seed}");
            }
        }
        assert!(kept > 500, "{kept} sums were kept");
    }
}
