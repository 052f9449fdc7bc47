//! `headtime fleet`: what a policy does to thousands of disks over years.

use std::path::{Path, PathBuf};

use clap::Args;
use headtime_host::whole_file::{make_directory, write_whole};
use headtime_study::fleet::hazard::FailureRates;
use headtime_study::fleet::page::{figure, page};
use headtime_study::fleet::run::{self, Outcome, RunError};
use headtime_study::fleet::study::{BUILT_IN, Study};

use crate::failure::Failure;
use crate::screen::{self, Bar, columns};
use crate::{drive, figures, interrupt};

/// Find out what a policy does to thousands of disks: how long scrubs take, what clients notice,
/// how long data lasts
///
/// One disk is simulated under several loads and each policy; then all drives of the fleet, whose
/// loads differ and follow the day. docs/fleet.md describes studies, and what the results rest on.
#[derive(Debug, Args)]
pub struct Fleet {
    /// A study's file, or a built-in study: scrub, rebuild, write-cache
    #[arg(value_name = "STUDY.toml|NAME", required_unless_present = "show")]
    study: Option<PathBuf>,
    /// Write index.html and results.json into this directory
    #[arg(short, long, value_name = "DIR", value_parser = figures::output())]
    output: Option<PathBuf>,
    /// Print a built-in study, to be changed
    #[arg(long, value_name = "NAME", conflicts_with_all = ["output", "json"])]
    show: Option<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Returns the text of a built-in study.
fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Runs the command.
pub fn run(args: &Fleet) -> Result<(), Failure> {
    if let Some(name) = &args.show {
        let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let text = built_in(name)
            .ok_or_else(|| Failure::Input(format!("--show: expected one of {}, found '{name}'", known.join(", "))))?;
        return screen::print(text);
    }
    let path = args.study.as_deref().expect("required without --show");
    let study = match path.to_str().and_then(built_in).filter(|_| !path.exists()) {
        Some(text) => Study::parse(text, &path.display().to_string(), Path::new("")),
        None => Study::load(path),
    };
    let study = study.map_err(Failure::input)?;
    let profile = drive::find(&study.disk)?;
    let failures = study.failures.as_ref().map(FailureRates::of).transpose().map_err(Failure::input)?;
    if let Some(dir) = &args.output {
        // Created before the run, so that a directory that cannot be made is reported at once.
        make_directory(dir)?;
    }
    let stop = interrupt::flag();
    let bar = Bar::new(0, "one disk");
    let see = |done: usize, all: usize| {
        bar.spread(all as u64);
        bar.reach(done as u64);
    };
    let outcome = run::run(&study, &profile, failures.as_ref(), &stop, &see);
    drop(bar);
    let outcome = outcome.map_err(|e| match e {
        RunError::Stopped => Failure::Stopped,
        e => Failure::input(e),
    })?;
    for warning in outcome.warnings() {
        screen::warn(&warning);
    }
    if let Some(dir) = &args.output {
        write_whole(&dir.join("index.html"), page(&outcome).as_bytes())?;
        let json = serde_json::to_string_pretty(&outcome).map_err(Failure::input)?;
        write_whole(&dir.join("results.json"), json.as_bytes())?;
    }
    if args.json {
        return screen::print_json(&outcome);
    }
    screen::print(&text(&outcome))?;
    match &args.output {
        Some(dir) => screen::print(&format!("\nPage: {}\n", dir.join("index.html").display())),
        None => Ok(()),
    }
}

fn text(o: &Outcome) -> String {
    let targets: Vec<f64> = o.policies.values().next().map(|f| f.missed.targets().collect()).unwrap_or_default();
    let mut head = ["scan of a drive, days", "median", "95%", "99%"].map(String::from).to_vec();
    head.extend(targets.iter().map(|days| format!("over {days}")));
    head.extend(["clients mean, ms", "p99, ms"].map(String::from));
    let mut rows = vec![head];
    for (name, f) in &o.policies {
        let mut row = vec![name.clone()];
        row.extend(f.scan_days[1..4].iter().map(|d| figure(*d)));
        row.extend(f.missed.shares().map(|m| format!("{:.2}%", 100.0 * m.value)));
        row.extend([f.mean_ms, f.p99_ms].map(|ms| format!("{ms:.1}")));
        rows.push(row);
    }
    if let Some(f) = o.policies.values().next() {
        let mut row = vec!["no scan".to_owned()];
        row.extend((0..3 + targets.len()).map(|_| "-".to_owned()));
        row.extend(f.alone.map(|ms| format!("{ms:.1}")));
        rows.push(row);
    }
    let right: Vec<usize> = (1..rows[0].len()).collect();
    let mut text = format!("{}\n\n{}", o.title, columns(&rows, &right));
    let mut rows =
        vec![["group", "scan", "rebuild, hours", "years to data loss", "95% interval"].map(String::from).to_vec()];
    for (policy, f) in &o.policies {
        for (name, g) in &f.groups {
            let years = &g.durability.mttdl_years;
            let interval = format!("{} to {}", figure(years.low), figure(years.high));
            rows.push(vec![name.clone(), policy.clone(), figure(g.rebuild_hours), figure(years.value), interval]);
        }
    }
    if rows.len() > 1 {
        text += &format!("\n{}", columns(&rows, &[2, 3, 4]));
    }
    text
}
