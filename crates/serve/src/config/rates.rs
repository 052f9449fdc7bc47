//! Limits and latency target of an export: `max-mb-s`, `max-iops`, `latency-target-ms`.

use std::fmt;

use headtime_disk::Dur;
use headtime_sched::{Policy, Rate, RateLimit, Share};
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use super::{Config, Export};
use crate::net::exports::ExportSettings;

/// The highest limits, MB/s and requests per second.
const MAX_RATE: f64 = 1e6;
/// The lowest limits: one thousandth, 1 kB/s or a request in 1000 s.
const MIN_RATE: f64 = 1e-3;
/// The range of a latency target, milliseconds.
const TARGETS: (f64, f64) = (1.0, 60_000.0);
/// Bytes of a MB.
const MB: f64 = 1e6;

/// What an export needs beside it for a latency target.
pub(super) const WITH_BFQ: &str =
    "scheduler.admit = \"bfq\" or \"bfq+\" beside it, or several exports and no scheduler.admit";
/// What an export with a write cache must not have: the limit would hold for the cache's writes to
/// the disk and not for the clients.
pub(super) const WITHOUT_LIMIT: &str = "an export without max-mb-s and max-iops";

impl Export {
    /// Returns its limits.
    pub(super) fn limit(&self) -> RateLimit {
        RateLimit { bytes: self.max_mb_s, requests: self.max_iops }
    }

    /// Returns what may change while it is served.
    pub fn settings(&self) -> ExportSettings {
        let share = Share { weight: self.weight, ..Share::default() };
        ExportSettings { share, limit: self.limit(), latency_target: self.latency_target_ms }
    }
}

impl Config {
    /// Returns whether latency targets have an effect. Guarantees for streams are given before any
    /// policy, so that under `das` no target could be kept.
    pub(super) fn knows_latency_targets(&self) -> bool {
        matches!(self.policy(), Policy::Bfq(_)) && !self.scheduler.has_guarantees
    }
}

/// Reads `max-mb-s`.
pub(super) fn mb_s<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let number = Number { least: MIN_RATE, most: MAX_RATE, what: "10^6 bytes per second" };
    from.deserialize_any(number).map(|mb| Rate::per_second(mb * MB))
}

/// Reads `max-iops`.
pub(super) fn iops<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let number = Number { least: MIN_RATE, most: MAX_RATE, what: "requests per second" };
    from.deserialize_any(number).map(Rate::per_second)
}

/// Reads `latency-target-ms`.
pub(super) fn target<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Dur>, D::Error> {
    let number = Number { least: TARGETS.0, most: TARGETS.1, what: "milliseconds" };
    from.deserialize_any(number).map(|ms| Some(Dur::from_ms_f64(ms)))
}

/// A number within a range, so that an error is reported with its line.
struct Number {
    least: f64,
    most: f64,
    what: &'static str,
}

impl Number {
    fn checked<E: Error>(self, n: f64, found: Unexpected<'_>) -> Result<f64, E> {
        match (self.least..=self.most).contains(&n) {
            true => Ok(n),
            false => Err(E::invalid_value(found, &self)),
        }
    }
}

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, a number from {} to {}", self.what, self.least, self.most)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<f64, E> {
        self.checked(n as f64, Unexpected::Signed(n))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<f64, E> {
        self.checked(n, Unexpected::Float(n))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::ConfigError;
    use super::*;

    const GOOD: &str = r#"[disk]
drive = "atlas10k"
backing = "disk.img"
[scheduler]
[listen]
[[export]]
name = "a"
size = "1 GiB"
max-mb-s = 2.5
max-iops = 100
[[export]]
name = "b"
start = "1 GiB"
latency-target-ms = 30
"#;

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::read(text, Path::new("/etc/headtime/serve.toml"))
    }

    #[test]
    fn limits_and_targets_are_read_and_none_is_the_default() {
        let c = read(GOOD).unwrap();
        let [a, b] = [0, 1].map(|at| c.exports[at].settings());
        let rates = |s: &ExportSettings| {
            (s.limit.bytes.map(Rate::as_per_second), s.limit.requests.map(Rate::as_per_second), s.latency_target)
        };
        assert_eq!(rates(&a), (Some(2.5e6), Some(100.0), None));
        assert_eq!(rates(&b), (None, None, Some(Dur::from_ms(30))));
        assert_eq!((a.share.weight, b.share.weight), (100, 100));
        // They may change without a restart.
        let other =
            GOOD.replace("max-mb-s = 2.5", "").replace("max-iops = 100", "max-iops = 7").replace("= 30", "= 40");
        assert!(c.differs_beside_weights(&read(&other).unwrap()).is_empty());
    }

    #[test]
    fn bad_values_are_refused_with_line_and_key() {
        let mb = "max-mb-s: expected 10^6 bytes per second, a number from 0.001 to 1000000, found";
        let iops = "max-iops: expected requests per second, a number from 0.001 to 1000000, found";
        let target = "latency-target-ms: expected milliseconds, a number from 1 to 60000, found";
        for (from, to, said) in [
            ("max-mb-s = 2.5", "max-mb-s = 0", format!("9: {mb} integer `0`")),
            ("max-mb-s = 2.5", "max-mb-s = -1.5", format!("9: {mb} floating point `-1.5`")),
            ("max-mb-s = 2.5", "max-mb-s = nan", format!("9: {mb} floating point `NaN`")),
            ("max-mb-s = 2.5", "max-mb-s = \"2\"", format!("9: {mb} string \"2\"")),
            ("max-iops = 100", "max-iops = 0.0", format!("10: {iops} floating point `0.0`")),
            ("max-iops = 100", "max-iops = 10000000", format!("10: {iops} integer `10000000`")),
            ("target-ms = 30", "target-ms = 0.5", format!("14: {target} floating point `0.5`")),
            ("target-ms = 30", "target-ms = 60001", format!("14: {target} integer `60001`")),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            assert_eq!(read(&text).unwrap_err().to_string(), format!("/etc/headtime/serve.toml:{said}"), "{to}");
        }
    }

    #[test]
    fn a_target_without_a_policy_that_knows_it_is_refused() {
        let under = |admit: &str| read(&GOOD.replace("[scheduler]", &format!("[scheduler]\nadmit = \"{admit}\"")));
        for admit in ["bfq", "bfq+"] {
            assert!(under(admit).is_ok(), "{admit}");
        }
        for admit in ["none", "cfq", "das"] {
            let said = under(admit).unwrap_err().to_string();
            let expected = format!("export 2 (\"b\"), latency-target-ms: expected {WITH_BFQ}, found {admit}");
            assert_eq!(said, format!("/etc/headtime/serve.toml: {expected}"));
        }
        // One export alone has no policy by default.
        let (first, rest) = GOOD.split_once("max-mb-s").unwrap();
        let one = |more: &str| format!("{first}{more}");
        assert!(read(&one("max-mb-s = 1")).is_ok() && rest.contains("latency"));
        let said = read(&one("latency-target-ms = 30")).unwrap_err().to_string();
        assert!(said.contains("export 1 (\"a\"), latency-target-ms: expected scheduler.admit"), "{said}");
        assert!(said.ends_with("found nothing"), "{said}");
    }

    #[test]
    fn a_write_cache_and_a_limit_exclude_each_other() {
        let said = read(&GOOD.replace("max-iops", "write-cache = \"64 MiB\"\nmax-iops")).unwrap_err().to_string();
        assert_eq!(
            said,
            format!(
                "/etc/headtime/serve.toml:10: export 1 (\"a\"), write-cache: expected {WITHOUT_LIMIT}, found a limit"
            )
        );
    }
}
