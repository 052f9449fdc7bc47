//! X as a family of distributions: service times by number of candidates for selection.
//!
//! Shortest access time first gives shorter times with more candidates: on the Ultrastar 36Z15 a
//! read of 64 KiB takes 3.1 ms in the mean if a hundred wait, and 6.9 ms if it is the only one.
//! While a stream uses up its reservation it has fewer and fewer candidates of its own, so no
//! single distribution describes all of its requests. Reuther and Pohlack 2003 (section 3.1.2) have
//! one; docs/guarantees.md describes the consequences.

use headtime_disk::Dur;

use super::distribution::Distribution;

/// Why members do not form a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FamilyError {
    /// There is no member for one candidate.
    #[error("service times by candidates: expected those of one candidate first, found {found:?}")]
    First {
        /// Candidates of the first member.
        found: Option<u32>,
    },
    /// Numbers of candidates do not ascend.
    #[error("service times by candidates: expected numbers that ascend, found {found} behind {after}")]
    Order {
        /// Candidates of a member.
        found: u32,
        /// Candidates of the previous member.
        after: u32,
    },
    /// Bins differ.
    #[error("service times of {candidates} candidates: expected bins of {expected}, found {found}")]
    Bins {
        /// Candidates of the member.
        candidates: u32,
        /// The bin of the first.
        expected: Dur,
        /// Its bin.
        found: Dur,
    },
}

/// Service times of a request, by number of candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Least number of candidates for which a distribution holds, and the distribution; ascending
    /// from 1. Distributions do not get longer with more candidates.
    members: Vec<(u32, Distribution)>,
}

impl Family {
    /// Creates the family of `members`: the least number of candidates for which each holds,
    /// ascending from 1. A member that is shorter somewhere than one of more candidates is
    /// lengthened to that: with fewer candidates a scheduler does no better.
    ///
    /// # Errors
    /// No member for one candidate, numbers that do not ascend, bins that differ.
    pub fn new(members: Vec<(u32, Distribution)>) -> Result<Family, FamilyError> {
        let first = members.first();
        if first.is_none_or(|m| m.0 != 1) {
            return Err(FamilyError::First { found: first.map(|m| m.0) });
        }
        let expected = members[0].1.bin();
        for pair in members.windows(2) {
            let ((after, _), (found, times)) = (&pair[0], &pair[1]);
            if found <= after {
                return Err(FamilyError::Order { found: *found, after: *after });
            }
            if times.bin() != expected {
                return Err(FamilyError::Bins { candidates: *found, expected, found: times.bin() });
            }
        }
        let mut members = members;
        for at in (1..members.len()).rev() {
            members[at - 1].1 = members[at - 1].1.longer_of(&members[at].1);
        }
        Ok(Family { members })
    }

    /// Creates a family with the same times for all numbers of candidates.
    pub fn flat(times: Distribution) -> Family {
        Family { members: vec![(1, times)] }
    }

    /// Returns the times of a request with this number of candidates, at least 1.
    pub fn of(&self, candidates: u32) -> &Distribution {
        let behind = self.members.partition_point(|m| m.0 <= candidates.max(1));
        &self.members[behind - 1].1
    }

    /// Returns the times of a request without other candidates: none is longer.
    pub fn fewest(&self) -> &Distribution {
        &self.members[0].1
    }

    /// Returns the times of a request with the largest measured number of candidates, or more: none
    /// is shorter.
    pub fn most(&self) -> &Distribution {
        &self.members[self.members.len() - 1].1
    }

