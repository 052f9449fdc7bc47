//! `headtime simulate`: runs a workload or a trace on a virtual drive.

mod outputs;
mod streams;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use headtime_disk::Time;
use headtime_disk::profile::{self, Bounds, Profile};
use headtime_host::whole_file::WholeFile;
use headtime_sched::TaskEvent;
use headtime_sim::observe::Observer;
use headtime_sim::perfetto;
use headtime_sim::result::{NotFilled, ResponseMs, SimResult};
use headtime_sim::run::Limits;
use headtime_sim::scenario::{DEFAULT_DISK, Prepared, Scenario};
use headtime_sim::stats::{Done, Stats};
use headtime_sim::timeline::Timeline;
use headtime_sim::workload::Refusals;
use headtime_study::tables::{Requests, TableFile, requests_schema};

use crate::failure::Failure;
use crate::screen::{self, Bar, columns};
use crate::{drive, figures, promises, words};

/// Run a workload or a recorded trace against a virtual drive
#[derive(Debug, Args)]
pub struct Simulate {
    /// A scenario file (docs/scenarios.md); flags override it
    #[arg(value_name = "SCENARIO.toml")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    flags: Scenario,
    /// With das, bounds of figures that the profile does not have, used for guarantees:
    /// n=5,write-settle=2ms
    // Its place in the help is behind the settings of streams.
    #[arg(long, value_name = "BOUNDS", value_parser = Bounds::parse, display_order = 9)]
    assume: Option<Bounds>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Write the head's activity and each request as Chrome trace JSON, which ui.perfetto.dev opens
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    perfetto: Option<PathBuf>,
    /// Write one row per request as Parquet: its times, and its predicted and observed head time
    /// (docs/sweeps.md)
    #[arg(long, value_name = "FILE", value_parser = figures::output())]
    requests_out: Option<PathBuf>,
    /// Replace existing files of --perfetto and --requests-out
    #[arg(long)]
    overwrite: bool,
}

/// Most requests in a Perfetto export: about what its viewer opens without delay.
const MAX_EXPORTED_REQUESTS: usize = 200_000;

/// Runs the command.
pub fn run(args: &Simulate) -> Result<(), Failure> {
    let scenario = scenario(args)?;
    scenario.check().map_err(Failure::input)?;
    let name = scenario.disk.as_deref().unwrap_or(DEFAULT_DISK);
    outputs::check(args, &scenario, name)?;
    let profile = drive::find(name).map_err(|e| match e {
        Failure::Input(why) => Failure::Input(scenario.fault_at("disk", why)),
        other => other,
    })?;
    let prepared = Prepared::new(&scenario, profile, args.assume.as_ref()).map_err(Failure::input)?;
    if let Some(promised) = prepared.promised() {
        promises::note_measured(prepared.profile(), &promised.measured);
        // The bounds of a built-in drive are the virtual drive's own.
        if profile::builtin_names().all(|known| known != name) || args.assume.is_some() {
            let bounds = promised.grounds.bounds();
            bounds.iter().for_each(|bound| screen::note(&format!("promises rest on a stated bound: {bound}")));
        }
    }
    // Created before the run, so that an unwritable file is reported at once.
    let export = args.perfetto.as_deref().map(WholeFile::create).transpose()?;
    let mut table = match &args.requests_out {
        Some(path) => Some(TableFile::create(path, requests_schema()).map_err(Failure::input)?),
        None => None,
    };
    // An explicit `none` needs no warning.
    if let (Some(fill), None) = (scenario.fill.as_deref().filter(|f| *f != "none"), &scenario.background) {
        screen::note(&format!(
            "warning: fill {fill} was given, but no background: there is nothing to read in the gaps"
        ));
    }
    let limits = *prepared.limits();
    let timeline = export.is_some().then(|| Timeline::new(MAX_EXPORTED_REQUESTS, limits.until));
    let began = Instant::now();
    let clock = || began.elapsed().as_nanos() as u64;
    let profile = prepared.profile().clone();
    let mut written = Ok(());
    let mut give = |rows| {
        if let (Some(table), Ok(())) = (&mut table, &written) {
            written = table.write(&rows);
        }
    };
    let rows = if args.requests_out.is_some() { Some(Requests::new(&mut give)) } else { None };
    let bar = Watch::new(&limits, prepared.simulation().target().capacity);
    let mut watch = ((timeline, rows), bar);
    let outcome = prepared.run(Some(&clock), &mut watch).map_err(Failure::input)?;
    let ((timeline, rows), bar) = watch;
    drop(bar);
    if let Some(rows) = rows {
        rows.finish();
    }
    written.map_err(Failure::input)?;
    if let Some(table) = table {
        table.finish().map_err(Failure::input)?;
    }
    if let (Some(timeline), Some(mut file)) = (timeline, export) {
        write(&timeline, &profile, &mut file, args)?;
        file.finish()?;
    }
    refusals(&outcome.stats.refused);
    if args.json {
        return screen::print(&format!("{}\n", outcome.result.to_json()));
    }
    screen::print(&text(&profile, &outcome.result, &outcome.stats))
}

