//! Fleet studies.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use headtime_sim::scenario::load_disk;
use headtime_study::fleet::hazard::FailureRates;
use headtime_study::fleet::page::page;
use headtime_study::fleet::run;
use headtime_study::fleet::study::{BUILT_IN, Study};
use pyo3::prelude::*;

use crate::error::fail;
use crate::interrupt::watched;

/// The built-in studies: names and texts.
#[pyfunction]
pub(crate) fn built_in_studies() -> Vec<(&'static str, &'static str)> {
    BUILT_IN.to_vec()
}

/// Runs a study; returns its results as JSON, and as a page.
#[pyfunction]
pub(crate) fn fleet(py: Python<'_>, text: &str, file: &str, folder: &str) -> PyResult<(String, String)> {
    let study = Study::parse(text, file, Path::new(folder)).map_err(fail)?;
    let profile = load_disk(&study.disk).map_err(fail)?.profile;
    let failures = study.failures.as_ref().map(FailureRates::of).transpose().map_err(fail)?;
    let stop = AtomicBool::new(false);
    let outcome = watched(py, &stop, || run::run(&study, &profile, failures.as_ref(), &stop, &|_, _| {}))?;
    let outcome = outcome.map_err(fail)?;
    Ok((serde_json::to_string(&outcome).map_err(fail)?, page(&outcome)))
}
