//! The drives, and the names of all choices that a visitor has.

use headtime_disk::Geometry;
use headtime_disk::profile::{self, Profile};
use headtime_sched::Placement;
use headtime_sim::scenario::filling::FILLS;
use headtime_sim::scenario::{ADMITS, DEFAULT_DISK};
use headtime_sim::simulate::Scheduling;
use headtime_sim::traces::TraceFormat;
use headtime_sim::workload;
use serde::Serialize;

/// What there is to choose from.
#[derive(Serialize)]
pub struct Catalogue {
    version: &'static str,
    drives: Vec<Drive>,
    default_drive: &'static str,
    workloads: Vec<&'static str>,
    orders: Vec<&'static str>,
    fills: Vec<&'static str>,
    admits: Vec<&'static str>,
    placements: Vec<&'static str>,
    trace_formats: Vec<&'static str>,
}

/// A built-in drive in a list.
#[derive(Serialize)]
struct Drive {
    name: String,
    title: String,
    year: Option<u16>,
    capacity_bytes: u64,
    rpm: f64,
    /// Its service times are in its profile: guarantees need no long measurement first.
    has_service_times: bool,
}

/// Returns the catalogue.
pub fn catalogue() -> Catalogue {
    let drives = profile::builtin_names().filter_map(|name| profile::builtin(name).ok()).map(drive);
    Catalogue {
        version: env!("CARGO_PKG_VERSION"),
        drives: drives.collect(),
        default_drive: DEFAULT_DISK,
        workloads: workload::NAMES.to_vec(),
        orders: Scheduling::NAMES.to_vec(),
        fills: FILLS.to_vec(),
        admits: ADMITS.to_vec(),
        placements: Placement::NAMES.to_vec(),
        trace_formats: TraceFormat::ALL.iter().map(|(name, _)| *name).collect(),
    }
}

fn drive(profile: Profile) -> Drive {
    let sectors = profile.stated_sectors.or_else(|| Geometry::new(&profile.geometry).ok().map(|g| g.capacity()));
    Drive {
        capacity_bytes: sectors.unwrap_or(0) * u64::from(profile.sector_bytes),
        rpm: profile.mechanics.rpm.0 as f64 / profile.mechanics.rpm.1 as f64,
        year: profile.year,
        has_service_times: !profile.service_times.is_empty(),
        title: profile.title,
        name: profile.name,
    }
}
