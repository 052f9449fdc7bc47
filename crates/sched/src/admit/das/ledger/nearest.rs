//! What could be had in place of a stream that is refused.

use std::sync::Arc;

use super::super::admission::{Nearest, Why};
use super::super::stream::{Quality, Stream};
use super::made::Made;
use super::{FEW, Ledger};

/// With [`FEW`] streams or more, the nearest quality is looked for in steps of this, in parts per million.
const STEP_PPM: u32 = 1_000;

impl Ledger {
    /// What can be had of `last`, which was refused, beside these streams, or beside these served in one of the other
    /// ways. `made` is the work of its requests.
    pub(super) fn nearest(&self, last: Stream, why: Why, made: Option<Arc<Made>>, otherwise: &[Ledger]) -> Nearest {
        if matches!(why, Why::Size { .. } | Why::Kinds { .. }) {
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
        // Only mandatory streams have a blocking time: at a lower quality this would be another stream.
        let qualities = if last.blocked_by > 0 { 0 } else { (last.quality.ppm() - 1) / step };
        let lower = most(qualities, ways.len(), |way, n| fits(way, Stream { quality: quality(n), ..last }));
        Nearest { requests, quality: lower.map(quality) }
    }
}

/// The largest number from 1 to `upto` that fits in one of these ways. If n fits in a way, so must all below n.
fn most(upto: u32, ways: usize, mut fits: impl FnMut(usize, u32) -> bool) -> Option<u32> {
    let mut good = 0;
    for way in 0..ways {
        // The first probe shows whether this way has more than those before.
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
