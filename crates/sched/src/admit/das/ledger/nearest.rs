//! Nearest feasible alternatives to a refused stream.

use headtime_disk::Dur;

use super::super::stream::{PERIODS, Quality, Stream};
use super::super::verdict::{Nearest, RefusalReason};
use super::made::Made;
use super::{FEW, Ledger};

/// Step of the search for the nearest quality with [`FEW`] streams or more, in parts per million.
const STEP_PPM: u32 = 1_000;

impl Ledger {
    /// Returns the nearest feasible alternatives to the refused stream `last` beside these streams,
    /// or beside these served in one of the other ways. `made` is the work of its requests.
    pub(super) fn nearest(
        &self,
        last: Stream,
        why: RefusalReason,
        made: Option<Made>,
        otherwise: &[Ledger],
    ) -> Nearest {
        if matches!(why, RefusalReason::Size { .. } | RefusalReason::Kinds { .. }) {
            return Nearest::default();
        }
        let ways: Vec<&Ledger> = std::iter::once(self).chain(otherwise).collect();
        let mut made = (last.requests, made);
        let mut fits = |way: usize, stream: Stream| {
            if made.0 != stream.requests {
                made = (stream.requests, self.made_for(stream));
            }
            ways[way].knowing(&made.1).has_room_for(stream)
        };
        let of = |requests| Stream { requests, ..last };
        let requests = most(last.requests - 1, ways.len(), |way, requests| fits(way, of(requests)));
        let step = if self.streams.len() < FEW { 1 } else { STEP_PPM };
        let quality = |steps: u32| Quality::from_ppm(steps * step).expect("between 1 and all");
        let lower = most((last.quality.ppm() - 1) / step, ways.len(), |way, n| {
            fits(way, Stream { quality: quality(n), ..last })
        });
        let quality = lower.map(quality);
        let period = (requests.is_none() && quality.is_none()).then(|| self.longer(last, &ways)).flatten();
        Nearest { requests, quality, period }
    }

    /// Returns the shortest longer period, in whole ms, with which `last` is feasible in one of
    /// these ways, provided that it is feasible with all longer ones.
    fn longer(&self, last: Stream, ways: &[&Ledger]) -> Option<Dur> {
        let ms = |ms: u64| Stream { period: Dur::from_ms(ms), ..last };
        let fits = |n: u64| ways.iter().any(|way| way.knowing(&self.made_for(ms(n))).has_room_for(ms(n)));
        let (mut bad, most) = (last.period.0 / Dur::from_ms(1).0, PERIODS.1.0 / Dur::from_ms(1).0);
        let mut good = bad + 1;
        while !fits(good) {
            if good >= most {
                return None;
            }
            (bad, good) = (good, (2 * good).min(most));
        }
        while good - bad > 1 {
            let mid = bad + (good - bad) / 2;
            *(if fits(mid) { &mut good } else { &mut bad }) = mid;
        }
        Some(Dur::from_ms(good))
    }
}

/// Returns the largest number from 1 to `upto` that fits in one of these ways. If n fits in a way,
/// all smaller numbers must.
fn most(upto: u32, ways: usize, mut fits: impl FnMut(usize, u32) -> bool) -> Option<u32> {
    let mut good = 0;
    for way in 0..ways {
        // The first probe shows whether this way allows more than the previous ones.
        let (mut bad, mut mid) = (upto + 1, good + 1);
        while bad - good > 1 {
            if fits(way, mid) {
                good = mid
            } else {
                bad = mid
            }
            mid = good + (bad - good) / 2;
        }
    }
    (good > 0).then_some(good)
}
