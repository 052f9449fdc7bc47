//! The first level of a fleet: what one disk does under a load and a policy, by simulation.
//!
//! A scan of 20 TB has hundreds of millions of requests, so the drive has one cylinder of
//! [`NARROWED`]: a share of the stroke takes the same time, the tracks are the same, and a scan of
//! the whole takes that much less ([`headtime_sim::scaled_drives::narrowed`]). Its time is given
//! for the whole drive.

use std::str::FromStr;

use headtime_disk::DriveNoise;
use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Job, Jobs, Nothing, PROMOTED_PART, scan_unit};
use headtime_sim::run::Limits;
use headtime_sim::scaled_drives::narrowed;
use headtime_sim::simulate::{Scheduling, Setup, SimError, Simulation};
use headtime_sim::workload::{Beside, FOREGROUND, Pace, Population, ReaderSpec, WorkloadError, open};
use serde::Serialize;

/// Cylinders of the whole drive for each one of the simulated drive.
pub const NARROWED: u32 = 400;
/// A scan that takes longer than this, in virtual hours of the narrowed drive, is not waited for:
/// 400 days of the whole one for each day.
const LONGEST_SECONDS: f64 = 24.0 * 3600.0;
/// Time in which clients are watched without a scan.
const CLIENTS_SECONDS: f64 = 600.0;

/// How a scan is run beside clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// No scan.
    None,
    /// In rotational gaps and idle time.
    Headtime,
    /// In the kernel's idle class, as BFQ has it.
    Idle,
    /// At this rate in MB/s, whatever the clients do.
    Rate(f64),
    /// As fast as it gets, one read after another.
    Fast,
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        let expected =
            || format!("expected none, headtime, idle, fast or rate:MB_S, found \"{}\"", text.escape_debug());
        match text {
            "none" => Ok(Policy::None),
            "headtime" => Ok(Policy::Headtime),
            "idle" => Ok(Policy::Idle),
            "fast" => Ok(Policy::Fast),
            _ => {
                let rate = text.strip_prefix("rate:").and_then(|r| r.parse::<f64>().ok());
                rate.filter(|r| (0.01..=1e4).contains(r)).map(Policy::Rate).ok_or_else(expected)
            }
        }
    }
}

/// What a disk does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Hours that a scan of the whole drive takes; infinite if it does not end.
    pub scan_hours: f64,
    /// Clients' requests per second.
    pub per_second: f64,
    /// Mean of their response times, ms.
    pub mean_ms: f64,
    /// Their 99th percentile, ms.
    pub p99_ms: f64,
}

/// Why a disk cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum DiskRunError {
    /// The drive cannot be narrowed.
    #[error("disk {name}: {why}")]
    Narrowed {
        /// The drive.
        name: String,
        /// Why.
        why: String,
    },
    /// The load is out of range.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// Returns the drive that is simulated in place of `profile`.
///
/// # Errors
/// Its seek table cannot be scaled.
pub fn small(profile: &Profile) -> Result<Profile, DiskRunError> {
    let by = NARROWED.min(profile.geometry.cylinders / 100).max(1);
    narrowed(profile, by).map_err(|e| DiskRunError::Narrowed { name: profile.name.clone(), why: e.to_string() })
}

