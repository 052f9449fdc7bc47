//! Rotation with an exact period.
//!
//! 10,025 rpm is 60e9/10025 ns per revolution, not a whole number. Speeds are kept as a ratio, from
//! which two fixed-point factors are computed once:
//!
//! * `turns_per_ns_hi` and `turns_per_ns_lo`, the halves of q = floor(2^128 / period): the angle
//!   after t ns is (t * q) >> 64, modulo 2^64. The error is below t / 2^64 of 2^-64 revolution,
//!   which is negligible in any run.
//! * `period_fx` = period in ns times 2^32, rounded down: the time to rotate by angle a is a *
//!   period_fx / 2^96, rounded up to whole nanoseconds except for a tolerance of 2^-16 ns.

use crate::angle::Angle;
use crate::time::Dur;

/// An angle at most this far behind the head counts as under it: 1e-6 revolution, the rounding that
/// integer nanoseconds can leave (one nanosecond at 15,000 rpm is 2.5e-7 revolution). Without it a
/// sequential access would occasionally wait a whole revolution.
pub const JUST_PASSED: Angle = Angle(18_446_744_073_709);

/// Tolerance in rounding up to whole nanoseconds: 2^-16 ns, in units of 2^-32 ns.
pub(crate) const GRACE_FX: u64 = 1 << 16;

/// A constant speed of rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    num: u64,
    den: u64,
    turns_per_ns_hi: u64,
    turns_per_ns_lo: u64,
    period_fx: u64,
}

impl Rotation {
    /// Creates a rotation whose period is `num/den` nanoseconds.
    ///
    /// Returns `None` unless the period lies between 1 ms and 1 s (60,000 to 60 rpm) and `den` is
    /// below 2^31.
    pub fn from_period(num: u64, den: u64) -> Option<Rotation> {
        if den == 0 || den >= 1 << 31 || num / den < 1_000_000 || num / den > 1_000_000_000 {
            return None;
        }
        // floor(2^128 * den / num): (2^128 - 1) / num is exact enough because num never divides
        // 2^128.
        let q = u128::MAX / num as u128;
        let r = u128::MAX % num as u128 + 1;
        let per_ns = q * den as u128 + r * den as u128 / num as u128;
        let period_fx = ((num as u128) << 32) / den as u128;
        Some(Rotation {
            num,
            den,
            turns_per_ns_hi: (per_ns >> 64) as u64,
            turns_per_ns_lo: per_ns as u64,
            period_fx: period_fx as u64,
        })
    }

    /// Creates a rotation of `num/den` rpm; the limits are those of [`Rotation::from_period`].
    pub fn from_rpm(num: u64, den: u64) -> Option<Rotation> {
        if num == 0 || den == 0 {
            return None;
        }
        let top = 60_000_000_000u128 * den as u128;
        // The greatest common divisor of two numbers equals that of the divisor and the remainder.
        let g = gcd(num, (top % num as u128) as u64);
        Rotation::from_period(u64::try_from(top / g as u128).ok()?, num / g)
    }

    /// Returns the period as a ratio in nanoseconds, as given to [`Rotation::from_period`]; that of
    /// [`Rotation::from_rpm`] is in lowest terms.
    pub fn period_ratio(&self) -> (u64, u64) {
        (self.num, self.den)
    }

    /// Returns the rotation with its period changed by `ppb` parts per billion, clamped to the
    /// limits of [`Rotation::from_period`].
    pub fn scaled_period_ppb(&self, ppb: i64) -> Rotation {
        // Keep the ratio's size bounded: the scaled period in units of 2^-30 ns.
        let fx = ((self.num as u128) << 30) / self.den as u128;
        let scaled = fx as i128 + fx as i128 * ppb as i128 / 1_000_000_000;
        let scaled = scaled.clamp(1_000_000 << 30, 1_000_000_000 << 30);
        Rotation::from_period(scaled as u64, 1 << 30).expect("the period was clamped into the allowed range")
    }

    /// Returns the period, to the nearest nanosecond.
    #[inline]
    pub fn period(&self) -> Dur {
        Dur((self.period_fx + (1 << 31)) >> 32)
    }

    /// Returns the angle of rotation in `d`, modulo one revolution.
    #[inline]
    pub fn angle_after(&self, d: Dur) -> Angle {
        let low = (d.0 as u128 * self.turns_per_ns_lo as u128) >> 64;
        Angle((low as u64).wrapping_add(d.0.wrapping_mul(self.turns_per_ns_hi)))
    }

    /// Returns the least whole number of nanoseconds in which the platter rotates by `a` (less than
    /// one revolution).
    #[inline]
    pub fn time_for(&self, a: Angle) -> Dur {
        whole_ns(((a.0 as u128 * self.period_fx as u128) >> 64) as u64)
    }

