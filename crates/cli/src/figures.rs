//! Parsers of figures and names on the command line: every error states the valid range in one
//! line, and quotes at most a short part of the input.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
#[cfg(feature = "full")]
use headtime_serve::apps::units::LARGEST_BYTES;
#[cfg(feature = "full")]
use headtime_serve::net::address::{Address, BadAddress, BadSocket};
use headtime_sim::scenario::Bytes;
use headtime_sim::scenario::flags::whole;
pub use headtime_sim::scenario::flags::{memory, seconds, seed};

/// Most characters quoted from the input.
const MAX_QUOTED_CHARACTERS: usize = 40;

/// `--budget`: minutes, up to a month.
pub fn minutes(text: &str) -> Result<u64, String> {
    whole(text, 1..=44_640)
}

/// `--priority`.
pub fn priority(text: &str) -> Result<u32, String> {
    whole(text, 1..=1_000_000).map(|n| n as u32)
}

/// `--unit`: sectors.
#[cfg(feature = "full")]
pub fn unit(text: &str) -> Result<u32, String> {
    // The bound for the smallest sectors; the disk's own sector size may allow fewer.
    whole(text, 1..=LARGEST_BYTES / 512).map(|n| n as u32)
}

/// `--retry`.
pub fn times(text: &str) -> Result<u32, String> {
    whole(text, 0..=u64::from(u32::MAX)).map(|n| n as u32)
}

/// A background session's number.
pub fn session(text: &str) -> Result<u32, String> {
    whole(text, 0..=u64::from(u32::MAX)).map(|n| n as u32)
}

/// `--sizes`: bytes of a request.
pub fn bytes(text: &str) -> Result<u64, String> {
    let parsed = Bytes::parse(text).filter(|n| (1..=64 << 20).contains(n));
    parsed.ok_or_else(|| "expected bytes such as 4096 or 64k, from 1 to 64m".into())
}

/// `--waiting`.
pub fn waiting(text: &str) -> Result<u32, String> {
    whole(text, 1..=100_000).map(|n| n as u32)
}

/// `--requests` of `profiles measure`: up to the capacity of a histogram.
pub fn measured(text: &str) -> Result<u64, String> {
    whole(text, 1..=u64::from(u32::MAX))
}

/// `disk --speed`.
#[cfg(feature = "full")]
pub fn speed(text: &str) -> Result<u64, String> {
    whole(text, 1..=headtime_serve::device::test_disk::MAX_SPEED)
}

/// `disk --max-lateness`.
#[cfg(feature = "full")]
pub fn time(text: &str) -> Result<Duration, String> {
    let time = headtime_serve::faults::table::time(text);
    time.map(|d| Duration::from_nanos(d.0)).ok_or_else(|| format!("expected {}", headtime_serve::faults::table::TIME))
}

/// `--nbd`.
#[cfg(feature = "full")]
pub fn address(text: &str) -> Result<Address, String> {
    let address: Address = text.parse().map_err(|e: BadAddress| format!("expected {}", e.expected))?;
    address.check().map_err(|_| format!("expected {}", BadSocket::expected()))?;
    Ok(address)
}

/// `--at-least`, `--at-most`: megabytes a second.
pub fn mb_s(text: &str) -> Result<f64, String> {
    let within = text.parse().ok().filter(|r: &f64| *r > 0.0 && *r <= 1e6);
    within.ok_or_else(|| "expected more than 0 and at most 1000000 MB/s".into())
}

/// `task limit`: megabytes a second; 0: no limit.
pub fn limit(text: &str) -> Result<f64, String> {
    if text == "none" { Ok(0.0) } else { mb_s(text).map_err(|why| format!("{why}, or none")) }
}

/// `search --hex`: bytes, two hexadecimal digits each.
pub fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let pairs = digits
        .filter(|digits| digits.len().is_multiple_of(2))
        .ok_or_else(|| format!("--hex: expected two hexadecimal digits a byte, found '{text}'"))?;
    Ok(pairs.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// `--done-by`: duration from now.
pub fn done_by(text: &str) -> Result<Duration, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    until(text, now)
}

/// A duration, or the time from `now` (seconds since 1970) until a time of day.
fn until(text: &str, now: u64) -> Result<Duration, String> {
    const DAY: u64 = 86_400;
    let time_of_day = text.split_once(':').and_then(|(h, m)| {
        let (h, m) = (h.parse::<u64>().ok().filter(|h| *h < 24)?, m.parse::<u64>().ok().filter(|m| *m < 60)?);
        // The next occurrence of that time, within a day.
        Some((h * 3600 + m * 60 + DAY - now % DAY - 1) % DAY + 1)
    });
    let duration = || {
        let (figure, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => DAY,
            _ => return None,
        };
        figure.parse::<u64>().ok().filter(|&n| n > 0)?.checked_mul(seconds).filter(|&s| s <= 366 * DAY)
    };
    let seconds = time_of_day.or_else(duration);
    let expected = "expected a duration (90m, 36h, 2d; at most 366d) or a time of day in UTC (06:30)";
    seconds.map(Duration::from_secs).ok_or_else(|| expected.into())
}

/// Path of a file or directory to be written. `-` is refused: by convention it means standard
/// output, which already carries the results.
pub fn output() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path == Path::new("-") {
        true => Err("expected a name (standard output is for the results; what is really called - is ./-)"),
        false => Ok(path),
    })
}

/// Returns the line for a rejected figure; `None` for all other errors.
pub fn fault(e: &clap::Error) -> Option<String> {
    if e.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(s)) => Some(s.as_str()),
        _ => None,
    };
    let (flag, found, why) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?, e.source()?);
    let flag = flag.split_whitespace().next().unwrap_or(flag);
    let mut shown: String = found.chars().take(MAX_QUOTED_CHARACTERS).flat_map(char::escape_default).collect();
    if found.chars().count() > MAX_QUOTED_CHARACTERS {
        shown.push_str("...");
    }
    Some(format!("{flag}: {why}, found \"{shown}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_duration_or_the_next_time_of_day() {
        let at = |text: &str| until(text, 86_400 * 3 + 3600).map(|d| d.as_secs());
        assert_eq!([at("90m"), at("2d"), at("5s")], [Ok(5400), Ok(172_800), Ok(5)]);
        assert_eq!([at("06:30"), at("00:30"), at("01:00")], [Ok(19_800), Ok(84_600), Ok(86_400)]);
        for wrong in ["", "m", "0h", "9", "24:00", "1:60", "-1h", "1.5h", "99999999999999999999d", "999d", "\u{e9}"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
