//! `headtime serve`: the scheduler in front of a disk.

use std::path::{Path, PathBuf};

use clap::Args;
use headtime_sched::{Policy, RateLimit};
use headtime_serve::assembly::Assembly;
use headtime_serve::config::Config;
use headtime_serve::net::exports::Exports;
use headtime_serve::record::NewRecording;
use headtime_serve::server::Service;
use headtime_sim::scenario::beside;

use crate::failure::Failure;
use crate::log::{self, Logging};
use crate::running::{Hooks, Reload};
use crate::{drive, figures, running, screen};

mod real;
mod settings;
mod streams;

pub use real::put_back_leftovers;

use streams::Reloading;

/// Serve a disk's exports to NBD clients through the scheduler, with background work in rotational
/// gaps
///
/// Reads a configuration file (examples/serve.toml is one), serves its exports until SIGTERM or
/// Ctrl-C, and then completes the requests in flight. Background applications connect to the
/// control interface: `headtime scrub`, `backup`, `reorganise`, `destage`, `task`, `top`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration, TOML
    #[arg(value_name = "CONFIG.toml")]
    config: PathBuf,
    /// Only check the configuration, and print what would be served
    #[arg(long)]
    check: bool,
    /// Record each client's requests and think times to a new file that only this user can read
    /// (docs/traces.md); `headtime simulate --trace FILE --trace-format recording` replays it
    #[arg(long, value_name = "FILE", value_parser = figures::output(), conflicts_with = "check")]
    record: Option<PathBuf>,
    /// Write the first block map of this export, which is to be reorganised (export.reorganise):
    /// once, before anything was moved
    #[arg(long, value_name = "EXPORT", conflicts_with = "check")]
    new_map: Vec<String>,
    /// Print one JSON object on stdout at exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub log: Logging,
}

/// Longest configuration, bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Serves until a signal.
pub fn run(args: &Serve) -> Result<(), Failure> {
    let text = headtime_sim::input::text(&args.config, MAX_CONFIG_BYTES)
        .map_err(|why| Failure::Input(format!("{}: {why}", args.config.display())))?;
    let config = Config::read(&text, &args.config).map_err(Failure::input)?;
    if !args.check {
        real::put_back_leftovers()?;
    }
    let folder = args.config.parent().unwrap_or(Path::new(""));
    let profile = drive::find(&beside(folder, config.disk.drive.clone()))?;
    let mut assembly = Assembly::new(config, profile).map_err(Failure::input)?;
    if assembly.turned_cache_off() && !args.check {
        screen::note("the virtual drive's own write cache is off: an export has one of the server's");
    }
    let grounds = match assembly.config().scheduler.has_guarantees {
        true => Some(streams::guarantee(&mut assembly)?),
        false => None,
    };
    let account = assembly.config().user.as_deref().map(real::account).transpose()?;
    if args.check {
        running::enough_files(assembly.sockets())?;
        let core = assembly.core().map_err(Failure::input)?;
        let promised = grounds.map(|on| streams::said(&assembly, &core.standings(), &on)).transpose()?;
        return checked(&assembly, &promised.unwrap_or_default());
    }
    // Created after the disk was opened, which creates a new backing file: the recording is another
    // file.
    let create = |assembly: &Assembly| {
        let new = args.record.as_deref().map(|path| NewRecording::create(path, assembly.recording_header()));
        new.transpose().map_err(Failure::input)
    };
    let new_maps: Result<Vec<u32>, _> = args.new_map.iter().map(|name| assembly.reorganised(name)).collect();
    let new_maps = new_maps.map_err(Failure::input)?;
    let reload = reload(&args.config, assembly.config(), assembly.exports(), Reloading::of(&assembly));
    let hooks = Hooks { reload: Some(reload), ..Hooks::default() };
    let title = assembly.profile().title.clone();
    let disk = assembly.config().disk.clone();
    match (disk.backing, disk.device) {
        (Some(path), _) => {
            let (device, disk) = assembly.open_virtual(&path).map_err(Failure::input)?;
            assembly.take_disk(disk).map_err(Failure::input)?;
            let record = create(&assembly)?;
            real::become_user(account)?;
            let core = assembly.core().map_err(Failure::input)?;
            let service = Service { record, new_maps, ..assembly.service(log::note()) };
            running::serve(core, device, service, hooks, &title, args.json)
        }
        (None, device) => {
            let path = device.expect("checked when the configuration was read");
            let (sectors, sector_bytes) = (assembly.sectors(), assembly.profile().sector_bytes);
            let real::Real { device, disk, tuning } = real::open(&path, sectors, sector_bytes, assembly.depth())?;
            assembly.take_disk(disk).map_err(Failure::input)?;
            let record = create(&assembly)?;
            real::become_user(account)?;
            let core = assembly.core().map_err(Failure::input)?;
            let service = Service { record, new_maps, ..assembly.service(log::note()) };
            let done = running::serve(core, device, service, hooks, &title, args.json);
            if let Some(tuning) = tuning {
                real::put_back(tuning);
            }
            done
        }
    }
}

