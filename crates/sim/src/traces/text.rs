//! Splitting of lines into columns and parsing of numbers, with errors that state what was expected
//! and found.
//!
//! Numbers are parsed digit by digit into integers: 12.345678 ms becomes 12,345,678 ns exactly, the
//! same on every machine, and several times faster than through a float.

use std::borrow::Cow;

/// Number of columns kept per line; further ones (a process name with spaces) are only counted.
const KEPT_COLUMNS: usize = 20;

/// Why a line is invalid. The reader adds file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// What was expected.
    pub expected: Cow<'static, str>,
    /// What was found.
    pub found: String,
}

impl Bad {
    /// Makes an error about a sequence of bytes.
    pub fn new(expected: impl Into<Cow<'static, str>>, found: &[u8]) -> Bad {
        Bad { expected: expected.into(), found: quote(found) }
    }
}

/// Formats bytes for a message: lossily as text, truncated to 48 characters.
pub fn quote(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "nothing".to_owned();
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    let mut shown: String = text.chars().take(48).flat_map(char::escape_default).collect();
    if text.chars().count() > 48 {
        shown.push_str("...");
    }
    format!("\"{shown}\"")
}

/// The columns of a line.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    line: &'a [u8],
    parts: [&'a [u8]; KEPT_COLUMNS],
    len: usize,
}

impl<'a> Columns<'a> {
    /// Splits at any number of spaces and tabs.
    pub fn by_space(line: &'a [u8]) -> Columns<'a> {
        let mut c = Columns { line, parts: [&[]; KEPT_COLUMNS], len: 0 };
        let mut start = None;
        for (i, &b) in line.iter().enumerate() {
            let space = b == b' ' || b == b'\t';
            match (space, start) {
                (true, Some(s)) => {
                    c.push(&line[s..i]);
                    start = None;
                }
                (false, None) => start = Some(i),
                _ => {}
            }
        }
        if let Some(s) = start {
            c.push(&line[s..]);
        }
        c
    }

    /// Splits at commas and trims spaces. Quotes have no meaning: none of the formats uses them.
    pub fn by_comma(line: &'a [u8]) -> Columns<'a> {
        let mut c = Columns { line, parts: [&[]; KEPT_COLUMNS], len: 0 };
        let mut start = 0;
        for (i, &b) in line.iter().enumerate() {
            if b == b',' {
                c.push(line[start..i].trim_ascii());
                start = i + 1;
            }
        }
        c.push(line[start..].trim_ascii());
        c
    }

    fn push(&mut self, part: &'a [u8]) {
        if self.len < KEPT_COLUMNS {
            self.parts[self.len] = part;
        }
        self.len += 1;
    }

    /// Returns the number of columns.
    pub fn count(&self) -> usize {
        self.len
    }

    /// Returns the whole line.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// Requires exactly `n` columns; `shape` describes the whole line.
    pub fn exactly(&self, n: usize, shape: &'static str) -> Result<(), Bad> {
        if self.len == n {
            Ok(())
        } else {
            Err(Bad { expected: Cow::Borrowed(shape), found: format!("{} columns in {}", self.len, quote(self.line)) })
        }
    }

    /// Returns column `i`, from 0; empty if the line is shorter.
    pub fn get(&self, i: usize) -> &'a [u8] {
        self.parts.get(i).copied().unwrap_or(&[])
    }

    /// Parses column `i` as a whole number.
    pub fn whole(&self, i: usize, what: &'static str) -> Result<u64, Bad> {
        whole(self.get(i)).ok_or_else(|| Bad::new(what, self.get(i)))
    }

    /// Parses column `i` as a 32-bit whole number.
    pub fn whole32(&self, i: usize, what: &'static str) -> Result<u32, Bad> {
        whole(self.get(i)).and_then(|n| u32::try_from(n).ok()).ok_or_else(|| Bad::new(what, self.get(i)))
    }

    /// Parses column `i` as a number times 10^`digits`, rounded to the nearest integer.
    pub fn scaled(&self, i: usize, digits: u32, what: &'static str) -> Result<u64, Bad> {
        scaled(self.get(i), digits).ok_or_else(|| Bad::new(what, self.get(i)))
    }
}

/// Parses a whole number in decimal digits; `None` for anything else, and above 64 bits.
pub fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut n = 0u64;
    for &b in text {
        let d = b.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n.checked_mul(10)?.checked_add(u64::from(d))?;
    }
    Some(n)
}

