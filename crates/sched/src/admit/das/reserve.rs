//! The reservation of one optional stream: the smallest r with E A >= q c (Reuther and Pohlack
//! 2003, condition 3).
//!
//! # Model
//!
//! A stream has c requests in a period; Y_1, Y_2, ... are their consecutive service times, and S_k
//! = Y_1 + ... + Y_k. If the drive has time only for this stream, the scheduler chooses request k
//! from the c - k + 1 left, so Y_k is distributed as X of that number of candidates
//! ([`super::family`]), independent of the others; with more candidates it is shorter. The paper
//! has one X for all of them.
//!
//! A command in flight cannot be cancelled. So a request that was *started* while some of the
//! reservation was left completes, and its time beyond r does not count against its stream: request
//! k is started when S_(k-1) < r. It counts if it completes within the period. With V the time that
//! the drive has been busy with others by then,
//!
//! > A >= k   when   S_(k-1) < r,  V + S_(k-1) + x <= t,  and  V + S_k <= t
//!
//! where x is the minimum remaining time of the period for a request to be started: the nine-tenths
//! quantile of X of one candidate ([`super::subset`]), or more, if mandatory streams released next
//! keep more of it free. If a request may be blocked by B older ones, these precede it at the cost
//! of its stream: S_(k-1) is then all time used before request k itself is started, including k B
//! older ones, and x is longer by that of one of them: an older one is started only if the request
//! behind it, too, is likely to complete in the period. Blocked requests are no candidates, so Y is
//! X of one candidate then. The paper defines P(A >= k) only by the work before it, and aborts
//! requests that overrun r, which a disk does not do; its table 2 agrees with counting the requests
//! started, not those completed within r (docs/guarantees.md has the figures).
//!
//! # Computation
//!
//! Let h_n(s) be the probability that a request chosen from n starts when s has been used: sums of
//! P(S_(k-1) = s), by c convolutions. With g_n(z) = P(V <= z - x and V + Y <= z), Y distributed as
//! X of n candidates,
//!
//! > E A(r) = sum over n and s < r of h_n(s) g_n(t - s)
//!
//! grows with r, and the smallest r that reaches q c is found in one pass over s. The time that the
//! stream takes from the others is S_(k-1) + Y_k for the last request k that is started:
//! [`Work::stopped`].
//!
//! All of it is rounded to the safe side ([`super::distribution`]).

use std::collections::BTreeMap;

use headtime_disk::Dur;

use super::distribution::{CERTAIN, Distribution};
use super::family::Family;

/// Start times of the requests with one service-time distribution: those of a stream with the same
/// number of candidates in X, or the older ones that block these.
#[derive(Clone, Debug)]
struct Begins {
    /// Service time of each.
    times: Distribution,
    /// The first bin at which one may start, and from there on the probability that one does, in
    /// 2^-62.
    first: usize,
    at: Vec<u64>,
}

/// Activity of a stream in one of its periods without interruption.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    begins: Vec<Begins>,
    /// The older requests that may block each of its own.
    older: Option<Begins>,
    /// S_c: the time of all its requests.
    all: Distribution,
    limit: usize,
}

