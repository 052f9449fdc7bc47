//! Angles as fixed-point fractions of a revolution: 2^64 is one revolution, so wrap-around is free.

use std::ops::{Add, AddAssign, Mul, Sub};

/// An angle, or a difference of angles, as a fraction of a revolution times 2^64. Sums and
/// differences wrap.
///
/// Angles grow with time and with LBN: while the head reads a sector, the platter's angle goes from
/// the sector's left edge to its right edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Angle(pub u64);

impl Angle {
    /// The index mark.
    pub const ZERO: Angle = Angle(0);

    /// Returns `num/den` of a revolution, modulo one revolution, rounded down to a multiple of
    /// 2^-64. `den` must not be zero.
    pub fn fraction(num: u64, den: u64) -> Angle {
        assert!(den > 0, "an angle with denominator zero");
        Angle((((num % den) as u128) << 64).div_euclid(den as u128) as u64)
    }

    /// Returns the angle of `count` of `spt` sectors (at most one revolution), to within `count`
    /// times 2^-64 of a revolution; faster than [`Angle::fraction`]. A whole revolution is zero.
    #[inline]
    pub fn sectors(count: u32, spt: u32) -> Angle {
        match count < spt {
            true => Angle(u64::MAX / spt as u64 * count as u64),
            false => Angle::fraction(count as u64, spt as u64),
        }
    }

    /// Converts from revolutions, for input only. Whole revolutions are dropped; negative figures
    /// wrap.
    pub fn from_turns(turns: f64) -> Angle {
        let frac = turns - turns.floor();
        // 2^64 as f64; a fraction that rounds up to a whole revolution wraps to zero.
        let scaled = frac * 18_446_744_073_709_551_616.0;
        if scaled >= 18_446_744_073_709_551_615.0 { Angle(0) } else { Angle(scaled as u64) }
    }

    /// Converts to revolutions, 0 to 1, for reports only.
    pub fn turns(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// Returns the smaller angle between two angles, as a fraction of a revolution times 2^64.
    pub fn distance(self, other: Angle) -> u64 {
        let d = self.0.wrapping_sub(other.0);
        d.min(d.wrapping_neg())
    }
}

impl Add for Angle {
    type Output = Angle;
    #[inline]
    fn add(self, o: Angle) -> Angle {
        Angle(self.0.wrapping_add(o.0))
    }
}

impl AddAssign for Angle {
    #[inline]
    fn add_assign(&mut self, o: Angle) {
        *self = *self + o;
    }
}

impl Sub for Angle {
    type Output = Angle;
    #[inline]
    fn sub(self, o: Angle) -> Angle {
        Angle(self.0.wrapping_sub(o.0))
    }
}

impl Mul<u64> for Angle {
    type Output = Angle;
    #[inline]
    fn mul(self, n: u64) -> Angle {
        Angle(self.0.wrapping_mul(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_wrap_and_are_exact_for_powers_of_two() {
        assert_eq!(Angle::fraction(1, 4), Angle(1 << 62));
        assert_eq!(Angle::fraction(5, 4), Angle(1 << 62));
        assert_eq!(Angle::fraction(3, 4) + Angle::fraction(1, 2), Angle::fraction(1, 4));
        assert_eq!(Angle::from_turns(-0.25), Angle::fraction(3, 4));
    }

    #[test]
    fn distance_takes_the_short_way_round() {
        assert_eq!(Angle::fraction(7, 8).distance(Angle::fraction(1, 8)), 1 << 62);
    }
}
