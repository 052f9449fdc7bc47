//! `headtime serve`: the scheduler in front of a disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use headtime_disk::drive::DriveConfig;
use headtime_disk::model::Model;
use headtime_disk::profile::{FirmwareOrder, Profile};
use headtime_sched::admit::Policy;
use headtime_sched::admit::das::admission::Load;
use headtime_sched::core::{Config as CoreConfig, Core};
use headtime_sched::write_cache::Limits;
use headtime_serve::backing;
use headtime_serve::config::Config;
use headtime_serve::destage::inside::Caches;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::net::descriptors::Sockets;
use headtime_serve::net::exports::Exports;
use headtime_serve::net::tls;
use headtime_serve::record::{Header, NewRecording};
use headtime_serve::server::{CAPACITY, ControlAt, Service};
use headtime_sim::filling;
use headtime_sim::simulate::{Scheduling, written_through};
use headtime_sim::workload::scenario::{beside, order};

use crate::failure::Failure;
use crate::log::{self, Logging};
use crate::running::{Hooks, Reload};
use crate::{drive, figures, running, screen};

mod real;
mod streams;

pub use real::put_back_leftovers;

use streams::Reloading;

/// Serve a disk's exports to NBD clients through the scheduler, with background work in rotational
/// gaps
///
/// Reads a configuration file (examples/serve.toml is one), serves its exports until SIGTERM or
/// Ctrl-C, and then completes the requests in flight. Background applications connect to the
/// control interface: `headtime scrub`, `backup`, `destage`, `task`, `top`.
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
    /// Print one JSON object on stdout at exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub log: Logging,
}

/// Longest configuration, bytes.
const LONGEST: u64 = 1 << 20;
/// The fewest commands at the drive that hide its overheads, and leave it no choice of order.
const HIDES_OVERHEADS: u32 = 2;
/// Upper bound of commands at the drive.
const MOST_OUTSTANDING: u32 = 32;

