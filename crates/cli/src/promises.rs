//! What promises to streams are made from: the profile's service times, and where those of a
//! virtual drive may be measured, what the profile lacks of them.

use std::fmt;

use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::admit::das::admission::{Admitted, Disk};
use headtime_sched::admit::das::forecast::{BestEffort, Forecast, USUAL_WAITING, forecast};
use headtime_sched::admit::das::known::KnownError;
use headtime_sched::admit::das::rests::Traffic;
use headtime_sched::admit::das::stream::Stream;
use headtime_sched::admit::das::streams::Setup;
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sim::service::{self, Load};

use serde::Serialize;

use crate::failure::Failure;
use crate::grounds::{Grounds, Stated};
use crate::screen;
use crate::words::ppm;

/// How much of a drive's time a set of streams takes, and what best effort has beside it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shares {
    /// Of the drive's time mandatory requests take so much at their worst.
    mandatory_at_worst: f64,
    /// What is expected to be done of all streams takes so much of it.
    expected: f64,
    /// Best effort has so much of it, if it always waits; the rest is idle. Nothing: that cannot be
    /// told.
    best_effort: Option<f64>,
    best_effort_per_second: Option<f64>,
    /// Requests of it that are taken to wait.
    best_effort_waiting: u32,
    /// The first two in parts per million, and what best effort has.
    #[serde(skip)]
    ppm: [u64; 2],
    #[serde(skip)]
    forecast: Option<Forecast>,
}

impl Shares {
    /// Mandatory requests at their worst, and what is expected of all, in parts per million; and
    /// what best effort has.
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

    /// Of a set of streams that was admitted.
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

/// A drive that promises are made of.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// What the user calls it.
    pub name: &'a str,
    /// Commands that it is given at a time.
    pub outstanding: u32,
    /// The seed of its noise, if what its profile lacks may be measured on its virtual drive. How
    /// long a real drive's commands take, no simulation can say.
    pub measured: Option<u64>,
    /// Bounds that take the place of what its profile does not know.
    pub stated: Stated<'a>,
}

impl<'a> Drive<'a> {
    /// A drive of a simulation: one that is built in is measured where its profile lacks something;
    /// a file's profile may be a real drive's.
    pub fn simulated(name: &'a str, outstanding: u32, stated: Stated<'a>) -> Drive<'a> {
        let measured = profile::builtin_names().any(|known| known == name).then_some(1);
        Drive { name, outstanding, measured, stated }
    }

    /// Measures what the profile lacks for requests of these sizes in bytes, if it may be, and says
    /// so. Gives the sizes in sectors that were measured.
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

    /// What is known of it.
    pub fn known(&self, profile: &Profile, model: &Model) -> Result<Disk, Failure> {
        Disk::of(profile, model, self.outstanding).map_err(|e| match e {
            KnownError::NoTimes { .. } => Failure::input(format!(
                "{e}; `headtime profiles measure {} -o FILE` writes it with those of its virtual drive",
                self.name
            )),
            other => Failure::input(other),
        })
    }

    /// The promises of a scheduler in front of it, to streams with requests of these sizes in
    /// bytes, and what they rest on. `mandatory` is the name of a mandatory stream among them, if
    /// there is one.
    ///
    /// The drive that `profile` describes stays as it is: bounds count for promises only.
    pub fn setup(
        &self,
        profile: &mut Profile,
        sizes: &[u64],
        exhausted: Exhausted,
        mandatory: Option<&str>,
    ) -> Result<(Setup, Grounds), Failure> {
        self.complete(profile, sizes)?;
        let believed = self.stated.applied(profile)?;
        let grounds = Grounds::of(&believed, Traffic::Any, self.stated);
        if let Some(why) = mandatory.and_then(|name| grounds.refusal(name)) {
            return Err(Failure::input(format!("{}: {why}", self.name)));
        }
        let model = Model::new(&believed).map_err(|e| Failure::input(format!("{}: {e}", self.name)))?;
        let disk = self.known(&believed, &model)?;
        let setup = Setup::of(disk, &believed, &model, exhausted);
        Ok((setup.map_err(|e| Failure::input(format!("{}: {e}", self.name)))?, grounds))
    }
}