    /// Returns the rotational wait from angle `here` to angle `target`; zero when `target` has
    /// passed only by rounding: at most 1e-6 of a revolution ago.
    #[inline]
    pub fn wait(&self, here: Angle, target: Angle) -> Dur {
        let a = target - here;
        if a.0 > 0u64.wrapping_sub(JUST_PASSED.0) { Dur::ZERO } else { self.time_for(a) }
    }

    /// Returns the time since `target` passed, where [`Rotation::wait`] counts it as under the
    /// head. An access that begins there began earlier by this time. Otherwise rounding errors of
    /// many consecutive accesses would accumulate to a missed sector.
    #[inline]
    pub fn passed(&self, here: Angle, target: Angle) -> Dur {
        let past = here - target;
        if past.0 < JUST_PASSED.0 { Dur(((past.0 as u128 * self.period_fx as u128) >> 96) as u64) } else { Dur::ZERO }
    }

    /// Returns the time of one sector on a track of `spt`, in nanoseconds times 2^32.
    #[inline]
    pub fn sector_fx(&self, spt: u32) -> u64 {
        self.period_fx / spt as u64
    }

    /// Returns the least whole number of nanoseconds in which `count` sectors of a track of `spt`
    /// pass (`count` may exceed a revolution).
    #[inline]
    pub fn sectors(&self, count: u64, spt: u32) -> Dur {
        sectors_time(self.sector_fx(spt), count)
    }
}

/// Returns the time of `count` sectors of `sector_fx` (ns times 2^32) each, rounded up to whole
/// nanoseconds.
#[inline]
pub fn sectors_time(sector_fx: u64, count: u64) -> Dur {
    let fx = sector_fx as u128 * count as u128;
    Dur(((fx + ((1 << 32) - 1 - GRACE_FX as u128)) >> 32) as u64)
}

/// Rounds `fx` (ns times 2^32) up to whole nanoseconds with a tolerance of [`GRACE_FX`], so that a
/// whole number with rounding errors in its factors stays that number.
#[inline]
fn whole_ns(fx: u64) -> Dur {
    Dur((fx + ((1 << 32) - 1 - GRACE_FX)) >> 32)
}

/// Returns the greatest common divisor.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_speed_keeps_its_phase_over_a_day() {
        let r = Rotation::from_rpm(10_025, 1).unwrap();
        // After exactly 10,025 revolutions = 60 s the angle is zero again, up to a few units of
        // 2^-64 revolution.
        for minutes in [1u64, 60, 1440] {
            let a = r.angle_after(Dur::from_secs(60 * minutes));
            assert!(a.distance(Angle::ZERO) < 1 << 20, "{minutes} min: {}", a.turns());
        }
    }

    #[test]
    fn time_and_angle_are_inverse_to_a_nanosecond() {
        let r = Rotation::from_rpm(7_200, 1).unwrap();
        for k in 1..1000u64 {
            let a = Angle::fraction(k, 1000);
            let d = r.time_for(a);
            assert!(r.angle_after(d).distance(a) < Angle::fraction(2, 8_333_333).0, "{k}");
        }
    }

    #[test]
    fn a_sector_that_just_passed_is_not_waited_for() {
        let r = Rotation::from_rpm(15_000, 1).unwrap();
        let here = Angle(1000);
        assert_eq!(r.wait(here, Angle(999)), Dur::ZERO);
        assert!(r.wait(here + JUST_PASSED, here - Angle(1)).0 > 3_999_000);
    }

    #[test]
    fn how_long_ago_it_passed_is_known_where_it_is_not_waited_for() {
        let r = Rotation::from_rpm(15_000, 1).unwrap();
        for ns in 0..=5 {
            let here = Angle(1000) + r.angle_after(Dur(ns));
            let (waits, ago) = (r.wait(here, Angle(1000)), r.passed(here, Angle(1000)));
            let expected = if ns < 4 { (Dur::ZERO, Dur(ns)) } else { (Dur(4_000_000 - ns), Dur::ZERO) };
            assert!(waits.0.abs_diff(expected.0.0) <= 1 && ago.0.abs_diff(expected.1.0) <= 1, "{ns}: {waits} {ago}");
        }
    }

    #[test]
    fn a_speed_error_stops_at_the_limits() {
        for (rpm, ppb, period) in [
            (60, 1000, 1_000_000_000),
            (60, i64::MAX, 1_000_000_000),
            (60_000, -1000, 1_000_000),
            (60_000, i64::MIN, 1_000_000),
            (60, -1000, 999_999_000),
        ] {
            let r = Rotation::from_rpm(rpm, 1).unwrap().scaled_period_ppb(ppb);
            assert_eq!(r.period(), Dur(period), "{rpm} rpm, {ppb} ppb");
        }
    }

    #[test]
    fn absurd_speeds_are_refused() {
        assert!(Rotation::from_rpm(0, 1).is_none());
        assert!(Rotation::from_rpm(59, 1).is_none());
        assert!(Rotation::from_rpm(60_001, 1).is_none());
        assert_eq!(Rotation::from_rpm(5_400, 1).unwrap().period(), Dur(11_111_111));
    }
}