    /// Returns each member: the least number of candidates for which it holds, and its times.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (u32, &Distribution)> + DoubleEndedIterator {
        self.members.iter().map(|m| (m.0, &m.1))
    }

    /// Returns the bin width.
    pub fn bin(&self) -> Dur {
        self.members[0].1.bin()
    }

    /// Returns one past the last bin of any member.
    pub fn end(&self) -> usize {
        self.members.iter().map(|m| m.1.end()).max().unwrap_or(0)
    }

    /// Returns the family in bins `factor` times as wide: times are rounded up again.
    pub(super) fn coarser(&self, factor: usize) -> Family {
        Family { members: self.members.iter().map(|m| (m.0, m.1.coarser(factor))).collect() }
    }

    /// Returns the family with times longer by `more`, and at most `most`.
    pub(super) fn later(&self, more: Dur, most: Dur) -> Family {
        let later = |times: &Distribution| times.later(more).capped(most);
        Family { members: self.members.iter().map(|m| (m.0, later(&m.1))).collect() }
    }

    /// Returns the longer of this and another at each number of candidates.
    pub fn longer_of(&self, other: &Family) -> Family {
        let mut numbers: Vec<u32> = self.members.iter().chain(&other.members).map(|m| m.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Family { members: numbers.into_iter().map(|n| (n, self.of(n).longer_of(other.of(n)))).collect() }
    }
}

impl From<Distribution> for Family {
    fn from(times: Distribution) -> Family {
        Family::flat(times)
    }
}

#[cfg(test)]
mod tests {
    use super::super::distribution::CERTAIN;
    use super::*;

    const BIN: Dur = Dur::from_us(10);

    fn at(bins: &[u64]) -> Distribution {
        let samples: Vec<Dur> = bins.iter().map(|b| Dur(b * BIN.0)).collect();
        Distribution::from_samples(&samples, BIN, Dur::from_us(100)).expect("samples")
    }

    #[test]
    fn a_member_holds_from_its_number_of_candidates_on() {
        let family = Family::new(vec![(1, at(&[9])), (2, at(&[7])), (5, at(&[4]))]).expect("a family");
        let ends: Vec<usize> = [0, 1, 2, 4, 5, 100].map(|n| family.of(n).end() - 1).to_vec();
        assert_eq!(ends, [9, 9, 7, 7, 4, 4]);
        assert_eq!((family.fewest().end(), family.most().end(), family.end()), (10, 5, 10));
        assert_eq!(Family::flat(at(&[3])).of(7).end(), 4);
    }

    #[test]
    fn fewer_candidates_are_never_shorter_whatever_was_measured() {
        let family = Family::new(vec![(1, at(&[5, 5])), (2, at(&[3, 8])), (4, at(&[4, 4]))]).expect("a family");
        for t in (0..10).map(|t| Dur(t * BIN.0)) {
            let mass = [1, 2, 4].map(|n| family.of(n).at_most(t));
            assert!(mass[0] <= mass[1] && mass[1] <= mass[2], "{t}: {mass:?}");
        }
        assert_eq!(family.of(1).at_most(Dur(5 * BIN.0)), CERTAIN / 2);
        assert_eq!(family.of(2).at_most(Dur(3 * BIN.0)), 0);
    }

    #[test]
    fn the_longer_of_two_is_that_at_every_number_of_candidates() {
        let a = Family::new(vec![(1, at(&[9])), (3, at(&[2]))]).expect("a family");
        let b = Family::new(vec![(1, at(&[5])), (2, at(&[4]))]).expect("a family");
        let both = a.longer_of(&b);
        assert_eq!([1, 2, 3, 9].map(|n| both.of(n).end() - 1), [9, 9, 4, 4]);
    }

    #[test]
    fn what_makes_no_family_is_said() {
        assert_eq!(Family::new(vec![]), Err(FamilyError::First { found: None }));
        assert_eq!(Family::new(vec![(2, at(&[1]))]), Err(FamilyError::First { found: Some(2) }));
        let twice = Family::new(vec![(1, at(&[1])), (1, at(&[1]))]);
        assert_eq!(twice, Err(FamilyError::Order { found: 1, after: 1 }));
        let wide = at(&[4]).coarser(2);
        let said = Family::new(vec![(1, at(&[1])), (2, wide)]).expect_err("other bins").to_string();
        assert_eq!(said, "service times of 2 candidates: expected bins of 0.010000 ms, found 0.020000 ms");
    }
}
