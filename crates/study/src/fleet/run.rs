//! Runs a study: simulations of one disk at several loads, then all drives by these.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use headtime_disk::profile::Profile;
use serde::Serialize;

use super::disk::{DiskRunError, NARROWED, Policy, Rates, rates, small};
use super::durability::{Durability, Group, Rebuild, YEAR_HOURS};
use super::estimate::Estimate;
use super::hazard::FailureRates;
use super::missed::Missed;
use super::random::Draws;
use super::study::Study;

/// Loads at which a disk is simulated, requests per second.
const LOADS: [f64; 9] = [0.5, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0];
/// Cycles of the simulation of durability.
const CYCLES: u64 = 200_000;

/// The results of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Title of the study.
    pub title: String,
    /// What it is about.
    pub about: String,
    /// Name of the drives' profile.
    pub disk: String,
    /// Number of drives.
    pub drives: u64,
    /// Failures per drive and year; `None` if the study has none.
    pub failures_per_year: Option<Estimate>,
    /// Drives that fail in each of the first years of a new fleet, if failed ones are replaced.
    pub failed: Vec<u64>,
    /// What a disk does, by policy and load.
    pub table: BTreeMap<String, Vec<Point>>,
    /// What the fleet does, by policy.
    pub policies: BTreeMap<String, PolicyOutcome>,
}

/// What a disk does under a load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Clients' requests per second.
    pub load: f64,
    /// What it does.
    pub rates: Rates,
}

/// What the fleet does under a policy.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyOutcome {
    /// Days that a scan takes: of the quickest drive, at the 50th, 95th and 99th percentile, of the
    /// slowest one. Infinite: it does not end.
    pub scan_days: [f64; 5],
    /// The highest load at which the drive, simulated under this policy, served its clients:
    /// requests per second. A higher one counts as this one.
    pub highest_load: f64,
    /// Drives that have a higher load in some hour of the day.
    pub drives_above: u64,
    /// The share of drives whose scan takes longer, by target.
    pub missed: Missed,
    /// Days and shares of drives: the distribution of the time of a scan.
    pub distribution: Vec<(f64, f64)>,
    /// Mean of clients' response times, weighted by requests, ms.
    pub mean_ms: f64,
    /// The same of the 99th percentiles of their hours, ms.
    pub p99_ms: f64,
    /// The same without a scan.
    pub alone: [f64; 2],
    /// By group.
    pub groups: BTreeMap<String, GroupOutcome>,
}

/// The durability of a group under a policy.
#[derive(Clone, Debug, Serialize)]
pub struct GroupOutcome {
    /// Hours to rebuild a drive, of the median drive.
    pub rebuild_hours: f64,
    /// The probability that a drive has an unreadable sector which no scan has found.
    pub latent: f64,
    /// Durability.
    pub durability: Durability,
    /// MTTDL in years if one figure were half of what it is, or twice: failures, unreadable
    /// sectors, the time of a rebuild.
    pub sensitivity: BTreeMap<String, [f64; 2]>,
}

/// Why a study ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A disk cannot be simulated.
    #[error(transparent)]
    Disk(#[from] DiskRunError),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
}

/// What a disk does, interpolated between loads.
struct Curve(Vec<Point>);

impl Curve {
    /// Returns a figure at a load. Above the last load at which the disk is not saturated it is
    /// that of this one.
    fn at(&self, load: f64, figure: impl Fn(&Rates) -> f64) -> f64 {
        let above = self.0.partition_point(|p| p.load < load);
        match (above.checked_sub(1).map(|i| &self.0[i]), self.0.get(above)) {
            (Some(a), Some(b)) => {
                let part = (load - a.load) / (b.load - a.load);
                figure(&a.rates) + (figure(&b.rates) - figure(&a.rates)) * part
            }
            (None, Some(p)) | (Some(p), None) => figure(&p.rates),
            (None, None) => f64::NAN,
        }
    }

    /// Returns the last load at which the disk is not saturated.
    fn highest(&self) -> f64 {
        self.0.last().map_or(0.0, |p| p.load)
    }

