//! A fleet study as a text file, and what it gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use headtime_sim::input;
use headtime_sim::scenario::beside;
use serde::Deserialize;

use super::disk::Policy;

/// Maximum size of a study's file in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// The most drives of a fleet.
const MOST_DRIVES: u64 = 10_000_000;

/// Why a study is not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct StudyError {
    /// The file, and the line or key.
    pub place: String,
    /// What was expected and found.
    pub message: String,
}

/// A study. In its text, policies (`P`) are strings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study<P = Policy> {
    /// The heading of its page.
    pub title: String,
    /// What it is about, for its page.
    #[serde(default)]
    pub about: String,
    /// The drives' profile: a built-in drive, or a file.
    pub disk: String,
    /// Whether the drives' own write caches are on; as in the profile if it is not given.
    pub write_cache: Option<bool>,
    /// The number of drives.
    pub drives: u64,
    /// Seed of everything that is drawn.
    #[serde(default = "one")]
    pub seed: u64,
    /// Days within which a scan is to end.
    #[serde(default = "targets")]
    pub targets_days: Vec<f64>,
    /// Clients.
    pub load: Load,
    /// Scans by name.
    pub policies: BTreeMap<String, P>,
    /// Failures of drives and of sectors; without them there is no durability.
    pub failures: Option<Failures>,
    /// Redundancy groups by name.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupTable<P>>,
}

/// Clients of a fleet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Requests per second that the median drive gets, as a mean of the day.
    pub per_second: f64,
    /// The load of each hour of a day, relative to one another; constant if it is not given.
    #[serde(default = "constant")]
    pub day: Vec<f64>,
    /// Standard deviation of the logarithm of drives' loads.
    #[serde(default)]
    pub spread: f64,
}

/// Failures of drives and of sectors.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// Failures per drive and year; or from a file.
    pub per_year: Option<f64>,
    /// A file of daily states ([`super::hazard::read`]).
    pub file: Option<PathBuf>,
    /// Only drives of this model in the file.
    pub model: Option<String>,
    /// Unreadable sectors per drive and year.
    #[serde(default)]
    pub latent_per_year: f64,
}

/// A redundancy group.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTable<P = Policy> {
    /// Its drives.
    pub drives: u32,
    /// The most failed drives that it survives.
    pub survives: u32,
    /// How the others are read to rebuild a drive.
    pub rebuild: P,
    /// Of how many times its own number the group's drives are: a declustered group's rebuild is
    /// spread over this many groups' drives, and as much quicker.
    #[serde(default = "once")]
    pub declustered: f64,
}

fn one() -> u64 {
    1
}

fn once() -> f64 {
    1.0
}

fn targets() -> Vec<f64> {
    vec![7.0, 14.0, 30.0]
}

fn constant() -> Vec<f64> {
    vec![1.0; 24]
}

impl Study<String> {
    /// Parses the policies.
    ///
    /// # Errors
    /// The key of a wrong one, and what was expected and found.
    fn with_policies(self) -> Result<Study, (String, String)> {
        let parse = |key: String, text: String| text.parse::<Policy>().map_err(|e| (key, e));
        let policies = self
            .policies
            .into_iter()
            .map(|(name, text)| parse(format!("policies.{name}"), text).map(|policy| (name, policy)));
        let groups = self.groups.into_iter().map(|(name, g)| {
            let table =
                |rebuild| GroupTable { drives: g.drives, survives: g.survives, rebuild, declustered: g.declustered };
            parse(format!("groups.{name}.rebuild"), g.rebuild).map(|rebuild| (name, table(rebuild)))
        });
        Ok(Study {
            title: self.title,
            about: self.about,
            disk: self.disk,
            write_cache: self.write_cache,
            drives: self.drives,
            seed: self.seed,
            targets_days: self.targets_days,
            load: self.load,
            policies: policies.collect::<Result<_, _>>()?,
            failures: self.failures,
            groups: groups.collect::<Result<_, _>>()?,
        })
    }
}

