//! What promises to streams are made from: the profile's service times, and where a built-in drive's profile lacks some, those of its
//! virtual drive.

use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::admit::das::admission::Disk;
use headtime_sched::admit::das::known::KnownError;
use headtime_sched::admit::das::streams::Setup;
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sched::admit::das::worsts::Worsts;
use headtime_sim::service;

use crate::cmd::profiles::measure;
use crate::failure::Failure;
use crate::screen;

/// Bytes of the largest request that is no stream's: one that takes longer would wait for a moment at which nothing is promised for so
/// long.
const LARGEST: u64 = 1 << 20;

/// Measures what the profile of the built-in drive `name` lacks for requests of these sizes in bytes, and says so. Gives the sizes in
/// sectors that were measured. A file's profile may be that of a real drive, of which no simulation says how long its requests take.
pub fn complete(profile: &mut Profile, name: &str, sizes: &[u64]) -> Result<Vec<u32>, Failure> {
    if !profile::builtin_names().any(|known| known == name) {
        return Ok(Vec::new());
    }
    let known = profile.service_times.last().map_or(0, |x| u64::from(x.sectors) * u64::from(profile.sector_bytes));
    let mut lacking: Vec<u64> = sizes.iter().copied().filter(|bytes| *bytes > known).collect();
    if sizes.is_empty() && known == 0 {
        lacking.push(service::BYTES);
    }
    lacking.sort_unstable();
    lacking.dedup();
    let mut measured = Vec::new();
    for bytes in lacking {
        let m = measure::one(profile, bytes, service::WAITING, service::REQUESTS, 1)?;
        screen::note(&format!(
            "the profile of {} has no service times for requests of {bytes} bytes: measured on its virtual drive",
            profile.name
        ));
        measured.push(m.times.sectors);
        profile.service_times.push(m.times);
    }
    Ok(measured)
}

/// What is known of the drive that the user calls `name`, with up to `outstanding` commands at a time.
pub fn known(profile: &Profile, model: &Model, name: &str, outstanding: u32) -> Result<Disk, Failure> {
    Disk::of(profile, model, outstanding).map_err(|e| match e {
        KnownError::NoTimes { .. } => {
            Failure::input(format!("{e}; `headtime profiles measure {name}` measures them on its virtual drive"))
        }
        other => Failure::input(other),
    })
}

/// The promises of a scheduler that has `outstanding` commands at that drive at a time, to streams with requests of these sizes in bytes.
pub fn setup(
    profile: &mut Profile,
    name: &str,
    sizes: &[u64],
    outstanding: u32,
    exhausted: Exhausted,
) -> Result<Setup, Failure> {
    complete(profile, name, sizes)?;
    let model = Model::new(profile).map_err(|e| Failure::input(format!("{name}: {e}")))?;
    let disk = known(profile, &model, name, outstanding)?;
    let largest = (LARGEST / u64::from(profile.sector_bytes)) as u32;
    let worsts = Worsts::of(profile, &model, largest).map_err(|e| Failure::input(format!("{name}: {e}")))?;
    Ok(Setup { disk, worsts, exhausted })
}
