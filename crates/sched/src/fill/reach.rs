//! Choice of work in idle time: what gaps would not bring.
//!
//! "The innermost and outermost cylinders are often difficult to service in rotational latency
//! gaps" (Thereska 2003 section 4.6). How difficult a cylinder is depends on the locality of the
//! foreground, the filling algorithm and the remaining amount, so it is measured. The disk is
//! divided into [`BANDS`]. For each band two quantities are known: the wanted sectors that remain,
//! *w*, and the recent rate at which the foreground brings them for free, *g* (in gaps and by its
//! own requests); for all together, the rate of idle time, *i*. The more is wanted in a band the
//! more gaps find there, so the remainder of a band shrinks like w exp(-t g / w), and idle time has
//! to bring the rest.
//!
//! All work ends at the time T that satisfies
//!
//! ```text
//! sum over bands of w exp(-T g / w) = i T
//! ```
//!
//! A piece fetched in idle time now would have been brought by then for free with probability 1 -
//! exp(-T g / w); the complement is its *worth*. It is compared to the cost of fetching it: the
//! revolution in which it is read, and the seek. That the next pieces of the same idle period share
//! the seek is not counted: most periods are short, and where a request rarely arrives only during
//! short commands, a command with a long seek is not sent at all ([`super::periods`]).
//!
//! Within the chosen band, *fragments* come first where idle time is long ([`Reach::least_left`]).
//! The paper also names work that "has been pending in the system for too long". Its age is not
//! weighed here; a session that has received nothing for seconds has precedence anyway
//! (`Freeblock::turn`).

use headtime_disk::{Dur, Mechanics};

/// Number of bands: fewer would blur the edges, more would be reached too rarely to be measured.
pub const BANDS: usize = 32;
/// Bands are re-evaluated after this number of pieces.
const JUDGE_AFTER: u32 = 64;
/// Decay of the rates with each evaluation: they cover the last 4096 pieces, 128 per band.
const FADE: u64 = 64;
/// Pieces before the first evaluation: fewer say nothing about 32 bands.
const FIRST_JUDGE_AFTER: u32 = 512;
/// Parts into which the period that the rates cover is divided to compute T. Not tuned: it is the
/// resolution of T, which only needs to be fine compared to that period.
const PARTS: u128 = 256;
/// Worth of a piece that no gap would bring.
const ONE: u64 = 1 << 16;
/// Cells of which the one with the least left is chosen. Beside a foreground that pauses for a
/// second at a time, whole scans take 0 to 5% less time than with the nearest cell; with 8, 1.5%
/// more on an Atlas 10K in units of 4 KiB.
const COMPARED: usize = 3;

/// Index of the cells (groups of neighbouring tracks) in which something is wanted. Cells are
/// numbered from the outer edge inwards.
pub trait WantedCells {
    /// Returns the number of cells, empty ones included.
    fn count(&self) -> u32;
    /// Returns the first cell at `from` or further inwards in which something is wanted.
    fn next_up(&self, from: u32) -> Option<u32>;
    /// Returns the first cell at `from` or further outwards in which something is wanted.
    fn next_down(&self, from: u32) -> Option<u32>;
}

/// Why sectors are no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Brought outside idle time: in a gap, by a foreground request that covers them, or as a
    /// promoted piece or straggler.
    Free,
    /// Brought in idle time.
    Idle,
    /// Aborted, or superseded by a newer write.
    Otherwise,
}

/// Wanted sectors and the rates at which they are brought, by band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    cells: u32,
    /// Sectors wanted, by band.
    wanted: [u64; BANDS],
    /// Sectors brought for free, decaying.
    free: [u64; BANDS],
    /// Sectors brought in idle time, decaying.
    idle: u64,
    pieces: u32,
    /// Whether bands have been evaluated.
    judged: bool,
    /// Worth of a piece, by band.
    worth: [u64; BANDS],
    /// Cost of a piece by the number of bands that the head has to cross, in ns.
    takes: [u64; BANDS],
}

