//! Errors of grids and their points.

use headtime_sim::scenario::PrepareError;
use headtime_sim::workload::WorkloadError;

/// Why a grid is not accepted, or one of its points cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// The file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// A key or value is wrong.
    #[error("{place}: {message}")]
    At {
        /// The file, the line if known, and the key.
        place: String,
        /// What was expected and found.
        message: String,
    },
    /// A setting of the scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] WorkloadError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] headtime_sim::simulate::SimError),
}

impl GridError {
    pub(super) fn at(place: impl Into<String>, message: impl Into<String>) -> GridError {
        GridError::At { place: place.into(), message: message.into() }
    }
}

/// Names an unknown key, and the known ones that are most like it.
pub(super) fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    /// The number of keys that are listed.
    const CLOSEST: usize = 3;
    let mut by_likeness: Vec<(f64, &str)> = known.map(|k| (strsim::jaro_winkler(key, k), k)).collect();
    by_likeness.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    by_likeness.dedup();
    let closest: Vec<&str> = by_likeness.iter().take(CLOSEST).map(|(_, k)| *k).collect();
    format!("unknown key \"{}\"; the closest are {}", key.escape_debug(), closest.join(", "))
}
