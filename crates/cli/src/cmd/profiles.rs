//! `headtime profiles`: lists the built-in drives, prints a profile as TOML, measures its service
//! times, compares two profiles, exports figures for other schedulers.

pub mod compare;
pub mod export;
pub mod measure;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use headtime_disk::Geometry;
use headtime_disk::profile::{self, HeadOrder, Layout, Profile};
use serde::Serialize;

use crate::failure::Failure;
use crate::{drive, screen};

/// List the built-in drives, or show one
#[derive(Debug, Args)]
pub struct Profiles {
    #[command(subcommand)]
    what: Option<What>,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a profile as TOML; a DiskSim parameter file is converted
    Show {
        /// A built-in drive, or a profile file (TOML or DiskSim .parv)
        #[arg(value_name = "NAME|FILE")]
        name: String,
    },
    Measure(measure::Measure),
    Compare(compare::Compare),
    Export(export::Export),
}

/// Runs the command.
pub fn run(args: &Profiles) -> Result<(), Failure> {
    match &args.what {
        Some(What::Show { name }) => show(name, args.json),
        Some(What::Measure(measure)) => measure::run(measure, args.json),
        Some(What::Compare(compare)) => compare::run(compare, args.json),
        Some(What::Export(export)) => export::run(export, args.json),
        None => list(args.json),
    }
}

fn show(name: &str, json: bool) -> Result<(), Failure> {
    let loaded = drive::load(name)?;
    for w in &loaded.warnings {
        screen::warn(&format!("{w}"));
    }
    if json {
        return screen::print_json(&summary(&loaded.profile)?);
    }
    screen::print(&profile::write(&loaded.profile))
}

fn list(json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for name in profile::builtin_names() {
        all.push(drive::load(name)?.profile);
    }
    if json {
        let list: Result<Vec<Summary>, Failure> = all.iter().map(summary).collect();
        return screen::print_json(&list?);
    }
    let mut rows =
        vec![["name", "drive", "year", "GB", "rpm", "surfaces", "layout", "figures"].map(String::from).to_vec()];
    for p in &all {
        rows.push(vec![
            p.name.clone(),
            p.title.clone(),
            p.year.map_or_else(|| "-".into(), |y| y.to_string()),
            gigabytes(p)?,
            rpm(p),
            p.geometry.surfaces.to_string(),
            layout(p.geometry.layout).into(),
            if p.synthesised.is_some() { "synthesised" } else { "measured" }.into(),
        ]);
    }
    screen::print(&screen::columns(&rows, &[2, 3, 4, 5]))?;
    screen::print("\n`headtime profiles show NAME` prints a drive's figures, each with its source.\n")
}

/// The `--json` output for a drive.
#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    title: &'a str,
    year: Option<u16>,
    synthesised: Option<&'a str>,
    sectors: u64,
    sector_bytes: u32,
    rpm: f64,
    surfaces: u16,
    cylinders: u32,
    layout: &'static str,
    zones: usize,
    queue_depth: u32,
    sources: &'a BTreeMap<String, String>,
}

fn summary(p: &Profile) -> Result<Summary<'_>, Failure> {
    Ok(Summary {
        name: &p.name,
        title: &p.title,
        year: p.year,
        synthesised: p.synthesised.as_deref(),
        sectors: sectors(p)?,
        sector_bytes: p.sector_bytes,
        rpm: p.mechanics.rpm.0 as f64 / p.mechanics.rpm.1 as f64,
        surfaces: p.geometry.surfaces,
        cylinders: p.geometry.cylinders,
        layout: layout(p.geometry.layout),
        zones: p.geometry.zones.len(),
        queue_depth: p.electronics.queue.depth,
        sources: &p.sources,
    })
}

fn sectors(p: &Profile) -> Result<u64, Failure> {
    let g = Geometry::new(&p.geometry).map_err(|e| Failure::input(format!("{}: {e}", p.name)))?;
    Ok(g.capacity())
}

fn gigabytes(p: &Profile) -> Result<String, Failure> {
    let gb = sectors(p)? as f64 * f64::from(p.sector_bytes) / 1e9;
    Ok(if gb < 100.0 { format!("{gb:.1}") } else { format!("{gb:.0}") })
}

fn rpm(p: &Profile) -> String {
    let (num, den) = p.mechanics.rpm;
    let rpm = num as f64 / den as f64;
    if num % den == 0 { format!("{rpm:.0}") } else { format!("{rpm:.1}") }
}

fn layout(l: Layout) -> &'static str {
    match l {
        Layout::HeadFirst(HeadOrder::Forward) => "F",
        Layout::HeadFirst(HeadOrder::AlternatingInZone | HeadOrder::AlternatingOnDisk) => "A",
        Layout::SeekFirst { tracks_alternate: false, surfaces_alternate: false, .. } => "FF",
        Layout::SeekFirst { tracks_alternate: false, surfaces_alternate: true, .. } => "FA",
        Layout::SeekFirst { tracks_alternate: true, surfaces_alternate: false, .. } => "AF",
        Layout::SeekFirst { tracks_alternate: true, surfaces_alternate: true, .. } => "AA",
    }
}
