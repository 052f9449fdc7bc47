//! `headtime demo`: reads a busy disk from end to end, by today's means and in rotational gaps.

mod picture;
mod runs;
mod table;
mod window;

use std::path::PathBuf;

use clap::Args;
use headtime_disk::profile;
use headtime_host::whole_file;

use crate::failure::Failure;
use crate::{figures, screen};

/// Read a whole busy disk in the background, by today's means and in rotational gaps: figures side
/// by side, and a picture
#[derive(Debug, Args)]
pub struct Demo {
    /// Path of the picture
    #[arg(short, long, value_name = "FILE", default_value = "headtime-demo.svg", value_parser = figures::output())]
    output: PathBuf,
    /// Seed of the requests and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
}

const DISK: &str = "atlas10k";

/// Runs the command.
pub fn run(args: &Demo) -> Result<(), Failure> {
    let profile = profile::builtin(DISK).map_err(Failure::input)?;
    // Created before the runs, so that an unwritable file is reported at once.
    let file = whole_file::WholeFile::create(&args.output)?;
    let rows = runs::all(&profile, args.seed)?;
    let svg = picture::draw(&rows).to_svg();
    put(file, svg.as_bytes(), args)?;
    screen::print(&table::text(&profile, &rows, &args.output))
}

fn put(mut file: whole_file::WholeFile, bytes: &[u8], args: &Demo) -> Result<(), Failure> {
    use std::io::Write;
    file.write_all(bytes).map_err(|e| Failure::input(format!("cannot write {}: {e}", args.output.display())))?;
    Ok(file.finish()?)
}
