//! A virtual drive under test, with the truth that only the test knows.

use headtime_disk::profile::{Profile, builtin};
use headtime_disk::{DriveConfig, Dur, Geometry, Model, Time, Track};
use headtime_probe::device::{Answer, Ask, Device, DeviceError};
use headtime_probe::sampler::Sampler;
use headtime_probe::spindle::{Spindle, apart};
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Unwatched;
use headtime_testkit::profiles::{between, rng};

/// Old and new, head-first and serpentine, with and without waiting for a sector's end.
pub const DRIVES: [&str; 5] = ["atlas10k", "cheetah36es", "ultrastar36z15", "maxtor-7l250s0", "hitachi-7k1000c"];

/// A drive and its host.
pub struct Lab {
    /// The true profile.
    pub profile: Profile,
    /// The same, compiled.
    pub truth: Model,
    device: VirtualDrive,
}

impl Lab {
    /// Returns a built-in drive.
    pub fn of(name: &str) -> Lab {
        Lab::new(builtin(name).expect("a built-in drive"))
    }

    /// Returns any drive, with noise, and a speed slightly off its nominal value.
    pub fn new(mut profile: Profile) -> Lab {
        profile.noise.speed_error_ppb = 41_000;
        profile.noise.speed_drift_ppb = 2_000;
        let config = DriveConfig::default().with_seed(5);
        let device = VirtualDrive::new(&profile, config, Dur::from_us(20)).expect("a drive that works");
        let truth = device.drive().truth().clone();
        Lab { profile, truth, device }
    }

    /// The drive with its host.
    pub fn device(&mut self) -> &mut VirtualDrive {
        &mut self.device
    }

    /// Runs `f` after cache and spindle were found.
    pub fn probe<T>(&mut self, f: impl FnOnce(&mut Sampler, &mut Spindle) -> T) -> T {
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut self.device, &mut watch, 11);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        f(&mut sampler, &mut spindle)
    }
}

/// Returns a virtual drive with a host that takes 20 us.
pub fn device(profile: &Profile, seed: u64) -> VirtualDrive {
    let config = DriveConfig::default().with_seed(seed);
    VirtualDrive::new(profile, config, Dur::from_us(20)).expect("a drive that works")
}

/// Counts tracks with another start, other sectors, or another surface.
pub fn wrong(found: &Geometry, truth: &Geometry) -> u64 {
    let (mut wrong, mut lbn) = (0, 0);
    while let Some(t) = truth.track_of(lbn) {
        let f = found.track_of(lbn).expect("as large");
        let alike = |f: Track| (f.first_lbn, f.lbns, f.spt, f.surface);
        wrong += u64::from(alike(f) != alike(t));
        lbn = t.first_lbn + u64::from(t.lbns);
    }
    wrong
}

/// Returns the differences of the angles of random sectors, in microseconds, ascending, without
/// their common offset.
pub fn angles(found: &Geometry, truth: &Model) -> Vec<f64> {
    let rng = &mut rng(5);
    let us = truth.mechanics.rotation.period().0 as f64 / 1e3;
    let end = |g: &Geometry, lbn| {
        let p = g.locate(lbn).expect("on the drive");
        p.angle.turns() + 1.0 / f64::from(p.spt)
    };
    let mut off: Vec<f64> = Vec::new();
    while off.len() < 1_000 {
        let lbn = between(rng, 0, truth.geometry.capacity() - 1);
        off.push(apart(end(&truth.geometry, lbn), end(found, lbn)));
    }
    let first = off[0];
    let mut off: Vec<f64> = off.iter().map(|o| apart(first, *o)).collect();
    off.sort_unstable_by(f64::total_cmp);
    let median = off[500];
    let mut off: Vec<f64> = off.iter().map(|o| (o - median).abs() * us).collect();
    off.sort_unstable_by(f64::total_cmp);
    off
}

/// A drive whose commands a callback answers or inspects; the drive answers the rest.
pub struct Through<'d, F> {
    /// The drive.
    pub drive: &'d mut dyn Device,
    /// Lower bound of its clock.
    pub now: Time,
    /// The callback, which may advance the clock.
    pub run: F,
}

/// The result of a callback.
pub type Answers = Result<Vec<Answer>, DeviceError>;

impl<F: FnMut(&mut dyn Device, &mut Time, &[Ask], u32) -> Answers> Device for Through<'_, F> {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }

    fn depth(&self) -> u32 {
        self.drive.depth()
    }

    fn now(&self) -> Time {
        self.now.max(self.drive.now())
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Answers {
        (self.run)(self.drive, &mut self.now, asks, outstanding)
    }
}
