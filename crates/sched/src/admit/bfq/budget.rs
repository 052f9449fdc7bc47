//! Budgets: how many sectors an application may be served per turn (Valente 2014 sections 3.3 and
//! 4.3).
//!
//! A feedback loop: an application's next budget follows from the reason why its turn ended.
//!
//! | reason | the original rule | H-throughput |
//! |---|---|---|
//! | no more backlog | what it used | doubled while some of its requests are at the drive, else less by 1/8 of the largest |
//! | the time is over | the largest | doubled |
//! | used up, and more waits | more by a step | four times as much |
//!
//! The first budget is the largest, or half of it with H-throughput.

/// Why a turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Its queue is empty, and the disk does not idle for it, or no longer. Commands may still be
    /// in flight.
    NoMore {
        /// Whether commands are in flight.
        outstanding: bool,
    },
    /// It had the disk for a whole slice.
    Timeout,
    /// Its budget is used up and its queue is not empty.
    UsedUp,
    /// It is of the idle class and another application arrived, or a raised application arrived and
    /// this one is not raised.
    Displaced,
}

/// The original rule's step, in sectors of 512 bytes; the paper says "a fixed quantity".
const STEP: u64 = 128;
/// The largest budget divided by the smallest.
const BUDGET_RANGE: u64 = 32;

/// Returns the first budget if the largest is `most`.
pub(crate) fn first(throughput: bool, most: u64) -> u64 {
    if throughput { (most / 2).max(1) } else { most }
}

/// Returns the budget after one of `budget` sectors of which `used` were used.
pub(crate) fn next(throughput: bool, over: Over, budget: u64, used: u64, most: u64) -> u64 {
    let wanted = match (over, throughput) {
        (Over::Displaced, _) => budget,
        (Over::NoMore { .. }, false) => used,
        (Over::NoMore { outstanding: true }, true) => budget.saturating_mul(2),
        (Over::NoMore { outstanding: false }, true) => budget.saturating_sub(most / 8),
        (Over::Timeout, false) => most,
        (Over::Timeout, true) => budget.saturating_mul(2),
        (Over::UsedUp, false) => budget.saturating_add(STEP),
        (Over::UsedUp, true) => budget.saturating_mul(4),
    };
    wanted.clamp((most / BUDGET_RANGE).max(1), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BUDGET: u64 = 16_000;

    #[test]
    fn the_original_rules() {
        assert_eq!(first(false, MAX_BUDGET), MAX_BUDGET);
        let next = |over| next(false, over, 4_000, 1_000, MAX_BUDGET);
        assert_eq!(next(Over::NoMore { outstanding: true }), 1_000);
        assert_eq!(next(Over::NoMore { outstanding: false }), 1_000);
        assert_eq!(next(Over::Timeout), MAX_BUDGET);
        assert_eq!(next(Over::UsedUp), 4_128);
    }

    #[test]
    fn the_new_rules_multiply_when_they_grow_and_subtract_when_they_shrink() {
        assert_eq!(first(true, MAX_BUDGET), 8_000);
        let next = |over| next(true, over, 3_000, 1_000, MAX_BUDGET);
        assert_eq!(next(Over::NoMore { outstanding: true }), 6_000);
        assert_eq!(next(Over::NoMore { outstanding: false }), 1_000);
        assert_eq!(next(Over::Timeout), 6_000);
        assert_eq!(next(Over::UsedUp), 12_000);
    }

    #[test]
    fn budgets_stay_within_bounds() {
        assert_eq!(next(true, Over::UsedUp, 8_000, 8_000, MAX_BUDGET), MAX_BUDGET);
        assert_eq!(next(true, Over::NoMore { outstanding: false }, 600, 0, MAX_BUDGET), 500);
        assert_eq!(next(false, Over::NoMore { outstanding: false }, 600, 0, MAX_BUDGET), 500);
        assert_eq!(next(false, Over::Timeout, 600, 0, 1), 1);
    }
}
