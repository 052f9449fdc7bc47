//! `headtime sweep`: many simulations, one row each.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;

use clap::Args;
use headtime_study::grid::Grid;
use headtime_study::sweep::{Progress, Sweep as Run, on_threads};
use serde::Serialize;

use crate::failure::Failure;
use crate::screen::{self, Bar};
use crate::words::time;
use crate::{figures, interrupt};

/// Run a simulation for each point of a grid of parameters, and store one row per point in Parquet
///
/// The rows do not depend on the number of threads. When it is stopped, or killed, the same command
/// continues; only the rows of the last half minute are run again after a kill. docs/sweeps.md
/// describes grids and columns.
#[derive(Debug, Args)]
pub struct Sweep {
    /// What to run: a scenario, and the values that its keys take (docs/sweeps.md)
    #[arg(value_name = "GRID.toml")]
    grid: PathBuf,
    /// The directory of the rows; one with rows of the same grid is continued
    #[arg(short, long, value_name = "DIR", value_parser = figures::output())]
    output: PathBuf,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Only check the grid, and print the number of points and the first of them
    #[arg(long)]
    check: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// The most threads: more than any machine's processors.
const MOST_THREADS: usize = 4096;

fn threads(text: &str) -> Result<usize, String> {
    let within = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
    within.ok_or_else(|| format!("expected a whole number from 1 to {MOST_THREADS}"))
}

/// What a sweep did.
#[derive(Serialize)]
struct Report<'a> {
    /// The directory of the rows.
    output: &'a str,
    /// Points of the grid.
    points: u64,
    /// Points whose rows are there.
    done: u64,
    /// Points that could not be run, now or before; the column `error` says why.
    failed: u64,
    /// Points of this run per second.
    per_second: f64,
    threads: usize,
}

/// Runs the command.
pub fn run(args: &Sweep) -> Result<(), Failure> {
    let grid = Grid::load(&args.grid).map_err(Failure::input)?;
    let points = grid.len();
    if args.check {
        return check(&grid);
    }
    let threads = args.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));
    let (mut sweep, damaged) = Run::open(grid, &args.output).map_err(Failure::input)?;
    for part in damaged {
        screen::warn(&format!("{}: {}; its points are run again", part.path.display(), part.why));
    }
    let before = sweep.progress();
    if before.done > 0 {
        let failed = match before.failed {
            0 => String::new(),
            failed => format!("; {failed} of them could not be run"),
        };
        screen::note(&format!("continues after {} of {}{failed}", before.done, counted(points)));
    }
    let stop = interrupt::flag();
    let bar = Bar::with_message(points, "sweep");
    let mut see = |p: &Progress| {
        bar.reach(p.done);
        let left = p.left.map_or_else(String::new, |left| format!(", {} left", time(left.as_secs_f64())));
        let failed = if p.failed > 0 { format!(", {} failed", p.failed) } else { String::new() };
        bar.say(&format!("{}/{}, {:.1} points/s{left}{failed}", p.done, p.total, p.per_second));
    };
    on_threads(&mut sweep, threads, &stop, &mut see).map_err(Failure::input)?;
    drop(bar);
    let p = sweep.progress();
    let output = args.output.display().to_string();
    if args.json {
        let per_second = (p.per_second * 1e3).round() / 1e3;
        let report = Report { output: &output, points, done: p.done, failed: p.failed, per_second, threads };
        screen::print_json(&report)?;
    } else {
        let failed =
            if p.failed > 0 { format!("; {} could not be run: see the column error", p.failed) } else { String::new() };
        screen::print(&format!(
            "{} of {}, {:.1} a second{failed}\nrows: {output}\n",
            p.done,
            counted(points),
            p.per_second
        ))?;
    }
    match () {
        _ if stop.load(Ordering::Relaxed) && p.done < points => {
            screen::note("stopped; the same command continues");
            Err(Failure::Stopped)
        }
        _ if p.failed > 0 => Err(Failure::Check),
        _ => Ok(()),
    }
}

/// Returns a number of points with the noun.
fn counted(points: u64) -> String {
    format!("{points} point{}", if points == 1 { "" } else { "s" })
}

/// Prints what would be run.
fn check(grid: &Grid) -> Result<(), Failure> {
    let first = grid.point(0);
    let mut text = format!("{}; the first one:\n", counted(grid.len()));
    for (key, value) in grid.keys().zip(&first.values) {
        text += &format!("  {key} = {value}\n");
    }
    screen::print(&text)
}
