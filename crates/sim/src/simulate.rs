//! A complete simulation of a profile: drive, scheduler and event loop.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use headtime_disk::profile::{FirmwareOrder, Profile};
use headtime_disk::{Drive, DriveConfig, DriveNoise, Model, ModelError};
use headtime_sched::streams::GuaranteeConfig;
use headtime_sched::write_cache::Front;
use headtime_sched::{
    Choose, Commitment, Config, Core, Custom, FillConfig, NameError, Order, Placement, Policy, Share, joined,
    write_cache,
};

use crate::background::{Background, Nothing};
use crate::observe::Observer;
use crate::run::{Limits, RunError, WallClock, run_with};
use crate::stats::Stats;
use crate::workload::{Target, Workload};
use headtime_sched::{Firmware, Scheduler};

/// Default number of commands at the drive: two hide the overheads and leave the drive no choice.
pub const DEPTH: u32 = 2;
/// Default number of requests that may wait.
pub const CAPACITY: usize = 65_536;
/// Number of requests that may wait when they are served in order of arrival.
const ENOUGH_IN_ORDER: usize = 1_024;

/// Where requests are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// The scheduling core, outside the drive.
    Host(Order),
    /// The drive: all requests are passed on in order of arrival, up to its depth.
    Drive,
}

impl Scheduling {
    /// Names: those of [`Order`], and `drive`.
    pub const NAMES: [&'static str; Order::NAMES.len() + 1] = joined(&Order::NAMES, &["drive"]);
}

impl FromStr for Scheduling {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Scheduling, NameError> {
        match name {
            "drive" => Ok(Scheduling::Drive),
            _ => name.parse().map(Scheduling::Host).map_err(|e: NameError| e.among(&Scheduling::NAMES)),
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Scheduling::Host(order) => order.fmt(f),
            Scheduling::Drive => f.write_str("drive"),
        }
    }
}

/// Parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Profile of the drive.
    pub profile: &'a Profile,
    /// Profile used by the scheduler; `None`: the true one.
    pub belief: Option<&'a Profile>,
    /// Seed and options of the drive.
    pub drive: DriveConfig,
    /// Where requests are ordered.
    pub scheduling: Scheduling,
    /// Maximum number of commands at the drive; `None`: [`DEPTH`] for the host (less where the
    /// drive accepts only one), the drive's maximum for the drive.
    pub depth: Option<u32>,
    /// Maximum number of waiting requests.
    pub capacity: usize,
    /// Freeblock work; only with the host's scheduler.
    pub fill: Option<FillConfig>,
    /// When the host's scheduler dispatches the next command while one is at the drive.
    pub commitment: Commitment,
    /// Whether completions correct the scheduler's predictions ([`Config::resyncs`]).
    pub resyncs: bool,
    /// The ADMIT policy; only with the host's scheduler.
    pub admit: Policy,
    /// Guarantees to streams; `None`: there are none. Only with the host's scheduler.
    pub guarantees: Option<GuaranteeConfig>,
    /// Applications' shares other than the default.
    pub shares: Vec<(u32, Share)>,
    /// A write-back cache in front of the scheduler, with the drive's own cache off; `None`: the
    /// drive's cache as in its profile.
    pub write_cache: Option<write_cache::Limits>,
}

impl<'a> Setup<'a> {
    /// Creates a setup of a profile's drive, scheduled by the host, with this seed for its noise.
    pub fn new(profile: &'a Profile, order: Order, seed: u64) -> Setup<'a> {
        Setup {
            profile,
            belief: None,
            drive: DriveConfig::default().with_seed(seed),
            scheduling: Scheduling::Host(order),
            depth: None,
            capacity: CAPACITY,
            fill: None,
            commitment: Commitment::default(),
            resyncs: true,
            admit: Policy::None,
            guarantees: None,
            shares: Vec::new(),
            write_cache: None,
        }
    }

    /// Adds freeblock work. A scheduler inside the drive knows the truth: its drive has no noise
    /// and none of a drive's habits towards a host (Lumb 2002 section 5.3: "simulated
    /// in-firmware").
    pub fn filled(mut self, fill: FillConfig) -> Setup<'a> {
        let inside = fill.placement != Placement::Host;
        if inside {
            self.drive.noise = DriveNoise::Off;
        }
        self.drive.inside |= inside;
        self.fill = Some(fill);
        self
    }
}