/// Computes `ONE` * 2^(-x), x in 65536ths. Linear interpolation between powers of two would be 6%
/// off, between sixteenths of an exponent it has no error of note.
fn two_to_minus(x: u128) -> u64 {
    /// 2^16 * 2^(-i/16).
    const AT: [u64; 17] = [
        65_536, 62_757, 60_097, 57_549, 55_109, 52_773, 50_535, 48_393, 46_341, 44_376, 42_495, 40_693, 38_968, 37_316,
        35_734, 34_219, 32_768,
    ];
    let (whole, rest) = (x >> 16, (x & 0xffff) as u64);
    if whole > 16 {
        return 0;
    }
    let (i, part) = ((rest >> 12) as usize, rest & 0xfff);
    (AT[i] - (((AT[i] - AT[i + 1]) * part) >> 12)) >> whole
}

/// Returns the share of a band's wanted sectors that is not brought for free in `t` parts.
fn share_left(wanted: u64, free: u64, t: u128) -> u64 {
    /// 2^16 / ln 2.
    const LOG2_E: u128 = 94_548;
    two_to_minus(u128::from(free) * t * LOG2_E / (u128::from(wanted.max(1)) * PARTS))
}

impl Reach {
    /// Creates the index of a disk of this number of cells and cylinders, on which nothing is
    /// wanted.
    pub fn new(cells: u32, mechanics: &Mechanics, cylinders: u32) -> Reach {
        let seek = |bands: usize| match bands {
            0 => Dur::ZERO,
            _ => mechanics.seek.time((u64::from(cylinders) * bands as u64 / BANDS as u64).max(1) as u32),
        };
        let turn = mechanics.rotation.period().0;
        Reach {
            cells: cells.max(1),
            wanted: [0; BANDS],
            free: [0; BANDS],
            idle: 0,
            pieces: 0,
            judged: false,
            worth: [ONE; BANDS],
            takes: std::array::from_fn(|bands| turn + seek(bands).0),
        }
    }

    /// Returns the band of a cell.
    #[inline]
    pub(super) fn band(&self, cell: u32) -> usize {
        (u64::from(cell.min(self.cells - 1)) * BANDS as u64 / u64::from(self.cells)) as usize
    }

    /// Returns the first cell of a band.
    pub(super) fn first(&self, band: usize) -> u32 {
        (band as u64 * u64::from(self.cells)).div_ceil(BANDS as u64) as u32
    }

    /// Returns the worth of a piece of `cell`, in 65536ths: the probability that it would not be
    /// brought for free in time.
    #[inline]
    pub fn worth(&self, cell: u32) -> u32 {
        self.worth[self.band(cell)] as u32
    }

    /// Adds wanted sectors of `cell`.
    pub fn wanted(&mut self, cell: u32, sectors: u64) {
        self.wanted_in(self.band(cell), sectors);
    }

    /// Adds wanted sectors of a band.
    pub(super) fn wanted_in(&mut self, band: usize, sectors: u64) {
        self.wanted[band] += sectors;
    }

    /// Removes sectors of a band that are no longer wanted and were not brought. When a task is
    /// aborted, its ranges are passed entirely, including what had been brought before; the band
    /// then counts too little, at most until its tasks have ended.
    pub(super) fn dropped_in(&mut self, band: usize, sectors: u64) {
        self.wanted[band] = self.wanted[band].saturating_sub(sectors);
    }

    /// Removes sectors of `cell` that are no longer wanted.
    pub fn gone(&mut self, cell: u32, sectors: u64, how: Gone) {
        let band = self.band(cell);
        self.dropped_in(band, sectors);
        match how {
            Gone::Free => self.free[band] += sectors,
            Gone::Idle => self.idle += sectors,
            Gone::Otherwise => return,
        }
        self.pieces += 1;
        if self.pieces >= if self.judged { JUDGE_AFTER } else { FIRST_JUDGE_AFTER } {
            self.pieces = 0;
            self.judge();
            self.free.iter_mut().chain([&mut self.idle]).for_each(|rate| *rate -= *rate / FADE);
        }
    }

    /// Returns whether work remains after `t` parts.
    fn is_early(&self, t: u128) -> bool {
        let bands = self.wanted.iter().zip(&self.free);
        let lacking: u128 = bands.map(|(&w, &g)| u128::from(w) * u128::from(share_left(w, g, t))).sum();
        lacking * PARTS > u128::from(self.idle.max(1)) * t * u128::from(ONE)
    }