/// Serves until a signal.
pub fn run(args: &Serve) -> Result<(), Failure> {
    let text = headtime_sim::input::text(&args.config, LONGEST)
        .map_err(|why| Failure::Input(format!("{}: {why}", args.config.display())))?;
    let config = Config::read(&text, &args.config).map_err(Failure::input)?;
    if !args.check {
        real::put_back_leftovers()?;
    }
    let wrong = |why: String| Failure::Input(format!("{}: {why}", args.config.display()));
    let folder = args.config.parent().unwrap_or(Path::new(""));
    let mut profile = drive::find(&beside(folder, config.disk.drive.clone()))?;
    let caches = config.write_caches();
    if !caches.is_empty() && config.disk.backing.is_some() && profile.electronics.cache.write_back {
        // With that cache on, the position of the head cannot be predicted.
        profile = written_through(&profile);
        if !args.check {
            screen::note("the virtual drive's own write cache is off: an export has one of the server's");
        }
    }
    let model = Model::new(&profile).map_err(Failure::input)?;
    let Scheduling::Host(order) = order(&config.scheduler.order).map_err(|e| wrong(e.to_string()))? else {
        return Err(wrong(
            "scheduler.order: expected an order of headtime's, found \"drive\" (`headtime disk` serves a drive alone)"
                .into(),
        ));
    };
    let s = &config.scheduler;
    let fill = filling::fill(&s.fill, None, Some(&s.conservatism_us), config.disk.seed)
        // Name the configuration's key if that value is at fault.
        .map_err(|e| wrong(e.to_string().replace("conservatism_us", "scheduler.conservatism-us")))?;
    let fills = fill.is_some();
    if !(1..=MOST_OUTSTANDING).contains(&s.outstanding) {
        return Err(wrong(format!("scheduler.outstanding: expected 1 to {MOST_OUTSTANDING}, found {}", s.outstanding)));
    }
    let (sectors, sector_bytes) = (model.geometry.capacity(), profile.sector_bytes);
    let specs = config.exports(sectors, sector_bytes).map_err(wrong)?;
    let exports = Exports::new(specs, sectors, sector_bytes).map_err(|e| wrong(e.to_string()))?;
    let wanted = config.streams(sector_bytes).map_err(wrong)?;
    // A virtual drive has the queue depth of its profile; a real drive gets as many commands as the
    // configuration says.
    let outstanding = match config.disk.backing {
        Some(_) => s.outstanding.min(profile.electronics.queue.depth),
        None => s.outstanding,
    };
    let mut promises = None;
    let exports = match config.promises() {
        false => exports,
        true => {
            let (setup, grounds) = streams::setup(&config, &mut profile, &wanted, outstanding)?;
            let most = setup.worsts.most_sectors().saturating_mul(sector_bytes);
            promises = Some((setup, grounds));
            exports.with_requests_up_to(most)
        }
    };
    let tls = match config.tls() {
        Some((files, required)) => Some((tls::acceptor(&files).map_err(Failure::input)?, required)),
        None => None,
    };
    let account = config.user.as_deref().map(real::account).transpose()?;
    let mut core = CoreConfig { order, max_outstanding: outstanding, capacity: CAPACITY, fill };
    // The number of commands that the drive orders itself while its write cache may hold data. A
    // configuration with an `outstanding` other than the usual one gets that number.
    let queue = profile.electronics.queue;
    let depth = match queue.order {
        FirmwareOrder::Sptf if outstanding == HIDES_OVERHEADS => queue.depth.clamp(outstanding, MOST_OUTSTANDING),
        _ => outstanding,
    };
    let scheduler = |core, model| {
        let core = Core::new(core, model).handing_over(depth).admitting(&config.policy());
        let Some((promises, _)) = &promises else { return Ok((core, Load::default())) };
        let mut core = core.guaranteeing(promises);
        let load = streams::begin(&mut core, &wanted, &exports)?;
        Ok::<(Core, Load), Failure>((core, load))
    };
    let metrics = config.metrics().map_err(wrong)?;
    if args.check {
        let (clients, control) = (config.listen.clients, config.listen.control.is_some());
        let nbd = config.addresses().len();
        running::enough_files(Sockets { nbd, clients, control, metrics: metrics.is_some() })?;
        let (core, _) = scheduler(core, model)?;
        let promised =
            promises.as_ref().map(|(p, on)| streams::said(p, &core.standings(), &exports, on)).transpose()?;
        return checked(&profile, &exports, &caches, &promised.unwrap_or_default());
    }
    let mut service = Service::new(config.addresses(), exports.clone(), log::note());
    service.clients = config.listen.clients;
    service.streams = promises.as_ref().map(|(p, _)| Arc::new(p.disk.clone()));
    service.grounds = Arc::new(promises.as_ref().map(|(p, on)| on.served(p.exhausted, order)).unwrap_or_default());
    service.tls = tls;
    service.caches = Caches { exports: caches, fills };
    service.metrics = metrics;
    service.control = config.listen.control.clone().map(|path| ControlAt {
        path,
        disk: profile.title.clone(),
        disk_id: String::new(),
        sectors,
        fills,
    });
    let disk = service.streams.clone();
    let reloading =
        disk.map(|disk| Reloading::new(disk, service.exports.clone(), Arc::clone(&service.grounds), wanted.clone()));
    if let Some(path) = &args.record {
        let clients = exports.specs.iter().map(|s| s.name.clone()).collect();
        let header = Header { disk: profile.title.clone(), sectors, sector_bytes, clients };
        service.record = Some(NewRecording::create(path, header).map_err(Failure::input)?);
    }
    let hooks = Hooks { reload: Some(reload(&args.config, &config, &service.exports, reloading)), engine: None };
    match (&config.disk.backing, &config.disk.device) {
        (Some(path), _) => {
            let backing = backing::open(path, sectors * u64::from(sector_bytes)).map_err(Failure::input)?;
            if let Some(control) = &mut service.control {
                let failed = |e| Failure::Input(format!("{}: {e}", path.display()));
                control.disk_id = backing::id(path).map_err(failed)?;
            }
            let noise = DriveConfig { seed: config.disk.seed, ..DriveConfig::default() };
            let device = VirtualDrive::new(&profile, noise, backing).map_err(Failure::input)?;
            real::become_user(account)?;
            let (core, _) = scheduler(core, model)?;
            running::serve(core, device, service, hooks, &profile.title, args.json)
        }
        (None, device) => {
            let path = device.as_deref().expect("checked when the configuration was read");
            let real::Real { device, id, tuning, rotates, write_back } =
                real::open(path, sectors, sector_bytes, depth)?;
            if (write_back || !rotates) && promises.is_some() {
                return Err(wrong(
                    "scheduler.admit: \"das\" expected a disk of which the profile says how long its commands take, \
                     found a file, or a disk whose write cache is on (hdparm -W0 turns it off)"
                        .into(),
                ));
            }
            if !rotates {
                core.fill = None;
            }
            service.caches.fills &= rotates;
            if let Some(control) = &mut service.control {
                control.fills &= rotates;
                control.disk_id = id;
            }
            real::become_user(account)?;
            // The write-cache state that the disk reports takes precedence over its profile.
            let mut model = model;
            model.cache.write_back = write_back || !rotates;
            let (core, _) = scheduler(core, model)?;
            let done = running::serve(core, device, service, hooks, &profile.title, args.json);
            if let Some(tuning) = tuning {
                match tuning.restore() {
                    Ok(put_back) => {
                        put_back.left.iter().for_each(|l| screen::note(&format!("left as somebody else set it: {l}")));
                        if let Some(file) = put_back.file_left {
                            screen::note(&format!("{}: the next start as root removes it", file.display()));
                        }
                    }
                    // The server's own error is reported after this one.
                    Err(e) => screen::warn(&format!("its queue is not as it was: {e}")),
                }
            }
            done
        }
    }
}

