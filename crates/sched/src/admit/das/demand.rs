//! Mandatory streams: condition 2 of Reuther and Pohlack 2003, as a demand test over all periods.
//!
//! > sum of c_i w_i / t_i <= 1
//!
//! with the worst case of each stream's own request size, and with the *blocking time* of a request: the worst cases of
//! the older requests for which it may have to wait. With one period for all that is the paper's condition. With
//! several it is enough, too, because [`super::subset`] looks at the deadlines of all of them, and takes the demand of
//! a stream behind the end of its period as growing evenly by c w in each t. It falls due in steps of c w at ends of
//! periods, which that line touches from above, so that it is never too little. If all are released at once, what must
//! be done by the end of the period of stream i is then t_i times U_i, the sum over the streams with shorter periods or
//! the same, which is t_i at most.
//!
//! But a command that was begun is not taken back, so with several periods one thing more is needed: that a request
//! of a longer period finds room between those of the shorter ones,
//!
//! > t_i (1 - U_i) >= w_k   for all streams k with t_k > t_i
//!
//! where w_k is that of the longest command: an older request and the one that waits for it go one by one.
//!
//! Then the disk is never idle while a mandatory request waits. Let k be the stream with the earliest deadline of
//! those that wait, d an earlier deadline, and I the streams with deadlines up to d. These wait for nothing, so their
//! next periods begin now or later. With m the one of I that has the longest period, d is at least t_m away, and the
//! slack there at least t_m (1 - sum of u over I), where u_i = c_i w_i / t_i. If t_m < t_k that is w_k or more by the
//! condition; else k is not in I, so that t_m u_k is left at least, which is c_k w_k or more.

use headtime_disk::time::Dur;

use super::admission::Why;
use super::stream::Stream;
use super::sweep::PARTS;

/// What one request of a stream takes at its worst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worst {
    /// With its blocking time.
    pub whole: Dur,
    /// The longest single command: its own, or an older one that it waits for.
    pub longest: Dur,
}

/// A set of streams with the worst case of each one's requests, mandatory ones by their periods.
pub(super) struct Demand {
    /// Each period with how much of the time streams of up to this period demand, U, in [`PARTS`], and what they leave
    /// free of it.
    periods: Vec<(Dur, u64, Dur)>,
    /// The left side of condition 2, in parts per million.
    needed_ppm: u64,
}

/// The left side of condition 2 for one stream, in [`PARTS`], rounded up.
pub(super) fn worst_rate(requests: u32, worst: Dur, period: Dur) -> u64 {
    let work = (u128::from(requests) * u128::from(worst.0)) << PARTS;
    u64::try_from(work.div_ceil(u128::from(period.0))).unwrap_or(u64::MAX)
}

impl Demand {
    /// What the mandatory ones of these streams demand; each comes with the worst case of a request.
    ///
    /// # Errors
    /// More than there is, or a request of a longer period without room between those of shorter ones.
    pub(super) fn of(all: &[(Stream, Worst)]) -> Result<Demand, Why> {
        let mut order: Vec<usize> = (0..all.len()).filter(|&i| all[i].0.is_mandatory()).collect();
        order.sort_by_key(|&i| (all[i].0.period, i));
        let needed = |&i: &usize| {
            let (stream, Worst { whole, .. }) = &all[i];
            let work = u128::from(stream.requests) * u128::from(whole.0) * 1_000_000;
            work.div_ceil(u128::from(stream.period.0)) as u64
        };
        let needed_ppm = order.iter().map(needed).sum();
        let mut demand = Demand { periods: Vec::new(), needed_ppm };
        let mut between = None;
        // Rates are rounded up one by one, as the subset has them. With one period for all the sum is exact: the
        // subset's rates may then come to a little more than all of the time ([`super::sweep`]).
        let (mut rates, mut work) = (0u64, 0u64);
        let first = order.first().map(|&i| all[i].0.period);
        for group in order.chunk_by(|&a, &b| all[a].0.period == all[b].0.period) {
            let period = all[group[0]].0.period;
            for &i in group {
                let (stream, Worst { whole, .. }) = &all[i];
                rates = rates.saturating_add(worst_rate(stream.requests, *whole, period));
                work = work.saturating_add(whole.0.saturating_mul(u64::from(stream.requests)));
            }
            let used = if Some(period) == first { worst_rate(1, Dur(work), period) } else { rates };
            let taken = (u128::from(period.0) * u128::from(used)).div_ceil(1 << PARTS);
            let free = Dur(period.0.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX)));
            if let Some(least) = demand.least_free() {
                let longer = group.iter().filter(|&&i| least < all[i].1.longest);
                let longer =
                    longer.min().map(|&stream| Why::Between { stream, worst: all[stream].1.longest, free: least });
                between = between.or(longer);
            }
            demand.periods.push((period, used, free));
        }
        match demand.periods.last() {
            Some((_, used, _)) if *used > 1 << PARTS => Err(Why::Worst { needed_ppm }),
            _ => between.map_or(Ok(demand), Err),
        }
    }

    /// The left side of condition 2, in parts per million.
    pub(super) fn needed_ppm(&self) -> u64 {
        self.needed_ppm
    }

    /// The least that mandatory streams leave free in one of their periods; `None`: there are none.
    fn least_free(&self) -> Option<Dur> {
        self.periods.iter().map(|p| p.2).min()
    }

    /// For how long before mandatory streams are released, at most, nothing else with a worst case of `worst` may be
    /// begun: what they leave free is less than that.
    pub(super) fn kept_free(&self, worst: Dur) -> Dur {
        self.least_free().map_or(Dur::ZERO, |least| worst.saturating_sub(least))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Quality;
    use super::*;

    fn every(requests: u32, ms: u64) -> (Stream, Worst) {
        (
            Stream::new(requests, Dur::from_ms(ms), Quality::MANDATORY, 128).expect("a stream"),
            Worst { whole: Dur::from_ms(10), longest: Dur::from_ms(10) },
        )
    }

    #[test]
    fn with_one_period_all_of_it_may_be_demanded() {
        let demand = Demand::of(&[every(6, 100), every(4, 100)]).expect("all of it");
        assert_eq!((demand.needed_ppm(), demand.kept_free(Dur::from_ms(10))), (1_000_000, Dur::from_ms(10)));
        assert_eq!(Demand::of(&[every(6, 100), every(5, 100)]).err(), Some(Why::Worst { needed_ppm: 1_100_000 }));
        assert_eq!(Demand::of(&[]).map(|d| d.kept_free(Dur::from_ms(10))), Ok(Dur::ZERO));
    }

    #[test]
    fn a_longer_period_needs_room_between_the_shorter_ones() {
        // 8 of 10 requests of 10 ms leave room for two; with all 10 there is none, however little the other wants.
        assert!(Demand::of(&[every(1, 1_000), every(8, 100)]).is_ok());
        let none = Demand::of(&[every(1, 10_000), every(10, 100)]).err();
        assert_eq!(none, Some(Why::Worst { needed_ppm: 1_001_000 }));
        let (mut large, small) = (every(1, 1_000), every(8, 100));
        large.1 = Worst { whole: Dur::from_ms(21), longest: Dur::from_ms(21) };
        assert!(matches!(Demand::of(&[small, large]), Err(Why::Between { stream: 1, .. })));
    }
}