impl Study {
    /// Loads a study's file; paths in it are relative to it.
    ///
    /// # Errors
    /// As [`Study::parse`], or the file cannot be read.
    pub fn load(path: &Path) -> Result<Study, StudyError> {
        let file = path.display().to_string();
        let text = input::text(path, LONGEST_FILE).map_err(|message| StudyError { place: file.clone(), message })?;
        Study::parse(&text, &file, path.parent().unwrap_or(Path::new("")))
    }

    /// Parses and checks a study. Relative paths in it are relative to `folder`.
    ///
    /// # Errors
    /// File, line or key, and what was expected and found.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Study, StudyError> {
        let read: Study<String> = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            StudyError { place: format!("{file}:{line}"), message: e.message().replace('\n', " ") }
        })?;
        let at = |(key, message)| StudyError { place: format!("{file}: {key}"), message };
        let mut study = read.with_policies().map_err(at)?;
        study.disk = beside(folder, study.disk);
        if let Some(failures) = &mut study.failures {
            failures.file = failures.file.take().map(|path| folder.join(path));
        }
        match study.fault() {
            None => Ok(study),
            Some(fault) => Err(at(fault)),
        }
    }

    /// Returns the key of a wrong value, and what was expected and found.
    fn fault(&self) -> Option<(String, String)> {
        let at = |key: &str, message: String| Some((key.to_owned(), message));
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let load = &self.load;
        if !(1..=MOST_DRIVES).contains(&self.drives) {
            return at("drives", format!("expected 1 to {MOST_DRIVES}, found {}", self.drives));
        }
        if self.targets_days.is_empty() || !self.targets_days.iter().all(|d| positive(*d)) {
            return at("targets_days", format!("expected days above 0, found {:?}", self.targets_days));
        }
        if !(0.1..=1e4).contains(&load.per_second) {
            return at(
                "load.per_second",
                format!("expected 0.1 to 10000 requests a second, found {}", load.per_second),
            );
        }
        if load.day.len() != 24
            || !load.day.iter().all(|h| *h >= 0.0 && h.is_finite())
            || load.day.iter().sum::<f64>() <= 0.0
        {
            let found = match load.day.iter().find(|h| !(**h >= 0.0 && h.is_finite())) {
                _ if load.day.len() != 24 => format!("a list of {}", load.day.len()),
                Some(wrong) => wrong.to_string(),
                None => "only 0".into(),
            };
            return at("load.day", format!("expected 24 figures of 0 or more, not all 0, found {found}"));
        }
        if !(0.0..=3.0).contains(&load.spread) {
            return at("load.spread", format!("expected 0 to 3, found {}", load.spread));
        }
        if self.policies.is_empty() {
            return at("policies", "expected one policy or more, found none".into());
        }
        for (name, group) in &self.groups {
            let key = |k: &str| format!("groups.{name}.{k}");
            if !(2..=1000).contains(&group.drives) {
                return at(&key("drives"), format!("expected 2 to 1000, found {}", group.drives));
            }
            if group.survives == 0 || group.survives >= group.drives {
                let most = group.drives - 1;
                return at(&key("survives"), format!("expected 1 to {most}, found {}", group.survives));
            }
            if group.rebuild == Policy::None {
                return at(&key("rebuild"), "expected a policy that reads, found none".into());
            }
            if !(1.0..=1e4).contains(&group.declustered) {
                return at(&key("declustered"), format!("expected 1 to 10000, found {}", group.declustered));
            }
        }
        let Some(f) = &self.failures else {
            return match self.groups.is_empty() {
                true => None,
                false => at("groups", "expected [failures] beside groups, found none".into()),
            };
        };
        match (f.per_year, &f.file) {
            (Some(rate), None) if positive(rate) && rate <= 10.0 => {}
            (Some(rate), None) => return at("failures.per_year", format!("expected above 0, to 10, found {rate}")),
            (None, Some(_)) => {}
            _ => return at("failures", "expected either per_year or file, found both or none".into()),
        }
        match (0.0..=1000.0).contains(&f.latent_per_year) {
            true => None,
            false => at("failures.latent_per_year", format!("expected 0 to 1000, found {}", f.latent_per_year)),
        }
    }
}

