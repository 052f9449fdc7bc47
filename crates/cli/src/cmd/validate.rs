//! `headtime validate`: compares the drive model with measured response times.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headtime_disk::{Drive, DriveConfig};
use headtime_host::whole_file;
use headtime_plot::{Axis, XyChart};
use headtime_sim::traces::{self, GapSide, ReadOptions, TraceFormat};
use headtime_sim::validate::{self, Measured, ValidateError, Validation};
use serde::Serialize;

use crate::failure::Failure;
use crate::{drive, figures, screen};

/// Validate the drive model against response times measured on a real drive
#[derive(Debug, Args)]
pub struct Validate {
    /// A built-in drive, or a profile file (TOML or DiskSim .parv)
    #[arg(long, value_name = "NAME|FILE")]
    disk: String,
    /// A trace in DiskSim's validation format: R|W word lbn sectors response_us gap_us
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Draw both distributions of response times into this file
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    svg: Option<PathBuf>,
    /// Position of the gap on a trace line: before its request, or after it (as DiskSim reads it)
    #[arg(long, value_enum, default_value = "after")]
    gap: Side,
    /// Follow DiskSim 4.0 where it deviates from the meaning of its parameters
    #[arg(long)]
    disksim_exact: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Side {
    Before,
    After,
}

/// The `--json` output.
#[derive(Serialize)]
struct Answer<'a> {
    disk: &'a str,
    requests: usize,
    rms_ms: f64,
    mean_ms_measured: f64,
    mean_ms_model: f64,
    random_reads: RandomReads,
}

#[derive(Serialize)]
struct RandomReads {
    /// Shares of the random reads; `null` without any.
    within_200us: Option<f64>,
    within_500us: Option<f64>,
}

/// Runs the command.
pub fn run(args: &Validate) -> Result<(), Failure> {
    let profile = drive::find(&args.disk)?;
    let trace = read(args, profile.sector_bytes)?;
    let config =
        DriveConfig::default().with_seed(0).with_disksim_exact(args.disksim_exact).with_rig(true).with_noise(false);
    let mut drive = Drive::new(&profile, config).map_err(|e| Failure::input(format!("{}: {e}", args.disk)))?;
    let v = validate::run(&mut drive, &trace).map_err(|e| at(args, e))?;
    if let Some(path) = &args.svg {
        whole_file::write_whole(path, picture(&profile.title, &v).to_svg().as_bytes())?;
    }
    let share = |of: f64| (v.random_reads > 0).then_some(of);
    if args.json {
        return screen::print_json(&Answer {
            disk: &profile.name,
            requests: v.requests,
            rms_ms: v.rms_ms,
            mean_ms_measured: v.mean_ms_measured,
            mean_ms_model: v.mean_ms_model,
            random_reads: RandomReads { within_200us: share(v.within_200us), within_500us: share(v.within_500us) },
        });
    }
    screen::print(&text(&profile.title, &v))?;
    if let Some(path) = &args.svg {
        screen::print(&format!("Picture: {}\n", path.display()))?;
    }
    Ok(())
}

fn read(args: &Validate, sector_bytes: u32) -> Result<Vec<Measured>, Failure> {
    let gap = match args.gap {
        Side::Before => GapSide::Before,
        Side::After => GapSide::After,
    };
    let options = ReadOptions { gap, ..ReadOptions::default() };
    let reader = traces::open(&args.trace, TraceFormat::DisksimValidate, options).map_err(Failure::input)?;
    let records = reader.read_all().map_err(Failure::input)?;
    validate::measured(&records, sector_bytes).map_err(|e| at(args, e))
}

fn at(args: &Validate, e: ValidateError) -> Failure {
    let line = e.line().map(|n| format!(":{n}")).unwrap_or_default();
    Failure::Input(format!("{}{line}: {e}", args.trace.display()))
}

fn text(title: &str, v: &Validation) -> String {
    let mut text = format!(
        "{title}: {} requests\n\
         \x20 demerit (rms distance of the two distributions)  {:.3} ms\n\
         \x20 mean response, measured                          {:.3} ms\n\
         \x20 mean response, model                             {:.3} ms\n",
        v.requests, v.rms_ms, v.mean_ms_measured, v.mean_ms_model,
    );
    if v.random_reads > 0 {
        text += &format!(
            "\x20 random reads within 200 us of the measured time  {:.1}% of {}\n\
             \x20 random reads within 500 us of the measured time  {:.1}%\n",
            100.0 * v.within_200us,
            v.random_reads,
            100.0 * v.within_500us
        );
    }
    text
}

fn picture(title: &str, v: &Validation) -> XyChart {
    let modelled: Vec<f64> = v.replayed.iter().map(|r| r.modelled.as_ms_f64()).collect();
    let measured: Vec<f64> = v.replayed.iter().map(|r| r.measured.response.as_ms_f64()).collect();
    XyChart::cdf(
        &format!("Response times, {title}"),
        &format!(
            "{} requests of a measured trace, replayed on the model. The demerit, the rms horizontal distance of the \
             two lines, is {:.3} ms.",
            v.requests, v.rms_ms
        ),
        Axis::log("response time, ms"),
        &[("measured on the drive", &measured), ("model", &modelled)],
    )
}
