//! The first level of a fleet: what one disk does under a load and a policy, by simulation.
//!
//! A scan of 20 TB has hundreds of millions of requests, so the drive has one cylinder of
//! [`NARROWED`]: a share of the stroke takes the same time, the tracks are the same, and a scan of
//! the whole takes that much less ([`headtime_sim::scaled_drives::narrowed`]). Its time is given
//! for the whole drive.

use std::cell::Cell;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use headtime_disk::DriveNoise;
use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::Nothing;
use headtime_sim::run::Limits;
use headtime_sim::scaled_drives::narrowed;
use headtime_sim::simulate::{Scheduling, Setup, SimError, Simulation};
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::workload::{Beside, FOREGROUND, Pace, Population, ReaderSpec, Target, WorkloadError, open};
use serde::Serialize;

use super::repeat::{Counted, LEAST_SECONDS, Scans, Watch};

/// Cylinders of the whole drive for each one of the simulated drive.
pub const NARROWED: u32 = 400;
/// A scan that takes longer than this, in virtual hours of the narrowed drive, is not waited for:
/// 400 days of the whole one for each day.
const LONGEST_SECONDS: u64 = 24 * 3600;
/// More scans than fit into that time.
const MOST_SCANS: u64 = 1 << 20;
/// A disk that serves less than this share of the requests that arrive is saturated.
const SERVED: f64 = 0.95;

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
    /// Clients' requests that were finished, per second.
    pub per_second: f64,
    /// Mean of their response times, ms.
    pub mean_ms: f64,
    /// Their 99th percentile, ms.
    pub p99_ms: f64,
    /// Whether the drive serves less than 95% of the requests that arrive.
    #[serde(skip)]
    pub saturated: bool,
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
/// `open:RATE`, and with scans of this policy, one after another until enough was seen. `times`:
/// how much larger the whole drive is. If `stop` becomes true, the figures are of a part of the
/// run.
///
/// Without headtime the drive orders the commands, as today's systems leave it to the drive's
/// queue.
///
/// # Errors
/// As [`DiskRunError`] says.
pub fn rates(
    drive: &Profile,
    times: f64,
    policy: Policy,
    per_second: f64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Rates, DiskRunError> {
    let mut setup = Setup { scheduling: Scheduling::Drive, ..Setup::new(drive, Order::Sptf, seed) };
    if policy == Policy::Headtime {
        setup.scheduling = Scheduling::Host(Order::Sptf);
        setup = setup.filled(FillConfig { seed, ..FillConfig::new(Algorithm::Headtime) });
    }
    setup.drive.noise = DriveNoise::Profile;
    let simulation = Simulation::new(&setup)?;
    let target = simulation.target();
    let clients = Population::of(&open(per_second)?, target, seed)?;
    let until = |seconds: u64| Limits { until: Some(Time::ZERO + Dur::from_ms(seconds * 1_000)), ..Limits::default() };
    let arrived = &Cell::new(0);
    let pace = match policy {
        Policy::None | Policy::Headtime => {
            let mut clients = Counted { inner: clients, arrived, scan: target.capacity };
            let mut watch = Watch::new(arrived, stop, 1);
            let stats = match policy {
                Policy::None => simulation.run_with(&mut clients, &mut Nothing, until(LEAST_SECONDS), None, &mut watch),
                _ => {
                    let mut scans = Scans::new(target);
                    simulation.run_with(&mut clients, &mut scans, until(LONGEST_SECONDS), None, &mut watch)
                }
            }?;
            return Ok(of(&stats.responses(), stats.ended_at, &watch, times));
        }
        Policy::Idle => Pace::BFQ,
        Policy::Rate(mb_s) => Pace::Rate { bytes_per_second: (mb_s * 1e6) as u64 },
        Policy::Fast => Pace::Fast,
    };
    let reader = ReaderSpec::new(pace);
    let read_sectors = reader.read_bytes / u64::from(target.sector_bytes);
    let reads = (target.capacity / read_sectors).max(1);
    let scan = reads * read_sectors;
    let endless = Target { capacity: scan * MOST_SCANS, ..target.clone() };
    let mut both = Counted { inner: Beside::new(clients, &endless, reader)?, arrived, scan };
    let mut watch = Watch::new(arrived, stop, reads);
    let stats = simulation.run_with(&mut both, &mut Nothing, until(LONGEST_SECONDS), None, &mut watch)?;
    let class = stats.classes.iter().find(|(name, _)| name == FOREGROUND).map(|(_, h)| h.clone()).unwrap_or_default();
    Ok(of(&class, stats.ended_at, &watch, times * target.capacity as f64 / scan as f64))
}

/// Returns the figures of a run. `times`: how much larger the whole drive is than what was scanned.
fn of(responses: &Histogram, ended_at: Time, watch: &Watch, times: f64) -> Rates {
    let ms = |d: Option<Dur>| d.map_or(0.0, |d| d.as_ms_f64());
    let scan_hours = match watch.scans {
        0 => f64::INFINITY,
        scans => watch.scanned_at.as_secs_f64() / scans as f64 / 3600.0 * times,
    };
    Rates {
        scan_hours,
        per_second: watch.finished as f64 / ended_at.as_secs_f64().max(f64::MIN_POSITIVE),
        mean_ms: ms(responses.mean()),
        p99_ms: ms(responses.quantile(990)),
        saturated: watch.overloaded || (watch.finished as f64) < SERVED * watch.arrived.get() as f64,
    }
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
        let of = |policy| rates(&drive, times, policy, 40.0, 1, &AtomicBool::new(false)).unwrap();
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
