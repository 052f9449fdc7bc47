//! Skews as text: `"63/334"` of a revolution, `"63 sectors"`, or a decimal figure in revolutions.
//!
//! A fraction whose denominator equals the zone's sectors per track is stored as whole sectors:
//! `"63/334"` in a file may mean 63 sectors. Any other figure is an angle; a written angle reads
//! back as the same angle.

use crate::angle::Angle;

use super::Skew;

/// Parses a skew on tracks of `spt` sectors (`None`: tracks of the zone differ).
///
/// # Errors
/// The syntax of a skew, when `text` is invalid.
pub(super) fn parse(text: &str, spt: Option<u32>) -> Result<Skew, &'static str> {
    const FORM: &str = "a skew such as \"63/334\" (of a turn), \"63 sectors\" or 0.1886 (turns)";
    let number = |t: &str| t.trim().parse::<u64>().map_err(|_| FORM);
    if let Some(count) = text.strip_suffix("sectors") {
        let count = number(count)?;
        return u32::try_from(count).map(Skew::Sectors).map_err(|_| FORM);
    }
    if let Some((num, den)) = text.split_once('/') {
        let (num, den) = (number(num)?, number(den)?);
        return match u32::try_from(num) {
            Ok(n) if spt.is_some_and(|s| u64::from(s) == den) => Ok(Skew::Sectors(n)),
            _ if den == 0 || num >= den => Err("a skew of less than a turn"),
            _ => Ok(Skew::Turn(Angle::fraction(num, den))),
        };
    }
    match turns(text) {
        Some(angle) => Ok(Skew::Turn(angle)),
        None if text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok() => {
            Err("a skew of less than a turn, with at most 30 decimals")
        }
        None => Err(FORM),
    }
}

/// Formats a skew such that [`parse`] returns it.
pub(super) fn write(skew: Skew, spt: Option<u32>) -> String {
    let angle = match skew {
        Skew::Sectors(n) => {
            return match spt {
                Some(spt) => format!("\"{n}/{spt}\""),
                None => format!("\"{n} sectors\""),
            };
        }
        Skew::Turn(angle) => angle,
    };
    match simple_fraction(angle) {
        // A denominator equal to the sectors per track would read back as sectors.
        Some((num, den)) if spt != Some(den as u32) => format!("\"{num}/{den}\""),
        _ => decimal(angle),
    }
}

/// Parses `0.ddd` of a revolution to the nearest 2^-64; `None` for anything else.
fn turns(text: &str) -> Option<Angle> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || whole.bytes().any(|b| b != b'0') || fraction.len() > 30 {
        return None;
    }
    let mut rest = 0u128;
    let mut one = 1u128;
    for b in fraction.bytes() {
        rest = rest * 10 + u128::from(char::from(b).to_digit(10)?);
        one *= 10;
    }
    let mut angle = 0u64;
    for _ in 0..64 {
        rest *= 2;
        angle = angle << 1 | u64::from(rest >= one);
        rest -= if rest >= one { one } else { 0 };
    }
    Some(Angle(angle.wrapping_add(u64::from(rest * 2 >= one))))
}

/// Returns the shortest decimal figure that [`turns`] parses as this angle.
fn decimal(angle: Angle) -> String {
    for places in 1..=30 {
        // Digits of the angle, with the last one rounded down or up.
        let mut digits = String::from("0.");
        let mut rest = angle.0;
        for _ in 0..places {
            let next = u128::from(rest) * 10;
            digits.push(char::from(b'0' + (next >> 64) as u8));
            rest = next as u64;
        }
        if turns(&digits) == Some(angle) {
            return digits;
        }
        let last = digits.pop().unwrap_or('0');
        if last < '9' {
            digits.push((last as u8 + 1) as char);
            if turns(&digits) == Some(angle) {
                return digits;
            }
        }
    }
    // 30 places always distinguish 2^64 angles.
    unreachable!("no decimal figure for angle {angle:?}")
}

/// Finds a fraction with a denominator below 100,000 that equals this angle, by continued
/// fractions.
fn simple_fraction(angle: Angle) -> Option<(u64, u64)> {
    let (mut num, mut den) = (u128::from(angle.0), 1u128 << 64);
    let (mut p, mut q) = ((0u128, 1u128), (1u128, 0u128));
    // Convergents of num/den; the angle was rounded down, so one of them is the original fraction.
    for _ in 0..40 {
        let a = num / den;
        p = (p.1, a * p.1 + p.0);
        q = (q.1, a * q.1 + q.0);
        if q.1 >= 100_000 {
            return None;
        }
        if q.1 > 0 && Angle::fraction(p.1 as u64, q.1 as u64) == angle && p.1 < q.1 {
            return Some((p.1 as u64, q.1 as u64));
        }
        (num, den) = (den, num % den);
        if den == 0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_the_track_are_sectors_and_others_are_angles() {
        assert_eq!(parse("63/334", Some(334)), Ok(Skew::Sectors(63)));
        assert_eq!(parse("4/27", Some(2673)), Ok(Skew::Turn(Angle::fraction(4, 27))));
        assert_eq!(parse("63/334", None), Ok(Skew::Turn(Angle::fraction(63, 334))));
        assert_eq!(parse("12 sectors", None), Ok(Skew::Sectors(12)));
        assert_eq!(parse("0.25", Some(10)), Ok(Skew::Turn(Angle(1 << 62))));
        assert_eq!(parse("0", Some(10)), Ok(Skew::Turn(Angle(0))));
    }

    #[test]
    fn what_is_written_reads_back_as_the_same_skew() {
        for spt in [None, Some(334), Some(27)] {
            for skew in [
                Skew::Sectors(0),
                Skew::Sectors(63),
                Skew::Turn(Angle(0)),
                Skew::Turn(Angle::fraction(4, 27)),
                Skew::Turn(Angle::fraction(557, 3600)),
                Skew::Turn(Angle(1)),
                Skew::Turn(Angle(u64::MAX)),
                Skew::Turn(Angle(0x0123_4567_89ab_cdef)),
                Skew::Turn(Angle::from_turns(0.1666)),
            ] {
                let text = write(skew, spt);
                assert_eq!(parse(text.trim_matches('"'), spt), Ok(skew), "{text} {spt:?}");
            }
        }
        assert_eq!(write(Skew::Turn(Angle::fraction(4, 27)), Some(100)), "\"4/27\"");
        assert_eq!(write(Skew::Sectors(63), Some(334)), "\"63/334\"");
    }

    #[test]
    fn what_is_no_skew_is_refused() {
        for text in ["", "x", "1/0", "5/4", "1.0", "-0.1", "1e-3", "3 cylinders", "0.1234567890123456789012345678901"] {
            assert!(parse(text, Some(4000)).is_err(), "{text}");
        }
    }
}