/// Why a simulation failed.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A profile cannot be compiled.
    #[error("disk {name}: {source}")]
    Model {
        /// The profile's name.
        name: String,
        /// Why.
        source: ModelError,
    },
    /// The depth exceeds the drive's.
    #[error("depth: expected 1 to {most} (what {name} takes), found {depth}")]
    Depth {
        /// The depth requested.
        depth: u32,
        /// The drive's maximum.
        most: usize,
        /// The profile's name.
        name: String,
    },
    /// FILL needs one queued command besides the one in service.
    #[error(
        "depth: background work is fitted between one command in service and one that waits: expected {DEPTH}, found \
         {depth}"
    )]
    FillDepth {
        /// The depth requested.
        depth: u32,
    },
    /// The guarantees are based on times with fewer commands at the drive.
    #[error(
        "depth: promises to streams are made from times with {measured} commands at the drive at most, found {depth}"
    )]
    Promised {
        /// The depth requested.
        depth: u32,
        /// The depth of the measured times.
        measured: u32,
    },
    /// The capacity is zero.
    #[error("requests that may wait: expected 1 or more, found 0")]
    NoRoom,
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A simulation ready to run.
#[derive(Debug)]
pub struct Simulation {
    drive: Drive,
    model: Model,
    target: Target,
    scheduling: Scheduling,
    depth: u32,
    capacity: usize,
    fill: Option<FillConfig>,
    commitment: Commitment,
    /// The drive may order commands itself while its write cache holds data.
    hands_over: bool,
    resyncs: bool,
    admit: Policy,
    guarantees: Option<GuaranteeConfig>,
    shares: Vec<(u32, Share)>,
    write_cache: Option<write_cache::Limits>,
}

