//! Configuration of a virtual drive for a run: what its profile does not say.

use super::Fault;
#[cfg(doc)]
use crate::profile::CacheSpec;

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
    /// Disable all noise.
    pub noiseless: bool,
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
        DriveConfig { noiseless: !noise, ..self }
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