/// Combines the flags with the scenario file; flags override it.
fn scenario(args: &Simulate) -> Result<Scenario, Failure> {
    match &args.scenario {
        None => Ok(args.flags.clone()),
        Some(path) => Ok(args.flags.clone().over(Scenario::load(path).map_err(Failure::input)?)),
    }
}

fn write(timeline: &Timeline, profile: &Profile, file: &mut WholeFile, args: &Simulate) -> Result<(), Failure> {
    perfetto::write(timeline, &profile.title, file).map_err(|e| {
        let path = args.perfetto.as_deref().unwrap_or_else(|| "the trace".as_ref());
        Failure::input(format!("cannot write {}: {e}", path.display()))
    })?;
    if timeline.requests().len() >= MAX_EXPORTED_REQUESTS {
        screen::note(&format!("the Perfetto file holds the first {MAX_EXPORTED_REQUESTS} requests"));
    }
    Ok(())
}

/// Reports requests beyond the drive's capacity, which are not run.
fn refusals(r: &Refusals) {
    if r.count == 0 {
        return;
    }
    let lines: Vec<String> = r.lines.iter().map(u64::to_string).collect();
    screen::note(&format!(
        "{} requests lie beyond the drive's last sector and were refused (first lines: {})",
        r.count,
        lines.join(", ")
    ));
}

/// Advances the progress bar by virtual time, requests or sectors scanned, whichever ends the run.
struct Watch {
    bar: Bar,
    by: By,
    reached: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Time,
    Requests,
    Sectors,
}

impl Watch {
    fn new(limits: &Limits, capacity: u64) -> Watch {
        let (steps, by) = match (limits.until, limits.requests) {
            (Some(t), None) => (t.0 / 1_000_000, By::Time),
            (_, Some(n)) => (n, By::Requests),
            (None, None) if limits.until_scanned => (capacity, By::Sectors),
            (None, None) => (0, By::Requests),
        };
        Watch { bar: Bar::new(steps, "simulating"), by, reached: 0 }
    }

    /// Updates the bar at intervals only, so that it costs the simulator nothing.
    fn count(&mut self, by: By, n: u64) -> bool {
        const NOW_AND_THEN: u64 = 4096;
        if self.by != by {
            return false;
        }
        let before = self.reached / NOW_AND_THEN;
        self.reached += n;
        self.reached / NOW_AND_THEN > before
    }
}

impl Observer for Watch {
    fn finished(&mut self, done: &Done) {
        if self.count(By::Requests, 1) {
            self.bar.reach(self.reached);
        } else if self.count(By::Time, 1) {
            self.bar.reach(done.done.0 / 1_000_000);
        }
    }

