//! Loads on the bare drive, and with headtime in front of it: the basis of X8.

use headtime_disk::profile::{self, Profile};
use headtime_sched::{Algorithm, Commitment, FillConfig, Order};
use headtime_sim::background::{Job, Jobs, scan_unit};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, Population};

use crate::experiment::Cell;

/// The scheduler in front of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing.
    Bare,
    /// headtime as `serve` configures it.
    Headtime,
    /// The same with repeated scans of the whole disk.
    Scan,
    /// SPTF that commits to the next command early.
    Early,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Requests a second.
    pub per_second: f64,
    /// 99th percentile of the response times, in ms.
    pub p99_ms: f64,
    /// What the scan read, in MB/s.
    pub scan_mb_s: f64,
}

/// One cell of a table.
pub(crate) struct Point {
    /// Name of the drive.
    pub drive: &'static str,
    /// Description of the load.
    pub load: String,
    /// Most outstanding requests of closed-loop clients.
    pub outstanding: u32,
    /// Host time from a completion to the next request, in microseconds.
    pub host_us: u64,
    /// The clients.
    pub groups: Vec<GroupSpec>,
    /// Requests per run.
    pub requests: u64,
}

impl Point {
    /// Runs its loads together.
    pub(crate) fn measure(&self, profile: &Profile, front: Front, seed: u64) -> Result<Measured, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let order = if front == Front::Early { Order::Sptf } else { Order::SptfJoint };
        let mut setup = Setup::new(profile, order, seed);
        match front {
            Front::Bare => setup.scheduling = Scheduling::Drive,
            Front::Early => setup.commitment = Commitment::Early,
            Front::Scan => setup = setup.filled(FillConfig { seed, ..FillConfig::new(Algorithm::Headtime) }),
            Front::Headtime => {}
        }
        let simulation = Simulation::new(&setup).map_err(|e| text(&e))?;
        let mut load = Population::new(&self.groups, simulation.target(), seed).map_err(|e| text(&e))?;
        let limits = Limits { requests: Some(self.requests), ..Limits::default() };
        let stats = match front {
            Front::Scan => {
                let capacity = simulation.target().capacity;
                let scan = Job::scan(capacity, scan_unit(capacity, profile.sector_bytes));
                let mut jobs = Jobs::new(vec![Job { again: true, ..scan }]);
                simulation.run_with(&mut load, &mut jobs, limits, None, &mut ())
            }
            _ => simulation.run(&mut load, limits, None, &mut ()),
        };
        Ok(measured(&stats.map_err(|e| text(&e))?, profile.sector_bytes))
    }
}

fn measured(stats: &Stats, sector_bytes: u32) -> Measured {
    Measured {
        per_second: stats.per_second(),
        p99_ms: crate::common::scan_run::p99_ms(stats),
        scan_mb_s: crate::common::scan_run::progress_mb_s(stats, sector_bytes),
    }
}

/// Figures of all points, in percent of the bare drive.
#[derive(Default)]
pub(crate) struct Ratios {
    /// Ratios of request rates.
    pub requests: Vec<f64>,
    /// Ratios of p99.
    pub p99: Vec<f64>,
}

impl Ratios {
    /// Adds one, and returns both of its ratios.
    pub(crate) fn add(&mut self, m: Measured, bare: Measured) -> [Cell; 2] {
        let (requests, p99) = (100.0 * m.per_second / bare.per_second, 100.0 * m.p99_ms / bare.p99_ms);
        self.requests.push(requests);
        self.p99.push(p99);
        [requests.into(), p99.into()]
    }

    /// The lowest request rate and the highest p99.
    pub(crate) fn worst(&self) -> [f64; 2] {
        let least = self.requests.iter().copied().fold(f64::INFINITY, f64::min);
        [least, self.p99.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
    }

    /// The geometric mean of the request rates.
    pub(crate) fn geometric_mean(&self) -> f64 {
        (self.requests.iter().map(|r| r.ln()).sum::<f64>() / self.requests.len() as f64).exp()
    }
}

/// Columns of a row of [`Comparison::add`].
pub(crate) const COLUMNS: &[&str] = &[
    "drive",
    "load",
    "outstanding",
    "host_us",
    "bare_per_second",
    "bare_p99_ms",
    "requests_percent",
    "p99_percent",
    "scan_requests_percent",
    "scan_p99_percent",
    "scan_mb_s",
    "early_requests_percent",
    "early_p99_percent",
];

/// Each front, in percent of the bare drive.
#[derive(Default)]
pub(crate) struct Comparison {
    /// [`Front::Headtime`].
    pub alone: Ratios,
    /// [`Front::Scan`].
    pub scan: Ratios,
    /// [`Front::Early`].
    pub early: Ratios,
}

impl Comparison {
    /// Measures a cell and returns its row.
    pub(crate) fn add(&mut self, point: &Point, seed: u64) -> Result<Vec<Cell>, String> {
        let profile = profile::builtin(point.drive).map_err(|e| e.to_string())?;
        let of = |front| point.measure(&profile, front, seed);
        let (bare, with_scan) = (of(Front::Bare)?, of(Front::Scan)?);
        let mut row = vec![
            point.drive.into(),
            Cell::Text(point.load.clone()),
            f64::from(point.outstanding).into(),
            Cell::from(point.host_us as f64),
            bare.per_second.into(),
            bare.p99_ms.into(),
        ];
        row.extend(self.alone.add(of(Front::Headtime)?, bare));
        row.extend(self.scan.add(with_scan, bare));
        row.push(with_scan.scan_mb_s.into());
        row.extend(self.early.add(of(Front::Early)?, bare));
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_the_fewest_requests_and_the_longest_p99() {
        let bare = Measured { per_second: 200.0, p99_ms: 50.0, scan_mb_s: 0.0 };
        let mut r = Ratios::default();
        r.add(Measured { per_second: 198.0, p99_ms: 40.0, ..bare }, bare);
        r.add(Measured { per_second: 220.0, p99_ms: 55.0, ..bare }, bare);
        assert_eq!(r.worst(), [99.0, 110.0]);
        assert!((r.geometric_mean() - (99.0_f64 * 110.0).sqrt()).abs() < 1e-9);
    }
}
