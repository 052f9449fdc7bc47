//! Streams, applications and a repeatedly started program at the same time on one `headtime serve`:
//! `cargo run --release -p headtime-serve --example all-at-once CONFIG.toml [SECONDS [alone]]`.
//!
//! `bench/all-at-once/run.sh` starts the server and a scrub. The clients use NBD, on the first
//! address of the configuration; the streams, their guarantees and the weights are read from there,
//! too. Each read-only export that is not a stream belongs to an application, except `shell`, which
//! holds the programs that are started. With `alone` there are no other clients.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use headtime_disk::profile;
use headtime_sched::streams::Stream;
use headtime_serve::config::Config;
use headtime_serve::net::address::Address;

#[path = "../client/mod.rs"]
mod client;
mod load;

use load::{Had, Progress};

/// Seconds after which no application's weight is raised for a recent start. Shares are counted and
/// the program is started from then on, as in X1.
const SETTLED_S: u64 = 10;
/// The export with the programs.
const SHELL: &str = "shell";

/// The clients of a server.
struct Plan {
    socket: PathBuf,
    sector_bytes: u32,
    streams: Vec<(String, Stream)>,
    /// Names and weights.
    applications: Vec<(String, u32)>,
}

impl Plan {
    /// Reads the clients' part of the configuration `file`.
    fn read(text: &str, file: &Path) -> Result<Plan, String> {
        let config = Config::read(text, file).map_err(|e| e.to_string())?;
        let wrong = |why: String| format!("{}: {why}", file.display());
        let drive = &config.disk.drive;
        let profile = profile::builtin(drive)
            .map_err(|e| wrong(format!("disk.drive: expected a built-in drive, found \"{drive}\": {e}")))?;
        let sector_bytes = profile.sector_bytes;
        let promised = config.streams(sector_bytes).map_err(wrong)?;
        let Some(Address::Unix(socket)) = config.addresses().into_iter().next() else {
            return Err(wrong("listen.nbd: expected a unix socket first".into()));
        };
        let of = |at: usize| promised.iter().find(|(owner, _)| *owner as usize == at).map(|(_, stream)| *stream);
        let all = || config.exports.iter().enumerate();
        let streams = all().filter_map(|(at, e)| Some((e.name.clone(), of(at)?))).collect();
        let others = all().filter(|(at, e)| of(*at).is_none() && e.read_only && e.name != SHELL);
        let applications = others.map(|(_, e)| (e.name.clone(), e.weight)).collect();
        Ok(Plan { socket, sector_bytes, streams, applications })
    }
}

/// The results of all clients.
struct Ran {
    streams: Vec<Had>,
    applications: Vec<Progress>,
    starts: Vec<Duration>,
}

/// Runs all clients for this number of seconds.
fn run(plan: &Plan, seconds: u64) -> Result<Ran, String> {
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds);
    let path = &*plan.socket;
    thread::scope(|scope| {
        let streams = (1..).zip(&plan.streams).map(|(seed, (name, stream))| {
            // The last group is due when the other clients end, so that streams run only beside
            // them.
            let periods = (u128::from(seconds) * 1_000_000_000 / u128::from(stream.period.0)) as u32;
            let groups = periods.saturating_sub(load::PERIODS_AHEAD).max(1);
            let bytes = stream.sectors * plan.sector_bytes;
            (name, scope.spawn(move || load::stream(path, name, stream, bytes, groups, seed)))
        });
        let streams: Vec<_> = streams.collect();
        let applications: Vec<_> = (101..)
            .zip(&plan.applications)
            .map(|(seed, (name, _))| (name, scope.spawn(move || load::application(path, name, (began, until), seed))))
            .collect();
        // At once if no application has just started, or if the run is too short.
        let settled = if plan.applications.is_empty() || seconds <= SETTLED_S { 0 } else { SETTLED_S };
        let from = began + Duration::from_secs(settled);
        let starts = scope.spawn(move || load::shell(path, SHELL, (from, until), 201));
        let of = |name: &str, e: std::io::Error| format!("{name}: {e}");
        Ok(Ran {
            streams: streams.into_iter().map(|(n, s)| joined(s).map_err(|e| of(n, e))).collect::<Result<_, _>>()?,
            applications: applications
                .into_iter()
                .map(|(n, a)| joined(a).map_err(|e| of(n, e)))
                .collect::<Result<_, _>>()?,
            starts: joined(starts).map_err(|e| of(SHELL, e))?,
        })
    })
}

