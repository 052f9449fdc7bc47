//! The table `[scheduler]`: how requests are scheduled.

use std::fmt;

use headtime_disk::profile::Bounds;
use headtime_sched::streams::Exhausted;
use headtime_sched::{Algorithm, Conservatism, FillConfig, NameError, Order, Policy};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::error::{ConfigError, Wrong};
use super::names::{self, HostOrder};

/// The value of `scheduler.admit` with which exports may be streams.
const DAS: &str = "das";
/// The largest number of commands at the drive.
pub const MAX_OUTSTANDING: u32 = 32;

/// How requests are scheduled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scheduler {
    /// Whether exports may be streams: `admit` is "das".
    pub has_guarantees: bool,
    /// Eligibility policy; with guarantees, that of exports that are not streams. `None`: BFQ+ with
    /// several exports, none otherwise.
    pub policy: Option<Policy>,
    /// How an optional stream's requests are handled when its reservation is exhausted.
    pub exhausted: Exhausted,
    /// Bounds of figures that the drive's profile does not state.
    pub assume: Option<Bounds>,
    /// Dispatch order.
    pub order: Order,
    /// Policy that fills gaps; `None` if none are filled.
    pub fill: Option<Algorithm>,
    /// Conservatism of filling.
    pub conservatism: Conservatism,
    /// Outstanding commands at the drive, 1 to [`MAX_OUTSTANDING`].
    pub outstanding: u32,
}

impl Scheduler {
    /// Returns the settings of FILL, with this seed of its lottery; `None` if no gaps are filled.
    pub fn fill_config(&self, seed: u64) -> Option<FillConfig> {
        let conservatism = self.conservatism;
        self.fill.map(|algorithm| FillConfig { conservatism, seed, ..FillConfig::new(algorithm) })
    }
}

/// The table as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "struct Scheduler")]
pub(super) struct SchedulerTable {
    /// Eligibility policy, or "das": exports may be streams.
    pub(super) admit: Option<String>,
    /// With "das": the eligibility policy for exports that are not streams.
    best_effort: Option<String>,
    /// With "das": how a stream's requests are handled when its reservation is exhausted.
    exhausted: Option<String>,
    /// With "das": bounds of figures that the drive's profile does not state.
    assume: Option<String>,
    order: String,
    fill: String,
    #[serde(deserialize_with = "conservatism")]
    conservatism_us: String,
    outstanding: u32,
}

impl Default for SchedulerTable {
    fn default() -> SchedulerTable {
        SchedulerTable {
            admit: None,
            best_effort: None,
            exhausted: None,
            assume: None,
            // Shortest positioning time first, with look-ahead and aging, jointly with gap filling:
            // it serves the foreground at least as well as SPTF alone (experiments X8 and X9).
            order: "sptf-joint".into(),
            fill: "headtime".into(),
            conservatism_us: "adaptive".into(),
            outstanding: 2,
        }
    }
}

impl SchedulerTable {
    /// Checks the names and figures, and that they are consistent.
    pub(super) fn parse(&self, wrong: &Wrong) -> Result<Scheduler, ConfigError> {
        let shown = |text: &str| text.escape_debug().to_string();
        let policy = |key: &str, name: Option<&str>, others: &[&str]| match name.map(Policy::named) {
            None => Ok(None),
            Some(Some(policy)) => Ok(Some(policy)),
            Some(None) => {
                let name = name.unwrap_or_default();
                let expected = match name.starts_with("bfq+:") {
                    true => format!("after bfq+: some of {}, with commas, each once", Policy::SWITCHES.join(", ")),
                    false => [&Policy::NAMES[..], others].concat().join(", "),
                };
                Err(wrong.value(key, &expected, shown(name)))
            }
        };
        let has_guarantees = self.admit.as_deref() == Some(DAS);
        let admit = policy("scheduler.admit", self.admit.as_deref().filter(|_| !has_guarantees), &[DAS])?;
        let best_effort = policy("scheduler.best-effort", self.best_effort.as_deref(), &[])?;
        let exhausted = match self.exhausted.as_deref() {
            None => Exhausted::default(),
            Some(name) => Exhausted::named(name)
                .ok_or_else(|| wrong.value("scheduler.exhausted", &Exhausted::NAMES.join(", "), shown(name)))?,
        };
        let assume = self.assume.as_deref().map(Bounds::parse).transpose();
        let assume = assume.map_err(|e| wrong.value("scheduler.assume", &e.expected, e.found))?;
        let das_only = [("best-effort", &self.best_effort), ("exhausted", &self.exhausted), ("assume", &self.assume)];
        for (key, value) in das_only.map(|(key, value)| (format!("scheduler.{key}"), value)) {
            if let Some(name) = value.as_deref().filter(|_| !has_guarantees) {
                return Err(wrong.value(&key, "scheduler.admit = \"das\" beside it, or none", shown(name)));
            }
        }
        let order = match names::order(&self.order).map_err(|e| wrong.name(&e))? {
            HostOrder::Host(order) => order,
            HostOrder::Drive => {
                let found = "\"drive\" (`headtime disk` serves a drive alone)";
                return Err(wrong.value("scheduler.order", "an order of headtime's", found.into()));
            }
        };
        let conservatism = self.conservatism_us.parse();
        let conservatism = conservatism.map_err(|e: NameError| wrong.name(&e.of("scheduler.conservatism-us")))?;
        let fill = names::fill(&self.fill).map_err(|e| wrong.name(&e))?;
        if !(1..=MAX_OUTSTANDING).contains(&self.outstanding) {
            let expected = format!("1 to {MAX_OUTSTANDING}");
            return Err(wrong.value("scheduler.outstanding", &expected, self.outstanding.to_string()));
        }
        let policy = if has_guarantees { best_effort } else { admit };
        let outstanding = self.outstanding;
        Ok(Scheduler { has_guarantees, policy, exhausted, assume, order, fill, conservatism, outstanding })
    }
}

/// Reads the conservatism, which is always text since it may be a word.
fn conservatism<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("microseconds or adaptive, in quotes")
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.into())
        }
    }
    from.deserialize_any(Text)
}
