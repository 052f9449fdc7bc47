//! Demand of mandatory streams: condition 2 of Reuther and Pohlack 2003, over the actual deadlines.
//!
//! > sum of c_i w_i / t_i <= 1
//!
//! with the worst case for each stream's own request size, and with the *blocking time* of a
//! request: the worst cases of the older requests that may block it. With one period for all that
//! is the paper's condition, and [`super::subset`] then meets all deadlines. With several it also
//! suffices if commands can be preempted (Liu and Layland 1973). A started command cannot be
//! preempted, so one more condition is needed: a request of a longer period must find room between
//! those of the shorter ones. Let one of stream k be pending, others be released at r, and d be a
//! deadline before its own; with D(r, d) the demand due by d of periods that begin at r or later,
//!
//! > d - r - D(r, d) >= w_k   for all r behind the start of k's period, and all d before its end
//!
//! where w_k is the longest single command: an older request and the one it blocks are dispatched
//! one by one. (George, Rivierre and Spuri 1996 have this for releases at any time; D(r, d) is then
//! the demand within d - r after a simultaneous release.) Periods lie on one grid, so r and d are
//! known: with periods of 100 and 200 ms there are none. The pattern repeats when all periods begin
//! together. If that is too long to examine each, D is taken as if all began at r, and d - r as up
//! to the period of k: room may then be missed, but never assumed where there is none.
//!
//! Then the disk is never idle while a mandatory request waits. Let k be the stream with the
//! earliest deadline of those that wait, and d an earlier one. Demand due by d is not pending yet,
//! so it belongs to periods that begin at some r from now on, and the slack at d is at least d -
//! r - D(r, d), which is at least w_k.

use headtime_disk::internals::gcd;
use headtime_disk::{Dur, Time};

use super::calendar::{Deadlines, Periodic, evenly};
use super::rates::PARTS;
use super::stream::Stream;
use super::verdict::RefusalReason;

/// Worst case of one request of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worst {
    /// Including its blocking time.
    pub whole: Dur,
    /// The longest single command: its own, or an older one that blocks it.
    pub longest: Dur,
}

/// The processor demand of the mandatory streams of a set: its utilisation, and the least slack if
/// all are released together.
pub(super) struct Demand {
    /// The left side of condition 2, in parts per million.
    needed_ppm: u64,
    /// The least time that mandatory streams leave free from a release to a deadline, if all are
    /// released together; `None`: there are no mandatory streams.
    least_free: Option<Dur>,
}

/// Mandatory streams of one period.
struct Alike {
    period: Dur,
    /// Demand of all of a period's requests, in ns.
    work: u64,
}

/// Maximum number of deadlines examined to find room between shorter periods at their actual times.
const MAX_DEADLINES: u128 = 100_000;

/// Returns the left side of condition 2 for one stream, in [`PARTS`], rounded up.
pub(super) fn worst_rate(requests: u32, worst: Dur, period: Dur) -> u64 {
    let work = (u128::from(requests) * u128::from(worst.0)) << PARTS;
    u64::try_from(work.div_ceil(u128::from(period.0))).unwrap_or(u64::MAX)
}

/// Returns after how long all periods begin together again; `None`: more than 500 years.
fn together_after(all: &[Alike]) -> Option<u64> {
    all.iter().try_fold(1u64, |lcm, a| (lcm / gcd(lcm, a.period.0)).checked_mul(a.period.0))
}

impl Demand {
    /// Computes the demand of the mandatory ones of these streams; each comes with the worst case
    /// of a request.
    ///
    /// # Errors
    /// More than the available time, or no room for a request of a longer period between those of
    /// shorter ones.
    pub(super) fn of(all: &[(Stream, Worst)]) -> Result<Demand, RefusalReason> {
        let mut order: Vec<usize> = (0..all.len()).filter(|&i| all[i].0.is_mandatory()).collect();
        order.sort_by_key(|&i| (all[i].0.period, i));
        let work = |&i: &usize| all[i].1.whole.0.saturating_mul(u64::from(all[i].0.requests));
        let needed = |i: &usize| (u128::from(work(i)) * 1_000_000).div_ceil(u128::from(all[*i].0.period.0)) as u64;
        let needed_ppm = order.iter().map(needed).sum();
        let alike = order
            .chunk_by(|&a, &b| all[a].0.period == all[b].0.period)
            .map(|of| Alike { period: all[of[0]].0.period, work: of.iter().map(work).fold(0, u64::saturating_add) });
        let alike: Vec<Alike> = alike.collect();
        let together = together_after(&alike);
        if !is_possible(&alike, together) {
            return Err(RefusalReason::Worst { needed_ppm });
        }
        let at_once: Vec<Periodic> = alike.iter().map(|a| a.from(0)).collect();
        let rooms = rooms(&alike, together);
        for i in &order {
            let (stream, worst) = (&all[*i].0, all[*i].1.longest);
            let at = alike.partition_point(|a| a.period < stream.period);
            if let Some(free) = rooms[at].filter(|free| *free < worst) {
                return Err(RefusalReason::Between { stream: *i, worst, free });
            }
        }
        let least_free = alike.last().map(|longest| {
            let until = Time(longest.period.0);
            let left = |d: Time, due: u64| Dur(d.0.saturating_sub(due));
            let mut deadlines = Deadlines::of(&at_once);
            let each = std::iter::from_fn(|| deadlines.next_before(until)).map(|d| left(d.at, d.due));
            // From there on slack only grows.
            each.fold(left(until, evenly(&at_once, until)), Dur::min)
        });
        Ok(Demand { needed_ppm, least_free })
    }

