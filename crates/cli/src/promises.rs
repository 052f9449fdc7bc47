//! The service times behind guarantees: those of the profile, and for a virtual drive measurements
//! of what the profile lacks.

use std::fmt;

use headtime_disk::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::streams::{
    Admitted, BestEffort, Disk, Exhausted, Forecast, GuaranteeConfig, KnownError, Stream, Traffic, USUAL_WAITING,
    forecast,
};
use headtime_sim::service::{self, Load};

use serde::Serialize;

use crate::failure::Failure;
use crate::grounds::{Grounds, Stated};
use crate::screen;
use crate::words::ppm;

/// Shares of a drive's time taken by a set of streams, and the forecast of best effort.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shares {
    /// Worst-case share of mandatory requests.
    mandatory_at_worst: f64,
    /// Expected share of all streams.
    expected: f64,
    /// Share of best effort under constant backlog; the rest is idle. None: no forecast is
    /// possible.
    best_effort: Option<f64>,
    best_effort_per_second: Option<f64>,
    /// The backlog assumed for it, requests.
    best_effort_waiting: u32,
    /// The first two shares in parts per million, and the forecast of best effort.
    #[serde(skip)]
    ppm: [u64; 2],
    #[serde(skip)]
    forecast: Option<Forecast>,
}

impl Shares {
    /// Builds the shares from the worst-case and the expected load, in parts per million, and the
    /// forecast of best effort.
    pub fn of(worst: u64, expected: u64, forecast: Option<Forecast>) -> Shares {
        let share = |ppm: u64| ppm as f64 / 1e6;
        Shares {
            mandatory_at_worst: share(worst),
            expected: share(expected),
            best_effort: forecast.map(|f| share(f.best_effort_ppm)),
            best_effort_per_second: forecast.map(|f| f.per_1000_s as f64 / 1e3),
            best_effort_waiting: USUAL_WAITING,
            ppm: [worst, expected],
            forecast,
        }
    }

    /// Shares of an admitted set of streams.
    pub fn admitted(disk: &Disk, streams: &[Stream], admitted: &Admitted, exhausted: Exhausted) -> Shares {
        let forecast = forecast(disk, streams, admitted, exhausted, BestEffort::usual(disk));
        Shares::of(admitted.load.worst_ppm, admitted.load.expected_ppm, forecast)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [worst, expected] = self.ppm.map(ppm);
        write!(f, "mandatory requests take {worst} of the time at their worst; ")?;
        write!(f, "what is expected of all streams takes {expected}")?;
        let Some(forecast) = self.forecast else { return Ok(()) };
        let (share, rate) = (ppm(forecast.best_effort_ppm), forecast.per_1000_s as f64 / 1e3);
        write!(f, ". Best effort has {share} of it, {rate:.1} requests a second, if {USUAL_WAITING} always wait")
    }
}

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

impl<'a> Drive<'a> {
    /// A drive of a simulation. Missing service times are measured only for a built-in drive,
    /// because a file's profile may be a real drive's.
    pub fn simulated(name: &'a str, outstanding: u32, stated: Stated<'a>) -> Drive<'a> {
        let measured = profile::builtin_names().any(|known| known == name).then_some(1);
        Drive { name, outstanding, measured, stated }
    }

    /// Measures missing service times for requests of these sizes in bytes, if allowed, with a
    /// note. Returns the measured sizes in sectors.
    pub fn complete(&self, profile: &mut Profile, sizes: &[u64]) -> Result<Vec<u32>, Failure> {
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
            let times = service::families(profile, &load).map_err(Failure::input)?;
            screen::note(&format!(
                "the profile of {} has no service times for requests of {bytes} bytes: measured on its virtual drive",
                profile.name
            ));
            measured.push((bytes / u64::from(profile.sector_bytes)) as u32);
            profile.service_times.extend(times.into_iter().map(|m| m.times));
        }
        Ok(measured)
    }

    /// Returns w and X of the profile.
    pub fn known(&self, profile: &Profile, model: &Model) -> Result<Disk, Failure> {
        Disk::of(profile, model, self.outstanding).map_err(|e| match e {
            KnownError::NoTimes { .. } => Failure::input(format!(
                "{e}; `headtime profiles measure {} -o FILE` writes it with those of its virtual drive",
                self.name
            )),
            other => Failure::input(other),
        })
    }

    /// Sets up a scheduler's guarantees for streams with requests of these sizes in bytes, and the
    /// figures that they depend on. `mandatory` is the name of a mandatory stream, if there is one.
    ///
    /// The bounds apply to the guarantees only: the drive of `profile` stays unchanged.
    pub fn setup(
        &self,
        profile: &mut Profile,
        sizes: &[u64],
        exhausted: Exhausted,
        mandatory: Option<&str>,
    ) -> Result<(GuaranteeConfig, Grounds), Failure> {
        self.complete(profile, sizes)?;
        let believed = self.stated.applied(profile)?;
        let grounds = Grounds::of(&believed, Traffic::Any, self.stated);
        if let Some(why) = mandatory.and_then(|name| grounds.refusal(name)) {
            return Err(Failure::input(format!("{}: {why}", self.name)));
        }
        let model = Model::new(&believed).map_err(|e| Failure::input(format!("{}: {e}", self.name)))?;
        let disk = self.known(&believed, &model)?;
        let setup = GuaranteeConfig::of(disk, &believed, &model, exhausted);
        Ok((setup.map_err(|e| Failure::input(format!("{}: {e}", self.name)))?, grounds))
    }
}