    fn judge(&mut self) {
        let (mut early, mut late) = (0u128, 1u128 << 40);
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            match self.is_early(middle) {
                true => early = middle,
                false => late = middle,
            }
        }
        // Smoothed over neighbours, which are much alike: each estimate rests on few pieces, and
        // chance would send the arm to and fro.
        let about = |of: &[u64; BANDS], b: usize| of[b.saturating_sub(1)] + 2 * of[b] + of[(b + 1).min(BANDS - 1)];
        self.worth = std::array::from_fn(|b| share_left(about(&self.wanted, b), about(&self.free, b), early));
        self.judged = true;
    }

    /// Returns the time from sending a command to the end of its sectors when the head stays within
    /// a band: a revolution, and the seek across it.
    pub(super) fn within_band(&self) -> Dur {
        Dur(self.takes[1])
    }

    /// Returns the cell where the least is left, of the [`COMPARED`] nearest to `cell` in its band
    /// in which something is wanted. Gaps rarely bring a fragment; and where idle time completes
    /// cells, the others stay whole, from which gaps and read-ahead bring more.
    pub fn least_left<C: WantedCells + ?Sized>(&self, cells: &C, cell: u32, mut left: impl FnMut(u32) -> u64) -> u32 {
        let band = self.band(cell);
        let of_band = |c: &u32| self.band(*c) == band;
        let up = std::iter::successors(cells.next_up(cell), |&c| cells.next_up(c + 1)).take_while(of_band);
        let below = |c: u32| c.checked_sub(1).and_then(|c| cells.next_down(c));
        let down = std::iter::successors(below(cell), |&c| below(c)).take_while(of_band);
        let (mut up, mut down) = (up.peekable(), down.peekable());
        let nearest = std::iter::from_fn(|| match (up.peek(), down.peek()) {
            (Some(u), Some(d)) if u.abs_diff(cell) > d.abs_diff(cell) => down.next(),
            (None, _) => down.next(),
            _ => up.next(),
        });
        // What is left may be of a kind that cannot be fetched now.
        let counted = nearest.take(COMPARED).map(|c| (left(c), c)).filter(|&(sectors, _)| sectors > 0);
        counted.min_by_key(|&(sectors, _)| sectors).map_or(cell, |(_, c)| c)
    }

    /// Returns the band with the highest ratio of worth to cost; the nearer one of equals.
    fn best_band(&self, head: u32) -> Option<usize> {
        let here = self.band(head);
        // A piece of no worth is still work to do when there is no other.
        let merit = |b: &usize| (self.worth[*b] + 1) * (1 << 40) / self.takes[b.abs_diff(here)];
        let wanted = (0..BANDS).filter(|&b| self.wanted[b] > 0);
        wanted.max_by_key(|b| (merit(b), std::cmp::Reverse(b.abs_diff(here))))
    }
}

/// Policy for long idle time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// What gaps would not bring in time ("idle_SMART" in Thereska 2003 figure 11).
    #[default]
    Smart,
    /// The nearest ("idle_SPTF" there).
    Nearest,
}

