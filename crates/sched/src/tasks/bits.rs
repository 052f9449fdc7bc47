//! The bits of one range: one per unit, set while the unit is wanted (Thereska 2003 section 4.2).
//!
//! Bits are only ever cleared. A range of up to 64 units has its bits inline. A larger one is cut
//! into chunks, and a chunk that is still all wanted, or all done, has no words: if a disk is
//! scanned from end to end, only the partly done chunks cost memory. The upper bound of the memory
//! is known beforehand.
//! most is known beforehand.

/// Units per chunk.
const CHUNK: u64 = 8_192;

/// Consecutive units of a large range.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// One bit per unit; absent when all are alike.
    words: Option<Box<[u64]>>,
    /// Units still wanted.
    left: u16,
    /// Total units.
    size: u16,
}

/// The bits of one range.
#[derive(Clone, Debug)]
pub(crate) enum Bits {
    /// Up to 64 units.
    Few(u64),
    /// More.
    Many(Box<[Chunk]>),
}

impl Default for Bits {
    fn default() -> Bits {
        Bits::Few(0)
    }
}

/// Returns the bits `a..b` of a word, `b` at most 64 and above `a`.
#[inline]
fn mask(a: u64, b: u64) -> u64 {
    u64::MAX << a & u64::MAX >> (64 - b)
}

/// Calls `show` with the runs of ones in a word whose first bit is unit `base`.
#[inline]
fn runs(mut word: u64, base: u64, mut show: impl FnMut(u64, u64)) {
    while word != 0 {
        let first = u64::from(word.trailing_zeros());
        let behind = first + u64::from((word >> first).trailing_ones());
        show(base + first, base + behind);
        word &= u64::MAX.checked_shl(behind as u32).unwrap_or(0);
    }
}

impl Bits {
    /// Creates the bits of a range with all `units` wanted.
    pub(crate) fn new(units: u64) -> Bits {
        assert!(units > 0, "a range has a unit");
        if units <= 64 {
            return Bits::Few(mask(0, units));
        }
        let chunk = |n: u64| {
            let size = (units - n * CHUNK).min(CHUNK) as u16;
            Chunk { words: None, left: size, size }
        };
        Bits::Many((0..units.div_ceil(CHUNK)).map(chunk).collect())
    }

    /// Returns an upper bound of the bytes that this number of units can occupy, excluding the
    /// value itself.
    pub(crate) fn worst(units: u64) -> u64 {
        if units <= 64 {
            return 0;
        }
        let tail = (units % CHUNK).div_ceil(64) * 8;
        units.div_ceil(CHUNK) * size_of::<Chunk>() as u64 + units / CHUNK * (CHUNK / 8) + tail
    }

    /// Returns the bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Bits::Few(_) => 0,
            Bits::Many(chunks) => {
                let words: usize = chunks.iter().filter_map(|c| Some(c.words.as_ref()?.len() * 8)).sum();
                words + std::mem::size_of_val(&**chunks)
            }
        }
    }

    /// Returns the first run of wanted units in `from..to`: first, one past the last.
    #[inline]
    pub(crate) fn next_run(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        match self {
            Bits::Few(word) => {
                if from >= to {
                    return None;
                }
                let here = word & mask(from, to);
                if here == 0 {
                    return None;
                }
                let a = here.trailing_zeros();
                Some((u64::from(a), u64::from(a + (here >> a).trailing_ones())))
            }
            Bits::Many(chunks) => {
                let a = find(chunks, from, to, true);
                (a < to).then(|| (a, find(chunks, a + 1, to, false)))
            }
        }
    }

    /// Calls `show` with the wanted units of `from..to` in order, as runs: first, one past the
    /// last. A long run may be split anywhere. Searches call this a hundred times per decision; it
    /// processes a word at a time.
    #[inline]
    pub(crate) fn each(&self, from: u64, to: u64, mut show: impl FnMut(u64, u64)) {
        match self {
            Bits::Few(word) if from < to => runs(word & mask(from, to), 0, show),
            Bits::Few(_) => {}
            Bits::Many(chunks) => {
                let mut at = from;
                while at < to {
                    let (chunk, begins) = (&chunks[(at / CHUNK) as usize], at / CHUNK * CHUNK);
                    let end = to.min(begins + CHUNK);
                    match &chunk.words {
                        None if chunk.left > 0 => show(at, end),
                        None => {}
                        Some(words) => {
                            while at < end {
                                let word = (at - begins) / 64;
                                let base = begins + 64 * word;
                                let until = end.min(base + 64);
                                runs(words[word as usize] & mask(at - base, until - base), base, &mut show);
                                at = until;
                            }
                        }
                    }
                    at = end;
                }
            }
        }
    }

    /// Clears `a..b`, all of which must be set. `live` tracks the allocated bytes.
    pub(crate) fn clear(&mut self, a: u64, b: u64, live: &mut usize) {
        assert!(a < b, "nothing to clear");
        match self {
            Bits::Few(word) => {
                assert!(*word & mask(a, b) == mask(a, b), "a unit came twice");
                *word &= !mask(a, b);
            }
            Bits::Many(chunks) => {
                let mut at = a;
                while at < b {
                    let n = at / CHUNK;
                    let until = b.min((n + 1) * CHUNK);
                    chunks[n as usize].clear(at - n * CHUNK, until - n * CHUNK, live);
                    at = until;
                }
            }
        }
    }
}

