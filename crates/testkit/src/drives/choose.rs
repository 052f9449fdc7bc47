//! Draws from simple distributions.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profiles::between;

/// A generator with the distributions that drives are drawn from.
pub(super) struct Choose(pub(super) Xoshiro256PlusPlus);

impl Choose {
    /// True in `percent` of 100 draws.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.0.next_u64() % 100 < percent
    }

    /// A whole number, both ends included.
    pub(super) fn whole(&mut self, from: u64, to: u64) -> u64 {
        between(&mut self.0, from, to)
    }

    /// A number with a uniform logarithm, both ends included.
    pub(super) fn log(&mut self, from: u64, to: u64) -> u64 {
        let (a, b) = ((from as f64).ln(), (to as f64).ln());
        ((a + (b - a) * self.part()).exp().round() as u64).clamp(from, to)
    }

    /// A number from 0 to 1.
    pub(super) fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number between two others.
    pub(super) fn real(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.part()
    }

    /// One of several.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.whole(0, of.len() as u64 - 1) as usize]
    }
}
