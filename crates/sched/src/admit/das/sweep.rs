//! Slack: how much time there is at every deadline beyond what must be done by then.
//!
//! Each stream has one deadline that counts, and what it can ask for by then; behind it, it asks for more at an even rate. The rate's line
//! touches the steps in which the periods to come really ask, from above, so that what is reckoned is never too little. Rates of mandatory streams add
//! up to 1 at most (condition 2), so between two deadlines slack only grows, and it is enough to look at the deadlines.
//!
//! What really falls due is whole nanoseconds, and so is the true slack, which is no less than the one reckoned here.
//! So that may be rounded up. Rates, of which each is rounded up by [`PARTS`] of a nanosecond a nanosecond, make less
//! than one of it together (10,000 streams of 10 s: 0.4 ns), so that a set that takes all of the time has all of it.

use headtime_disk::time::{Dur, Time};

/// What a stream can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A mandatory stream: this must be done, and from then on at this rate.
    Mandatory {
        /// The end of the period under way, or of the next if everything of this one is done.
        by: Time,
        /// Worst cases of the requests that are to be done by then.
        work: Dur,
        /// c w / t in [`PARTS`].
        rate: u64,
    },
    /// An optional stream: it can take this. It counts for nobody but best effort.
    Optional {
        /// The end of the period under way.
        by: Time,
        /// What the requests that wait can take of the reservation.
        work: Dur,
    },
}

impl Demand {
    /// The deadline that counts.
    #[inline]
    pub fn at(&self) -> Time {
        match self {
            Demand::Mandatory { by, .. } | Demand::Optional { by, .. } => *by,
        }
    }
}

/// A stream's place in the order of deadlines.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The stream.
    pub stream: usize,
    /// What it asks for.
    pub demand: Demand,
    /// The least slack of mandatory streams at deadlines before this, in ns; what [`sweep`] finds.
    pub before: i64,
    /// The slack at this one, if it is a mandatory stream's.
    pub here: i64,
}

/// The least slack at any deadline, in ns; below zero where the worst has become true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slack {
    /// From when on it counts: the drive is free by then.
    pub from: Time,
    /// Of mandatory streams alone.
    pub mandatory: i64,
    /// With what optional streams can take before their ends; no more than the other.
    pub all: i64,
}

/// No deadline is anywhere near.
const ENDLESS: i64 = i64::MAX;

/// Goes through all deadlines, which are sorted. The drive is free at `from` at the latest; mandatory requests that are late take `late`
/// before anything else.
pub fn sweep(order: &mut [At], from: Time, late: Dur) -> Slack {
    let mut slack = Slack { from, mandatory: ENDLESS, all: ENDLESS };
    // What must be done by where we are, and what optional streams can take by then.
    let (mut must, mut claims) = (fine(late), 0i128);
    let mut must_rate = 0u64;
    let mut at = order.first().map_or(from, |o| o.demand.at());
    let mut next = 0;
    while next < order.len() {
        let deadline = order[next].demand.at();
        let span = deadline.since(at).0;
        must += grown(must_rate, span);
        at = deadline;
        let first = next;
        let (mut mandatory, before) = (false, slack.mandatory);
        while let Some(stream) = order.get_mut(next).filter(|o| o.demand.at() == deadline) {
            stream.before = before;
            match stream.demand {
                Demand::Mandatory { work, rate, .. } => {
                    (must, must_rate, mandatory) = (must + fine(work), must_rate.saturating_add(rate), true);
                }
                Demand::Optional { work, .. } => claims += fine(work),
            }
            next += 1;
        }
        let left = fine_between(from, deadline) - must;
        if mandatory {
            let here = bounded(left);
            order[first..next].iter_mut().for_each(|at| at.here = here);
            slack.mandatory = slack.mandatory.min(here);
            slack.all = slack.all.min(bounded(left - claims));
        }
    }
    slack
}

/// Rates are in 2^-48, and what they come to in 2^-48 ns.
pub const PARTS: u32 = 48;