/// Re-reads the configuration on SIGHUP. Weights change at once, streams after their admission
/// test; any other change needs a restart, and a note says so.
fn reload(path: &Path, running: &Config, exports: &Exports, streams: Option<Reloading>) -> Reload {
    let (path, running, exports) = (path.to_owned(), running.clone(), exports.clone());
    Box::new(move |engine| {
        let read = headtime_sim::input::text(&path, LONGEST);
        let config = match read.map(|text| Config::read(&text, &path)) {
            Ok(Ok(config)) => config,
            Ok(Err(e)) => return screen::note(&format!("not reloaded: {e}")),
            Err(e) => return screen::note(&format!("not reloaded: {}: {e}", path.display())),
        };
        for e in &config.exports {
            if let Some(before) = exports.set_weight(&e.name, e.weight).filter(|&before| before != e.weight) {
                screen::note(&format!("export \"{}\": weight {before} is now {}", e.name, e.weight));
            }
        }
        if let Err(e) = engine.send(EngineMessage::Shares(exports.shares())) {
            screen::note(&format!("weights are as they were: {e}"));
        }
        if running.policy() == Policy::None && config.policy() != Policy::None {
            screen::note(
                "weights have no effect: all exports weighed the same at the start, so no policy shares the disk; a \
                 new start is needed",
            );
        }
        let other = running.differs_beside_weights(&config);
        // Exports are identified by index: if the exports changed, streams would go to the wrong
        // ones.
        if let Some(streams) =
            streams.clone().filter(|_| !other.iter().any(|o| ["[[export]]", "[scheduler]"].contains(o)))
        {
            match config.streams(exports.sector_bytes) {
                Ok(wanted) => streams.begin_to_take_over(engine, wanted),
                Err(why) => screen::note(&format!("streams are as they were: {why}")),
            }
        }
        if !other.is_empty() {
            screen::note(&format!(
                "reloaded: weights and streams only; what else changed needs a new start: {}",
                other.join(", ")
            ));
        }
    })
}

fn checked(profile: &Profile, exports: &Exports, caches: &[(u32, Limits)], promised: &str) -> Result<(), Failure> {
    let mut text = format!("{}\n", profile.title);
    for (at, s) in exports.specs.iter().enumerate() {
        let gib = (s.sectors * u64::from(exports.sector_bytes)) as f64 / (1u64 << 30) as f64;
        let kind = match caches.iter().find(|c| c.0 as usize == at) {
            _ if s.read_only => ", read-only".into(),
            Some((_, limits)) => format!(", write cache of {:.2} MiB", limits.memory as f64 / (1u64 << 20) as f64),
            None => String::new(),
        };
        text += &format!("    {:<20} {gib:>9.2} GiB from sector {}, weight {}{kind}\n", s.name, s.first, s.weight);
    }
    screen::print(&(text + promised))
}
