//! Configuration of FILL.

use std::fmt;
use std::str::FromStr;

use headtime_disk::Dur;

use super::Algorithm;
use super::idling::IdleConfig;
use super::placement::Placement;
use super::regions::REGIONS;
use crate::names::NameError;
use crate::tasks::TaskLimits;

/// Margins of predicted moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conservatism {
    /// A constant margin.
    Fixed(Dur),
    /// Margins and seek corrections learned from the drive, by class of distance.
    Adaptive,
}

/// Largest conservatism that is parsed, in us.
const MAX_US: u64 = 100_000;

impl Conservatism {
    /// Returns the default: adaptive outside the drive, none inside it, where the truth is known.
    pub fn at(placement: Placement) -> Conservatism {
        match placement {
            Placement::Host => Conservatism::Adaptive,
            Placement::Firmware | Placement::FirmwareNoTrack => Conservatism::Fixed(Dur::ZERO),
        }
    }
}

impl FromStr for Conservatism {
    type Err = NameError;

    /// Parses a whole number of microseconds, or `adaptive`.
    fn from_str(text: &str) -> Result<Conservatism, NameError> {
        if text == "adaptive" {
            return Ok(Conservatism::Adaptive);
        }
        match text.parse::<u64>() {
            Ok(us) if us <= MAX_US => Ok(Conservatism::Fixed(Dur::from_us(us))),
            _ => {
                let range = format_args!("0 to {MAX_US}, or \"adaptive\"");
                Err(NameError::out_of_range("conservatism_us", text, range))
            }
        }
    }
}

impl fmt::Display for Conservatism {
    /// Writes a constant margin in microseconds.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Conservatism::Fixed(margin) => write!(f, "{}", margin.0 as f64 / 1e3),
            Conservatism::Adaptive => f.write_str("adaptive"),
        }
    }
}

/// Configuration of FILL.
///
/// To be begun with [`FillConfig::new`] and struct update syntax, or changed afterwards; a literal
/// of all fields breaks when one is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillConfig {
    /// The search algorithm.
    pub algorithm: Algorithm,
    /// Inside the drive or outside.
    pub placement: Placement,
    /// Margins of moves.
    pub conservatism: Conservatism,
    /// Angular regions per cell: a power of two.
    pub regions: u32,
    /// Cost limits of the quick pass of a search and of the refinement after it, in units of each
    /// algorithm.
    pub budget: (u32, u32),
    /// Limits of the task layer and the regions.
    pub limits: TaskLimits,
    /// Use of idle time; `None`: gaps only.
    pub idle: Option<IdleConfig>,
    /// Maximum duration of a search, in platter time, while the drive has nothing to do.
    pub search_time: Dur,
    /// Seed of the lottery.
    pub seed: u64,
    /// Whether filling stops when the drive is not as expected: while predictions fail
    /// persistently, and when its write cache turns out to be on. Without this it goes on: a switch
    /// for tests of what stopping is worth.
    pub stops: bool,
}

/// Cost limits of headtime's own searches. With a fifth more, whole scans of an Atlas 10K and of a
/// 20 TB drive take the same time to half a per cent (seeds differ by 2%); with a sixth less they
/// take 1 to 1.5% longer under SPTF.
const BUDGET: (u32, u32) = (64, 160);
/// Cost limits of the papers' algorithms: what their authors' machine could do with 8% of its
/// processor.
const PAPERS_BUDGET: (u32, u32) = (64, 192);

impl FillConfig {
    /// Creates the configuration of an algorithm outside the drive, with adaptive conservatism.
    pub fn new(algorithm: Algorithm) -> FillConfig {
        let papers = algorithm != Algorithm::Headtime;
        FillConfig {
            algorithm,
            placement: Placement::Host,
            conservatism: Conservatism::Adaptive,
            regions: REGIONS,
            budget: if papers { PAPERS_BUDGET } else { BUDGET },
            limits: TaskLimits::default(),
            // The papers use only thresholds.
            idle: Some(IdleConfig { thresholds_only: papers, ..IdleConfig::default() }),
            // The core has no clock, so it cannot measure its searches. They take 4 to 29 us on
            // average (docs/freeblock.md); the rest is what the host takes to send the command.
            // From 0 to 100 us free bandwidth differs by 1% at most.
            search_time: Dur::from_us(50),
            seed: 0,
            stops: true,
        }
    }
}