    /// Returns the left side of condition 2, in parts per million.
    pub(super) fn needed_ppm(&self) -> u64 {
        self.needed_ppm
    }

    /// Returns for how long before mandatory streams are released, at most, no other command with a
    /// worst case of `worst` may start, because they leave less free.
    pub(super) fn kept_free(&self, worst: Dur) -> Dur {
        self.least_free.map_or(Dur::ZERO, |least| worst.saturating_sub(least))
    }
}

impl Alike {
    /// Returns their demand from `r` on.
    fn from(&self, r: u64) -> Periodic {
        let end = Time(r.next_multiple_of(self.period.0));
        Periodic { end, period: self.period, work: self.work, counts: true }
    }
}

/// Checks condition 2.
fn is_possible(all: &[Alike], together: Option<u64>) -> bool {
    match together {
        Some(span) => {
            let needed = |a: &Alike| u128::from(a.work) * u128::from(span / a.period.0);
            all.iter().map(needed).sum::<u128>() <= u128::from(span)
        }
        None => {
            let rate = |a: &Alike| worst_rate(1, Dur(a.work), a.period);
            all.iter().map(rate).fold(0, u64::saturating_add) <= 1 << PARTS
        }
    }
}

/// Returns, for the streams of each period, the least d - r - D(r, d) that their requests must fit
/// into; `None`: no constraint.
fn rooms(all: &[Alike], together: Option<u64>) -> Vec<Option<Dur>> {
    let mut rooms = vec![None; all.len()];
    let Some(longest) = all.last().map(|a| a.period.0) else { return rooms };
    let each: u128 = all.iter().map(|a| u128::from(longest / a.period.0 + 1)).sum();
    let looked_at = |span: &u64| {
        let releases: u128 = all.iter().map(|a| u128::from(span / a.period.0)).sum();
        releases * each <= MAX_DEADLINES
    };
    let Some(span) = together.filter(looked_at) else {
        // As if all were released together, just after a request of any became pending.
        let own: Vec<(u64, usize)> = all.iter().map(|a| a.period.0).zip(0..).collect();
        at(0, all, &own, &mut rooms);
        return rooms;
    };
    let mut releases: Vec<u64> = all.iter().flat_map(|a| (0..span / a.period.0).map(|n| n * a.period.0)).collect();
    releases.sort_unstable();
    releases.dedup();
    for r in releases {
        // Those with a period in progress, and its end.
        let under_way = all.iter().enumerate().filter(|(_, a)| !r.is_multiple_of(a.period.0));
        let mut own: Vec<(u64, usize)> = under_way.map(|(i, a)| (r.next_multiple_of(a.period.0), i)).collect();
        own.sort_unstable();
        at(r, all, &own, &mut rooms);
    }
    rooms
}

/// The same for a release at `r`, and requests due at the sorted times `own`.
fn at(r: u64, all: &[Alike], own: &[(u64, usize)], rooms: &mut [Option<Dur>]) {
    let released: Vec<Periodic> = all.iter().map(|a| a.from(r)).collect();
    let mut deadlines = Deadlines::of(&released);
    let mut least: Option<Dur> = None;
    for &(due, i) in own {
        while let Some(d) = deadlines.next_before(Time(due)) {
            let left = Dur((d.at.0 - r).saturating_sub(d.due));
            least = Some(least.map_or(left, |least| least.min(left)));
        }
        if let Some(least) = least {
            rooms[i] = Some(rooms[i].map_or(least, |room: Dur| room.min(least)));
        }
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
        assert_eq!(
            Demand::of(&[every(6, 100), every(5, 100)]).err(),
            Some(RefusalReason::Worst { needed_ppm: 1_100_000 })
        );
        assert_eq!(Demand::of(&[]).map(|d| d.kept_free(Dur::from_ms(10))), Ok(Dur::ZERO));
    }

    #[test]
    fn a_longer_period_needs_room_between_the_shorter_ones() {
        // 8 of 10 requests of 10 ms leave room for two; with all 10 there is none, however small
        // the other demand.
        assert!(Demand::of(&[every(1, 1_000), every(8, 100)]).is_ok());
        let none = Demand::of(&[every(1, 10_000), every(10, 100)]).err();
        assert_eq!(none, Some(RefusalReason::Worst { needed_ppm: 1_001_000 }));
        let (mut large, small) = (every(1, 1_000), every(8, 100));
        large.1 = Worst { whole: Dur::from_ms(21), longest: Dur::from_ms(21) };
        assert!(matches!(Demand::of(&[small, large]), Err(RefusalReason::Between { stream: 1, .. })));
    }
}
