//! A sparse bitmap of small fields, in chunks that exist only where a bit is set.

/// Words per chunk: 256 cells of 8 regions.
pub(crate) const CHUNK: usize = 32;

/// Words by number; words that were never set are zero and not stored.
#[derive(Clone, Debug, Default)]
// Boxed, so that inserting a chunk moves pointers only, and growth does not double the memory of
// the bits.
#[allow(clippy::vec_box)]
pub(super) struct Bitmap {
    /// Numbers of the existing chunks, ascending.
    keys: Vec<u32>,
    words: Vec<Box<[u64; CHUNK]>>,
    /// Index of the last change: changes are clustered.
    last: usize,
}

#[inline]
fn split(word: u32) -> (u32, usize) {
    (word / CHUNK as u32, word as usize % CHUNK)
}

impl Bitmap {
    /// Bytes of a chunk, its key and its pointer.
    pub(super) const CHUNK_BYTES: usize = size_of::<[u64; CHUNK]>() + size_of::<usize>() + size_of::<u32>();

    #[inline]
    fn find(&self, key: u32) -> Result<usize, usize> {
        // If a chunk exists for every key, its key is its index.
        if self.keys.get(key as usize) == Some(&key) {
            return Ok(key as usize);
        }
        match self.keys.get(self.last) {
            Some(k) if *k == key => Ok(self.last),
            _ => self.keys.binary_search(&key),
        }
    }

    /// Returns one word.
    #[inline]
    pub(super) fn word(&self, word: u32) -> u64 {
        let (key, i) = split(word);
        self.find(key).map_or(0, |at| self.words[at][i])
    }

    /// Returns the field of `1 << shift` bits of a cell.
    #[inline]
    pub(super) fn field(&self, shift: u32, all: u64, cell: u32) -> u64 {
        let per_word = 6 - shift;
        self.word(cell >> per_word) >> ((cell & ((1 << per_word) - 1)) << shift) & all
    }

    /// Sets bits.
    #[inline]
    pub(super) fn or(&mut self, word: u32, bits: u64) {
        if bits == 0 {
            return;
        }
        let (key, i) = split(word);
        self.last = self.find(key).unwrap_or_else(|at| {
            self.keys.insert(at, key);
            self.words.insert(at, Box::new([0; CHUNK]));
            at
        });
        self.words[self.last][i] |= bits;
    }

    /// Sets all bits of the cells `cells`.
    pub(super) fn fill(&mut self, shift: u32, cells: std::ops::Range<u32>) {
        let per_word = 6 - shift;
        let (mut cell, end) = (cells.start, cells.end);
        while cell < end {
            let word = cell >> per_word;
            let next = ((word + 1) << per_word).min(end);
            let low = u64::MAX << ((cell & ((1 << per_word) - 1)) << shift);
            let high = u64::MAX >> ((((word + 1) << per_word) - next) << shift);
            self.or(word, low & high);
            cell = next;
        }
    }

    /// Clears bits, and frees an empty chunk.
    pub(super) fn and_not(&mut self, word: u32, bits: u64) {
        let (key, i) = split(word);
        let Ok(at) = self.find(key) else { return };
        self.words[at][i] &= !bits;
        if self.words[at].iter().all(|w| *w == 0) {
            self.remove(at);
        }
    }

    fn remove(&mut self, at: usize) {
        self.keys.remove(at);
        self.words.remove(at);
        if self.keys.len() * 4 < self.keys.capacity() {
            self.keys.shrink_to(self.keys.len() * 2);
            self.words.shrink_to(self.words.len() * 2);
        }
    }

    /// Sets all bits that `other` has.
    pub(super) fn or_all(&mut self, other: &Bitmap) {
        for (key, words) in other.keys.iter().zip(&other.words) {
            for (i, bits) in words.iter().enumerate() {
                self.or(key * CHUNK as u32 + i as u32, *bits);
            }
        }
    }

