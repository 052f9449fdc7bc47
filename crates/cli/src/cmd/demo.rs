//! `headtime demo`: what the order of requests does to a disk.

mod picture;

use std::path::PathBuf;

use clap::Args;
use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_lab::output;
use headtime_sched::core::Order;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::{Population, oltp};
use picture::{Track, Window};

use crate::failure::Failure;
use crate::figures;
use crate::screen::{self, Bar, columns};

/// Show, on a built-in drive, what the order of requests does to a disk
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to draw the picture
    #[arg(short, long, value_name = "FILE", default_value = "headtime-demo.svg")]
    output: PathBuf,
    /// Seed of the requests and of the drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
}

const DISK: &str = "atlas10k";
/// Virtual time under each order.
const HOUR: Dur = Dur::from_secs(3600);
/// Where the picture begins: the ten programs are out of step by then.
const FROM: Time = Time(10_000_000_000);

/// The orders, worst first, and what each does in words.
const ORDERS: [(&str, Order, &str); 4] = [
    ("fcfs", Order::Fcfs, "first come, first served"),
    ("clook", Order::Clook, "sweeps across the disk"),
    ("sstf", Order::Sstf, "nearest track first"),
    ("sptf", Order::Sptf, "soonest under the head first"),
];

/// Runs the command.
pub fn run(args: &Demo) -> Result<(), Failure> {
    let profile = profile::builtin(DISK).map_err(Failure::input)?;
    // Begun before the work: a file that cannot be written costs no waiting.
    let file = output::WholeFile::create(&args.output)?;
    let bar = Bar::new(ORDERS.len() as u64 * HOUR.0 / 1_000_000, "four hours of disk time");
    let mut tracks = Vec::new();
    let mut results = Vec::new();
    for (i, (name, order, _)) in ORDERS.iter().enumerate() {
        let simulation = Simulation::new(&Setup::new(&profile, *order, args.seed)).map_err(Failure::input)?;
        let mut load = Population::of(&oltp(), simulation.target(), args.seed).map_err(Failure::input)?;
        let limits = Limits { until: Some(Time::ZERO + HOUR), ..Limits::default() };
        let watch = Watch { bar: &bar, before: i as u64 * HOUR.0 / 1_000_000, seen: 0 };
        let mut watch = (Window::new(FROM), watch);
        let stats = simulation.run(&mut load, limits, None, &mut watch).map_err(Failure::input)?;
        let (window, _) = watch;
        results.push(stats);
        tracks.push(Track { order: name, window });
    }
    drop(bar);
    let svg = picture::draw(&tracks).to_svg();
    put(file, svg.as_bytes(), args)?;
    screen::print(&text(args, profile.title.split(',').next().unwrap_or(DISK), &results))
}

fn put(mut file: output::WholeFile, bytes: &[u8], args: &Demo) -> Result<(), Failure> {
    use std::io::Write;
    file.write_all(bytes).map_err(|e| Failure::input(format!("cannot write {}: {e}", args.output.display())))?;
    Ok(file.finish()?)
}

struct Watch<'a> {
    bar: &'a Bar,
    before: u64,
    seen: u64,
}

impl Observer for Watch<'_> {
    fn finished(&mut self, done: &Done) {
        self.seen += 1;
        if self.seen.is_multiple_of(4096) {
            self.bar.reach(self.before + done.done.0 / 1_000_000);
        }
    }
}

fn text(args: &Demo, title: &str, results: &[Stats]) -> String {
    let heads = ["order", "", "requests/s", "mean ms", "p95 ms", "p99 ms", "seek", "rotate", "transfer"];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for ((name, _, words), stats) in ORDERS.iter().zip(results) {
        let all = stats.responses();
        let ms = |d: Option<Dur>| d.map_or_else(|| "-".into(), |d| format!("{:.1}", d.as_ms_f64()));
        let mut row = vec![(*name).to_string(), (*words).to_string(), format!("{:.1}", stats.per_second())];
        row.extend([ms(all.mean()), ms(all.quantile(950)), ms(all.quantile(990))]);
        row.extend(stats.head.percent().map(|v| format!("{v:.0}%")));
        rows.push(row);
    }
    let gain = |a: f64, b: f64| 100.0 * (b / a - 1.0);
    let rate = |i: usize| results[i].per_second();
    let mean = |i: usize| results[i].responses().mean().map_or(0.0, Dur::as_ms_f64);
    let late = |i: usize| results[i].responses().quantile(990);
    let price = if late(3) > late(0) {
        "Its price: requests in awkward places wait longer (p99). `--order satfuf:MS` limits that.\n\n"
    } else {
        ""
    };
    format!(
        "A busy disk: ten programs ask a {title} for random blocks, wait for the answer,\n\
         think for 30 ms and ask again. Which of the waiting requests should be next?\n\
         An hour of disk time under each order:\n\n{}\n\
         The last three columns say where the head's time went. Only \"transfer\" moves data; \"seek\" is the\n\
         arm on its way, \"rotate\" is the wait for the platter to come round.\n\n\
         sstf knows how far away each track is. sptf knows, besides, which angle of the platter is under the\n\
         head: {:.0}% more requests a second than fcfs ({:.0}% more than sstf), and {:.0}% less waiting than fcfs.\n\n\
         {price}Picture: {}\n\
         Next: headtime simulate --help, headtime reproduce F1, headtime profiles\n",
        columns(&rows, &[2, 3, 4, 5, 6, 7, 8]),
        gain(rate(0), rate(3)),
        gain(rate(2), rate(3)),
        -gain(mean(0), mean(3)),
        args.output.display()
    )
}
