//! The lengths of past idle periods, and the probability that a request arrives during an idle
//! command.
//!
//! Fixed thresholds (Thereska 2003 section 4.6) treat all loads alike. A program that thinks for 30
//! ms leaves 30 ms each time: a command of 12 ms that begins after 20 ms delays the next request
//! every time, one that begins after 10 ms never. So the lengths of the last idle periods are
//! recorded, and a command of duration `d` begins at age `a` of an idle period only if
//!
//! ```text
//!                  (periods that ended in a..a+d) + d / (a + d)
//! P(arrival) =  --------------------------------------------------  <=  1 / RARE
//!                      (periods that lasted to a) + 1
//! ```
//!
//! The added term stands for one more period with a heavy-tailed length (Pareto, exponent 1: a
//! period that has lasted long will last as long again). It alone decides when no recorded period
//! lasted to `a`. Work then begins at `(RARE - 1) d`: 39 times the length of the command, about
//! half a second for one of 12 ms.

use headtime_disk::Dur;

/// Number of recorded idle periods.
const REMEMBERED: usize = 64;

/// A command is sent if the probability that a request arrives during it is at most 1 / `RARE`. The
/// request is delayed by half of the command on average, so a program that waits for each request
/// loses at most one part in 80 of its throughput.
const RARE: u128 = 40;

/// The lengths of the last idle periods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Periods {
    lasted: [Dur; REMEMBERED],
    count: usize,
}

impl Default for Periods {
    fn default() -> Periods {
        Periods { lasted: [Dur::ZERO; REMEMBERED], count: 0 }
    }
}

impl Periods {
    /// Records the length of a period that has ended.
    #[inline]
    pub(crate) fn ended(&mut self, lasted: Dur) {
        self.lasted[self.count % REMEMBERED] = lasted;
        self.count += 1;
    }

    /// Returns whether a request rarely arrives within `takes` of an idle period of age `age`.
    pub(crate) fn rarely_end(&self, age: Dur, takes: Dur) -> bool {
        let end = age + takes;
        let known = &self.lasted[..self.count.min(REMEMBERED)];
        let (mut reached, mut ended) = (0u128, 0u128);
        for &lasted in known.iter().filter(|&&l| l >= age) {
            reached += 1;
            ended += u128::from(lasted <= end);
        }
        let end = u128::from(end.0.max(1));
        RARE * (ended * end + u128::from(takes.0)) <= (reached + 1) * end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Dur {
        Dur::from_ms(ms)
    }

    fn of(lengths: impl IntoIterator<Item = u64>) -> Periods {
        let mut p = Periods::default();
        lengths.into_iter().for_each(|l| p.ended(ms(l)));
        p
    }

    #[test]
    fn a_program_that_always_thinks_for_as_long_leaves_time_until_then() {
        let p = of([30; 64]);
        assert!(p.rarely_end(ms(5), ms(12)) && p.rarely_end(ms(17), ms(12)));
        assert!(!p.rarely_end(ms(18), ms(12)) && !p.rarely_end(ms(29), ms(12)));
    }

    #[test]
    fn where_nothing_is_known_of_periods_as_long_a_heavy_tail_decides() {
        for p in [Periods::default(), of([30; 64])] {
            assert!(!p.rarely_end(ms(389), ms(10)) && p.rarely_end(ms(390), ms(10)));
        }
    }

    #[test]
    fn one_period_in_forty_may_end_and_no_more() {
        let lengths = |short| (0..64).map(move |i| if i < short { 25 } else { 60_000 });
        assert!(of(lengths(1)).rarely_end(ms(20), ms(10)));
        assert!(!of(lengths(2)).rarely_end(ms(20), ms(10)));
        // They were shorter: nothing of this age has ended.
        assert!(of(lengths(2)).rarely_end(ms(26), ms(10)));
    }

    #[test]
    fn only_the_last_periods_count() {
        let mut p = of([25; 64]);
        (0..63).for_each(|_| p.ended(ms(60_000)));
        assert!(p.rarely_end(ms(20), ms(10)));
    }
}