impl Work {
    /// Computes the work of `requests` requests with service times of `family`; sums beyond bin
    /// `limit` are ignored. Each is preceded by `older.0` older ones with times `older.1`, in the
    /// same bins.
    pub(crate) fn new(family: &Family, requests: u32, older: (u32, &Distribution), limit: usize) -> Work {
        let numbers: Vec<u32> = family.members().map(|m| m.0).collect();
        // After those of the family's members, the older ones.
        let mut at = vec![Vec::new(); numbers.len() + 1];
        let mut used = Distribution::certain(family.bin(), 0);
        for left in (1..=requests).rev() {
            let member = numbers.partition_point(|n| *n <= left) - 1;
            let waits_for = (0..older.0).map(|_| (numbers.len(), older.1));
            for (which, times) in waits_for.chain([(member, family.of(left))]) {
                if used.bins().1.is_empty() {
                    break;
                }
                let at: &mut Vec<u64> = &mut at[which];
                at.resize(at.len().max(used.end()), 0);
                used.masses().for_each(|(bin, mass)| at[bin] += mass);
                used = used.plus(times, limit);
            }
        }
        let end = at.iter().map(Vec::len).max().unwrap_or(0);
        let mut all = (0..end).map(|bin| at.iter().filter_map(|a| a.get(bin)).map(|p| u128::from(*p)).sum::<u128>());
        assert!(all.all(|p| p <= u128::from(CERTAIN)), "times of nothing are not positive");
        let begins = |times: &Distribution, mut at: Vec<u64>| {
            let first = at.iter().position(|p| *p > 0).unwrap_or(0);
            at.truncate(at.iter().rposition(|p| *p > 0).map_or(0, |last| last + 1));
            at.drain(..first.min(at.len()));
            Begins { times: times.clone(), first, at }
        };
        let of_older = at.pop().filter(|_| older.0 > 0).map(|at| begins(older.1, at));
        let of_members = numbers.iter().zip(at).map(|(&n, at)| begins(family.of(n), at));
        Work { begins: of_members.collect(), older: of_older, all: used, limit }
    }

    /// Returns the time of all of its requests.
    pub(crate) fn all(&self) -> &Distribution {
        &self.all
    }

    /// Returns the last relevant bin.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns its bin width.
    pub(crate) fn bin(&self) -> Dur {
        self.all.bin()
    }

    /// Returns the time of those of its requests, and of the older ones before them, that are
    /// started within a reservation of `bins`.
    pub(crate) fn stopped(&self, bins: usize) -> Distribution {
        if bins == 0 {
            return Distribution::certain(self.bin(), 0);
        }
        let longest = self.each().map(|b| b.times.end()).max().unwrap_or(0);
        let mut sums = vec![0u128; (bins + longest).min(self.limit) + 1];
        // Within the reservation only the last of all can end.
        for (bin, m) in self.all.masses().take_while(|m| m.0 < bins.min(self.limit + 1)) {
            sums[bin] += u128::from(m) << 62;
        }
        // Beyond, the one that crosses its end.
        for b in self.each() {
            let (shortest, times) = b.times.bins();
            let from = (bins + 1).saturating_sub(b.times.end()).max(b.first);
            let until = bins.min(b.first + b.at.len());
            for begun in from..until {
                let p = u128::from(b.at[begun - b.first]);
                let short = (bins - begun).saturating_sub(shortest);
                let Some(ends) = sums.get_mut(begun + shortest + short..) else { continue };
                for (sum, &m) in ends.iter_mut().zip(&times[short..]) {
                    *sum += p * u128::from(m);
                }
            }
        }
        Distribution::from_mass(self.bin(), sums.into_iter().map(|s| (s >> 62) as u64).collect())
    }

    /// Returns the least reservation, in bins, from `least` on, with E A of at least `wanted` (in
    /// 2^-62), or the maximum reached if there is none. `fits(n, s)` is the probability that a
    /// request that starts when the stream has used `s` bins completes in time, for the n-th of the
    /// distributions of [`Work::times`].
    pub(crate) fn reservation(
        &self,
        least: usize,
        wanted: u128,
        mut fits: impl FnMut(usize, usize) -> u64,
    ) -> Result<usize, u128> {
        let mut expected = 0;
        let end = self.begins.iter().map(|b| b.first + b.at.len()).max().unwrap_or(0);
        for s in 0..end.max(least) {
            for (n, b) in self.begins.iter().enumerate() {
                if let Some(&p) = s.checked_sub(b.first).and_then(|at| b.at.get(at)).filter(|p| **p > 0) {
                    expected += (u128::from(p) * u128::from(fits(n, s))) >> 62;
                }
            }
            if expected >= wanted && s + 1 >= least {
                return Ok(s + 1);
            }
        }
        Err(expected)
    }

    fn each(&self) -> impl Iterator<Item = &Begins> {
        self.begins.iter().chain(&self.older)
    }

    /// Returns the service-time distributions of its requests.
    pub(crate) fn times(&self) -> impl ExactSizeIterator<Item = &Distribution> {
        self.begins.iter().map(|b| &b.times)
    }
}

