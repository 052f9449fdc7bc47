//! The service times behind guarantees: those of the profile, and for a virtual drive measurements
//! of what the profile lacks.

mod grounds;

use headtime_disk::profile::{self, BoundsError, Profile};
use headtime_disk::{Model, ModelError};
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig, KnownError, Traffic, WorstError};

use crate::service::{self, Load, MeasureError};

pub use grounds::{Grounds, RestsOn, Stated};

/// A drive on which guarantees are given.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// The user's name for it.
    pub name: &'a str,
    /// Commands at the drive at a time.
    pub outstanding: u32,
    /// The seed of its noise, if service times missing from its profile may be measured on its
    /// virtual drive. Service times of a real drive cannot be simulated.
    pub measured: Option<u64>,
    /// Bounds in place of unknown figures.
    pub stated: Stated<'a>,
}

/// The guarantees of a drive's scheduler.
#[derive(Debug)]
pub struct Promised {
    /// For the scheduler.
    pub config: GuaranteeConfig,
    /// What they depend on.
    pub grounds: Grounds,
    /// The sizes in sectors whose service times were measured on the virtual drive.
    pub measured: Vec<u32>,
}

/// Why a drive gives no guarantees.
#[derive(Debug, thiserror::Error)]
pub enum PromiseError {
    /// Service times could not be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A bound contradicts the profile.
    #[error("{with}: {source}")]
    Bounds {
        /// The option that states it.
        with: &'static str,
        /// Why.
        source: BoundsError,
    },
    /// The profile cannot be compiled.
    #[error("{disk}: {source}")]
    Model {
        /// The disk.
        disk: String,
        /// Why.
        source: ModelError,
    },
    /// The profile has no service times, and none may be measured.
    #[error("{source}; `headtime profiles measure {disk} -o FILE` writes it with those of its virtual drive")]
    NoTimes {
        /// The disk.
        disk: String,
        /// Why.
        source: KnownError,
    },
    /// The profile does not give w and X.
    #[error(transparent)]
    Known(KnownError),
    /// A mandatory stream depends on figures that are unknown.
    #[error("{disk}: {why}")]
    Unknown {
        /// The disk.
        disk: String,
        /// The stream, the figures, and what to state.
        why: String,
    },
    /// A request size has no worst case.
    #[error("{disk}: {source}")]
    Worst {
        /// The disk.
        disk: String,
        /// Why.
        source: WorstError,
    },
}

impl<'a> Drive<'a> {
    /// A drive of a simulation. Missing service times are measured only for a built-in drive,
    /// because a file's profile may be a real drive's.
    pub fn simulated(name: &'a str, outstanding: u32, stated: Stated<'a>) -> Drive<'a> {
        let measured = profile::builtin_names().any(|known| known == name).then_some(1);
        Drive { name, outstanding, measured, stated }
    }

    /// Measures missing service times for requests of these sizes in bytes, if allowed. Returns the
    /// measured sizes in sectors.
    ///
    /// # Errors
    /// A measurement fails.
    pub fn complete(&self, profile: &mut Profile, sizes: &[u64]) -> Result<Vec<u32>, PromiseError> {
        let Some(seed) = self.measured else { return Ok(Vec::new()) };
        let known = profile.service_times.last().map_or(0, |x| u64::from(x.sectors) * u64::from(profile.sector_bytes));
        let usual = (known == 0 && sizes.is_empty()).then_some(service::BYTES);
        let mut lacking: Vec<u64> = sizes.iter().copied().filter(|bytes| *bytes > known).chain(usual).collect();
        lacking.sort_unstable();
        lacking.dedup();
        let mut measured = Vec::new();
        for bytes in lacking {
            let (outstanding, waiting) = (self.outstanding, service::WAITING.max(self.outstanding));
            let load = Load { outstanding, waiting, ..Load::reads(bytes, seed) };
            let times = service::families(profile, &load)?;
            measured.push((bytes / u64::from(profile.sector_bytes)) as u32);
            profile.service_times.extend(times.into_iter().map(|m| m.times));
        }
        Ok(measured)
    }

    /// Returns `profile` with the stated bounds, and the model compiled from it.
    ///
    /// # Errors
    /// A bound contradicts the profile, or this cannot be compiled.
    pub fn believed(&self, profile: &Profile) -> Result<(Profile, Model), PromiseError> {
        let stated = &self.stated;
        let believed = stated.applied(profile).map_err(|source| PromiseError::Bounds { with: stated.with, source })?;
        let disk = || self.name.to_owned();
        let model = Model::new(&believed).map_err(|source| PromiseError::Model { disk: disk(), source })?;
        Ok((believed, model))
    }

    /// Returns w and X of the profile.
    ///
    /// # Errors
    /// The profile lacks service times or has no worst case.
    pub fn known(&self, profile: &Profile, model: &Model) -> Result<Disk, PromiseError> {
        Disk::of(profile, model, self.outstanding).map_err(|source| match source {
            KnownError::NoTimes { .. } => PromiseError::NoTimes { disk: self.name.to_owned(), source },
            other => PromiseError::Known(other),
        })
    }

    /// Sets up a scheduler's guarantees for streams with requests of these sizes in bytes, and the
    /// figures that they depend on. `mandatory` is the name of a mandatory stream, if there is one.
    ///
    /// The bounds apply to the guarantees only: the drive of `profile` stays unchanged, but for
    /// service times that are measured.
    ///
    /// # Errors
    /// As [`PromiseError`] says.
    pub fn setup(
        &self,
        profile: &mut Profile,
        sizes: &[u64],
        exhausted: Exhausted,
        mandatory: Option<&str>,
    ) -> Result<Promised, PromiseError> {
        let measured = self.complete(profile, sizes)?;
        let (believed, model) = self.believed(profile)?;
        let grounds = Grounds::of(&believed, Traffic::Any, self.stated);
        let disk = || self.name.to_owned();
        if let Some(why) = mandatory.and_then(|name| grounds.refusal(name)) {
            return Err(PromiseError::Unknown { disk: disk(), why });
        }
        let known = self.known(&believed, &model)?;
        let config = GuaranteeConfig::of(known, &believed, &model, exhausted)
            .map_err(|source| PromiseError::Worst { disk: disk(), source })?;
        Ok(Promised { config, grounds, measured })
    }
}