/// Parses a non-negative decimal number times 10^`digits`, rounded to the nearest integer (half
/// up). A number with an exponent is converted through a float; all others are exact. `None` when
/// it is invalid or exceeds 64 bits.
pub fn scaled(text: &[u8], digits: u32) -> Option<u64> {
    let mut n = 0u64;
    let mut seen = false;
    let mut left = digits;
    let mut i = 0;
    while i < text.len() {
        let d = text[i].wrapping_sub(b'0');
        if d > 9 {
            break;
        }
        n = n.checked_mul(10)?.checked_add(u64::from(d))?;
        seen = true;
        i += 1;
    }
    let mut round_up = false;
    if text.get(i) == Some(&b'.') {
        i += 1;
        let mut extra = false;
        while i < text.len() {
            let d = text[i].wrapping_sub(b'0');
            if d > 9 {
                break;
            }
            seen = true;
            if left > 0 {
                n = n.checked_mul(10)?.checked_add(u64::from(d))?;
                left -= 1;
            } else if !extra {
                // Only the first dropped digit determines the rounding.
                extra = true;
                round_up = d >= 5;
            }
            i += 1;
        }
    }
    if !seen {
        return None;
    }
    if i < text.len() {
        return with_exponent(text, digits);
    }
    n.checked_mul(10u64.checked_pow(left)?)?.checked_add(u64::from(round_up))
}

fn with_exponent(text: &[u8], digits: u32) -> Option<u64> {
    let first = *text.first()?;
    if !(first.is_ascii_digit() || first == b'.') || !text.iter().all(|b| b.is_ascii_digit() || b".eE+-".contains(b)) {
        return None;
    }
    let v: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let scaled = (v * 10f64.powi(digits as i32)).round();
    (0.0..1.8e19).contains(&scaled).then_some(scaled as u64)
}

/// Converts bytes to whole 512-byte sectors.
pub fn sectors(bytes: u64, what: &'static str) -> Result<u64, Bad> {
    if bytes.is_multiple_of(512) {
        Ok(bytes / 512)
    } else {
        Err(Bad { expected: Cow::Borrowed(what), found: format!("{bytes} bytes, which is not a multiple of 512") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_scaled_exactly_and_rounded_at_the_end() {
        assert_eq!(scaled(b"12.345678", 6), Some(12_345_678));
        assert_eq!(scaled(b"12", 6), Some(12_000_000));
        assert_eq!(scaled(b".5", 3), Some(500));
        assert_eq!(scaled(b"0.0000005", 6), Some(1));
        assert_eq!(scaled(b"0.00000049999", 6), Some(0));
        assert_eq!(scaled(b"14095.370", 3), Some(14_095_370));
        assert_eq!(scaled(b"1.5e+03", 3), Some(1_500_000));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [&b""[..], b".", b"-1", b"1.2.3", b"nan", b"inf", b"e5", b"12x", b"1e", b"99999999999999999999"] {
            assert_eq!(scaled(text, 3), None, "{}", quote(text));
        }
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(whole(b"+1"), None);
    }

    #[test]
    fn columns_are_cut_at_spaces_or_commas() {
        let c = Columns::by_space(b"  a \t bc d  ");
        assert_eq!(
            (c.count(), c.get(0), c.get(1), c.get(2), c.get(3)),
            (3, &b"a"[..], &b"bc"[..], &b"d"[..], &b""[..])
        );
        let c = Columns::by_comma(b"a, ,c,");
        assert_eq!((c.count(), c.get(0), c.get(1), c.get(2), c.get(3)), (4, &b"a"[..], &b""[..], &b"c"[..], &b""[..]));
    }
}
