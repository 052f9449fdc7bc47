//! `headtime validate`: compares the drive model with measured response times.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headtime_host::whole_file;
use headtime_plot::{Axis, XyChart};
use headtime_sched::PredictionStats;
use headtime_sim::traces::GapSide;
use headtime_sim::validate::{CompareError, Comparison, Predictions, Validation};

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
    /// Write predicted and observed head time of each request into this file (CSV), in us. The
    /// scheduler is given each request and each completion when the trace has it
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    predictions: Option<PathBuf>,
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

/// Runs the command.
pub fn run(args: &Validate) -> Result<(), Failure> {
    let profile = drive::find(&args.disk)?;
    let gap = match args.gap {
        Side::Before => GapSide::Before,
        Side::After => GapSide::After,
    };
    let compared = Comparison::new(&profile, &args.trace, gap, args.disksim_exact).map_err(|e| match e {
        CompareError::Model(e) => Failure::input(format!("{}: {e}", args.disk)),
        e => Failure::input(e),
    })?;
    if let Some(path) = &args.predictions {
        whole_file::write_whole(path, table(&compared.predictions).as_bytes())?;
    }
    if let Some(path) = &args.svg {
        whole_file::write_whole(path, picture(&profile.title, &compared.validation).to_svg().as_bytes())?;
    }
    if args.json {
        return screen::print_json(&compared.figures());
    }
    screen::print(&text(&profile.title, &compared.validation, &compared.predictions.stats))?;
    if let Some(path) = &args.svg {
        screen::print(&format!("Picture: {}\n", path.display()))?;
    }
    Ok(())
}

fn text(title: &str, v: &Validation, p: &PredictionStats) -> String {
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
    if p.samples > 0 {
        let percent = |n: u64| 100.0 * n as f64 / p.samples as f64;
        text += &format!(
            "\x20 head times predicted within 50 us                {:.1}% of {}\n\
             \x20 within 150 us                                    {:.1}%\n\
             \x20 a whole revolution late, early                   {:.1}%, {:.1}%\n",
            percent(p.within_50us),
            p.samples,
            percent(p.within_150us),
            percent(p.extra_turn),
            percent(p.early_turn),
        );
    }
    text
}

/// Predicted and observed head times, one line each, in us.
fn table(predictions: &Predictions) -> String {
    let mut csv = String::from(
        "line,kind,lbn,sectors,from_cylinder,from_surface,to_cylinder,to_surface,seek_us,latency_us,transfer_us,\
         predicted_us,observed_us,surprise\n",
    );
    for p in &predictions.each {
        let (m, times) = (&p.measured, &p.prediction);
        let kind = if m.kind.is_read() { "read" } else { "write" };
        let [seek, latency, transfer, predicted, observed] =
            [times.seek, times.latency, times.transfer, times.predicted, times.observed].map(|t| t.0 as f64 / 1e3);
        let [(from, a), (to, b)] = [p.from, p.to];
        let surprise = times.surprise;
        csv += &format!(
            "{},{kind},{},{},{from},{a},{to},{b},{seek:.3},{latency:.3},{transfer:.3},{predicted:.3},{observed:.3},\
             {surprise:?}\n",
            m.line, m.lbn, m.count,
        );
    }
    csv
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
