//! `headtime reproduce`: experiments and their claims.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use clap::Args;
use headtime_lab::runner::{self, Options};
use headtime_lab::{Progress, registry, report};

use crate::failure::Failure;
use crate::figures;
use crate::screen::{self, Bar};

/// Run experiments, and report which of the papers' claims hold
#[derive(Debug, Args)]
pub struct Reproduce {
    /// What to run: an experiment (F1), one claim (F1a) or a group (F) [default: everything]
    #[arg(value_name = "ID|GROUP")]
    names: Vec<String>,
    /// Shorten the runs, and leave out the claims that need long runs
    #[arg(long)]
    quick: bool,
    /// Exit with status 1 when a claim does not hold
    #[arg(long)]
    check: bool,
    /// Print one JSON list on stdout, one object per claim
    #[arg(long)]
    json: bool,
    /// Write index.html, and JSON, CSV and SVG files of each experiment when it is complete, into
    /// this directory
    #[arg(short, long, value_name = "DIR", value_parser = figures::output())]
    output: Option<PathBuf>,
    /// The first of the three seeds; a claim holds only if it holds for each of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
}

impl Progress for Bar {
    fn advance(&self, steps: u64) {
        Bar::advance(self, steps);
    }
}

/// Number of seeds for which every claim must hold.
const SEEDS: u64 = 3;

/// Runs the command.
pub fn run(args: &Reproduce) -> Result<(), Failure> {
    let selected = registry::select(&registry::all(), &args.names).map_err(Failure::input)?;
    let options = Options { seeds: (0..SEEDS).map(|i| args.seed.wrapping_add(i)).collect(), quick: args.quick };
    if let Some(dir) = &args.output {
        // Created before the runs, so that a directory that cannot be made is reported at once.
        headtime_host::whole_file::make_directory(dir)?;
    }
    let bar = Bar::new(runner::steps(&selected, &options), "experiments");
    // Hours of work must not be lost by an interruption. If they could not be written, that is
    // reported at the end.
    let written = Mutex::new(Ok(()));
    let so_far = |results: &[_]| {
        if let Some(dir) = &args.output {
            *written.lock().unwrap_or_else(PoisonError::into_inner) = report::write(dir, results, &options);
        }
    };
    let results = runner::run_with(&selected, &options, &bar, &so_far).map_err(Failure::input)?;
    drop(bar);
    written.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    if args.json {
        screen::print(&report::to_json(&results, &options))?;
    } else {
        screen::print(&report::to_text(&results, &options))?;
        if let Some(dir) = &args.output {
            screen::print(&format!("Pictures: {}\n", dir.join("index.html").display()))?;
        }
    }
    if args.check && results.iter().flat_map(|e| &e.claims).any(|c| !c.holds) {
        return Err(Failure::Check);
    }
    Ok(())
}
