//! The effect of a write-back cache with free block writes on reads that miss it: `cargo run
//! --release -p headtime-serve --example destage_gain [SECONDS [CLIENTS [THINK_MS [SPAN_MIB
//! [MEMORY_MIB]]]]]`.
//!
//! NBD clients, each with one request at a time and exponential think times, read and write random
//! 4 KiB blocks, half of each, on an Atlas 10K in real time: (a) directly on the server, (b)
//! through a cache that is a client of the same server. The mean response time of reads is
//! compared; in (b) reads that hit the cache are left out (recognised by their time: no disk
//! answers within 200 us).
//!
//! While the dirty part grows, some writes are only deferred. A run is meaningful if the cache is
//! small enough to reach its mark, or if the dirty part at the end is small compared with the data
//! written.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headtime_disk::{DriveConfig, Model, profile};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order};
use headtime_serve::destage::Limits;
use headtime_serve::destage::driver::Upstream;
use headtime_serve::destage::server::{Destage, Setup};
use headtime_serve::device::Device;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::note::Note;
use headtime_serve::server::{CAPACITY, ControlAt, Server, Service};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The longest response time of a cache hit.
const MAX_HIT_TIME: Duration = Duration::from_micros(200);
/// The warm-up time, which is not measured.
const WARM_UP: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Responses {
    reads: Vec<Duration>,
    hits: usize,
    writes: Vec<Duration>,
}

fn mean_ms(all: &[Duration]) -> f64 {
    all.iter().sum::<Duration>().as_secs_f64() * 1e3 / all.len().max(1) as f64
}

fn connect(path: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).expect("the server listens");
    let mut hello = [0; 18];
    stream.read_exact(&mut hello).expect("a greeting");
    let mut choice = 3u32.to_be_bytes().to_vec();
    choice.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04data");
    stream.write_all(&choice).expect("the server reads");
    stream.read_exact(&mut [0; 10]).expect("the export is there");
    stream
}

/// Runs one client for this number of seconds.
fn client(path: &Path, seed: u64, blocks: u64, think: Duration, seconds: u64) -> Responses {
    let (mut stream, mut rng) = (connect(path), Xoshiro256PlusPlus::seed_from_u64(seed));
    let (mut all, began, mut data) = (Responses::default(), Instant::now(), vec![0u8; 4096]);
    while began.elapsed() < WARM_UP + Duration::from_secs(seconds) {
        let fraction = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        std::thread::sleep(think.mul_f64(-(1.0 - fraction).ln()));
        let (write, offset) = (rng.next_u64() % 2 == 1, rng.next_u64() % blocks * 4096);
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend_from_slice(&[0, 0, 0, u8::from(write)]);
        request.extend_from_slice(&[0; 8]);
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&4096u32.to_be_bytes());
        if write {
            request.extend_from_slice(&data);
        }
        let asked = Instant::now();
        stream.write_all(&request).expect("the server reads");
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).expect("the server answers");
        assert_eq!(reply[4..8], [0; 4], "no request fails");
        if !write {
            stream.read_exact(&mut data).expect("the data follows");
        }
        let took = asked.elapsed();
        match write {
            _ if began.elapsed() < WARM_UP => {}
            true => all.writes.push(took),
            false if took < MAX_HIT_TIME => all.hits += 1,
            false => all.reads.push(took),
        }
    }
    all
}

fn clients(path: &Path, count: u64, blocks: u64, think: Duration, seconds: u64) -> Responses {
    let mut all = Responses::default();
    std::thread::scope(|scope| {
        let each: Vec<_> =
            (0..count).map(|seed| scope.spawn(move || client(path, seed + 1, blocks, think, seconds))).collect();
        for one in each {
            let one = one.join().expect("no client fails");
            all.reads.extend(one.reads);
            all.writes.extend(one.writes);
            all.hits += one.hits;
        }
    });
    all
}

fn main() {
    let figure = |at: usize, usual: u64| std::env::args().nth(at).map_or(usual, |a| a.parse().expect("a number"));
    let (seconds, count, think_ms) = (figure(1, 60), figure(2, 8), figure(3, 40));
    let profile = profile::builtin("atlas10k").expect("built in");
    let sectors = Model::new(&profile).expect("a model").geometry.capacity();
    let memory = figure(5, 64) << 20;
    let span = (figure(4, 8192) << 11).min(sectors);
    println!(
        "{count} clients, {think_ms} ms between requests, over {} MiB, cache of {} MiB, {seconds} s each",
        span >> 11,
        memory >> 20
    );
    let mut straight = 0.0;
    for cached in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let file = tempfile::tempfile().expect("a file");
        file.set_len(sectors * 512).expect("sparse");
        let drive = VirtualDrive::new(&profile, DriveConfig::default(), file.into()).expect("a drive");
        let spec = ExportSpec {
            name: "data".into(),
            description: String::new(),
            first: 0,
            sectors: span,
            read_only: false,
            weight: 100,
        };
        let exports = Exports::new(vec![spec], sectors, drive.sector_bytes()).expect("one that fits");
        let (nbd, control) = (dir.path().join("nbd"), dir.path().join("control"));
        let note: Note = Arc::new(|_, line| eprintln!("{line}"));
        let mut service = Service::new(vec![Address::Unix(nbd.clone())], exports, note.clone());
        service.control = Some(ControlAt {
            path: control.clone(),
            disk: profile.title.clone(),
            disk_id: String::new(),
            sectors,
            fills: true,
        });
        let fill = Some(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
        let core = Config::new(Order::Sptf).with_capacity(CAPACITY).with_fill(fill);
        let model = Model::new(&profile).expect("a model");
        let server = Server::start(Core::new(core, model), drive, service).expect("it starts");
        let cache = cached.then(|| {
            let upstream = Upstream { control: control.into(), export: "data".into(), priority: 100 };
            let listen = vec![Address::Unix(dir.path().join("cached"))];
            Destage::start(Setup { upstream, listen, limits: Limits { memory }, note }).expect("it starts")
        });
        let path = if cached { dir.path().join("cached") } else { nbd };
        let r = clients(&path, count, span / 8, Duration::from_millis(think_ms), seconds);
        let per_second = (r.reads.len() + r.hits + r.writes.len()) as f64 / seconds as f64;
        let reads = mean_ms(&r.reads);
        println!(
            "{}: {per_second:.0} requests/s; {} reads missed, {reads:.2} ms; {} hit; {} writes, {:.2} ms",
            if cached { "through the cache" } else { "straight" },
            r.reads.len(),
            r.hits,
            r.writes.len(),
            mean_ms(&r.writes),
        );
        if let Some(cache) = cache {
            println!("    {:?}", cache.counts());
            let left = cache.stop().expect("it stops");
            println!("    at the end {:?}", left.counts);
            println!("    reads that miss: {:+.1}%", 100.0 * (reads - straight) / straight);
        }
        straight = reads;
        if let Some(s) = server.snapshot() {
            let (near, all) = (s.predictions.1, s.predictions.0);
            println!("    {near} of {all} predictions within 150 us; late p99 {} us", s.lateness.p99_us);
        }
        server.stop().expect("it stops");
    }
}