/// Re-reads the configuration on SIGHUP. Weights, limits and latency targets change at once,
/// streams after their admission test; any other change needs a restart, and a note says so.
fn reload(path: &Path, running: &Config, exports: &Exports, streams: Option<Reloading>) -> Reload {
    let (path, running, exports) = (path.to_owned(), running.clone(), exports.clone());
    let cached = running.write_caches().into_iter().map(|(at, _)| running.exports[at as usize].name.clone());
    let cached: Vec<String> = cached.collect();
    Box::new(move |server| {
        let read = headtime_sim::input::text(&path, MAX_CONFIG_BYTES);
        let config = match read.map(|text| Config::read(&text, &path)) {
            Ok(Ok(config)) => config,
            Ok(Err(e)) => return screen::note(&format!("not reloaded: {e}")),
            Err(e) => return screen::note(&format!("not reloaded: {}: {e}", path.display())),
        };
        for e in &config.exports {
            let mut wanted = e.settings();
            if cached.contains(&e.name) {
                // Its cache stays until a new start, and a limit excludes a cache.
                wanted.limit = RateLimit::default();
            }
            if let Some(before) = exports.set(&e.name, wanted) {
                for said in settings::changes(&before, &wanted) {
                    screen::note(&format!("export \"{}\": {said}", e.name));
                }
            }
        }
        if let Err(e) = server.apply_settings() {
            screen::note(&format!("weights and limits are as they were: {e}"));
        }
        if running.policy() == Policy::None && config.policy() != Policy::None {
            screen::note(
                "weights have no effect: all exports weighed the same at the start, so no policy shares the disk; a \
                 new start is needed",
            );
        }
        let has_targets = config.exports.iter().any(|e| e.settings().latency_target.is_some());
        if has_targets && !matches!(running.policy(), Policy::Bfq(_)) {
            screen::note("latency targets have no effect: bfq and bfq+ have them; a new start is needed");
        }
        let other = running.differs_beside_weights(&config);
        // Exports are identified by index: if the exports changed, streams would go to the wrong
        // ones.
        if let Some(streams) =
            streams.clone().filter(|_| !other.iter().any(|o| ["[[export]]", "[scheduler]"].contains(o)))
        {
            match config.streams(exports.sector_bytes) {
                Ok(wanted) => streams.begin_to_take_over(server.engine(), wanted),
                Err(why) => screen::note(&format!("streams are as they were: {why}")),
            }
        }
        if !other.is_empty() {
            screen::note(&format!(
                "reloaded: weights, limits, latency targets and streams only; what else changed needs a new start: {}",
                other.join(", ")
            ));
        }
    })
}

fn checked(assembly: &Assembly, promised: &str) -> Result<(), Failure> {
    let exports = assembly.exports();
    let mut text = format!("{}\n", assembly.profile().title);
    for (at, s) in exports.specs.iter().enumerate() {
        let gib = (s.sectors * u64::from(exports.sector_bytes)) as f64 / (1u64 << 30) as f64;
        let kind = match assembly.caches().iter().find(|c| c.0 as usize == at) {
            _ if s.read_only => ", read-only".into(),
            Some((_, limits)) => format!(", write cache of {:.2} MiB", limits.memory as f64 / (1u64 << 20) as f64),
            None => String::new(),
        };
        let limits = settings::said(&assembly.config().exports[at].settings());
        text +=
            &format!("    {:<20} {gib:>9.2} GiB from sector {}, weight {}{limits}{kind}\n", s.name, s.first, s.weight);
    }
    screen::print(&(text + promised))
}