impl Simulation {
    /// Compiles profiles and checks the setup.
    pub fn new<'a>(setup: &Setup<'a>) -> Result<Simulation, SimError> {
        let fail = |p: &Profile| {
            let name = p.name.clone();
            move |source| SimError::Model { name, source }
        };
        // A host's cache turns the drive's own off, and the scheduler's model reflects that.
        let through = |p: &'a Profile| match setup.write_cache {
            Some(_) if p.electronics.cache.write_back => Cow::Owned(written_through(p)),
            _ => Cow::Borrowed(p),
        };
        let profile = through(setup.profile);
        let drive = Drive::new(&profile, setup.drive.clone()).map_err(fail(setup.profile))?;
        let mut model = match setup.belief {
            Some(p) => Model::new(&through(p)).map_err(fail(p))?,
            None => drive.truth().clone(),
        };
        model.cache.same_track_prefetch_delays &= !setup.drive.inside;
        let most = drive.depth();
        let depth = setup.depth.unwrap_or(match setup.scheduling {
            Scheduling::Host(_) => DEPTH.min(most as u32),
            Scheduling::Drive => most as u32,
        });
        if depth == 0 || depth as usize > most {
            return Err(SimError::Depth { depth, most, name: setup.profile.name.clone() });
        }
        if let (Some(depth), true) = (setup.depth, setup.fill.is_some() && setup.depth != Some(DEPTH)) {
            return Err(SimError::FillDepth { depth });
        }
        if let Some(measured) = setup.guarantees.as_ref().map(|g| g.disk.outstanding()).filter(|m| *m < depth) {
            return Err(SimError::Promised { depth, measured });
        }
        if setup.capacity == 0 {
            return Err(SimError::NoRoom);
        }
        let target = Target {
            // If the scheduler's profile has a wrong capacity, requests must fit both.
            capacity: drive.capacity().min(model.geometry.capacity()),
            sector_bytes: setup.profile.sector_bytes,
            geometry: Some(Arc::new(drive.truth().geometry.clone())),
        };
        // With first come, first served, it does not matter whether requests wait in the scheduler
        // or before it; a small table stays in the processor's cache.
        let capacity = match setup.scheduling {
            Scheduling::Host(Order::Fcfs) | Scheduling::Drive
                if setup.fill.is_none() && setup.admit == Policy::None && setup.guarantees.is_none() =>
            {
                setup.capacity.min(ENOUGH_IN_ORDER)
            }
            _ => setup.capacity,
        };
        let (fill, guarantees, shares) = (setup.fill.clone(), setup.guarantees.clone(), setup.shares.clone());
        // With more commands than needed to keep it busy, the drive applies an order of its own.
        let admit = match depth > DEPTH {
            true => setup.admit.clone().with_ncq(),
            false => setup.admit.clone(),
        };
        let (scheduling, commitment) = (setup.scheduling, setup.commitment);
        let orders = setup.profile.electronics.queue.order == FirmwareOrder::Sptf;
        let hands_over =
            setup.depth.is_none() && orders && matches!(scheduling, Scheduling::Host(order) if order != Order::Fcfs);
        Ok(Simulation {
            drive,
            model,
            target,
            scheduling,
            depth,
            capacity,
            fill,
            commitment,
            hands_over,
            resyncs: setup.resyncs,
            admit,
            guarantees,
            shares,
            write_cache: setup.write_cache,
        })
    }

    /// Returns the disk's description for workloads.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the drive before the run.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Returns the maximum number of commands at the drive.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the size of the scheduler's model in bytes.
    pub fn model_bytes(&self) -> usize {
        self.model.geometry.memory_bytes() + self.model.mechanics.memory_bytes()
    }

    /// Returns the media rate in bytes per second while the head stays on a track, averaged over
    /// all tracks.
    pub fn media_bytes_per_second(&self) -> f64 {
        let model = self.drive.truth();
        let geometry = &model.geometry;
        let tracks = f64::from(geometry.cylinders()) * f64::from(geometry.surfaces());
        let bytes = geometry.capacity() as f64 * f64::from(model.sector_bytes);
        bytes / tracks / model.mechanics.rotation.period().as_secs_f64()
    }

    /// Runs the simulation. Drive and scheduler start afresh each time.
    pub fn run<W: Workload + ?Sized, O: Observer>(
        &self,
        workload: &mut W,
        limits: Limits,
        clock: Option<WallClock>,
        observer: &mut O,
    ) -> Result<Stats, SimError> {
        self.run_with(workload, &mut Nothing, limits, clock, observer)
    }

    /// Runs the simulation with background work.
    pub fn run_with<W: Workload + ?Sized, O: Observer>(
        &self,
        workload: &mut W,
        background: &mut dyn Background,
        limits: Limits,
        clock: Option<WallClock>,
        observer: &mut O,
    ) -> Result<Stats, SimError> {
        let mut drive = self.drive.clone();
        let stats = match self.scheduling {
            Scheduling::Host(order) => {
                let fill = self.fill.clone();
                let config =
                    Config::new(order).with_outstanding(self.depth).with_capacity(self.capacity).with_fill(fill);
                let config = if self.resyncs { config } else { config.without_resync() };
                let mut core = Core::new(config, self.model.clone()).committing(self.commitment);
                if self.hands_over {
                    core = core.handing_over(self.drive.depth() as u32);
                }
                core = core.admitting(&self.admit);
                if let Some(guarantees) = &self.guarantees {
                    core = core.guaranteeing(guarantees);
                }
                for &(owner, share) in &self.shares {
                    core.set_share(owner, share);
                }
                self.go(&mut drive, core, workload, background, limits, clock, observer)?
            }
            Scheduling::Drive => {
                let firmware = Firmware::new(self.depth, self.capacity);
                self.go(&mut drive, firmware, workload, background, limits, clock, observer)?
            }
        };
        Ok(stats)
    }

    /// Runs the simulation with an order of the caller's in place of its scheduler: without
    /// admission policy, guarantees, shares and background work, whatever the setup says.
    pub fn run_choosing<C: Choose, W: Workload + ?Sized, O: Observer>(
        &self,
        choose: C,
        workload: &mut W,
        limits: Limits,
        observer: &mut O,
    ) -> Result<Stats, SimError> {
        let scheduler = Custom::new(self.depth, self.capacity, self.model.clone(), choose);
        let mut drive = self.drive.clone();
        Ok(self.go(&mut drive, scheduler, workload, &mut Nothing, limits, None, observer)?)
    }

    /// Runs a scheduler, with the write cache in front of it if there is one.
    #[allow(clippy::too_many_arguments, reason = "what the event loop takes, handed on")]
    fn go<S: Scheduler, W: Workload + ?Sized, O: Observer>(
        &self,
        drive: &mut Drive,
        mut scheduler: S,
        workload: &mut W,
        background: &mut dyn Background,
        limits: Limits,
        clock: Option<WallClock>,
        observer: &mut O,
    ) -> Result<Stats, RunError> {
        let Some(cache) = self.write_cache else {
            return run_with(drive, &mut scheduler, workload, background, limits, clock, observer);
        };
        let mut front = Front::new(scheduler, self.target.sector_bytes, cache, self.capacity);
        let mut stats = run_with(drive, &mut front, workload, background, limits, clock, observer)?;
        stats.write_cache = Some((cache, front.counts()));
        Ok(stats)
    }
}

/// Returns the profile with its write cache off.
pub fn written_through(profile: &Profile) -> Profile {
    let mut profile = profile.clone();
    profile.electronics.cache.write_back = false;
    profile
}
