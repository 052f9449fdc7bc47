//! Profiles of drives.

use headtime_disk::profile::{self, builtin_names as names};
use headtime_disk::{Model, profile::Profile as Inner};
use headtime_sim::scenario::load_disk;
use pyo3::prelude::*;

use crate::error::fail;

/// The profile of a drive.
#[pyclass(frozen, module = "headtime._headtime")]
pub(crate) struct Profile {
    pub(crate) inner: Inner,
    #[pyo3(get)]
    warnings: Vec<String>,
}

/// Names of the built-in drives, oldest first.
#[pyfunction]
pub(crate) fn builtin_names() -> Vec<&'static str> {
    names().collect()
}

impl Profile {
    pub(crate) fn model(&self) -> PyResult<Model> {
        Model::new(&self.inner).map_err(|e| fail(format!("disk {}: {e}", self.inner.name)))
    }
}

#[pymethods]
impl Profile {
    /// Loads a built-in drive or a file.
    #[new]
    fn new(name: &str) -> PyResult<Profile> {
        let loaded = load_disk(name).map_err(fail)?;
        Ok(Profile { inner: loaded.profile, warnings: loaded.warnings.iter().map(ToString::to_string).collect() })
    }

    /// Reads the text of a profile's file.
    #[staticmethod]
    fn from_toml(text: String, file: &str) -> PyResult<Profile> {
        // The file's name decides the format of a text that could be either.
        let loaded = profile::load(file, &move |_| Ok(text.clone())).map_err(fail)?;
        Ok(Profile { inner: loaded.profile, warnings: loaded.warnings.iter().map(ToString::to_string).collect() })
    }

    fn to_toml(&self) -> String {
        profile::write(&self.inner)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.inner.title
    }

    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes
    }

    #[getter]
    fn queue_depth(&self) -> u32 {
        self.inner.electronics.queue.depth
    }

    #[getter]
    fn write_back(&self) -> bool {
        self.inner.electronics.cache.write_back
    }
}