    fn background(&mut self, event: &TaskEvent, _: Time) {
        if let TaskEvent::Delivered { range, .. } = event
            && self.count(By::Sectors, range.count)
        {
            self.bar.reach(self.reached);
        }
    }
}

fn text(profile: &Profile, r: &SimResult, stats: &Stats) -> String {
    let f = &r.foreground;
    let ms = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.2}"));
    let mut rows =
        vec![["response time, ms", "requests", "mean", "p50", "p95", "p99", "max"].map(String::from).to_vec()];
    let mut row = |name: &str, n: u64, t: &ResponseMs| {
        let figures = [t.mean, t.p50, t.p95, t.p99, t.max].map(ms);
        rows.push([name.to_string(), n.to_string()].into_iter().chain(figures).collect());
    };
    row("all", f.requests, &f.response_ms);
    for (name, class) in &f.by_class {
        row(name, class.requests, &class.response_ms);
    }
    let percent = |v: f64| format!("{:.1}%", 100.0 * v);
    let h = &r.head_time;
    let mut out = format!(
        "{}, seed {}: {} requests in {:.1} virtual seconds ({:.2} s of real time)\n{:.1} requests/s, {:.2} MB/s\n\n{}",
        profile.title,
        r.seed,
        f.requests,
        r.virtual_seconds,
        r.wall_seconds.unwrap_or_default(),
        f.per_second,
        f.mb_s,
        columns(&rows, &[1, 2, 3, 4, 5, 6])
    );
    out += &streams::text(r);
    out += &words::measures(&f.measures);
    out += &format!(
        "\nhead time: seek {}, rotate {}, transfer {}, free {}, idle {}\n",
        percent(h.seek),
        percent(h.rotate),
        percent(h.transfer),
        percent(h.free),
        percent(h.idle)
    );
    let b = &r.freeblock;
    if stats.freeblock.is_some() {
        out += &format!(
            "background: {:.2} MB/s ({} of the media bandwidth), {} of it done{}\n",
            b.mb_s,
            percent(b.share_of_media_bandwidth),
            // 100% is shown only when the scan is complete.
            percent(if b.scan_seconds.is_some() { 1.0 } else { b.scanned_fraction.min(0.999) }),
            b.scan_seconds.map_or_else(String::new, |s| format!(" after {s:.0} virtual seconds"))
        );
    }
    if b.not_filled == Some(NotFilled::OneCommandAtATime) {
        out += "background: no gaps are filled: the drive takes one command at a time, and a gap lies between one in \
                service and one that waits\n";
    }
    if b.times_stopped > 0 {
        out += &format!(
            "background: filling gaps was stopped {} times{}: the drive surprised too often (a write-back cache moves \
             the arm unseen)\n",
            b.times_stopped,
            if b.stopped { ", and is stopped" } else { "" }
        );
    }
    if let Some(c) = &r.write_cache {
        let mb = |bytes: u64| format!("{:.2} MB", bytes as f64 / 1e6);
        out += &format!(
            "write cache: {} written, of them {} for free and {} in the foreground; {} not on the disk; {} of {} reads \
             from the cache; the drive's own write cache is off\n",
            mb(c.accepted),
            mb(c.free),
            mb(c.through),
            mb(c.dirty),
            c.hits,
            c.hits + c.misses
        );
    }
    let p = &r.prediction;
    if let (Some(close), Some(near), Some(late), Some(early)) =
        (p.within_50us, p.within_150us, p.extra_turn, p.early_turn)
    {
        out += &format!(
            "predicted head times: {} within 50 us, {} within 150 us, {} a turn late, {} a turn early\n",
            percent(close),
            percent(near),
            percent(late),
            percent(early)
        );
    }
    if f.errors > 0 {
        out += &format!("{} requests ended in an error; the run ended because: {:?}\n", f.errors, stats.end);
    }
    out
}