    /// Returns the share of a scan that is done in an hour.
    fn per_hour(&self, load: f64) -> f64 {
        self.at(load, |r| 1.0 / r.scan_hours)
    }
}

impl Outcome {
    /// Returns a sentence for each policy under which some drives have a load above the highest one
    /// that a drive serves.
    pub fn warnings(&self) -> Vec<String> {
        let above = self.policies.iter().filter(|(_, f)| f.drives_above > 0);
        let sentence = |(name, f): (&String, &PolicyOutcome)| {
            format!(
                "{name}: {} of {} drives have hours with more than {} requests a second, the highest simulated load \
                 that a drive serves under this policy; these hours count as that load",
                f.drives_above, self.drives, f.highest_load
            )
        };
        above.map(sentence).collect()
    }
}

/// Runs a study with drives of this profile. `see` gets the number of simulations that are done, of
/// how many.
///
/// # Errors
/// A disk cannot be simulated, or `stop` became true.
pub fn run(
    study: &Study,
    profile: &Profile,
    failures: Option<&FailureRates>,
    stop: &AtomicBool,
    see: &(dyn Fn(usize, usize) + Sync),
) -> Result<Outcome, RunError> {
    let mut profile = profile.clone();
    if let Some(on) = study.write_cache {
        profile.electronics.cache.write_back = on;
    }
    let mut wanted: Vec<Policy> = vec![Policy::None];
    wanted.extend(study.policies.values());
    wanted.extend(study.groups.values().map(|g| g.rebuild));
    let curves = curves(&profile, &wanted, study.seed, stop, see)?;
    let curve =
        |policy: Policy| &curves.iter().find(|(p, _)| *p == policy).expect("all that are wanted were simulated").1;
    let alone = curve(Policy::None);
    let loads = drive_loads(study);
    let mut policies = BTreeMap::new();
    let stopped = || stop.load(Ordering::Relaxed).then_some(RunError::Stopped).map_or(Ok(()), Err);
    for (name, policy) in &study.policies {
        stopped()?;
        let scan = curve(*policy);
        let mut outcome = fleet(study, &loads, scan, alone);
        if let (Some(sectors), Some(failures)) = (&study.failures, failures) {
            let median_scan_hours = outcome.scan_days[1] * 24.0;
            for (group_name, table) in &study.groups {
                stopped()?;
                let rebuild = curve(table.rebuild);
                let rebuild_hours = 1.0 / mean_of_day(study, 1.0, |load| rebuild.per_hour(load)) / table.declustered;
                let latent = Group::latent_share(sectors.latent_per_year / YEAR_HOURS, median_scan_hours);
                let group = Group {
                    drives: table.drives,
                    survives: table.survives,
                    failure_per_hour: failures.per_year.value / YEAR_HOURS,
                    rebuild: Rebuild::Fixed(rebuild_hours),
                    latent,
                };
                let found = GroupOutcome {
                    rebuild_hours,
                    latent,
                    durability: group.durability(CYCLES, study.seed),
                    sensitivity: sensitivity(&group, rebuild_hours, study.seed),
                };
                outcome.groups.insert(group_name.clone(), found);
            }
        }
        policies.insert(name.clone(), outcome);
    }
    let names = |policy: Policy| study.policies.iter().find(|(_, p)| **p == policy).map(|(n, _)| n.clone());
    let table = curves.iter().filter_map(|(policy, curve)| {
        let name = if *policy == Policy::None { Some("no scan".to_owned()) } else { names(*policy) };
        name.map(|name| (name, curve.0.clone()))
    });
    Ok(Outcome {
        title: study.title.clone(),
        about: study.about.clone(),
        disk: profile.name.clone(),
        drives: study.drives,
        failures_per_year: failures.map(|f| f.per_year),
        failed: failures.map(|f| failed(study, f)).unwrap_or_default(),
        table: table.collect(),
        policies,
    })
}

