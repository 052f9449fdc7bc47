//! Formatted sizes, times and shares.

use std::collections::BTreeMap;

pub use headtime_serve::plain::plain;

/// How a stream without a reservation is served; `mandatory`: as requested.
pub fn served(mandatory: bool) -> &'static str {
    if mandatory { "mandatory" } else { "as a mandatory one" }
}

/// A workload's measures, as a paragraph of its own; empty without measures.
pub fn measures(of: &BTreeMap<String, f64>) -> String {
    let each: Vec<String> = of.iter().map(|(name, v)| format!("{} {v:.3}", name.replace('_', " "))).collect();
    if each.is_empty() { String::new() } else { format!("\n{}\n", each.join(", ")) }
}

/// Formats a number of bytes in a suitable unit.
pub fn bytes(n: u64) -> String {
    match n as f64 {
        n if n >= 1e12 => format!("{:.2} TB", n / 1e12),
        n if n >= 1e9 => format!("{:.2} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n} bytes"),
    }
}

/// Formats a duration in its two largest units.
pub fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (d, h, m, s) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60, whole % 60);
    match (d, h, m) {
        (0, 0, 0) => format!("{s} s"),
        (0, 0, _) => format!("{m} min {s:02} s"),
        (0, ..) => format!("{h} h {m:02} min"),
        (1..10_000, ..) => format!("{d} d {h:02} h"),
        _ => "years".into(),
    }
}

/// A part of a whole, in percent.
pub fn percent(part: u64, of: u64) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

/// Formats parts per million as a percentage, without trailing zeros.
pub fn ppm(share: u64) -> String {
    let text = format!("{}.{:04}", share / 10_000, share % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_in_units_of_their_size() {
        assert_eq!([0, 999, 8192].map(bytes), ["0 bytes", "999 bytes", "8.2 kB"]);
        assert_eq!([2_000_000, 9_100_000_000, 1 << 41].map(bytes), ["2.0 MB", "9.10 GB", "2.20 TB"]);
        assert_eq!([59.9, 61.0, 7_260.0, 180_000.0].map(time), ["59 s", "1 min 01 s", "2 h 01 min", "2 d 02 h"]);
        assert_eq!([1_000_000, 999_999, 950_000, 384_600].map(ppm), ["100%", "99.9999%", "95%", "38.46%"]);
        assert_eq!([-1.0, f64::NAN, 1e300].map(time), ["0 s", "0 s", "years"]);
    }
}
