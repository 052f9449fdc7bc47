//! The wanted sectors of a range, one bit per sector.
//!
//! A search examines one or two tracks at a time, so a few dozen words hold a query. Tasks with
//! different unit sizes and alignments are combined here.

/// Sectors `from..from + len`, each wanted or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    from: u64,
    len: u32,
    words: Vec<u64>,
}

impl Wanted {
    /// Creates an empty range.
    pub fn new() -> Wanted {
        Wanted::default()
    }

    /// Sets the range to `from..from + len`, with nothing wanted.
    #[inline]
    pub fn reset(&mut self, from: u64, len: u32) {
        self.from = from;
        self.len = len;
        self.words.clear();
        self.words.resize((len as usize).div_ceil(64), 0);
    }

    /// Keeps the range, with nothing wanted.
    #[inline]
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Returns the first LBN.
    #[inline]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Returns one past the last LBN.
    #[inline]
    pub fn end(&self) -> u64 {
        self.from + u64::from(self.len)
    }

    /// Marks `lo..hi` as wanted, within the range.
    #[inline]
    pub fn set(&mut self, lo: u64, hi: u64) {
        self.each(lo, hi, |word, mask| *word |= mask);
    }

    /// Marks `lo..hi` as not wanted, within the range.
    #[inline]
    pub fn unset(&mut self, lo: u64, hi: u64) {
        self.each(lo, hi, |word, mask| *word &= !mask);
    }

    /// Returns the first and the last word of `lo..hi`, and the bits of each that belong to it;
    /// `None`: there are none.
    #[inline]
    fn words_of(&self, lo: u64, hi: u64) -> Option<(usize, usize, u64, u64)> {
        let (lo, hi) = (lo.max(self.from), hi.min(self.end()));
        if lo >= hi {
            return None;
        }
        let (a, b) = ((lo - self.from) as usize, (hi - self.from) as usize);
        Some((a / 64, (b - 1) / 64, u64::MAX << (a % 64), u64::MAX >> (63 - (b - 1) % 64)))
    }

    #[inline]
    fn each(&mut self, lo: u64, hi: u64, f: impl Fn(&mut u64, u64)) {
        let Some((first, last, head, tail)) = self.words_of(lo, hi) else { return };
        if first == last {
            return f(&mut self.words[first], head & tail);
        }
        f(&mut self.words[first], head);
        for word in &mut self.words[first + 1..last] {
            f(word, u64::MAX);
        }
        f(&mut self.words[last], tail);
    }

