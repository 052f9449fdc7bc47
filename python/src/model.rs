//! The model of a drive: where sectors are, and how long it takes to reach them.

use headtime_disk::{Head, Kind, Model as Inner, Time};
use pyo3::prelude::*;

use crate::error::fail;
use crate::profile::Profile;

/// The compiled model of a drive.
#[pyclass(frozen, module = "headtime._headtime")]
pub(crate) struct Model {
    inner: Inner,
}

/// A fraction of a revolution, from a binary fraction.
fn turn(angle: headtime_disk::Angle) -> f64 {
    angle.0 as f64 / 2f64.powi(64)
}

#[pymethods]
impl Model {
    #[new]
    fn new(profile: &Profile) -> PyResult<Model> {
        Ok(Model { inner: profile.model()? })
    }

    #[getter]
    fn sectors(&self) -> u64 {
        self.inner.geometry.capacity()
    }

    #[getter]
    fn cylinders(&self) -> u32 {
        self.inner.geometry.cylinders()
    }

    #[getter]
    fn surfaces(&self) -> u16 {
        self.inner.geometry.surfaces()
    }

    #[getter]
    fn period_ms(&self) -> f64 {
        self.inner.mechanics.rotation.period().as_ms_f64()
    }

    /// Cylinder, surface, sector, sectors per track and angle of a block.
    fn position(&self, lbn: u64) -> PyResult<(u32, u16, u32, u32, f64)> {
        let capacity = self.inner.geometry.capacity();
        let p = self.inner.geometry.locate(lbn);
        let p = p.ok_or_else(|| fail(format!("lbn: expected a block below {capacity}, found {lbn}")))?;
        Ok((p.cylinder, p.surface, p.sector, p.spt, turn(p.angle)))
    }

    /// The time of a seek over a number of cylinders.
    fn seek_ms(&self, distance: u32) -> PyResult<f64> {
        let most = self.inner.geometry.cylinders() - 1;
        if distance > most {
            return Err(fail(format!("distance: expected 0 to {most} cylinders, found {distance}")));
        }
        Ok(self.inner.mechanics.seek.time(distance).as_ms_f64())
    }

    /// Seek, latency and transfer of a command that starts as the head leaves block `from_lbn`.
    fn access(&self, from_lbn: u64, lbn: u64, sectors: u32, write: bool) -> PyResult<(f64, f64, f64)> {
        let kind = if write { Kind::Write } else { Kind::Read };
        let capacity = self.inner.geometry.capacity();
        let from = self.inner.place(from_lbn, 1, Kind::Read);
        let from =
            from.ok_or_else(|| fail(format!("from_lbn: expected a block below {capacity}, found {from_lbn}")))?;
        let to = self.inner.place(lbn, sectors, kind);
        let to = to.ok_or_else(|| {
            fail(format!("lbn: expected one sector or more below {capacity}, found {sectors} at {lbn}"))
        })?;
        let head =
            Head { cylinder: from.end_cylinder, surface: from.end_surface, angle: from.end_angle, at: Time::ZERO };
        let access = self.inner.access(&head, &to, kind);
        Ok((access.seek.as_ms_f64(), access.latency.as_ms_f64(), access.transfer.as_ms_f64()))
    }
}
