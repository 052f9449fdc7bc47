//! The freeblock subsystem put together: the task manager above, the scheduling layer below (seed 002 section 3.3, figure 2),
//! and what watches over both: conservatism, the gate, the idle detectors.

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::mechanics::Head;
use headtime_disk::model::{Model, Place};
use headtime_disk::time::{Dur, Time};

use super::Algorithm;
use super::conservatism::Margins;
use super::gap::{Gap, Leg};
use super::placement::Placement;
use crate::dispatch::{Purpose, Sent};
use crate::request::{Prediction, Request};
use crate::tasks::manager::TaskManager;
use crate::tasks::{Limits, Range, SessionId, TaskError, TaskId, TaskSpec};

/// How much longer than predicted a move may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conservatism {
    /// Always so much.
    Fixed(Dur),
    /// As much as the drive has shown to be needed, by class of distance; and seek times are corrected by what it shows.
    Adaptive,
}

/// How FILL is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillConfig {
    /// What looks for blocks.
    pub algorithm: Algorithm,
    /// Inside the drive or outside.
    pub placement: Placement,
    /// How careful it is.
    pub conservatism: Conservatism,
    /// Angular regions a cell: a power of two.
    pub regions: u32,
    /// What one search may cost.
    pub budget: Budget,
    /// What is bounded.
    pub limits: Limits,
    /// Work in idle time; `None`: in gaps only.
    pub idle: Option<IdleConfig>,
    /// How long a search takes at most, as the platter sees it, when the drive has nothing to do meanwhile.
    pub search_time: Dur,
    /// Seed of the lottery.
    pub seed: u64,
}
