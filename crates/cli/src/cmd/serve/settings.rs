//! Settings of exports that change while they are served, in words.

use headtime_serve::net::exports::ExportSettings;

/// The settings other than the weight, each with a comma before it.
pub fn said(settings: &ExportSettings) -> String {
    let named = named(settings).into_iter().skip(1);
    named.filter_map(|(name, value, unit)| Some(format!(", {name} {}{unit}", value?))).collect()
}

/// What is different now, setting by setting.
pub fn changes(before: &ExportSettings, now: &ExportSettings) -> Vec<String> {
    let all = named(before).into_iter().zip(named(now)).filter(|(before, now)| before.1 != now.1);
    let value = |value: Option<f64>, unit: &str| value.map_or("none".into(), |v| format!("{v}{unit}"));
    let said = all.map(|((name, before, unit), (_, now, _))| match (before, now) {
        (Some(_), None) => format!("{name} {} is removed", value(before, unit)),
        _ => format!("{name} {} is now {}", value(before, unit), value(now, unit)),
    });
    said.collect()
}

/// Each setting's name, value and unit.
fn named(s: &ExportSettings) -> [(&'static str, Option<f64>, &'static str); 4] {
    [
        ("weight", Some(f64::from(s.share.weight)), ""),
        ("limit", s.limit.bytes.map(|r| r.as_per_second() / 1e6), " MB/s"),
        ("limit", s.limit.requests.map(|r| r.as_per_second()), " requests/s"),
        ("latency target", s.latency_target.map(|t| t.as_ms_f64()), " ms"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::{Rate, RateLimit};

    #[test]
    fn only_what_is_different_is_said() {
        let plain = ExportSettings::weighing(100);
        let limit = |mb: f64| RateLimit { bytes: Rate::per_second(mb * 1e6), requests: Rate::per_second(50.0) };
        let slow = ExportSettings { limit: limit(2.5), ..plain };
        assert_eq!(changes(&slow, &slow), [""; 0]);
        assert_eq!(changes(&plain, &slow), ["limit none is now 2.5 MB/s", "limit none is now 50 requests/s"]);
        let other = ExportSettings { limit: limit(3.0), ..ExportSettings::weighing(300) };
        assert_eq!(changes(&slow, &other), ["weight 100 is now 300", "limit 2.5 MB/s is now 3 MB/s"]);
        assert_eq!(changes(&slow, &plain), ["limit 2.5 MB/s is removed", "limit 50 requests/s is removed"]);
        assert_eq!(said(&slow), ", limit 2.5 MB/s, limit 50 requests/s");
        assert_eq!(said(&plain), "");
    }
}
