//! What to fetch in idle time: what gaps would not bring in time.
//!
//! "The innermost and outermost cylinders are often difficult to service in rotational latency gaps", and so are fragments
//! and what has been pending for long (seed 002 section 4.6). How difficult depends on the foreground's own places,
//! on the algorithm that fills gaps, and on how much is left. So it is not presumed but measured. The disk is divided
//! into [`BANDS`]; for each it is known how much is wanted there still, *w*, and how much the foreground brings for
//! free lately, *g* (in gaps and by itself), and of all bands together how much idle time brings, *i*. If idle time is
//! well spent everything is done at the time T for which
//!
//! ```text
//! sum over bands of max(0, w - g T) = i T
//! ```
//!
//! A band with w < g T is done by then without any help, and a block fetched there in idle time is wasted: a gap would
//! have brought it. The others are *short of time*, and any block of theirs is as good as any other; so the nearest is
//! taken. Where gaps bring little compared with idle time that is the nearest of all; where they bring much, it is the
//! edges and what is left in fragments, whose bands gaps have nearly ceased to bring anything from.

/// Bands that the disk is divided into: fewer would blur the edges, more would be reached too rarely to be measured.
pub const BANDS: usize = 32;
/// Bands are judged anew after so many pieces have been brought.
const JUDGE_AFTER: u32 = 64;
/// With each judgement, rates fade by this: they are those of the last 2048 pieces, 64 of each band.
const FADE: u64 = 32;
/// Pieces brought before the first judgement: too few say nothing about 32 bands.
const FIRST_JUDGE_AFTER: u32 = 512;
/// T is worked out in this part of the time that rates are of.
const PART: u128 = 256;

/// Where something is wanted, as the choice needs to know it. Cells (groups of neighbouring tracks) are numbered from the
/// outer edge inwards.
pub trait Cells {
    /// How many there are, empty ones included.
    fn count(&self) -> u32;
    /// The first cell at `from` or beyond, inwards, in which something is wanted.
    fn next_up(&self, from: u32) -> Option<u32>;
    /// The first cell at `from` or before, outwards, in which something is wanted.
    fn next_down(&self, from: u32) -> Option<u32>;
    /// A cell that a task wants which has been waiting for too long: the nearest to `head` of the task waiting longest.
    fn overdue(&self, head: u32) -> Option<u32>;
}

/// How wanted sectors ceased to be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Brought in a gap, or by a foreground request that covers them.
    Free,
    /// Brought in idle time.
    Idle,
    /// Aborted, or brought by no decision of the scheduler's.
    Otherwise,
}

/// What is wanted where, and how it is brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    cells: u32,
    /// Sectors wanted, by band.
    wanted: [u64; BANDS],
    /// Sectors brought for free, fading.
    free: [u64; BANDS],
    /// Sectors brought in idle time, fading.
    idle: u64,
    pieces: u32,
    /// Which bands are short of time, a bit for each.
    short: u32,
}

impl Reach {
    /// Of a disk with so many cells of which nothing is wanted.
    pub fn new(cells: u32) -> Reach {
        let short = u32::MAX;
        Reach { cells: cells.max(1), wanted: [0; BANDS], free: [0; BANDS], idle: 0, pieces: 0, short }
            .beginning()
    }

    fn beginning(self) -> Reach {
        Reach { pieces: JUDGE_AFTER.saturating_sub(FIRST_JUDGE_AFTER), ..self }
    }

    /// The band of a cell.
    #[inline]
    fn band(&self, cell: u32) -> usize {
        (u64::from(cell.min(self.cells - 1)) * BANDS as u64 / u64::from(self.cells)) as usize
    }

    /// The first cell of a band.
    fn first(&self, band: usize) -> u32 {
        (band as u64 * u64::from(self.cells)).div_ceil(BANDS as u64) as u32
    }

    /// Whether gaps alone would not bring what is wanted in the band of `cell` in time.
    #[inline]
    pub fn is_short_of_time(&self, cell: u32) -> bool {
        self.short >> self.band(cell) & 1 == 1
    }

    /// So many more sectors of `cell` are wanted.
    pub fn wanted(&mut self, cell: u32, sectors: u64) {
        let band = self.band(cell);
        self.wanted[band] += sectors;
    }

    /// So many sectors of `cell` are wanted no more. Asserts that they were.
    pub fn gone(&mut self, cell: u32, sectors: u64, how: Gone) {
        let band = self.band(cell);
        assert!(self.wanted[band] >= sectors, "{sectors} sectors less than {} are wanted", self.wanted[band]);
        self.wanted[band] -= sectors;
        match how {
            Gone::Free => self.free[band] += sectors,
            Gone::Idle => self.idle += sectors,
            Gone::Otherwise => return,
        }
        self.pieces += 1;
        if self.pieces >= JUDGE_AFTER {
            self.pieces = 0;
            self.judge();
            self.free.iter_mut().chain([&mut self.idle]).for_each(|rate| *rate -= *rate / FADE);
        }
    }

