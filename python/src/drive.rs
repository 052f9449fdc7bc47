//! A virtual drive in virtual time.

use headtime_disk::{Command, Completion, Drive as Inner, DriveConfig, DriveNoise, Kind, Outcome, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::fail;
use crate::profile::Profile;

/// A virtual drive.
#[pyclass(module = "headtime._headtime")]
pub(crate) struct Drive {
    inner: Inner,
    now: Time,
    next_id: u64,
}

#[pymethods]
impl Drive {
    #[new]
    fn new(profile: &Profile, seed: u64, noise: &str) -> PyResult<Drive> {
        let known = DriveNoise::NAMES.join(", ");
        let noise = DriveNoise::parse(noise);
        let noise = noise.ok_or_else(|| fail(format!("noise: expected one of {known}, found another name")))?;
        let mut config = DriveConfig::default().with_seed(seed);
        config.noise = noise;
        let inner = Inner::new(&profile.inner, config).map_err(fail)?;
        Ok(Drive { inner, now: Time::ZERO, next_id: 0 })
    }

    #[getter]
    fn sectors(&self) -> u64 {
        self.inner.capacity()
    }

    #[getter]
    fn depth(&self) -> usize {
        self.inner.depth()
    }

    #[getter]
    fn outstanding(&self) -> usize {
        self.inner.outstanding()
    }

    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.0
    }

    #[getter]
    fn next_event_ns(&self) -> Option<u64> {
        self.inner.next_event().map(|t| t.0)
    }

    /// Submits a command now; returns its number.
    fn submit(&mut self, kind: &str, lbn: u64, sectors: u32, fua: bool) -> PyResult<u64> {
        let kind = match kind {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "flush" => Kind::Flush,
            other => return Err(fail(format!("kind: expected read, write or flush, found '{other}'"))),
        };
        let command = Command { id: self.next_id, kind, lbn, count: sectors, fua };
        self.inner.submit(command, self.now).map_err(fail)?;
        self.next_id += 1;
        Ok(command.id)
    }

    /// Advances the time, and returns what completed, in order.
    fn advance<'py>(&mut self, py: Python<'py>, until_ns: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let until = Time(until_ns);
        if until < self.now {
            return Err(fail(format!("until: expected {} ns or later, found {until_ns} ns", self.now.0)));
        }
        let mut all = Vec::new();
        while let Some(at) = self.inner.next_event().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            while let Some(completion) = self.inner.advance(self.now) {
                all.push(to_dict(py, &completion, self.now)?);
            }
        }
        self.now = until;
        Ok(all)
    }
}

fn to_dict<'py>(py: Python<'py>, c: &Completion, now: Time) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("id", c.id)?;
    dict.set_item("done_ns", now.0)?;
    let outcome = match c.outcome {
        Outcome::Ok => "ok",
        Outcome::MediaError { .. } => "media-error",
        Outcome::Dead => "dead",
    };
    dict.set_item("outcome", outcome)?;
    let media = c.media.as_ref();
    dict.set_item("start_ns", media.map(|m| m.start.0))?;
    dict.set_item("seek_ms", media.map(|m| m.seek().as_ms_f64()))?;
    dict.set_item("rotate_ms", media.map(|m| m.rotate().as_ms_f64()))?;
    dict.set_item("transfer_ms", media.map(|m| m.transfer().as_ms_f64()))?;
    Ok(dict)
}
