//! Random numbers that are the same on every machine: one generator, integer arithmetic only.
//!
//! The generator is xoshiro256++ seeded through SplitMix64. Each task has a stream of its own,
//! derived from the run's seed and the task's number, so that a task's requests do not depend on
//! how others are scheduled.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// ln 2 times 2^64, rounded down.
const LN_2: u128 = 0xB172_17F7_D1CF_79AB;
/// Number of binary digits computed of a logarithm.
const LOG_BITS: u32 = 32;

/// A share, as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    num: u32,
    den: u32,
}

impl Share {
    /// 0.
    pub const NONE: Share = Share { num: 0, den: 1 };
    /// 1.
    pub const ALL: Share = Share { num: 1, den: 1 };

    /// Returns `num`/`den`; `None` unless `num <= den` and `den > 0`.
    pub const fn new(num: u32, den: u32) -> Option<Share> {
        if den > 0 && num <= den { Some(Share { num, den }) } else { None }
    }

    /// Converts a number between 0 and 1, to 9 decimals; for input only.
    pub fn from_f64(share: f64) -> Option<Share> {
        const DEN: u32 = 1_000_000_000;
        if (0.0..=1.0).contains(&share) { Share::new((share * f64::from(DEN)).round() as u32, DEN) } else { None }
    }

    /// Whether it is 1, however the fraction is written.
    pub fn is_all(self) -> bool {
        self.num == self.den
    }

    /// Whether it is 0.
    pub fn is_none(self) -> bool {
        self.num == 0
    }

    /// Converts to a number between 0 and 1, for reports only.
    pub fn as_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Variates(Xoshiro256PlusPlus);

impl Variates {
    /// Creates the stream of this number, for a run with this seed.
    pub fn new(seed: u64, stream: u64) -> Variates {
        // Any odd factor separates the streams; SplitMix64 inside seed_from_u64 does the mixing.
        let mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Variates(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws uniformly from 0 to `n`, exclusive; 0 when `n` is 0. The bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Returns true with probability `share`.
    #[inline]
    pub fn chance(&mut self, share: Share) -> bool {
        share.num > 0 && self.below(u64::from(share.den)) < u64::from(share.num)
    }

    /// Draws an exponential variate with mean 1, times 2^32.
    #[inline]
    pub fn exponential_fx(&mut self) -> u64 {
        neg_ln_fx(self.bits().max(1))
    }

    /// Draws an exponential variate with this mean, rounded down.
    #[inline]
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let e = (u128::from(mean) * u128::from(self.exponential_fx())) >> 32;
        u64::try_from(e).unwrap_or(u64::MAX)
    }
}

/// Returns -ln(x / 2^64) times 2^32 for x > 0, to within 2^-30.
///
/// With x = m * 2^(63 - k), 1 <= m < 2: -log2(x / 2^64) = 1 + k - log2 m. The digits of log2 m are
/// computed one by one: squaring m doubles its logarithm, and a square of 2 or more gives a one
/// (the textbook method, as in Knuth, The Art of Computer Programming 1, section 1.2.2, exercise
/// 25). Floats are avoided because `f64::ln` may differ in its last bit between machines.
pub fn neg_ln_fx(x: u64) -> u64 {
    assert!(x > 0, "the logarithm of zero");
    let k = x.leading_zeros();
    let mut m = x << k;
    let mut log2 = 0u64;
    for _ in 0..LOG_BITS {
        let square = u128::from(m) * u128::from(m);
        let one = (square >> 127) as u64;
        m = (square >> (63 + one as u32)) as u64;
        log2 = log2 << 1 | one;
    }
    let neg_log2 = (u64::from(k + 1) << LOG_BITS) - log2;
    ((u128::from(neg_log2) * LN_2) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_float_one() {
        let mut v = Variates::new(1, 1);
        for i in 0..10_000u64 {
            let x = (v.bits() >> (i % 60)).max(1);
            let exact = 64.0 * std::f64::consts::LN_2 - (x as f64).ln();
            let ours = neg_ln_fx(x) as f64 / (1u64 << 32) as f64;
            assert!((ours - exact).abs() < 2e-9, "{x}: {ours} {exact}");
        }
        assert_eq!(neg_ln_fx(1 << 63), (0xB172_17F7_D1CF_79ABu64) >> 32);
    }

    #[test]
    fn exponential_variates_have_their_mean_and_tail() {
        let mut v = Variates::new(7, 0);
        let n = 200_000;
        let (mut sum, mut beyond) = (0u128, 0);
        for _ in 0..n {
            let e = v.exponential(1_000_000);
            sum += u128::from(e);
            beyond += u32::from(e > 3_000_000);
        }
        let mean = sum as f64 / f64::from(n);
        assert!((mean - 1e6).abs() < 1e4, "{mean}");
        let tail = f64::from(beyond) / f64::from(n);
        assert!((tail - (-3.0f64).exp()).abs() < 0.002, "{tail}");
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, stream| Variates::new(seed, stream).bits();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        // Pinned: a change of generator would silently change every published result.
        let mut v = Variates::new(1, 0);
        assert_eq!((v.below(1000), v.below(1000), v.below(1000)), (705, 690, 534));
    }

    #[test]
    fn a_chance_of_two_in_three_is_two_in_three() {
        let mut v = Variates::new(3, 3);
        let share = Share::new(2, 3).unwrap();
        let hits = (0..90_000).filter(|_| v.chance(share)).count();
        assert!((59_400..60_600).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| v.chance(Share::ALL) && !v.chance(Share::NONE)));
        assert!(Share::new(4, 3).is_none() && Share::from_f64(1.5).is_none());
        assert!(Share::from_f64(f64::NAN).is_none());
    }
}