/// Simulates one disk under each of these policies, at several loads, on all processors.
fn curves(
    profile: &Profile,
    wanted: &[Policy],
    seed: u64,
    stop: &AtomicBool,
    see: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<(Policy, Curve)>, RunError> {
    let mut policies: Vec<Policy> = Vec::new();
    wanted.iter().for_each(|p| {
        if !policies.contains(p) {
            policies.push(*p)
        }
    });
    let drive = small(profile)?;
    let times = f64::from(profile.geometry.cylinders) / f64::from(drive.geometry.cylinders);
    debug_assert!((times / f64::from(NARROWED) - 1.0).abs() < 0.1 || profile.geometry.cylinders < 100 * NARROWED);
    let jobs: Vec<(usize, usize)> = (0..policies.len()).flat_map(|p| (0..LOADS.len()).map(move |l| (p, l))).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    /// The results of a policy at a load, by their places.
    type Found = ((usize, usize), Result<Rates, DiskRunError>);
    let found: Mutex<Vec<Found>> = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&(p, l)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let rates = rates(&drive, times, policies[p], LOADS[l], seed, stop);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(((p, l), rates));
                    see(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(job, _)| *job);
    let mut curves: Vec<(Policy, Curve)> = policies.iter().map(|p| (*p, Curve(Vec::new()))).collect();
    for ((p, l), rates) in found {
        let (load, rates) = (LOADS[l], rates?);
        let curve = &mut curves[p].1.0;
        // From the first load on at which it is saturated, nothing is known.
        let is_next = curve.len() == l;
        if is_next && (!rates.saturated || l == 0) {
            curve.push(Point { load, rates });
        }
    }
    Ok(curves)
}

/// Draws the load of each drive, relative to the median's.
fn drive_loads(study: &Study) -> Vec<f64> {
    let mut draws = Draws::new(study.seed, 1);
    (0..study.drives).map(|_| libm::exp(study.load.spread * draws.normal())).collect()
}

/// The loads of the hours of a day of a drive, requests per second.
fn hours(study: &Study, drive: f64) -> impl Iterator<Item = f64> {
    let mean = study.load.day.iter().sum::<f64>() / 24.0;
    study.load.day.iter().map(move |h| study.load.per_second * drive * h / mean)
}

fn mean_of_day(study: &Study, drive: f64, figure: impl Fn(f64) -> f64) -> f64 {
    hours(study, drive).map(figure).sum::<f64>() / 24.0
}

/// Years of a new fleet that are looked at.
const YEARS: usize = 5;

/// Returns how many drives fail in each year of a new fleet.
fn failed(study: &Study, failures: &FailureRates) -> Vec<u64> {
    let mut draws = Draws::new(study.seed, 3);
    let mut years = vec![0; YEARS];
    for _ in 0..study.drives {
        let mut at = failures.by_age.lifetime(0.0, &mut draws);
        while at < YEARS as f64 {
            years[at as usize] += 1;
            at += failures.by_age.lifetime(0.0, &mut draws);
        }
    }
    years
}

/// Returns what all drives do under a policy.
fn fleet(study: &Study, loads: &[f64], scan: &Curve, alone: &Curve) -> PolicyOutcome {
    let mut draws = Draws::new(study.seed, 2);
    let mut days: Vec<f64> = Vec::with_capacity(loads.len());
    // Requests, and sums over them: mean and 99th percentile with the scan and without.
    let (mut requests, mut sums) = (0.0, [0.0; 4]);
    let (highest_load, mut drives_above) = (scan.highest(), 0);
    for drive in loads {
        let of_day: Vec<f64> = hours(study, *drive).collect();
        let progress: Vec<f64> = of_day.iter().map(|load| scan.per_hour(*load)).collect();
        drives_above += u64::from(of_day.iter().any(|load| *load > highest_load));
        let begins = (draws.share() * 24.0) as usize % 24;
        days.push(scan_days(&progress, begins));
        for load in of_day {
            requests += load;
            for (sum, (curve, p99)) in sums.iter_mut().zip([(scan, false), (scan, true), (alone, false), (alone, true)])
            {
                *sum += load * curve.at(load, |r| if p99 { r.p99_ms } else { r.mean_ms });
            }
        }
    }
    days.sort_by(f64::total_cmp);
    let at = |share: f64| days[((days.len() as f64 * share) as usize).min(days.len() - 1)];
    let all = days.len() as u64;
    let missed = |target: f64| Estimate::share(all - days.partition_point(|d| *d <= target) as u64, all);
    let distribution = (0..=100).map(|i| f64::from(i) / 100.0).map(|share| (at(share), share));
    let mean = |i: usize| sums[i] / requests;
    PolicyOutcome {
        scan_days: [at(0.0), at(0.5), at(0.95), at(0.99), at(1.0)],
        highest_load,
        drives_above,
        missed: Missed::new(&study.targets_days, missed),
        distribution: distribution.filter(|(d, _)| d.is_finite()).collect(),
        mean_ms: mean(0),
        p99_ms: mean(1),
        alone: [mean(2), mean(3)],
        groups: BTreeMap::new(),
    }
}

/// Returns the days that a scan takes which begins at this hour, with this progress in each hour.
fn scan_days(progress: &[f64], begins: usize) -> f64 {
    let in_a_day: f64 = progress.iter().sum();
    if in_a_day <= 0.0 {
        return f64::INFINITY;
    }
    let whole = (1.0 / in_a_day).floor();
    let mut left = 1.0 - whole * in_a_day;
    let mut hours = 0.0;
    for hour in (0..progress.len()).map(|h| progress[(begins + h) % progress.len()]) {
        if left <= hour {
            return whole + (hours + if hour > 0.0 { left / hour } else { 0.0 }) / 24.0;
        }
        left -= hour;
        hours += 1.0;
    }
    whole + 1.0
}

/// Returns the MTTDL if one figure were half of what it is, and twice.
fn sensitivity(group: &Group, rebuild_hours: f64, seed: u64) -> BTreeMap<String, [f64; 2]> {
    let years = |g: Group| g.durability(CYCLES / 4, seed).mttdl_years.value;
    let both = |change: &dyn Fn(f64) -> Group| [years(change(0.5)), years(change(2.0))];
    let failures = |by: f64| Group { failure_per_hour: group.failure_per_hour * by, ..*group };
    let latent = |by: f64| Group { latent: (group.latent * by).min(1.0), ..*group };
    let rebuild = |by: f64| Group { rebuild: Rebuild::Fixed(rebuild_hours * by), ..*group };
    BTreeMap::from([
        ("failures".to_owned(), both(&failures)),
        ("rebuild hours".to_owned(), both(&rebuild)),
        ("unreadable sectors".to_owned(), both(&latent)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_ends_when_its_hours_add_up() {
        let even = [1.0 / 48.0; 24];
        assert!((scan_days(&even, 5) - 2.0).abs() < 1e-9);
        // All of a day's progress in one hour: 0.4 of the disk.
        let mut night = [0.0; 24];
        night[3] = 0.4;
        // Two days, and half of the hour that begins three hours after midnight.
        assert!((scan_days(&night, 0) - (2.0 + 3.5 / 24.0)).abs() < 1e-9);
        assert!((scan_days(&night, 3) - (2.0 + 0.5 / 24.0)).abs() < 1e-9);
        assert!(scan_days(&[0.0; 24], 1).is_infinite());
    }

    #[test]
    fn figures_lie_between_those_of_the_loads_around() {
        let rates =
            |hours: f64| Rates { scan_hours: hours, per_second: 1.0, mean_ms: hours, p99_ms: 1.0, saturated: false };
        let curve = Curve(vec![Point { load: 10.0, rates: rates(100.0) }, Point { load: 20.0, rates: rates(200.0) }]);
        assert_eq!(curve.at(15.0, |r| r.mean_ms), 150.0);
        assert_eq!(curve.at(1.0, |r| r.mean_ms), 100.0);
        assert_eq!(curve.at(99.0, |r| r.mean_ms), 200.0);
        assert!((curve.per_hour(15.0) - 0.0075).abs() < 1e-12);
    }
}
