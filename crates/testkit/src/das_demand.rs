//! Mandatory streams with several periods by enumeration: every period of every stream, every
//! instant at which something can begin to be due, and every one at which it is;
//! [`headtime_sched::admit::das::admission`] must say the same.

/// Mandatory streams of one period.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// t.
    pub period: u64,
    /// What all requests of a period take at their worst.
    pub work: u64,
    /// What the longest command takes, which cannot be interrupted.
    pub longest: u64,
}

/// Whether all is done in time, from instants before `until` to as much later, in any order. If a
/// period is under way when others begin, one of its commands may just have begun; at an instant
/// between two periods none is.
pub fn is_kept(all: &[Asks], until: u64) -> bool {
    let begun = |a: &Asks, by: u64| by.div_ceil(a.period) * a.period;
    // Of periods that begin at `from` or later, what is due by `by`.
    let due = |from: u64, by: u64| {
        let periods = |a: &Asks| by.saturating_sub(begun(a, from)) / a.period;
        all.iter().map(|a| periods(a) * a.work).sum::<u64>()
    };
    for from in 0..until {
        for by in from + 1..=from + until {
            let due = due(from, by);
            if due == 0 {
                continue;
            }
            // Under way all the time between the two, and a while before and behind.
            let around = |a: &&Asks| from % a.period > 0 && begun(a, from) > by;
            let blocks = all.iter().filter(around).map(|a| a.longest).max().unwrap_or(0);
            if due + blocks > by - from {
                return false;
            }
        }
    }
    true
}