impl IdlePolicy {
    /// Returns the cell to fetch from when the head is in cell `head`; `None` when nothing is
    /// wanted.
    ///
    /// Smart: the cell nearest to the head in the band with the highest ratio of worth to cost.
    pub fn choose<C: WantedCells + ?Sized>(self, cells: &C, reach: &Reach, head: u32) -> Option<u32> {
        let head = head.min(cells.count().checked_sub(1)?);
        let nearest = |to: u32| {
            let both = [cells.next_down(to), cells.next_up(to)];
            both.into_iter().flatten().min_by_key(|c| c.abs_diff(head))
        };
        if self == IdlePolicy::Smart
            && let Some(band) = reach.best_band(head)
        {
            let (first, last) = (reach.first(band), reach.first(band + 1).saturating_sub(1));
            return nearest(head.clamp(first, last.max(first)));
        }
        nearest(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::{Model, profile};

    fn reach(cells: u32) -> Reach {
        let model = Model::new(&profile::builtin("cheetah36es").unwrap()).unwrap();
        Reach::new(cells, &model.mechanics, model.geometry.cylinders())
    }

    #[test]
    fn bands_cover_the_cells_in_order() {
        for cells in [1, 5, 31, 32, 33, 1_000, 10_042] {
            let r = reach(cells);
            let bands: Vec<usize> = (0..cells).map(|c| r.band(c)).collect();
            assert!(bands.is_sorted());
            for b in 0..=BANDS {
                let first = bands.iter().position(|&x| x >= b).map_or(cells, |p| p as u32);
                assert_eq!(r.first(b), first, "{cells} cells, band {b}");
            }
        }
    }

    /// Something is wanted in each tenth cell of 3,200.
    struct EachTenth;

    impl WantedCells for EachTenth {
        fn count(&self) -> u32 {
            3_200
        }
        fn next_up(&self, from: u32) -> Option<u32> {
            Some(from.next_multiple_of(10)).filter(|&c| c < 3_200)
        }
        fn next_down(&self, from: u32) -> Option<u32> {
            Some(from / 10 * 10)
        }
    }

    #[test]
    fn of_the_nearest_cells_of_a_band_the_one_with_the_least_left_is_chosen() {
        let r = reach(3_200);
        let choose = |cell, left: fn(u32) -> u64| {
            let mut seen = vec![];
            let chosen = r.least_left(&EachTenth, cell, |c| {
                seen.push(c);
                left(c)
            });
            (chosen, seen)
        };
        let (chosen, seen) = choose(1_652, u64::from);
        assert_eq!(seen, [1_650, 1_660, 1_640]);
        assert_eq!(chosen, 1_640);
        // The nearest of equals, and none where nothing can be fetched.
        assert_eq!(choose(1_652, |_| 7).0, 1_650);
        assert_eq!(choose(1_652, |c| if c == 1_640 { 9 } else { 0 }).0, 1_640);
        assert_eq!(choose(1_652, |_| 0).0, 1_652);
        // A band has 100 cells: not beyond its edge.
        assert_eq!(choose(1_600, |_| 7).1, [1_600, 1_610, 1_620]);
        assert_eq!(choose(1_690, |_| 7).1, [1_690, 1_680, 1_670]);
    }

    #[test]
    fn a_piece_far_away_is_worth_a_long_seek_only_if_gaps_bring_little_there() {
        let mut r = reach(3_200);
        (0..3_200).for_each(|c| r.wanted(c, 1_000));
        // Gaps bring half as much again in the inner half as in the outer: not worth a long seek.
        let mut bring = |rate: [u32; 2]| {
            for i in 0..40_000u32 {
                let (n, half) = (i * 7 % 1_600, u32::from(i % (rate[0] + rate[1]) >= rate[0]));
                r.gone(half * 1_600 + n, 10, if i % 3 == 0 { Gone::Idle } else { Gone::Free });
            }
            r.best_band(3_199).expect("something is wanted")
        };
        assert_eq!(bring([2, 3]), BANDS - 1);
        assert!(bring([1, 20]) < BANDS / 2);
    }

    #[test]
    fn powers_of_two_are_right_to_a_thousandth() {
        for x in (0..12 << 16).step_by(977) {
            let exact = 65_536.0 * (-f64::from(x) / 65_536.0).exp2();
            let found = two_to_minus(x as u128) as f64;
            assert!((found - exact).abs() <= 1.0 + exact / 1_000.0, "{x}: {found} for {exact}");
        }
        assert_eq!(two_to_minus(u128::MAX), 0);
    }

    #[test]
    fn what_gaps_bring_is_worth_less_the_more_they_bring_of_it() {
        let mut r = reach(3_200);
        (0..3_200).for_each(|c| r.wanted(c, 1_000));
        assert!((0..3_200).all(|c| r.worth(c) == 65_536));
        // In the middle gaps bring three times as much as elsewhere; idle time brings as much as
        // all gaps.
        for i in 0..40_000u32 {
            let cell = if i % 4 == 0 { i * 7 % 3_200 } else { 1_200 + i * 7 % 800 };
            r.gone(cell, 10, if i % 2 == 0 { Gone::Free } else { Gone::Idle });
        }
        let (edge, middle) = (r.worth(0), r.worth(1_600));
        assert!(edge > 40_000 && middle < 20_000, "{edge} {middle}");
        assert!(r.worth(3_199).abs_diff(edge) < 10_000);
    }

    #[test]
    fn where_gaps_bring_hardly_anything_all_is_worth_the_same() {
        let mut r = reach(320);
        (0..320).for_each(|c| r.wanted(c, 10_000));
        for i in 0..5_000u32 {
            r.gone(i * 7 % 320, 10, if i % 50 == 0 { Gone::Free } else { Gone::Idle });
        }
        assert!((0..320).all(|c| r.worth(c) > 60_000));
    }
}