/// Simulates a narrowed drive under clients that send this many requests per second, as of
/// `open:RATE`, and with a scan of this policy. `times`: how much larger the whole drive is.
///
/// Without headtime the drive orders the commands, as today's systems leave it to the drive's
/// queue.
///
/// # Errors
/// As [`DiskRunError`] says.
pub fn rates(drive: &Profile, times: f64, policy: Policy, per_second: f64, seed: u64) -> Result<Rates, DiskRunError> {
    let mut setup = Setup { scheduling: Scheduling::Drive, ..Setup::new(drive, Order::Sptf, seed) };
    if policy == Policy::Headtime {
        setup.scheduling = Scheduling::Host(Order::Sptf);
        setup = setup.filled(FillConfig { seed, ..FillConfig::new(Algorithm::Headtime) });
    }
    setup.drive.noise = DriveNoise::Profile;
    let simulation = Simulation::new(&setup)?;
    let target = simulation.target();
    let clients = Population::of(&open(per_second)?, target, seed)?;
    let seconds = |s: f64| Some(Time::ZERO + Dur::from_ms_f64(s * 1e3));
    let pace = match policy {
        Policy::None => {
            let limits = Limits { until: seconds(CLIENTS_SECONDS), ..Limits::default() };
            let mut clients = clients;
            let stats = simulation.run_with(&mut clients, &mut Nothing, limits, None, &mut ())?;
            return Ok(of(&stats.responses(), stats.per_second(), f64::INFINITY));
        }
        Policy::Headtime => {
            let unit = scan_unit(target.capacity, target.sector_bytes);
            let job = Job::scan(target.capacity, unit);
            let mut scan = Jobs::new(vec![job]).promoting_last(target.capacity / PROMOTED_PART);
            let limits = Limits { until: seconds(LONGEST_SECONDS), until_scanned: true, ..Limits::default() };
            let mut clients = clients;
            let stats = simulation.run_with(&mut clients, &mut scan, limits, None, &mut ())?;
            let done = stats.background.by_session.first().and_then(|s| s.done_at);
            let hours = done.map_or(f64::INFINITY, |at| at.as_secs_f64() / 3600.0 * times);
            return Ok(of(&stats.responses(), stats.per_second(), hours));
        }
        Policy::Idle => Pace::BFQ,
        Policy::Rate(mb_s) => Pace::Rate { bytes_per_second: (mb_s * 1e6) as u64 },
        Policy::Fast => Pace::Fast,
    };
    let reader = ReaderSpec { ends_run: true, ..ReaderSpec::new(pace) };
    let mut both = Beside::new(clients, target, reader)?;
    let limits = Limits { until: seconds(LONGEST_SECONDS), ..Limits::default() };
    let stats = simulation.run_with(&mut both, &mut Nothing, limits, None, &mut ())?;
    let hours = both.read_at().map_or(f64::INFINITY, |at| at.as_secs_f64() / 3600.0 * times);
    let class = stats.classes.iter().find(|(name, _)| name == FOREGROUND).map(|(_, h)| h.clone()).unwrap_or_default();
    let per_second = class.samples() as f64 / stats.ended_at.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(of(&class, per_second, hours))
}

fn of(responses: &headtime_sim::stats::histogram::Histogram, per_second: f64, scan_hours: f64) -> Rates {
    let ms = |d: Option<Dur>| d.map_or(0.0, |d| d.as_ms_f64());
    Rates { scan_hours, per_second, mean_ms: ms(responses.mean()), p99_ms: ms(responses.quantile(990)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::builtin;

    #[test]
    fn policies_are_parsed_and_others_refused_with_the_list() {
        assert_eq!("rate:50".parse(), Ok(Policy::Rate(50.0)));
        assert_eq!("headtime".parse(), Ok(Policy::Headtime));
        for wrong in ["", "rate:", "rate:0", "rate:x", "slow"] {
            let e = wrong.parse::<Policy>().unwrap_err();
            assert!(e.contains("rate:MB_S"), "{e}");
        }
    }

    #[test]
    fn a_scan_takes_what_its_rate_says_and_costs_clients_what_the_policy_says() {
        let mut profile = builtin("nearline-20tb").unwrap();
        profile.electronics.cache.write_back = false;
        let drive = small(&profile).unwrap();
        let times = f64::from(NARROWED);
        let of = |policy| rates(&drive, times, policy, 40.0, 1).unwrap();
        let alone = of(Policy::None);
        assert!((alone.per_second - 40.0).abs() < 2.0 && alone.scan_hours.is_infinite(), "{alone:?}");
        let rate = of(Policy::Rate(30.0));
        // 20 TB at 30 MB/s are 185 hours; narrowing leaves out the spare parts of zones.
        assert!((rate.scan_hours / 185.2 - 1.0).abs() < 0.03, "{rate:?}");
        let (free, fast) = (of(Policy::Headtime), of(Policy::Fast));
        assert!(free.scan_hours < 200.0 && fast.scan_hours < rate.scan_hours, "{free:?} {fast:?}");
        assert!(free.mean_ms < 1.1 * alone.mean_ms, "free of cost: {free:?}, alone {alone:?}");
        assert!(fast.mean_ms > 1.2 * alone.mean_ms, "not free: {fast:?}, alone {alone:?}");
    }
}