#[inline]
pub(super) fn fine(span: Dur) -> i128 {
    i128::from(span.0) << PARTS
}

/// From one instant until another, which may be the earlier one.
#[inline]
pub(super) fn fine_between(from: Time, until: Time) -> i128 {
    (i128::from(until.0) - i128::from(from.0)) << PARTS
}

/// What a rate comes to in `span` ns.
#[inline]
pub(super) fn grown(rate: u64, span: u64) -> i128 {
    (u128::from(rate) * u128::from(span)) as i128
}

/// In whole ns, rounded up (why: above).
#[inline]
pub(super) fn bounded(slack: i128) -> i64 {
    ((slack + ((1 << PARTS) - 1)) >> PARTS).clamp(i128::from(i64::MIN), i128::from(ENDLESS)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn at(stream: usize, demand: Demand) -> At {
        At { stream, demand, before: 0, here: 0 }
    }

    /// `work` ms by `by` ms, and as much in each `period` ms.
    fn mandatory(stream: usize, by: u64, work: u64, each: u64, period: u64) -> At {
        at(stream, Demand::Mandatory { by: ms(by), work: Dur::from_ms(work), rate: (each << PARTS) / period })
    }

    fn optional(stream: usize, by: u64, work: u64) -> At {
        at(stream, Demand::Optional { by: ms(by), work: Dur::from_ms(work) })
    }

    fn in_ms(slack: Slack) -> (i64, i64) {
        (slack.mandatory / 1_000_000, slack.all / 1_000_000)
    }

    #[test]
    fn with_one_period_slack_is_what_figure_2_has_left() {
        // The paper's example: three requests of 30 ms with 100 ms to go.
        let mut order = [mandatory(0, 500, 90, 90, 500), optional(1, 500, 7)];
        assert_eq!(in_ms(sweep(&mut order, ms(400), Dur::ZERO)), (10, 3));
        assert_eq!(in_ms(sweep(&mut order, ms(400), Dur::from_ms(4))), (6, -1));
        let none = sweep(&mut [], ms(400), Dur::ZERO);
        assert_eq!((none.mandatory, none.all), (ENDLESS, ENDLESS));
    }

    #[test]
    fn a_shorter_period_asks_again_before_a_longer_ones_end() {
        // 40 of each 100, and 300 of 1000: by 1000, 40 + 9 times 40 and 300.
        let mut order = [mandatory(0, 100, 40, 40, 100), mandatory(1, 1000, 300, 300, 1000)];
        let slack = sweep(&mut order, ms(0), Dur::ZERO);
        assert_eq!(in_ms(slack), (60, 60));
        assert_eq!((order[0].before, order[1].before / 1_000_000), (ENDLESS, 60));
        let mut order = [mandatory(0, 100, 40, 40, 100), mandatory(1, 1000, 580, 580, 1000)];
        assert_eq!(in_ms(sweep(&mut order, ms(0), Dur::ZERO)).0, 20);
    }

    #[test]
    fn what_optional_streams_take_counts_at_the_deadlines_behind_it() {
        let mut order = [mandatory(0, 100, 50, 50, 300), optional(1, 200, 10), mandatory(2, 300, 20, 20, 300)];
        // 50 by 100; 50, a little more than 33 and 20 by 300.
        assert_eq!(in_ms(sweep(&mut order, ms(0), Dur::ZERO)), (50, 50));
        let mut order = [optional(0, 100, 90), mandatory(1, 300, 20, 20, 300)];
        assert_eq!(in_ms(sweep(&mut order, ms(0), Dur::ZERO)), (280, 190));
    }

    #[test]
    fn deadlines_at_one_instant_do_not_come_before_each_other() {
        let mut order = [mandatory(0, 100, 60, 60, 100), mandatory(1, 100, 40, 40, 100)];
        assert_eq!(sweep(&mut order, ms(0), Dur::ZERO).mandatory, 0);
        assert_eq!((order[0].before, order[1].before), (ENDLESS, ENDLESS));
    }
}
