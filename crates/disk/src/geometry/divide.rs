//! Division of 64-bit integers by a precomputed divisor.

/// A divisor with its reciprocal: a division costs one multiplication and one correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    value: u64,
    /// floor((2^64 - 1) / value).
    reciprocal: u64,
}

impl Divisor {
    /// Prepares a divisor, which must not be zero.
    pub(super) fn new(value: u64) -> Divisor {
        assert!(value > 0, "a divisor of zero");
        Divisor { value, reciprocal: u64::MAX / value }
    }

    /// Returns the divisor.
    #[inline]
    pub(super) fn get(self) -> u64 {
        self.value
    }

    /// Returns quotient and remainder, exact for every `x`.
    ///
    /// The reciprocal lies less than 1 below 2^64 / value or is equal to 2^64 / value - 1, so the
    /// estimate is at most x / 2^64 < 1 too small: after rounding down, by at most one.
    #[inline]
    pub(super) fn div_rem(self, x: u64) -> (u64, u64) {
        let estimate = high_product(x, self.reciprocal);
        let rest = x - estimate * self.value;
        if rest >= self.value { (estimate + 1, rest - self.value) } else { (estimate, rest) }
    }
}

/// Returns the upper half of a 128-bit product.
#[inline]
pub(super) fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_reciprocal_is_exact_at_the_edges() {
        let divisors = [1, 2, 3, 7, 334, 4096, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX - 1, u64::MAX];
        for d in divisors {
            let divisor = Divisor::new(d);
            for around in [0, d, d.wrapping_mul(2), d.wrapping_mul(1_000_003), 1 << 63, u64::MAX] {
                for off in -2i64..=2 {
                    let x = around.wrapping_add_signed(off);
                    assert_eq!(divisor.div_rem(x), (x / d, x % d), "{x} / {d}");
                }
            }
        }
    }
}
