//! Random numbers of fleets: the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// Returns stream `number` of a study with this seed.
    pub(super) fn new(seed: u64, number: u64) -> Draws {
        Draws(Xoshiro256PlusPlus::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Draws a number above 0, and at most 1.
    pub(super) fn share(&mut self) -> f64 {
        // 53 bits, as many as a number has.
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Draws from the exponential distribution with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -libm::log(self.share())
    }

    /// Draws from the standard normal distribution (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.share())
    }
}
