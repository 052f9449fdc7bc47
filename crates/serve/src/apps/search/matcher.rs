//! Finds a pattern in blocks that arrive in any order.
//!
//! A match across a block boundary is found when the second of the two blocks arrives. Of the first
//! one, *partial matches* are kept: the lengths of the prefixes of the pattern with which the block
//! ends, or of the suffixes with which it begins. Most blocks have none.

use std::collections::BTreeMap;

use memchr::memmem::Finder;

use crate::apps::error::AppError;

/// The longest pattern, bytes. A pattern is no longer than a unit, so that a match lies in two
/// units at most.
pub const MAX_PATTERN: usize = 4_096;
/// Partial matches that are kept. One block of random data in 100 has one.
const MAX_KEPT: usize = 1 << 22;

/// The partial matches on one side of a block boundary, by length.
#[derive(Debug)]
enum Side {
    /// Prefixes of the pattern, at the end of the block before it.
    Before(Vec<u16>),
    /// Suffixes of the pattern, at the beginning of the block behind it.
    Behind(Vec<u16>),
}

impl Side {
    fn lengths(&self) -> &[u16] {
        match self {
            Side::Before(lengths) | Side::Behind(lengths) => lengths,
        }
    }
}

/// A search in blocks, each of which arrives once.
#[derive(Debug)]
pub struct Matcher {
    pattern: Vec<u8>,
    finder: Finder<'static>,
    /// By the byte offset of the boundary.
    boundaries: BTreeMap<u64, Side>,
    kept: usize,
}

impl Matcher {
    /// Creates a search.
    ///
    /// # Errors
    /// The pattern is empty, or longer than [`MAX_PATTERN`].
    pub fn new(pattern: &[u8]) -> Result<Matcher, AppError> {
        if pattern.is_empty() || pattern.len() > MAX_PATTERN {
            return Err(AppError::Pattern { most: MAX_PATTERN, found: pattern.len() });
        }
        let finder = Finder::new(pattern).into_owned();
        Ok(Matcher { pattern: pattern.into(), finder, boundaries: BTreeMap::new(), kept: 0 })
    }

    /// Returns the bytes of the pattern.
    pub fn pattern_bytes(&self) -> usize {
        self.pattern.len()
    }

    /// Searches a block at byte offset `at`, not shorter than the pattern unless no block adjoins
    /// it on one side. Calls `found` with the byte offset of each match in it, and across its
    /// boundaries with blocks that arrived before; matches may overlap.
    ///
    /// # Errors
    /// Those of `found`, and too many partial matches.
    pub fn block(
        &mut self,
        at: u64,
        data: &[u8],
        mut found: impl FnMut(u64) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        let mut from = 0;
        while let Some(next) = self.finder.find(&data[from..]) {
            found(at + (from + next) as u64)?;
            from += next + 1;
        }
        let pattern = &self.pattern;
        let parts = 1..=(pattern.len() - 1).min(data.len());
        let fitting = |fits: &dyn Fn(usize) -> bool| parts.clone().filter(|&n| fits(n)).map(|n| n as u16).collect();
        let behind = Side::Behind(fitting(&|n| data.starts_with(&pattern[pattern.len() - n..])));
        let before = Side::Before(fitting(&|n| data.ends_with(&pattern[..n])));
        let mut across = self.meet(at, behind);
        across.extend(self.meet(at + data.len() as u64, before));
        across.into_iter().try_for_each(found)?;
        match self.kept > MAX_KEPT {
            true => Err(AppError::PartialMatches(MAX_KEPT)),
            false => Ok(()),
        }
    }

    /// Adds the partial matches on one side of a boundary. Returns the matches across it if the
    /// other side has arrived, else keeps them.
    fn meet(&mut self, boundary: u64, side: Side) -> Vec<u64> {
        let other = self.boundaries.remove(&boundary);
        self.kept -= other.as_ref().map_or(0, |other| other.lengths().len());
        let (before, behind) = match (other, side) {
            (Some(Side::Before(before)), Side::Behind(behind)) | (Some(Side::Behind(behind)), Side::Before(before)) => {
                (before, behind)
            }
            (_, side) => {
                // Without a partial match on one side there is no match.
                if !side.lengths().is_empty() {
                    self.kept += side.lengths().len();
                    self.boundaries.insert(boundary, side);
                }
                return vec![];
            }
        };
        let rest = |n: u16| (self.pattern.len() - usize::from(n)) as u16;
        before.into_iter().filter(|&n| behind.contains(&rest(n))).map(|n| boundary - u64::from(n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The matches in `data`, delivered in blocks of `block` bytes in this order.
    fn search(pattern: &[u8], data: &[u8], block: usize, order: &[usize]) -> Vec<u64> {
        let mut matcher = Matcher::new(pattern).unwrap();
        let mut all = vec![];
        for &i in order {
            let part = &data[i * block..((i + 1) * block).min(data.len())];
            let found = |byte| {
                all.push(byte);
                Ok(())
            };
            matcher.block((i * block) as u64, part, found).unwrap();
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn it_finds_what_a_search_of_the_whole_finds_in_any_order_of_blocks() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut below = |n: u64| (rng.next_u64() % n) as usize;
        let (mut across, mut all) = (0, 0);
        for _ in 0..2_000 {
            // Few different bytes: patterns overlap themselves, and matches each other.
            let letters = 1 + below(3) as u64;
            let data: Vec<u8> = (0..below(300) + 1).map(|_| below(letters) as u8).collect();
            let pattern: Vec<u8> = (0..1 + below(12)).map(|_| below(letters) as u8).collect();
            let block = pattern.len() + below(20);
            let mut order: Vec<usize> = (0..data.len().div_ceil(block)).collect();
            (1..order.len()).rev().for_each(|i| order.swap(i, below(i as u64 + 1)));
            let is_at = |at: &u64| data[*at as usize..].starts_with(&pattern);
            let expected: Vec<u64> = (0..data.len() as u64).filter(is_at).collect();
            assert_eq!(
                search(&pattern, &data, block, &order),
                expected,
                "{pattern:?} in {data:?}, {block} in {order:?}"
            );
            let crosses = |at: &&u64| **at as usize / block != (**at as usize + pattern.len() - 1) / block;
            across += expected.iter().filter(crosses).count();
            all += expected.len();
        }
        assert!(across > 1_000 && all > 10_000, "{across} of {all} across boundaries");
    }

    #[test]
    fn patterns_that_cannot_be_are_refused() {
        assert!(matches!(Matcher::new(b""), Err(AppError::Pattern { found: 0, .. })));
        assert!(Matcher::new(&[7; MAX_PATTERN]).is_ok());
        assert!(matches!(Matcher::new(&[7; MAX_PATTERN + 1]), Err(AppError::Pattern { .. })));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut matcher = Matcher::new(&[0; MAX_PATTERN]).unwrap();
        let zeros = vec![0; MAX_PATTERN];
        // No two are neighbours, so that nothing is ever joined.
        let end = (0..10_000).find_map(|i| matcher.block(i * 16_384, &zeros, |_| Ok(())).err());
        assert!(matches!(end, Some(AppError::PartialMatches(MAX_KEPT))), "{end:?}");
    }
}
