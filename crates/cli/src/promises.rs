//! What promises to streams are made from: the profile's service times, and where those of a virtual drive may be measured, what the profile
//! lacks of them.

use std::fmt;

use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::admit::das::admission::{Disk, Load as Taken};
use headtime_sched::admit::das::known::KnownError;
use headtime_sched::admit::das::streams::Setup;
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sim::service::{self, Load};

use serde::Serialize;

use crate::failure::Failure;
use crate::screen;
use crate::words::ppm;

/// How much of a drive's time a set of streams takes, as shares of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shares {
    mandatory_at_worst: f64,
    expected: f64,
    best_effort: f64,
    /// The same in parts per million.
    #[serde(skip)]
    ppm: [u64; 3],
}

impl Shares {
    /// Mandatory requests at their worst, what is expected of all, and what is left, in parts per million.
    pub fn of(worst: u64, expected: u64, left: u64) -> Shares {
        let share = |ppm: u64| ppm as f64 / 1e6;
        let (mandatory_at_worst, best_effort) = (share(worst), share(left));
        Shares { mandatory_at_worst, expected: share(expected), best_effort, ppm: [worst, expected, left] }
    }
}

impl From<Taken> for Shares {
    fn from(load: Taken) -> Shares {
        Shares::of(load.worst_ppm, load.expected_ppm, load.left_ppm())
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [worst, expected, left] = self.ppm.map(ppm);
        write!(
            f,
            "mandatory requests take {worst} of the time at their worst; what is expected of all streams takes {expected}, and {left} is left \
             for best effort"
        )
    }
}

/// A drive that promises are made of.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// What the user calls it.
    pub name: &'a str,
    /// Commands that it is given at a time.
    pub outstanding: u32,
    /// The seed of its noise, if what its profile lacks may be measured on its virtual drive. How long a real drive's commands take, no
    /// simulation can say.
    pub measured: Option<u64>,
}

impl<'a> Drive<'a> {
    /// A drive of a simulation: one that is built in is measured where its profile lacks something; a file's profile may be a real drive's.
    pub fn simulated(name: &'a str, outstanding: u32) -> Drive<'a> {
        let measured = profile::builtin_names().any(|known| known == name).then_some(1);
        Drive { name, outstanding, measured }
    }

    /// Measures what the profile lacks for requests of these sizes in bytes, if it may be, and says so. Gives the sizes in sectors that were
    /// measured.
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

    /// The promises of a scheduler in front of it, to streams with requests of these sizes in bytes.
    pub fn setup(&self, profile: &mut Profile, sizes: &[u64], exhausted: Exhausted) -> Result<Setup, Failure> {
        self.complete(profile, sizes)?;
        let model = Model::new(profile).map_err(|e| Failure::input(format!("{}: {e}", self.name)))?;
        let disk = self.known(profile, &model)?;
        Setup::of(disk, profile, &model, exhausted).map_err(|e| Failure::input(format!("{}: {e}", self.name)))
    }
}