impl Chunk {
    fn clear(&mut self, a: u64, b: u64, live: &mut usize) {
        let count = (b - a) as u16;
        assert!(count <= self.left && b <= u64::from(self.size), "a unit came twice");
        self.left -= count;
        if self.left == 0 {
            // All remaining units must be in this call: verified where there are words.
            if let Some(words) = self.words.take() {
                assert!(ones(&words, a, b) == b - a, "a unit came twice");
                *live -= words.len() * 8;
            } else {
                assert!(count == self.size, "a unit came twice");
            }
            return;
        }
        let size = u64::from(self.size);
        let words = self.words.get_or_insert_with(|| {
            let mut words = vec![u64::MAX; size.div_ceil(64) as usize].into_boxed_slice();
            if size % 64 != 0 {
                *words.last_mut().expect("a chunk has a word") = mask(0, size % 64);
            }
            *live += words.len() * 8;
            words
        });
        for n in a / 64..b.div_ceil(64) {
            let m = mask(a.saturating_sub(n * 64), (b - n * 64).min(64));
            let word = &mut words[n as usize];
            assert!(*word & m == m, "a unit came twice");
            *word &= !m;
        }
    }
}

fn ones(words: &[u64], a: u64, b: u64) -> u64 {
    let of = |n: u64| words[n as usize] & mask(a.saturating_sub(n * 64), (b - n * 64).min(64));
    (a / 64..b.div_ceil(64)).map(|n| u64::from(of(n).count_ones())).sum()
}

/// Returns the first unit of `from..to` that is wanted, or not, as requested; `to` when there is
/// none.
#[inline]
fn find(chunks: &[Chunk], from: u64, to: u64, wanted: bool) -> u64 {
    let mut at = from;
    while at < to {
        let n = at / CHUNK;
        let end = to.min((n + 1) * CHUNK);
        let chunk = &chunks[n as usize];
        match &chunk.words {
            None if (chunk.left > 0) == wanted => return at,
            None => at = end,
            Some(words) => {
                let flip = if wanted { 0 } else { u64::MAX };
                let (from, end) = (at - n * CHUNK, end - n * CHUNK);
                let mut word = (words[(from / 64) as usize] ^ flip) & u64::MAX << (from % 64);
                let mut base = from / 64 * 64;
                while word == 0 && base + 64 < end {
                    base += 64;
                    word = words[(base / 64) as usize] ^ flip;
                }
                let found = base + u64::from(word.trailing_zeros());
                if word != 0 && found < end {
                    return n * CHUNK + found;
                }
                at = n * CHUNK + end;
            }
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    /// Clears random ranges until nothing is left, and compares with one flag per unit.
    fn drained(units: u64, seed: u64) {
        let mut rng = SplitMix64::seed_from_u64(seed);
        let mut next = |n: u64| rng.next_u64() % n;
        let mut bits = Bits::new(units);
        let mut live = bits.bytes();
        let base = live;
        let mut flags = vec![true; units as usize];
        while flags.contains(&true) {
            let from = next(units);
            let to = (from + 1 + next(units.min(12_000))).min(units);
            let mut shown = vec![false; units as usize];
            bits.each(from, to, |a, b| shown[a as usize..b as usize].fill(true));
            let within = |u: usize| (from..to).contains(&(u as u64));
            assert!(
                (0..shown.len()).all(|u| shown[u] == (flags[u] && within(u))),
                "units {units}, from {from} to {to}"
            );
            let mut at = from;
            while let Some((a, b)) = bits.next_run(at, to) {
                let first = (at..to).find(|&u| flags[u as usize]).expect("a run has a flag");
                let last = (first..to).find(|&u| !flags[u as usize]).unwrap_or(to);
                assert_eq!((a, b), (first, last), "units {units}, from {at} to {to}");
                // Occasionally only a part of it.
                let b = if next(3) == 0 { a + 1 } else { b };
                bits.clear(a, b, &mut live);
                flags[a as usize..b as usize].fill(false);
                at = b;
                assert_eq!(live, bits.bytes());
                assert!(live as u64 <= Bits::worst(units));
                if next(50) == 0 {
                    break;
                }
            }
            if at == from {
                assert!(!flags[from as usize..to as usize].contains(&true));
            }
        }
        assert_eq!(bits.next_run(0, units), None);
        assert_eq!(live, base, "chunks that are done have no words");
    }

    #[test]
    fn runs_and_clearing_agree_with_one_flag_a_unit() {
        for units in [1, 2, 63, 64, 65, 128, 1_000, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK + 77] {
            (0..5).for_each(|seed| drained(units, seed));
        }
    }

    #[test]
    fn a_large_range_that_was_never_touched_costs_its_chunks_only() {
        let units = 76_300_000;
        let bits = Bits::new(units);
        assert_eq!(bits.bytes() as u64, units.div_ceil(CHUNK) * 24);
        assert!(Bits::worst(units) <= units / 8 * 103 / 100, "{} bytes", Bits::worst(units));
        assert_eq!(size_of::<Bits>(), 16);
    }

    #[test]
    #[should_panic(expected = "came twice")]
    fn a_unit_cannot_come_twice() {
        let mut bits = Bits::new(20_000);
        let mut live = bits.bytes();
        bits.clear(10, 20, &mut live);
        bits.clear(15, 16, &mut live);
    }
}