/// The room that others leave in a period: g by the bins that a stream has used itself.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// P(Y <= y) in wide bins, for each distribution of the stream's times; the last holds for all
    /// longer ones.
    services: Vec<Vec<u64>>,
    /// V, within the period: bins and mass.
    others: Vec<(usize, u64)>,
    /// P(V <= v) within the period.
    at_most: Vec<u64>,
    /// Computed values of g, in wide bins.
    fits: Vec<BTreeMap<usize, u64>>,
    factor: usize,
    /// x in wide bins.
    chance: usize,
    /// t in fine bins.
    period: usize,
}

impl Room {
    /// Creates the room of a period of `period` fine bins, if others take `others`, in bins
    /// `factor` times as wide, beside the stream of `work`. `chance`: x, in fine bins; no request
    /// starts later than that before the end of the period.
    pub(crate) fn new(period: usize, factor: usize, others: &Distribution, work: &Work, chance: usize) -> Room {
        let cumulated = |x: &Distribution| {
            let x = x.coarser(factor);
            x.cumulated(x.end() + 1)
        };
        let services: Vec<Vec<u64>> = work.times().map(cumulated).collect();
        Room {
            fits: vec![BTreeMap::new(); services.len()],
            services,
            others: others.masses().filter(|m| m.1 > 0).collect(),
            at_most: others.cumulated(period / factor + 1),
            factor,
            chance: chance.div_ceil(factor),
            period,
        }
    }