fn joined<T>(client: thread::ScopedJoinHandle<'_, T>) -> T {
    client.join().expect("a client does not panic")
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn say_streams(plan: &Plan, all: &[Had]) {
    println!("{:<16}{:>10}{:>10}{:>10}{:>8}{:>10}", "stream", "promised", "in time", "requests", "late", "given up");
    for ((name, stream), had) in plan.streams.iter().zip(all) {
        println!(
            "{name:<16}{:>9.2}%{:>9.2}%{:>10}{:>8}{:>10}",
            f64::from(stream.quality.ppm()) / 1e4,
            percent(had.in_time, had.asked),
            had.asked,
            had.late(),
            had.given_up
        );
    }
}

/// Prints each application's share of the total, over the time in which shares are counted.
fn say_applications(plan: &Plan, all: &[Progress], seconds: u64) {
    // A last second that is not complete is not counted.
    let counted = |p: &Progress| p.seconds.iter().take(seconds as usize).skip(SETTLED_S as usize).sum::<u64>();
    let (sum, weights) = (all.iter().map(counted).sum::<u64>(), plan.applications.iter().map(|a| a.1).sum::<u32>());
    println!("{:<16}{:>10}{:>10}{:>10}{:>10}{:>16}", "application", "MB", "MB/s", "due", "had", "first start, ms");
    for ((name, weight), had) in plan.applications.iter().zip(all) {
        let bytes = had.seconds.iter().sum::<u64>() as f64 / 1e6;
        let share = match sum {
            0 => "-".into(),
            sum => format!("{:.2}%", percent(counted(had), sum)),
        };
        println!(
            "{name:<16}{bytes:>10.1}{:>10.2}{:>9.2}%{share:>10}{:>16.0}",
            bytes / seconds as f64,
            percent((*weight).into(), weights.into()),
            ms(had.start)
        );
    }
}

fn say_starts(what: &str, all: &[Duration]) {
    let (sum, longest) = (all.iter().sum::<Duration>(), all.iter().max().copied().unwrap_or_default());
    println!(
        "{what}: {} starts, mean {:.0} ms, longest {:.0} ms",
        all.len(),
        ms(sum) / all.len().max(1) as f64,
        ms(longest)
    );
}

fn main() -> ExitCode {
    match said(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("all-at-once: {why}");
            ExitCode::from(2)
        }
    }
}

fn said(args: &[String]) -> Result<(), String> {
    let usage = || "expected CONFIG.toml [SECONDS [alone]]".to_string();
    let (file, rest) = args.split_first().ok_or_else(usage)?;
    let seconds = rest.first().map_or(Some(60), |s| s.parse().ok().filter(|s| (1..=86_400).contains(s)));
    let seconds =
        seconds.ok_or_else(|| format!("SECONDS: expected a whole number from 1 to 86400, found {:?}", rest[0]))?;
    let alone = match rest.get(1..).unwrap_or_default() {
        [] => false,
        [word] if word == "alone" => true,
        _ => return Err(usage()),
    };
    let path = Path::new(file);
    let text = std::fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
    let mut plan = Plan::read(&text, path)?;
    if alone {
        plan.streams.clear();
        plan.applications.clear();
    }
    let ran = run(&plan, seconds)?;
    if alone {
        say_starts("shell, alone", &ran.starts);
        return Ok(());
    }
    say_streams(&plan, &ran.streams);
    println!();
    say_applications(&plan, &ran.applications, seconds);
    println!();
    say_starts("shell, beside all", &ran.starts);
    Ok(())
}
