//! `headtime simulate`: runs a workload or a trace on a virtual drive.

mod streams;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use headtime_disk::Time;
use headtime_disk::profile::{Bounds, Profile};
use headtime_host::whole_file::WholeFile;
use headtime_sched::streams::GuaranteeConfig as Promises;
use headtime_sched::{Order, Placement, TaskEvent};
use headtime_sim::observe::Observer;
use headtime_sim::perfetto;
use headtime_sim::result::{About, NotFilled, ResponseMs, SimResult};
use headtime_sim::run::Limits;
use headtime_sim::scenario::Scenario;
use headtime_sim::simulate::{DEPTH, Setup, SimError, Simulation};
use headtime_sim::stats::{Done, Stats};
use headtime_sim::timeline::Timeline;
use headtime_sim::workload::Workload;

use crate::failure::Failure;
use crate::grounds::Stated;
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
}

/// Default duration of a workload without end, virtual seconds.
const SECONDS: f64 = 60.0;
/// Most requests in a Perfetto export: about what its viewer opens without delay.
const MAX_EXPORTED_REQUESTS: usize = 200_000;

/// Runs the command.
pub fn run(args: &Simulate) -> Result<(), Failure> {
    let scenario = scenario(args)?;
    scenario.check().map_err(Failure::input)?;
    let name = scenario.disk.clone().unwrap_or_else(|| "atlas10k".into());
    let mut profile = drive::find(&name).map_err(|e| match e {
        Failure::Input(why) => Failure::Input(scenario.fault_at("disk", why)),
        other => other,
    })?;
    let seed = scenario.seed.unwrap_or(1);
    let scheduling = scenario.scheduling().map_err(Failure::input)?;
    let admit = scenario.policy().map_err(Failure::input)?;
    let guarantees = guarantees(&scenario, &mut profile, &name, args.assume.as_ref())?;
    let mut setup =
        Setup { scheduling, admit, guarantees, depth: scenario.depth, ..Setup::new(&profile, Order::Fcfs, seed) };
    if let Some(fill) = scenario.fill(seed).map_err(Failure::input)? {
        setup = setup.filled(fill);
    } else {
        // Gap filling inside the drive is compared with the same drive without filling.
        let inside = scenario.placement().map_err(Failure::input)? != Placement::Host;
        setup.drive.inside |= inside;
    }
    setup.drive.noise = scenario.noise().map_err(Failure::input)?;
    setup.write_cache = scenario.write_cache().map_err(Failure::input)?;
    let simulation = Simulation::new(&setup).map_err(|e| {
        let key = if matches!(e, SimError::Model { .. }) { "disk" } else { "depth" };
        Failure::Input(scenario.fault_at(key, e))
    })?;
    let mut workload = scenario.workload(simulation.target(), seed).map_err(Failure::input)?;
    let mut background = scenario.background(simulation.target()).map_err(Failure::input)?;
    let mut limits = scenario.limits().map_err(Failure::input)?;
    if workload.endless() && limits == Limits::default() {
        let default = Scenario { seconds: Some(SECONDS), ..Scenario::default() };
        limits = default.limits().map_err(Failure::input)?;
    }
    // Created before the run, so that an unwritable file is reported at once.
    let export = args.perfetto.as_deref().map(WholeFile::create).transpose()?;
    // An explicit `none` needs no warning.
    if let (Some(fill), None) = (scenario.fill.as_deref().filter(|f| *f != "none"), &scenario.background) {
        screen::note(&format!(
            "warning: fill {fill} was given, but no background: there is nothing to read in the gaps"
        ));
    }
    let timeline = export.is_some().then(|| Timeline::new(MAX_EXPORTED_REQUESTS, limits.until));
    let began = Instant::now();
    let clock = || began.elapsed().as_nanos() as u64;
    let mut watch = (timeline, Watch::new(&limits, simulation.target().capacity));
    let stats = simulation
        .run_with(&mut *workload, &mut *background, limits, Some(&clock), &mut watch)
        .map_err(Failure::input)?;
    let wall_seconds = began.elapsed().as_secs_f64();
    let (timeline, watch) = watch;
    drop(watch);
    if let (Some(timeline), Some(mut file)) = (timeline, export) {
        write(&timeline, &profile, &mut file, args)?;
        file.finish()?;
    }
    refusals(&*workload);
    let about = About {
        disk: profile.name.clone(),
        seed,
        sector_bytes: profile.sector_bytes,
        wall_seconds: Some(wall_seconds),
        depth: simulation.depth(),
        model_bytes: simulation.model_bytes(),
        media_bytes_per_second: simulation.media_bytes_per_second(),
    };
    let mut result = SimResult::new(&about, &stats);
    result.foreground.measures =
        workload.measures().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if args.json {
        return screen::print(&format!("{}\n", result.to_json()));
    }
    screen::print(&text(&profile, &result, &stats))
}

/// Sets up the guarantees of streams, if the policy gives any.
fn guarantees(
    scenario: &Scenario,
    profile: &mut Profile,
    name: &str,
    assumed: Option<&Bounds>,
) -> Result<Option<Promises>, Failure> {
    let Some(exhausted) = scenario.guarantees().map_err(Failure::input)? else {
        return match assumed {
            Some(_) => {
                Err(Failure::Input("--assume: expected admit das beside it, found a run without promises".into()))
            }
            None => Ok(None),
        };
    };
    let streams = scenario.streams().map_err(Failure::input)?;
    let sizes: Vec<u64> = streams.iter().map(|s| s.pattern.size.longest_bytes()).collect();
    let outstanding = scenario.depth.unwrap_or(DEPTH).min(profile.electronics.queue.depth);
    let mandatory = streams.iter().find(|s| s.quality.is_mandatory()).map(|s| format!("the stream {}", s.name));
    let drive = promises::Drive::simulated(name, outstanding, Stated::on_command_line(assumed));
    let (setup, grounds) = drive.setup(profile, &sizes, exhausted, mandatory.as_deref())?;
    // The bounds of a built-in drive are the virtual drive's own.
    if drive.measured.is_none() || assumed.is_some() {
        grounds.bounds().iter().for_each(|bound| screen::note(&format!("promises rest on a stated bound: {bound}")));
    }
    Ok(Some(setup))
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
fn refusals(workload: &dyn Workload) {
    let Some(r) = workload.refusals().filter(|r| r.count > 0) else { return };
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