    /// Returns whether a sector is wanted.
    #[inline]
    pub fn is_set(&self, lbn: u64) -> bool {
        if lbn < self.from || lbn >= self.end() {
            return false;
        }
        let at = (lbn - self.from) as usize;
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// Returns how many of `lo..hi` are wanted.
    #[inline]
    pub fn count(&self, lo: u64, hi: u64) -> u32 {
        let Some((first, last, head, tail)) = self.words_of(lo, hi) else { return 0 };
        if first == last {
            return (self.words[first] & head & tail).count_ones();
        }
        let middle: u32 = self.words[first + 1..last].iter().map(|w| w.count_ones()).sum();
        (self.words[first] & head).count_ones() + middle + (self.words[last] & tail).count_ones()
    }

    /// Returns the first wanted sector at or after `lbn`.
    #[inline]
    pub fn next(&self, lbn: u64) -> Option<u64> {
        self.find(lbn, 0)
    }

    /// Returns the first sector at or after `lbn` that is not wanted; the range's end when there is
    /// none.
    #[inline]
    pub fn next_unwanted(&self, lbn: u64) -> u64 {
        self.find(lbn, u64::MAX).unwrap_or(self.end())
    }

    #[inline]
    fn find(&self, lbn: u64, flip: u64) -> Option<u64> {
        let lbn = lbn.max(self.from);
        if lbn >= self.end() {
            return None;
        }
        let at = (lbn - self.from) as usize;
        let mut i = at / 64;
        let mut word = (self.words[i] ^ flip) & (u64::MAX << (at % 64));
        loop {
            if word != 0 {
                let found = self.from + (i * 64) as u64 + u64::from(word.trailing_zeros());
                return (found < self.end()).then_some(found);
            }
            i += 1;
            word = *self.words.get(i)? ^ flip;
        }
    }

    /// Returns one past the last wanted sector before `lbn`; `None` when none is wanted before it.
    #[inline]
    pub fn last_end(&self, lbn: u64) -> Option<u64> {
        let lbn = lbn.min(self.end());
        if lbn <= self.from {
            return None;
        }
        let at = (lbn - 1 - self.from) as usize;
        let mut i = at / 64;
        let mut word = self.words[i] & (u64::MAX >> (63 - at % 64));
        loop {
            if word != 0 {
                return Some(self.from + (i * 64) as u64 + 64 - u64::from(word.leading_zeros()));
            }
            if i == 0 {
                return None;
            }
            i -= 1;
            word = self.words[i];
        }
    }

    /// Returns the number of runs of wanted sectors in `lo..hi`, without locating each of them.
    #[inline]
    pub fn stretches(&self, lo: u64, hi: u64) -> u32 {
        let Some((first, last, head, tail)) = self.words_of(lo, hi) else { return 0 };
        let (mut found, mut before) = (0, 0);
        for (i, word) in (first..).zip(&self.words[first..=last]) {
            let mut word = *word;
            if i == first {
                word &= head;
            }
            if i == last {
                word &= tail;
            }
            // A run begins where a bit is set and the one before it is not.
            found += (word & !(word << 1 | before)).count_ones();
            before = word >> 63;
        }
        found
    }

    /// Returns the runs of wanted sectors in `lo..hi`, ascending: first LBN, one past the last.
    pub fn runs(&self, lo: u64, hi: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let hi = hi.min(self.end());
        let mut at = lo;
        std::iter::from_fn(move || {
            let first = self.next(at).filter(|&f| f < hi)?;
            at = self.next_unwanted(first).min(hi);
            Some((first, at))
        })
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    /// Returns one flag per sector, for comparison.
    fn slow(w: &Wanted) -> Vec<bool> {
        (w.from()..w.end()).map(|l| w.is_set(l)).collect()
    }

    #[test]
    fn sets_and_counts_agree_with_one_flag_a_sector() {
        let mut rng = SplitMix64::seed_from_u64(12345);
        let mut next = |n: u64| rng.next_u64() % n;
        for _ in 0..500 {
            let len = 1 + next(300) as u32;
            let from = next(1000);
            let mut w = Wanted::new();
            w.reset(from, len);
            let mut flags = vec![false; len as usize];
            for round in 0..4 {
                let lo = (from + next(u64::from(len) + 20)).saturating_sub(10);
                let hi = lo + next(120);
                if round == 3 {
                    w.unset(lo, hi);
                } else {
                    w.set(lo, hi);
                }
                for l in lo.max(from)..hi.min(from + u64::from(len)) {
                    flags[(l - from) as usize] = round != 3;
                }
            }
            assert_eq!(slow(&w), flags);
            let (lo, hi) = (from + next(u64::from(len)), from + next(u64::from(len) + 5));
            let between = |l: u64| l >= lo && l < hi;
            let expected = (from..w.end()).filter(|&l| between(l) && flags[(l - from) as usize]).count();
            assert_eq!(w.count(lo, hi) as usize, expected);
            assert_eq!(w.next(lo), (lo.max(from)..w.end()).find(|&l| flags[(l - from) as usize]));
            let last = (from..hi.min(w.end())).rev().find(|&l| flags[(l - from) as usize]);
            assert_eq!(w.last_end(hi), last.map(|l| l + 1));
            let in_runs: u64 = w.runs(lo, hi).map(|(a, b)| b - a).sum();
            assert_eq!(in_runs as usize, expected);
            assert_eq!(w.stretches(lo, hi) as usize, w.runs(lo, hi).count());
        }
    }
}
