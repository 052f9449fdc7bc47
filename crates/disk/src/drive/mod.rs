//! The virtual drive: a state machine that is told commands and time, and answers with completions.

use crate::command::{Command, Completion, SubmitError};
use crate::profile::Profile;
use crate::time::Time;

/// A virtual drive.
#[derive(Clone, Debug)]
pub struct Drive {}

/// How a drive is set up for a run.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Seed of its noise.
    pub seed: u64,
    /// Do as DiskSim 4.0 does where that differs from what its parameters mean (docs/validation.md).
    pub disksim_exact: bool,
    /// Use the profile's `rig` electronics where it has them.
    pub use_rig: bool,
    /// Turn all noise off.
    pub noiseless: bool,
    /// Faults planted in it.
    pub faults: Vec<Fault>,
}

/// A fault planted in a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads of these sectors fail after retries, until they are written.
    Unreadable {
        /// First LBN.
        lbn: u64,
        /// Sectors.
        count: u64,
    },
    /// Accesses to these sectors take so many extra turns.
    Slow {
        /// First LBN.
        lbn: u64,
        /// Sectors.
        count: u64,
        /// Extra turns.
        turns: u32,
    },
    /// From `at` on, this sector is unreadable; a write remaps it.
    Grown {
        /// LBN.
        lbn: u64,
        /// When.
        at: Time,
    },
    /// The first command that starts at or after `at` answers only after `takes`.
    Hang {
        /// When.
        at: Time,
        /// How long.
        takes: crate::time::Dur,
    },
    /// From `at` on every command fails at once.
    Death {
        /// When.
        at: Time,
    },
}

impl Drive {
    /// A drive at time zero, head on cylinder 0, surface 0, angle 0.
    pub fn new(
        _profile: &Profile,
        _config: DriveConfig,
    ) -> Result<Drive, crate::model::ModelError> {
        unimplemented!()
    }
    /// Usable sectors.
    pub fn capacity(&self) -> u64 {
        unimplemented!()
    }
    /// Commands outstanding.
    pub fn outstanding(&self) -> usize {
        unimplemented!()
    }
    /// Sends a command. Every event due before `now` must have been taken with [`Drive::advance`].
    pub fn submit(&mut self, _command: Command, _now: Time) -> Result<(), SubmitError> {
        unimplemented!()
    }
    /// When something will happen next inside the drive (a completion, or the mechanism becoming free).
    pub fn next_event(&self) -> Option<Time> {
        unimplemented!()
    }
    /// Goes on to `now`; one completion that is due, or `None` when nothing more is due by `now`. Call until `None`.
    pub fn advance(&mut self, _now: Time) -> Option<Completion> {
        unimplemented!()
    }
}