    /// Returns the numbers of the existing chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        self.keys.iter().copied()
    }

    /// ORs a chunk's bits into `into`.
    pub(super) fn or_chunk_into(&self, key: u32, into: &mut [u64; CHUNK]) {
        if let Ok(at) = self.keys.binary_search(&key) {
            for (to, from) in into.iter_mut().zip(self.words[at].iter()) {
                *to |= from;
            }
        }
    }

    /// Replaces or creates a chunk.
    pub(super) fn set_chunk(&mut self, key: u32, words: [u64; CHUNK]) {
        let empty = words.iter().all(|w| *w == 0);
        match (self.keys.binary_search(&key), empty) {
            (Ok(at), true) => self.remove(at),
            (Ok(at), false) => *self.words[at] = words,
            (Err(_), true) => {}
            (Err(at), false) => {
                self.keys.insert(at, key);
                self.words.insert(at, Box::new(words));
            }
        }
    }

    /// Returns the lowest cell at or above `from` with a bit of `mask`, which has a field for every
    /// cell of a word.
    #[inline]
    pub(super) fn next_up(&self, shift: u32, mask: u64, from: u32) -> Option<u32> {
        let per_word = 6 - shift;
        let (key, mut i) = split(from >> per_word);
        let mut mask_now = mask & u64::MAX << ((from & ((1 << per_word) - 1)) << shift);
        let at = match self.find(key) {
            Ok(at) => at,
            Err(at) => {
                (i, mask_now) = (0, mask);
                at
            }
        };
        for (key, words) in self.keys[at..].iter().zip(&self.words[at..]) {
            for (k, word) in words.iter().enumerate().skip(i) {
                let hit = word & mask_now;
                if hit != 0 {
                    let word = key * CHUNK as u32 + k as u32;
                    return Some((word << per_word) + (hit.trailing_zeros() >> shift));
                }
                mask_now = mask;
            }
            (i, mask_now) = (0, mask);
        }
        None
    }

    /// Returns the highest cell at or below `from` with a bit of `mask`.
    #[inline]
    pub(super) fn next_down(&self, shift: u32, mask: u64, from: u32) -> Option<u32> {
        let per_word = 6 - shift;
        let (key, mut i) = split(from >> per_word);
        let behind = (from & ((1 << per_word) - 1)) + 1;
        // The fields up to and including this cell's; a shift by 64 selects all.
        let mut mask_now = mask & !u64::MAX.checked_shl(behind << shift).unwrap_or(0);
        let end = match self.find(key) {
            Ok(at) => at + 1,
            Err(at) => {
                (i, mask_now) = (CHUNK - 1, mask);
                at
            }
        };
        for (key, words) in self.keys[..end].iter().zip(&self.words[..end]).rev() {
            for (k, word) in words.iter().enumerate().take(i + 1).rev() {
                let hit = word & mask_now;
                if hit != 0 {
                    let word = key * CHUNK as u32 + k as u32;
                    return Some((word << per_word) + ((63 - hit.leading_zeros()) >> shift));
                }
                mask_now = mask;
            }
            (i, mask_now) = (CHUNK - 1, mask);
        }
        None
    }

    /// Returns the bytes it occupies.
    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<u32>()
            + self.words.capacity() * size_of::<usize>()
            + self.words.len() * size_of::<[u64; CHUNK]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn scans_agree_with_a_look_at_every_cell() {
        for shift in [0u32, 1, 3, 6] {
            let seed = 40 + u64::from(shift);
            println!("seed {seed}");
            let mut rng = headtime_testkit::profiles::rng(seed);
            let all = u64::MAX >> (64 - (1 << shift));
            let cells = 20_000u32;
            let mut bits = Bitmap::default();
            let mut plain = vec![0u64; cells as usize];
            for round in 0..400 {
                let cell = (rng.next_u64() % u64::from(cells)) as u32;
                let field = rng.next_u64() & all;
                let (word, place) = (cell >> (6 - shift), (cell & ((1 << (6 - shift)) - 1)) << shift);
                if round % 3 == 2 {
                    bits.and_not(word, field << place);
                    plain[cell as usize] &= !field;
                } else {
                    bits.or(word, field << place);
                    plain[cell as usize] |= field;
                }
                let from = (rng.next_u64() % u64::from(cells)) as u32;
                let mask = rng.next_u64() & all;
                let repeated = (u64::MAX / all).wrapping_mul(mask);
                let hit = |c: &u32| plain[*c as usize] & mask != 0;
                assert_eq!(bits.next_up(shift, repeated, from), (from..cells).find(hit), "up from {from}");
                assert_eq!(bits.next_down(shift, repeated, from), (0..=from).rev().find(hit), "down from {from}");
                assert_eq!(bits.field(shift, all, from), plain[from as usize]);
            }
        }
    }

    #[test]
    fn a_filled_stretch_is_its_cells_one_by_one() {
        for shift in 0..=6 {
            let all = u64::MAX >> (64 - (1 << shift));
            for (low, high) in [(0, 1), (3, 3), (5, 130), (63, 65), (64, 128), (1, 9_000)] {
                let mut bits = Bitmap::default();
                bits.fill(shift, low..high);
                let set = |c: &u32| bits.field(shift, all, *c) == all;
                let none = |c: &u32| bits.field(shift, all, *c) == 0;
                assert!((low..high).all(|c| set(&c)) && (0..low).chain(high..high + 70).all(|c| none(&c)));
            }
        }
    }

    #[test]
    fn what_is_empty_takes_no_room() {
        let mut bits = Bitmap::default();
        for word in 0..10_000 {
            bits.or(word, 1);
        }
        for word in 0..10_000 {
            bits.and_not(word, 1);
        }
        assert!(bits.memory_bytes() < 1_000, "{}", bits.memory_bytes());
    }
}
