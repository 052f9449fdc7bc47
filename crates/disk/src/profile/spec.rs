//! A drive's profile, with the specifications of its mechanics and its noise.

use std::collections::BTreeMap;

use super::electronics::Electronics;
use super::geometry_spec::GeometrySpec;
use super::known::Known;
use super::service::ServiceTimes;
use crate::time::Dur;

/// The data of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Short name, lower case, as typed on a command line.
    pub name: String,
    /// The drive's full name.
    pub title: String,
    /// Release year, where known.
    pub year: Option<u16>,
    /// How the profile was derived from published figures, when it was not measured.
    pub synthesised: Option<String>,
    /// Sources of figures: table or table.key -> source.
    pub sources: BTreeMap<String, String>,
    /// Bytes per sector: 512 or 4096.
    pub sector_bytes: u32,
    /// Usable sectors according to the manufacturer or the drive, checked against the geometry.
    pub stated_sectors: Option<u64>,
    /// Layout of the sectors.
    pub geometry: GeometrySpec,
    /// Motion of arm and platter.
    pub mechanics: MechanicsSpec,
    /// Bus, overheads, cache and queue, as seen by a host of the drive's era.
    pub electronics: Electronics,
    /// Random components of the drive's behaviour.
    pub noise: NoiseSpec,
    /// Knowledge of the figures that a worst case depends on.
    pub known: Known,
    /// Electronics in the measuring rig that recorded this drive's trace (its own bus, its own
    /// modes), where they differ. Used by `headtime validate`.
    pub rig: Option<Electronics>,
    /// Measured service times: one distribution per request size, by ascending size.
    pub service_times: Vec<ServiceTimes>,
}

/// Prefix of the source of a table that was read from DiskSim's files.
pub(crate) const FROM_DISKSIM: &str = "DiskSim parameter file ";

impl Profile {
    /// Returns the same with the electronics of the rig that recorded its trace, if it has them.
    #[must_use]
    pub fn in_rig(mut self) -> Profile {
        if let Some(rig) = self.rig.take() {
            self.electronics = rig;
        }
        self
    }

    /// Whether the seek table is an unmodified DiskSim table. Those are accepted with all their
    /// oddities, in either format.
    pub fn seeks_from_disksim(&self) -> bool {
        self.sources.get("mechanics").is_some_and(|source| source.starts_with(FROM_DISKSIM))
    }
}

/// Motion of arm and platter.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanicsSpec {
    /// Revolutions per minute, as an exact ratio.
    pub rpm: (u64, u64),
    /// Seek times for reads by distance in cylinders, ascending.
    pub seek: Vec<(u32, Dur)>,
    /// Seek times for writes, including settling, where measured separately.
    pub write_seek: Option<Vec<(u32, Dur)>>,
    /// Head switch.
    pub head_switch: Dur,
    /// Added before a write that requires a move, in ns; may be negative.
    pub write_settle_ns: i64,
    /// Zero-latency access: a read starts with the first wanted sector that passes (DiskSim
    /// `Immediate buffer read`).
    pub read_on_arrival: bool,
    /// The same for writes (DiskSim `Immediate buffer write`).
    pub write_on_arrival: bool,
    /// All sectors that pass under the head on the track of a read are cached, wanted or not
    /// (DiskSim `Read any free blocks`).
    pub keep_passing: bool,
}

/// Random components of the drive's behaviour. All zero: an ideal drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Standard deviation of a seek or head switch from its table value.
    pub seek_sd: Dur,
    /// Maximum deviation of a seek.
    pub seek_max: Dur,
    /// Mean of the constant errors of moves, in ns: positive if the drive is slower than its table.
    pub move_error_mean_ns: i64,
    /// Standard deviation of the constant errors of moves. Each has its own, which depends on the
    /// drive's seed, the distance and the surface that it ends on, so that a host could learn it.
    pub move_error_sd: Dur,
    /// No constant error of a move exceeds this in either direction.
    pub move_error_max: Dur,
    /// Maximum delay of a completion report, uniformly distributed (controller, bus, interrupt).
    pub completion_jitter: Dur,
    /// Probability, in parts per million, that a completion report is late by much more.
    pub late_completion_ppm: u32,
    /// Maximum delay of such a report, uniformly distributed.
    pub late_completion_max: Dur,
    /// Maximum variation of the overlap of a transfer's bus and media times, uniformly distributed,
    /// per 4 KiB up to 40 KiB; longer transfers vary as one of 40 KiB, for which the figure was
    /// given (Lumb 2002 section 5.2).
    pub overlap_jitter_per_4k: Dur,
    /// Probability, in parts per million, that the head needs extra revolutions to settle after a
    /// move.
    pub settle_retry_ppm: u32,
    /// Probability, in parts per million, that a head which has just failed to settle fails again.
    /// `None`: failures are independent, with [`NoiseSpec::settle_retry_ppm`].
    pub settle_retry_again_ppm: Option<u32>,
    /// Maximum number of extra revolutions to settle.
    pub settle_retry_turns: u32,
    /// Mean interval between internal recalibrations (0: never).
    pub recalibrate_every: Dur,
    /// Duration of a recalibration.
    pub recalibrate_takes: Dur,
    /// Constant deviation of the period from its nominal value, in parts per billion.
    pub speed_error_ppb: i64,
    /// Maximum slow variation of the period in either direction, in parts per billion.
    pub speed_drift_ppb: u32,
}

impl NoiseSpec {
    /// Returns by how much a move may exceed its table value.
    #[must_use]
    pub fn longest_excess(&self) -> Dur {
        self.seek_max + self.move_error_max
    }

    /// Returns by how much a completion report may be late.
    #[must_use]
    pub fn latest_completion(&self) -> Dur {
        self.completion_jitter + self.late_completion_max
    }

    /// Returns the same with errors as they were measured on a real drive (docs/validation.md,
    /// section 2): the *erring* drive.
    ///
    /// - Moves: of the random requests to an Atlas 10K, 1.8% came a revolution later than predicted
    ///   and 0.7% a revolution earlier (Lumb, Schindler and Ganger, FAST 2002, section 5.2). A move
    ///   that takes e longer makes a request late if its latency is shorter than e, with
    ///   probability e over a revolution; so 1.8% of a revolution of 5.985 ms, 108 us, is the mean
    ///   excess of the slow moves, and 0.7%, 42 us, that of the fast ones. A normal distribution
    ///   with mean 66 us and deviation 176 us has these two.
    /// - Completions: the residuals of DIXtrac's trace of an Atlas 10K.
    #[must_use]
    pub fn measured(self) -> NoiseSpec {
        NoiseSpec {
            move_error_mean_ns: 66_000,
            move_error_sd: Dur::from_us(176),
            move_error_max: Dur::from_us(600),
            completion_jitter: Dur::from_us(65),
            late_completion_ppm: 7_000,
            late_completion_max: Dur::from_us(2_400),
            ..self
        }
    }
}