    /// Returns the probability that a request with the `n`-th distribution of the work is started
    /// and completes in time, when its stream has used `used` fine bins.
    pub(crate) fn after(&mut self, n: usize, used: usize) -> u64 {
        let Some(left) = self.period.checked_sub(used) else { return 0 };
        let z = left / self.factor;
        let (services, others, chance) = (&self.services[n], &self.others, self.chance);
        let at_most = &self.at_most;
        *self.fits[n].entry(z).or_insert_with(|| {
            // With a V this short or shorter there is time for the longest Y.
            let longest = services.len() - 1;
            let enough = z.checked_sub(longest.max(chance));
            let all = enough.map_or(0, |v| u128::from(at_most[v]) * u128::from(services[longest]));
            let rest = others[others.partition_point(|m| enough.is_some_and(|v| m.0 <= v))..]
                .iter()
                .take_while(|m| m.0 + chance <= z);
            let sum: u128 = rest.map(|&(v, m)| u128::from(m) * u128::from(services[z - v])).sum();
            ((all + sum) >> 62) as u64
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIN: Dur = Dur::from_us(10);

    /// One or three bins with equal probability.
    fn coin() -> Distribution {
        Distribution::from_mass(BIN, vec![0, CERTAIN / 2, 0, CERTAIN / 2])
    }

    fn bins(n: usize) -> Distribution {
        Distribution::certain(BIN, n)
    }

    fn begins(work: &Work) -> Vec<u64> {
        let mut all = vec![0; 8];
        for b in &work.begins {
            b.at.iter().enumerate().for_each(|(at, p)| all[b.first + at] += p);
        }
        all
    }

    #[test]
    fn requests_begin_where_those_before_them_end() {
        let work = Work::new(&Family::flat(coin()), 3, (0, &bins(0)), 20);
        // 0; 1 or 3; 2, 4, 4 or 6.
        let eighth = CERTAIN / 8;
        assert_eq!(begins(&work), [8 * eighth, 4 * eighth, 2 * eighth, 4 * eighth, 4 * eighth, 0, 2 * eighth, 0]);
        assert_eq!(work.all().masses().filter(|m| m.1 > 0).map(|m| m.0).collect::<Vec<_>>(), [3, 5, 7, 9]);
    }

    #[test]
    fn what_lies_beyond_the_limit_is_not_worked_out() {
        // Otherwise this would go on to bin 3,000,000 and beyond, and store all of them.
        let work = Work::new(&Family::flat(coin()), 10_000, (100, &bins(3)), 200);
        assert!(work.all().end() < 210, "{}", work.all().end());
    }

    #[test]
    fn the_fewer_are_left_the_longer_each_takes() {
        let family = Family::new(vec![(1, bins(5)), (2, bins(2)), (3, bins(1))]).expect("a family");
        let work = Work::new(&family, 4, (0, &bins(0)), 20);
        // Chosen from four and from three: 1 each; from two: 2; the last: 5.
        let begun: Vec<usize> = begins(&work).iter().enumerate().filter(|p| *p.1 > 0).map(|p| p.0).collect();
        assert_eq!((begun, work.all().end()), (vec![0, 1, 2, 4], 10));
        assert_eq!(work.stopped(4).end(), 5);
        assert_eq!(work.stopped(5).end(), 10);
        assert_eq!(work.reservation(0, 4 * u128::from(CERTAIN), |_, _| CERTAIN), Ok(5));
    }

    #[test]
    fn a_reservation_is_the_least_that_begins_enough() {
        let work = Work::new(&Family::flat(coin()), 3, (0, &bins(0)), 20);
        let always = |_, _| CERTAIN;
        let wanted = |eighths: u128| eighths * u128::from(CERTAIN / 8);
        // One begins with any reservation; the second at 1 or 3.
        assert_eq!(work.reservation(0, wanted(8), always), Ok(1));
        assert_eq!(work.reservation(0, wanted(9), always), Ok(2));
        assert_eq!(work.reservation(0, wanted(16), always), Ok(4));
        assert_eq!(work.reservation(0, wanted(24), always), Ok(7));
        assert_eq!(work.reservation(0, wanted(25), always), Err(wanted(24)));
        // The minimum given is kept.
        assert_eq!(work.reservation(6, wanted(9), always), Ok(6));
        assert_eq!(work.reservation(15, wanted(9), always), Ok(15));
    }

    #[test]
    fn a_stream_stops_with_the_request_that_uses_its_reservation_up() {
        let work = Work::new(&Family::flat(coin()), 3, (0, &bins(0)), 20);
        // With two bins: 3 at once; or 1, and then 2 or 4; from 2 on no request is started.
        let quarter = CERTAIN / 4;
        let stopped: Vec<_> = work.stopped(2).masses().filter(|m| m.1 > 0).collect();
        assert_eq!(stopped, [(2, quarter), (3, 2 * quarter), (4, quarter)]);
        // With enough, all of it.
        assert_eq!(work.stopped(20), *work.all());
    }

    #[test]
    fn room_is_what_others_leave() {
        // Others take 2 or 4 bins of ten; no request is started in the last two.
        let others = Distribution::from_mass(BIN, vec![0, 0, CERTAIN / 2, 0, CERTAIN / 2]);
        let work = Work::new(&Family::flat(coin()), 1, (0, &bins(0)), 10);
        let mut room = Room::new(10, 1, &others, &work, 2);
        // Left are 8 or 6; of one bin or three.
        assert_eq!([0, 3, 4, 5, 6, 7, 8].map(|used| room.after(0, used) / (CERTAIN / 4)), [4, 4, 3, 2, 1, 0, 0]);
        assert_eq!(room.after(0, 11), 0);
        // With an x that is longer than every request, and one that is shorter than the longest.
        for chance in [0, 1, 5] {
            let others = Distribution::from_mass(BIN, (0..40).map(|v| (v * v % 7) << 50).collect());
            let mut room = Room::new(30, 1, &others, &work, chance);
            let within = |y: usize| (0..=y.min(3)).filter(|y| *y == 1 || *y == 3).count() as u128;
            for used in 0..=30 {
                let in_time = others.masses().filter(|m| m.0 + chance + used <= 30);
                let direct: u128 = in_time.map(|(v, m)| u128::from(m) * within(30 - used - v)).sum();
                assert_eq!(u128::from(room.after(0, used)), direct / 2, "{used} used, a chance of {chance}");
            }
        }
        // In wider bins there is never more.
        let mut wide = Room::new(10, 2, &others.coarser(2), &work, 2);
        assert!((0..12).all(|used| wide.after(0, used) <= room.after(0, used)));
    }
}