/// The built-in studies, by name.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("scrub", include_str!("../../studies/scrub.toml")),
    ("rebuild", include_str!("../../studies/rebuild.toml")),
    ("write-cache", include_str!("../../studies/write-cache.toml")),
];

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "title = 't'\ndisk = 'nearline-20tb'\ndrives = 10\n[load]\nper_second = 40.0\n\
                        [policies]\nfree = 'headtime'\n";

    fn parse(text: &str) -> Result<Study, StudyError> {
        Study::parse(text, "s.toml", Path::new("/there"))
    }

    #[test]
    fn the_built_in_studies_are_sound() {
        for (name, text) in BUILT_IN {
            let study = Study::parse(text, name, Path::new("")).unwrap_or_else(|e| panic!("{e}"));
            assert!(!study.about.is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_not_given_has_a_default() {
        let s = parse(GOOD).unwrap();
        assert_eq!((s.load.day.len(), s.load.spread, s.targets_days.len(), s.seed), (24, 0.0, 3, 1));
        assert_eq!(s.policies["free"], Policy::Headtime);
        let with_file = format!("{GOOD}[failures]\nfile = 'days.csv'\n");
        assert_eq!(parse(&with_file).unwrap().failures.unwrap().file, Some("/there/days.csv".into()));
    }

    #[test]
    fn wrong_studies_name_line_or_key() {
        for (text, expected) in [
            (GOOD.replace("drives = 10", "drives = 0"), "s.toml: drives: expected 1 to"),
            (GOOD.replace("headtime'", "headtim'"), "s.toml: policies.free: expected none, headtime"),
            (
                format!("{GOOD}[groups.a]\ndrives = 4\nsurvives = 1\nrebuild = 'fats'\n"),
                "s.toml: groups.a.rebuild: expected none, headtime",
            ),
            (GOOD.replace("per_second = 40.0", "per_second = 0.0"), "load.per_second: expected 0.1"),
            (
                GOOD.replace("per_second = 40.0", "per_second = 40.0\nday = [1.0]"),
                "load.day: expected 24 figures of 0 or more, not all 0, found a list of 1",
            ),
            (
                GOOD.replace("per_second = 40.0", &format!("per_second = 40.0\nday = {:?}", [0.0; 24])),
                "not all 0, found only 0",
            ),
            (
                GOOD.replace("per_second = 40.0", &format!("per_second = 40.0\nday = {:?}", [-1.5; 24])),
                "not all 0, found -1.5",
            ),
            (GOOD.replace("drives = 10", "drives = 10\ndirves = 3"), "s.toml:4"),
            (
                format!("{GOOD}[groups.a]\ndrives = 4\nsurvives = 4\nrebuild = 'fast'\n"),
                "groups.a.survives: expected 1 to 3",
            ),
            (
                format!("{GOOD}[groups.a]\ndrives = 4\nsurvives = 1\nrebuild = 'none'\n"),
                "groups.a.rebuild: expected a policy that reads",
            ),
            (format!("{GOOD}[groups.a]\ndrives = 4\nsurvives = 1\nrebuild = 'fast'\n"), "groups: expected [failures]"),
            (format!("{GOOD}[failures]\nlatent_per_year = 1.0\n"), "failures: expected either per_year or file"),
            ("title = 5\n".into(), "s.toml:1"),
        ] {
            let e = parse(&text).unwrap_err().to_string();
            assert!(e.contains(expected), "{text}: expected {expected:?} in {e:?}");
        }
    }
}
