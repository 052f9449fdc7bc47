//! Requests per second of wall time served by the whole simulator: trace reader, event loop, core,
//! drive.
//!
//! Run with `cargo bench -p headtime-sim`; under `cargo test` every benchmark runs once, on a short
//! load.

use std::fmt::Write;

use divan::Bencher;
use divan::counter::ItemsCount;
use headtime_disk::profile::builtin;
use headtime_disk::{Drive, DriveConfig, Dur, Kind};
use headtime_sched::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::traces::{Gap, ReadOptions, Reader, TraceFormat, TraceReader};
use headtime_sim::validate::{self, Measured};
use headtime_sim::workload::{Beyond, Mode, Population, Replay, Workload, by_name};

fn main() {
    divan::main();
}

/// Number of requests per run: the length of the trace that DiskSim is timed with, or a short one
/// as a test.
fn length() -> u64 {
    if std::env::args().any(|a| a == "--bench") { 90_000 } else { 900 }
}

fn simulation(scheduling: Scheduling) -> Simulation {
    let profile = builtin("atlas10k").expect("a built-in drive");
    Simulation::new(&Setup { scheduling, ..Setup::new(&profile, Order::Fcfs, 1) }).expect("a drive that works")
}

/// Returns a trace in DiskSim's ASCII format: `open:80`, random over the disk.
fn ascii(sim: &Simulation) -> String {
    let group = by_name("open:80").expect("a known name");
    let mut w = Population::of(&group, sim.target(), 1).expect("a workload that fits");
    let mut text = String::new();
    for _ in 0..length() {
        let a = w.take().expect("an endless workload");
        let (ms, ns) = (a.due.0 / 1_000_000, a.due.0 % 1_000_000);
        let read = u8::from(a.kind == Kind::Read);
        writeln!(text, "{ms}.{ns:06} 0 {} {} {read}", a.lbn, a.count).expect("memory");
    }
    text
}

fn reader(text: &str) -> Reader<&[u8]> {
    Reader::new(text.as_bytes(), "bench".into(), TraceFormat::DisksimAscii, ReadOptions::default())
}

#[divan::bench]
fn read_ascii_trace(bencher: Bencher) {
    let text = ascii(&simulation(Scheduling::Host(Order::Fcfs)));
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let mut r = reader(&text);
        let mut sectors = 0u64;
        while let Some(record) = r.next_record().expect("a sound trace") {
            sectors += u64::from(record.count);
        }
        sectors
    });
}

#[divan::bench(args = ["fcfs", "sptf"])]
fn replay_ascii_trace(bencher: Bencher, order: &str) {
    let scheduling = order.parse().expect("a known order");
    let sim = simulation(scheduling);
    let text = ascii(&sim);
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let mut w = Replay::new(reader(&text), sim.target(), Mode::Auto, Beyond::Stop).expect("a sound trace");
        sim.run(&mut w, Limits::default(), None, &mut ()).expect("a run").requests
    });
}

#[divan::bench(args = ["closed:10", "closed:100", "oltp"])]
fn sptf(bencher: Bencher, workload: &str) {
    let sim = simulation(Scheduling::Host(Order::Sptf));
    let group = by_name(workload).expect("a known name");
    let limits = Limits { requests: Some(length()), ..Limits::default() };
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let mut w = Population::of(&group, sim.target(), 1).expect("a workload that fits");
        sim.run(&mut w, limits, None, &mut ()).expect("a run").requests
    });
}

#[divan::bench]
fn firmware_of_the_drive(bencher: Bencher) {
    let sim = simulation(Scheduling::Drive);
    let group = by_name("closed:10").expect("a known name");
    let limits = Limits { requests: Some(length()), ..Limits::default() };
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let mut w = Population::of(&group, sim.target(), 1).expect("a workload that fits");
        sim.run(&mut w, limits, None, &mut ()).expect("a run").requests
    });
}

/// A closed replay of 10,000 requests on the drive alone, with the demerit of the result.
#[divan::bench]
fn validate_a_trace(bencher: Bencher) {
    let sim = simulation(Scheduling::Host(Order::Fcfs));
    let profile = builtin("atlas10k").expect("a built-in drive");
    let config = DriveConfig::default().with_noise(false).with_rig(true);
    let drive = Drive::new(&profile, config).expect("a drive that works");
    let group = by_name("open:20").expect("a known name");
    let mut w = Population::of(&group, sim.target(), 1).expect("a workload that fits");
    let requests = if length() > 10_000 { 10_000 } else { length() };
    let trace: Vec<Measured> = (1..=requests)
        .map(|line| {
            let a = w.take().expect("an endless workload");
            let (response, gap) = (Dur::from_us(line % 20_000), Gap::After(Dur::from_ms(30)));
            Measured { kind: a.kind, lbn: a.lbn, count: a.count, response, gap, line }
        })
        .collect();
    bencher.counter(ItemsCount::new(requests)).bench_local(|| {
        let fresh = &mut drive.clone();
        validate::run(fresh, &trace).expect("a sound trace").rms_ms
    });
}
