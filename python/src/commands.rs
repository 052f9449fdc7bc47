//! What other commands of `headtime` do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_disk::{DriveConfig, Dur};
use headtime_lab::runner::Options;
use headtime_lab::{Progress, registry, report, runner};
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Watch;
use headtime_probe::{Options as ProbeOptions, characterize as probe};
use headtime_sim::traces::GapSide;
use headtime_sim::validate::Comparison;
use pyo3::prelude::*;
use serde_json::json;

use crate::error::fail;
use crate::interrupt::watched;
use crate::profile::Profile;

/// Compares a profile's drive with a measured trace; returns JSON.
#[pyfunction]
pub(crate) fn validate(py: Python<'_>, profile: &Profile, trace: PathBuf, gap_after: bool) -> PyResult<String> {
    let gap = if gap_after { GapSide::After } else { GapSide::Before };
    let stop = AtomicBool::new(false);
    let compared = watched(py, &stop, || Comparison::new(&profile.inner, &trace, gap, false))?.map_err(fail)?;
    serde_json::to_string(&compared.figures()).map_err(fail)
}

struct Stopping<'a>(&'a AtomicBool);

impl Watch for Stopping<'_> {
    fn progress(&mut self, _: &'static str, _: f64) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl Progress for Stopping<'_> {
    fn advance(&self, _: u64) {}

    fn stops(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Host time from a completion to the next command, as `headtime characterize virtual:NAME` has it.
const HOST: Dur = Dur::from_us(20);

/// Characterises the virtual drive of a profile, as if it were real. Returns the profile's text,
/// the findings as JSON, and whether the profile is good enough.
#[pyfunction]
pub(crate) fn characterize(py: Python<'_>, profile: &Profile, seed: u64) -> PyResult<(String, String, bool)> {
    let stop = AtomicBool::new(false);
    let config = DriveConfig::default().with_seed(seed);
    let mut device = VirtualDrive::new(&profile.inner, config, HOST).map_err(fail)?;
    let options = ProbeOptions { seed, ..ProbeOptions::default() };
    let found = watched(py, &stop, || probe(&mut device, &mut Stopping(&stop), &options))?;
    let mut found = found.map_err(fail)?;
    found.profile.name = format!("{}-found", profile.inner.name);
    let findings: Vec<_> = found
        .findings
        .iter()
        .map(|f| json!({ "what": f.what, "value": f.value, "how": f.how, "sure": f.sure }))
        .collect();
    let text = headtime_disk::profile::write(&found.profile);
    Ok((text, serde_json::Value::from(findings).to_string(), found.good))
}

/// Runs experiments; returns one JSON object per claim.
#[pyfunction]
pub(crate) fn reproduce(py: Python<'_>, names: Vec<String>, quick: bool, seeds: Vec<u64>) -> PyResult<String> {
    let selected = registry::select(&registry::all(), &names).map_err(fail)?;
    let options = Options { seeds, quick };
    let stop = AtomicBool::new(false);
    let results = watched(py, &stop, || runner::run(&selected, &options, &Stopping(&stop)))?.map_err(fail)?;
    Ok(report::to_json(&results, &options))
}