    /// What idle time would have to bring if everything were to be done after `t` parts, less what it can; falls as `t`
    /// grows.
    fn lacking(&self, t: u128) -> i128 {
        let bands = self.wanted.iter().zip(&self.free);
        let rest: u128 = bands.map(|(&w, &g)| (u128::from(w) * PART).saturating_sub(u128::from(g) * t)).sum();
        rest as i128 - (u128::from(self.idle) * t) as i128
    }

    fn judge(&mut self) {
        let (mut early, mut late) = (0u128, 1u128 << 40);
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            match self.lacking(middle) > 0 {
                true => early = middle,
                false => late = middle,
            }
        }
        self.short = 0;
        for (band, (&w, &g)) in self.wanted.iter().zip(&self.free).enumerate() {
            let is_short = u128::from(w) * PART >= u128::from(g) * early;
            self.short |= u32::from(is_short) << band;
        }
    }

    /// The nearest cell from `head` in one direction that is in a band short of time and in which something is wanted.
    fn nearest_short<C: Cells + ?Sized>(&self, cells: &C, head: u32, up: bool) -> Option<u32> {
        let mut from = head;
        // Each round leaves a band behind.
        for _ in 0..=BANDS {
            let cell = if up { cells.next_up(from)? } else { cells.next_down(from)? };
            let band = self.band(cell);
            if self.short >> band & 1 == 1 {
                return Some(cell);
            }
            from = match up {
                true => self.first((band + 1..BANDS).find(|b| self.short >> b & 1 == 1)?),
                false => self.first((0..band).rev().find(|b| self.short >> b & 1 == 1)? + 1) - 1,
            };
        }
        None
    }
}

/// What is fetched in long idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// What gaps would not bring in time ("idle_SMART" in seed 002 figure 11).
    #[default]
    Smart,
    /// What is nearest ("idle_SPTF" there).
    Nearest,
}

impl IdlePolicy {
    /// The cell to fetch something from when the head is in cell `head`; `None` when nothing is wanted anywhere.
    pub fn choose<C: Cells + ?Sized>(self, cells: &C, reach: &Reach, head: u32) -> Option<u32> {
        let head = head.min(cells.count().checked_sub(1)?);
        let nearer = |down: Option<u32>, up: Option<u32>| {
            [down, up].into_iter().flatten().min_by_key(|c| c.abs_diff(head))
        };
        if self == IdlePolicy::Smart {
            let short = || nearer(reach.nearest_short(cells, head, false), reach.nearest_short(cells, head, true));
            if let Some(cell) = cells.overdue(head).or_else(short) {
                return Some(cell);
            }
        }
        nearer(cells.next_down(head), cells.next_up(head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_the_cells_in_order() {
        for cells in [1, 5, 31, 32, 33, 1_000, 10_042] {
            let r = Reach::new(cells);
            let bands: Vec<usize> = (0..cells).map(|c| r.band(c)).collect();
            assert!(bands.is_sorted());
            for b in 0..BANDS {
                let first = bands.iter().position(|&x| x >= b).map_or(cells, |p| p as u32);
                assert_eq!(r.first(b), first, "{cells} cells, band {b}");
            }
        }
    }

    #[test]
    fn what_gaps_bring_in_time_is_left_to_them() {
        let mut r = Reach::new(3_200);
        (0..3_200).for_each(|c| r.wanted(c, 1_000));
        // In the middle a gap brings something three times as often as elsewhere; idle time brings as much as all of them.
        for i in 0..40_000u32 {
            let cell = if i % 4 == 0 { i * 7 % 3_200 } else { 1_200 + i * 7 % 800 };
            r.gone(cell, 10, if i % 2 == 0 { Gone::Free } else { Gone::Idle });
        }
        assert!(r.is_short_of_time(0) && r.is_short_of_time(3_199) && r.is_short_of_time(800));
        assert!(!r.is_short_of_time(1_600));
    }

    #[test]
    fn where_gaps_bring_hardly_anything_all_is_short_of_time() {
        let mut r = Reach::new(320);
        (0..320).for_each(|c| r.wanted(c, 10_000));
        for i in 0..5_000u32 {
            r.gone(i * 7 % 320, 10, if i % 50 == 0 { Gone::Free } else { Gone::Idle });
        }
        assert!((0..320).all(|c| r.is_short_of_time(c)));
    }
}
