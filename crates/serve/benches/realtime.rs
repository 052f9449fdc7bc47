//! The cost of real time: `cargo bench -p headtime-serve --bench realtime`.
//!
//! * added latency: 4 KiB reads over NBD from a device that completes at once, through the
//!   scheduling core, so that only this program (and the client) is measured
//! * requests per second compared with nbdkit's memory and file plugins, in the same run with the
//!   same client
//! * lateness: the delay in noticing the completions of a virtual drive
//!
//! The client is fio with its NBD engine; the peer is nbdkit. Missing programs are skipped with a
//! message. The figures depend on the load of the machine, so nothing is checked here.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use headtime_disk::{DriveConfig, Model, profile};
use headtime_sched::{Config, Core, Firmware, Order};
use headtime_serve::device::Device;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::engine::snapshot::Snapshot;
use headtime_serve::internals::device::null::Null;
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{CAPACITY, Server, Service};

/// Bytes of the export.
const SIZE: u64 = 64 << 20;

fn service(socket: &Path, sectors: u64) -> Service {
    let whole = ExportSpec {
        name: String::new(),
        description: String::new(),
        first: 0,
        sectors,
        read_only: false,
        weight: 100,
    };
    let exports = Exports::new(vec![whole], sectors, 512).expect("one export that fits");
    Service::new(vec![Address::Unix(socket.into())], exports, Arc::new(|_, _| {}))
}

struct Shape {
    per_second: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Runs fio's random 4 KiB reads at a queue depth, for this number of seconds.
fn fio(socket: &Path, size: u64, depth: u32, seconds: u32) -> Option<Shape> {
    let out = Command::new("fio")
        .args(["--name=b", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--time_based", "--output-format=json"])
        .arg(format!("--uri=nbd+unix:///?socket={}", socket.display()))
        .arg(format!("--size={size}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={seconds}"))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout);
    // fio writes notes before its JSON.
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let read = &json["jobs"][0]["read"];
    let us = |v: &serde_json::Value| v.as_f64().map(|ns| ns / 1e3);
    Some(Shape {
        per_second: read["iops"].as_f64()?,
        mean_us: us(&read["clat_ns"]["mean"])?,
        p50_us: us(&read["clat_ns"]["percentile"]["50.000000"])?,
        p99_us: us(&read["clat_ns"]["percentile"]["99.000000"])?,
    })
}

fn line(what: &str, depth: u32, shape: Option<Shape>) -> Option<f64> {
    let Some(s) = shape else {
        println!("{what:<34} depth {depth:>2}: left out: no fio, or it failed");
        return None;
    };
    println!(
        "{what:<34} depth {depth:>2}: {:>8.0}/s  mean {:>6.0} us  p50 {:>6.0} us  p99 {:>6.0} us",
        s.per_second, s.mean_us, s.p50_us, s.p99_us
    );
    Some(s.per_second)
}

/// An nbdkit process, killed on drop.
struct Nbdkit(Child);

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn nbdkit(socket: &Path, plugin: &[String]) -> Option<Nbdkit> {
    let mut command = Command::new("nbdkit");
    command.args(["--foreground", "--unix"]).arg(socket).args(plugin).stdout(Stdio::null()).stderr(Stdio::null());
    let child = Nbdkit(command.spawn().ok()?);
    for _ in 0..100 {
        if socket.exists() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn null_server(socket: &Path) -> Server {
    let profile = profile::builtin("atlas10k").expect("built in");
    let model = Model::new(&profile).expect("a drive");
    let device = Null::new(SIZE / 512, 512, 32);
    let core = Config::new(Order::Sptf).with_outstanding(32).with_capacity(CAPACITY);
    Server::start(Core::new(core, model), device, service(socket, SIZE / 512)).expect("it starts")
}

/// Reads randomly from a virtual drive; returns the server's counters.
fn lateness(folder: &Path, name: &str, seconds: u32) -> Option<Snapshot> {
    let profile = profile::builtin(name).expect("built in");
    let sectors = Model::new(&profile).expect("a drive").geometry.capacity();
    let backing = headtime_serve::backing::open(&folder.join("disk"), sectors * 512).ok()?;
    let device = VirtualDrive::new(&profile, DriveConfig::default(), backing).ok()?;
    let socket = folder.join("v");
    let scheduler = Firmware::new(device.depth(), CAPACITY);
    let server = Server::start(scheduler, device, service(&socket, sectors)).ok()?;
    fio(&socket, sectors * 512, 4, seconds)?;
    let counted = server.snapshot();
    let _ = server.stop();
    counted
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| folder.path().join(name);
    let server = null_server(&at("ours"));
    let file = at("file");
    std::fs::write(&file, vec![0u8; SIZE as usize]).expect("room for a file");
    let peers = [
        ("nbdkit memory", nbdkit(&at("memory"), &["memory".into(), format!("{SIZE}")]), at("memory")),
        ("nbdkit file", nbdkit(&at("plain"), &["file".into(), file.display().to_string()]), at("plain")),
    ];
    for depth in [1, 32] {
        let ours = line("headtime, core and null device", depth, fio(&at("ours"), SIZE, depth, 5));
        for (name, peer, socket) in &peers {
            let theirs = peer.as_ref().and_then(|_| fio(socket, SIZE, depth, 5));
            if let (Some(a), Some(b)) = (ours, line(name, depth, theirs)) {
                println!("{:<34} depth {depth:>2}: {:.2} of its requests per second", "", a / b);
            }
        }
    }
    let _ = server.stop();
    match lateness(folder.path(), "atlas10k", 10) {
        None => println!("lateness: left out: no fio, or it failed"),
        Some(Snapshot { lateness: l, .. }) => println!(
            "lateness of an Atlas 10K, {} completions: p50 {} us, p99 {} us, max {} us",
            l.count, l.p50_us, l.p99_us, l.max_us
        ),
    }
}
