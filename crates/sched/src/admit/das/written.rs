//! Text form of periods and qualities, parsed alike in files and on the command line.

use headtime_disk::Dur;
use headtime_disk::internals::Decimal;

use super::stream::{PERIODS, Quality};

/// Expected form of a quality.
pub const QUALITY_FORMAT: &str = "a share such as 99% or 0.99, more than 0 and at most all, in whole parts per million";

/// Returns the expected form of a period.
pub fn period_format() -> String {
    format!("a time such as 500ms, from {} ms to {} s", PERIODS.0.as_ms_f64(), PERIODS.1.as_secs_f64())
}

/// Parses a period: a number and s, ms or us, in whole nanoseconds. `None`: invalid, or outside the
/// limits of periods.
pub fn parse_period(text: &str) -> Option<Dur> {
    let text = text.trim();
    let (figure, places) = [("ms", 6), ("us", 3), ("s", 9)]
        .iter()
        .find_map(|&(unit, places)| Some((text.strip_suffix(unit)?.trim_end(), places)))?;
    let ns = whole(figure, places)?;
    Some(Dur(ns)).filter(|t| (PERIODS.0..=PERIODS.1).contains(t))
}

/// Parses a quality: in percent, or as a number up to 1, in whole parts per million. One that would
/// have to be rounded is refused: it would be another guarantee than the requested one.
pub fn parse_quality(text: &str) -> Option<Quality> {
    let text = text.trim();
    let (figure, places) = text.strip_suffix('%').map_or((text, 6), |percent| (percent.trim_end(), 4));
    Quality::from_ppm(whole(figure, places)?.try_into().ok()?).ok()
}

/// Returns a number times 10^`places`, if that is a whole number.
fn whole(figure: &str, places: u32) -> Option<u64> {
    let (numerator, denominator) = Decimal::parse(figure)?.ratio()?;
    let scaled = u128::from(numerator) * 10u128.pow(places);
    let whole = scaled.is_multiple_of(u128::from(denominator));
    u64::try_from(scaled / u128::from(denominator)).ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_a_unit_and_is_read_exactly() {
        for (text, ns) in
            [("500ms", 500_000_000), ("0.5 s", 500_000_000), (" 1500us ", 1_500_000), ("1e3 ms", 1_000_000_000)]
        {
            assert_eq!(parse_period(text), Some(Dur(ns)), "{text}");
        }
        for wrong in ["", "ms", "500", "500 m", "999us", "10.1s", "-5ms", "0.0000001ms", "1.0000000004ms", "1h"] {
            assert_eq!(parse_period(wrong), None, "{wrong}");
        }
        assert_eq!(period_format(), "a time such as 500ms, from 1 ms to 10 s");
    }

    #[test]
    fn a_quality_is_a_share_and_never_rounded() {
        let of = |text: &str| parse_quality(text).map(Quality::ppm);
        assert_eq!(["99.5%", "0.995", "0.000001"].map(of), [Some(995_000), Some(995_000), Some(1)]);
        for all in ["100 %", "1", "1.0", "1e0", "100.00%"] {
            assert_eq!(parse_quality(all), Some(Quality::MANDATORY), "{all}");
        }
        for finer in ["99.99999%", "0.9999999", "0.99999999999", "0.9999999999999999999", "50.00001%", "0.0000001"] {
            assert_eq!(parse_quality(finer), None, "{finer}");
        }
        for wrong in ["", "%", "0", "0%", "101%", "1.0000001", "1.5", "1e20", "-1", "much", "NaN", "inf"] {
            assert_eq!(parse_quality(wrong), None, "{wrong}");
        }
    }
}
