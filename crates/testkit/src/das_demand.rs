//! Mandatory streams with several periods by enumeration: every period of every stream, and every
//! interval between a possible start of demand and a deadline;
//! [`headtime_sched::streams::admit`] must give the same result.

/// Mandatory streams of one period.
#[derive(Clone, Copy, Debug)]
pub struct Asks {
    /// t.
    pub period: u64,
    /// Worst-case time of all requests of a period.
    pub work: u64,
    /// Worst-case time of the longest command, which is not preemptible.
    pub longest: u64,
}

/// Returns whether all is done in time, from instants before `until` to as much later, in any
/// order. If a period has begun when others begin, one of its commands may just have started; at an
/// instant between two periods none has.
pub fn is_kept(all: &[Asks], until: u64) -> bool {
    let begun = |a: &Asks, by: u64| by.div_ceil(a.period) * a.period;
    // Work of periods that begin at `from` or later and end by `by`.
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
            // Periods that begin before the interval and end after it.
            let around = |a: &&Asks| from % a.period > 0 && begun(a, from) > by;
            let blocks = all.iter().filter(around).map(|a| a.longest).max().unwrap_or(0);
            if due + blocks > by - from {
                return false;
            }
        }
    }
    true
}
