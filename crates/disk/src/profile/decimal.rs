//! Decimal figures as written in a file, without conversion to binary floating point.
//!
//! `0.099` ms is 99,000,000 ps, not 98,999,999.99...; repeated reading and writing of a profile
//! must not change it. So figures stay `digits * 10^exponent` until they are converted to integers
//! of the required unit.

use std::fmt;

/// An exact decimal: `digits * 10^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    exponent: i32,
}

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal { digits: 0, exponent: 0 };

    /// Parses `-?digits[.digits][e[+-]digits]`; underscores between digits are allowed, as in TOML.
    /// `None` for anything else, for more than 30 digits, and for exponents beyond 30.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(i) => (&text[..i], text[i + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, unsigned) = match mantissa.as_bytes().first()? {
            b'-' => (true, &mantissa[1..]),
            b'+' => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if !whole.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let mut digits = 0i128;
        let mut places = 0i32;
        let mut count = 0;
        for (in_fraction, part) in [(false, whole), (true, fraction)] {
            for c in part.bytes() {
                match c {
                    b'0'..=b'9' => {
                        count += 1;
                        digits = digits * 10 + i128::from(c - b'0');
                        places += i32::from(in_fraction);
                    }
                    b'_' => {}
                    _ => return None,
                }
                if count > 30 {
                    return None;
                }
            }
        }
        let exponent = exponent.checked_sub(places)?;
        (-60..=30).contains(&exponent).then_some(Decimal { digits: if negative { -digits } else { digits }, exponent })
    }

    /// Converts a whole number.
    pub fn from_int(n: i64) -> Decimal {
        Decimal { digits: n.into(), exponent: 0 }
    }

    /// Returns `units * 10^-places`, for writing: 5 places of 123456 is 1.23456.
    pub fn from_units(units: i64, places: u32) -> Decimal {
        Decimal { digits: units.into(), exponent: -(places as i32) }
    }

    /// Returns this figure times 10^places, rounded to the nearest integer (halves away from zero);
    /// `None` on overflow.
    pub fn scaled(self, places: u32) -> Option<i64> {
        let shift = self.exponent + places as i32;
        let n = if shift >= 0 {
            self.digits.checked_mul(10i128.checked_pow(shift as u32)?)?
        } else {
            match 10i128.checked_pow(shift.unsigned_abs()) {
                Some(d) => (self.digits.abs() + d / 2) / d * self.digits.signum(),
                None => 0,
            }
        };
        i64::try_from(n).ok()
    }

    /// Returns the integer part, rounded towards zero; `None` on overflow.
    pub fn truncated(self) -> Option<i64> {
        if self.exponent >= 0 {
            return self.scaled(0);
        }
        let d = 10i128.checked_pow(self.exponent.unsigned_abs());
        i64::try_from(d.map_or(0, |d| self.digits / d)).ok()
    }

    /// Returns a ratio in lowest terms; `None` for negative figures and on overflow.
    pub fn ratio(self) -> Option<(u64, u64)> {
        let mut num = u128::try_from(self.digits).ok()?;
        let mut den = 1u128;
        if self.exponent >= 0 {
            num = num.checked_mul(10u128.checked_pow(self.exponent as u32)?)?;
        } else {
            den = 10u128.checked_pow(self.exponent.unsigned_abs())?;
        }
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let g = a.max(1);
        Some((u64::try_from(num / g).ok()?, u64::try_from(den / g).ok()?))
    }

    /// Returns the product; `None` when it has too many digits.
    pub fn times(self, other: Decimal) -> Option<Decimal> {
        Some(Decimal { digits: self.digits.checked_mul(other.digits)?, exponent: self.exponent + other.exponent })
    }

    /// Whether the figure is below zero.
    pub fn is_negative(self) -> bool {
        self.digits < 0
    }

    /// Whether the figure is zero.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns the nearest floating-point number, for formulas with a root.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(0.0)
    }
}

impl fmt::Display for Decimal {
    /// Formats in plain notation with at least one digit before the point and no trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let mut text = self.digits.unsigned_abs().to_string();
        if self.digits != 0 && self.exponent > 0 {
            text.extend(std::iter::repeat_n('0', self.exponent as usize));
        }
        let places = self.exponent.min(0).unsigned_abs() as usize;
        if text.len() <= places {
            text.insert_str(0, &"0".repeat(places + 1 - text.len()));
        }
        let point = text.len() - places;
        let fraction = text[point..].trim_end_matches('0');
        write!(f, "{sign}{}", &text[..point])?;
        if !fraction.is_empty() {
            write!(f, ".{fraction}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a figure"))
    }

    #[test]
    fn figures_become_integers_without_creep() {
        assert_eq!(d("0.099000").scaled(9), Some(99_000_000));
        assert_eq!(d("-0.0005").scaled(6), Some(-500));
        assert_eq!(d("1.5e-3").scaled(6), Some(1500));
        assert_eq!(d("2.5").scaled(0), Some(3));
        assert_eq!(d("-2.5").scaled(0), Some(-3));
        assert_eq!(d("63.999").truncated(), Some(63));
        assert_eq!(d("1e20").scaled(0), None);
        assert_eq!(d("1e-40").scaled(6), Some(0));
    }

    #[test]
    fn speeds_become_exact_ratios() {
        assert_eq!(d("10025").ratio(), Some((10_025, 1)));
        assert_eq!(d("7199.6").ratio(), Some((35_998, 5)));
        assert_eq!(d("0").ratio(), Some((0, 1)));
        assert_eq!(d("-1").ratio(), None);
    }

    #[test]
    fn what_is_not_a_figure_is_refused() {
        for text in
            ["", "-", ".5", "1.2.3", "0x10", "abc", "1e", "inf", "1e99999999999", "1234567890123456789012345678901"]
        {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_text_of_a_figure_reads_as_the_same_figure() {
        for text in ["0", "1.5", "-0.00012", "1200", "3.81", "0.3"] {
            assert_eq!(d(text).to_string(), text);
        }
        assert_eq!(d("1.500").to_string(), "1.5");
        assert_eq!(d("12e2").to_string(), "1200");
        assert_eq!(Decimal::from_units(99_000, 6).to_string(), "0.099");
        assert_eq!(d("0.25").times(d("-4")).map(|x| x.to_string()), Some("-1".into()));
    }
}
