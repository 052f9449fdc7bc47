//! Sets of points as ranges.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A set of point numbers, kept as ranges that neither overlap nor touch. Its size follows the
/// number of gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range. Returns false, and adds nothing, if some of it is in the set.
    pub(super) fn insert(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let (mut start, mut end) = (range.start, range.end);
        let before = self.0.range(..end).next_back().map(|(s, e)| (*s, *e));
        if let Some((s, e)) = before {
            if e > start {
                return false;
            }
            if e == start {
                start = s;
            }
        }
        if let Some(e) = self.0.remove(&end) {
            end = e;
        }
        self.0.insert(start, end);
        true
    }

    /// Returns the first range of at most `most` points from `at` on that are not in the set and
    /// below `end`.
    pub(super) fn gap(&self, at: u64, end: u64, most: u64) -> Option<Range<u64>> {
        let at = self.0.range(..=at).next_back().map_or(at, |(_, e)| at.max(*e));
        if at >= end {
            return None;
        }
        let next = self.0.range(at..).next().map_or(end, |(s, _)| (*s).min(end));
        Some(at..next.min(at.saturating_add(most)))
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns the ranges in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(start, end)| *start..*end)
    }
}

/// `0-99,200-299`: first and last points.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|(start, end)| format!("{start}-{}", end - 1)).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for Ranges {
    type Err = ();

    fn from_str(text: &str) -> Result<Ranges, ()> {
        let mut ranges = Ranges::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').ok_or(())?;
            let (first, last) = (first.parse::<u64>().map_err(|_| ())?, last.parse::<u64>().map_err(|_| ())?);
            if last < first || !ranges.insert(first..last.checked_add(1).ok_or(())?) {
                return Err(());
            }
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a set of single points.
        #[test]
        fn as_a_set_of_points(
            adds in prop::collection::vec((0u64..60, 0u64..12), 0..40),
            at in 0u64..80,
            most in 1u64..20,
        ) {
            let (mut ranges, mut points) = (Ranges::default(), std::collections::BTreeSet::new());
            for (start, len) in adds {
                let range = start..start + len;
                let free = range.clone().all(|p| !points.contains(&p));
                prop_assert_eq!(ranges.insert(range.clone()), free);
                if free {
                    points.extend(range);
                }
            }
            prop_assert_eq!(ranges.len(), points.len() as u64);
            prop_assert_eq!(ranges.iter().flatten().collect::<Vec<_>>(), points.iter().copied().collect::<Vec<_>>());
            let neighbours: Vec<_> = ranges.iter().collect();
            prop_assert!(neighbours.windows(2).all(|w| w[0].end < w[1].start));
            prop_assert_eq!(ranges.to_string().parse::<Ranges>(), Ok(ranges.clone()));
            let first = (at..70).find(|p| !points.contains(p));
            let gap = first.map(|s| s..(s..70.min(s + most)).find(|p| points.contains(p)).unwrap_or(70.min(s + most)));
            prop_assert_eq!(ranges.gap(at, 70, most), gap);
        }
    }

    #[test]
    fn text_that_is_no_set_is_refused() {
        for text in ["1", "2-1", "1-x", "0-5,5-6", "0-18446744073709551615"] {
            assert_eq!(text.parse::<Ranges>(), Err(()), "{text}");
        }
    }
}
