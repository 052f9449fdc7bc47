//! Configuration of a virtual drive for a run: what its profile does not say.

use super::Fault;
#[cfg(doc)]
use crate::profile::CacheSpec;
use crate::profile::{NoiseSpec, Profile};

/// Random behaviour of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriveNoise {
    /// As its profile has it.
    #[default]
    Profile,
    /// None at all.
    Off,
    /// Errors as measured on a real drive ([`NoiseSpec::measured`]), which its profile's model does
    /// not contain.
    Measured,
}

impl DriveNoise {
    /// Names of the kinds, as settings have them.
    pub const NAMES: [&str; 3] = ["profile", "off", "measured"];

    /// Returns the kind of this name.
    pub fn parse(name: &str) -> Option<DriveNoise> {
        let all = [DriveNoise::Profile, DriveNoise::Off, DriveNoise::Measured];
        DriveNoise::NAMES.iter().position(|known| *known == name).map(|at| all[at])
    }

    /// Returns the noise of a drive of this profile.
    pub(super) fn of(self, profile: &Profile) -> NoiseSpec {
        match self {
            DriveNoise::Profile => profile.noise,
            DriveNoise::Off => NoiseSpec::default(),
            DriveNoise::Measured => profile.noise.measured(),
        }
    }
}

/// Configuration of a drive for a run. By default it has its noise, seed 0 and no faults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DriveConfig {
    /// Seed of its noise.
    pub seed: u64,
    /// Follow DiskSim 4.0 where it differs from the meaning of its parameters (see
    /// docs/validation.md of the project).
    pub disksim_exact: bool,
    /// Use the profile's `rig` electronics; without effect on a profile that has none.
    pub use_rig: bool,
    /// Its noise.
    pub noise: DriveNoise,
    /// The sender of commands is part of the drive's firmware, so the drive does not treat two
    /// reads on one track as a sequential pattern ([`CacheSpec::same_track_prefetch_delays`]).
    pub inside: bool,
    /// Injected faults.
    pub faults: Vec<Fault>,
}

impl DriveConfig {
    /// The same with another seed of its noise.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> DriveConfig {
        DriveConfig { seed, ..self }
    }

    /// The same with DiskSim's meaning of its parameters, or without.
    #[must_use]
    pub fn with_disksim_exact(self, disksim_exact: bool) -> DriveConfig {
        DriveConfig { disksim_exact, ..self }
    }

    /// The same with the electronics of the profile's rig, or without.
    #[must_use]
    pub fn with_rig(self, use_rig: bool) -> DriveConfig {
        DriveConfig { use_rig, ..self }
    }

    /// The same with noise, or without.
    #[must_use]
    pub fn with_noise(self, noise: bool) -> DriveConfig {
        DriveConfig { noise: if noise { DriveNoise::Profile } else { DriveNoise::Off }, ..self }
    }

    /// The same with the sender of commands inside the drive, or outside.
    #[must_use]
    pub fn with_sender_inside(self, inside: bool) -> DriveConfig {
        DriveConfig { inside, ..self }
    }

    /// The same with these injected faults.
    #[must_use]
    pub fn with_faults(self, faults: Vec<Fault>) -> DriveConfig {
        DriveConfig { faults, ..self }
    }
}
