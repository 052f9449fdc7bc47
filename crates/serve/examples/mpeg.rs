//! Films whose frames are three streams each, beside readers with unlimited demand: `cargo run
//! --release -p headtime-serve --example mpeg [SECONDS [FILMS [READERS]]]`.
//!
//! A film is stored as three exports: its I frames, its P frames and its B frames (Reuther and
//! Pohlack 2003, figure 1). Without its I frame nothing of a group can be shown, so all I frames
//! are guaranteed (a mandatory stream); a lost P frame is missing until the next, a B frame for 40
//! ms, and of those a part is guaranteed (optional streams). The server cancels requests that miss
//! their period and reports this; the player skips the frame. Beside the films, readers read 64 KiB
//! at random places, each one request at a time.
//!
//! The drive is a virtual Ultrastar 36Z15 in real time, and all clients use NBD, as players would.
//! The program prints the frames of the first groups, and the lost frames of each class.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use headtime_disk::{DriveConfig, Dur, Model, profile};
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig, LARGEST_BYTES, Quality, Stream};
use headtime_sched::{Config, Core, Order};
use headtime_serve::device::Device;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::note::Note;
use headtime_serve::server::{CAPACITY, Server, Service};
use headtime_serve::streams;

#[path = "client/mod.rs"]
mod client;

use client::{Client, Places};

/// Bytes per request.
const BLOCK: u64 = 64 << 10;
const SECTORS: u64 = BLOCK / 512;
/// Bytes of each export of a film.
const EXPORT_BYTES: u64 = 256 << 20;
/// The duration of a group of twelve frames at 25 a second, which is the period of all streams.
const GROUP: Duration = Duration::from_millis(480);
/// Periods from a group's requests until it is shown: it belongs to the period in which it was
/// requested, or to the next.
const PERIODS_AHEAD: u32 = 2;
/// Groups whose frames are printed.
const PRINTED_GROUPS: u64 = 8;

/// A class of frames: its name, the blocks of each frame, and the guaranteed fraction.
struct Class {
    name: &'static str,
    blocks: u64,
    ppm: u32,
}

const CLASSES: [Class; 3] = [
    Class { name: "I", blocks: 4, ppm: 1_000_000 },
    Class { name: "P", blocks: 2, ppm: 950_000 },
    Class { name: "B", blocks: 1, ppm: 600_000 },
];

/// The classes of a group's frames, in display order.
const FRAMES: [usize; 12] = [0, 2, 2, 1, 2, 2, 1, 2, 2, 1, 2, 2];

/// Returns the blocks of a class in each group.
fn in_group(class: usize) -> u64 {
    FRAMES.iter().filter(|&&c| c == class).count() as u64 * CLASSES[class].blocks
}

fn export(film: u64, class: usize) -> String {
    format!("film{film}-{}", CLASSES[class].name)
}

/// Returns the first bytes of a block, which identify it.
fn mark(film: u64, class: usize, block: u64) -> [u8; 8] {
    (film << 48 | (class as u64) << 40 | block).to_le_bytes()
}

/// Passes on the blocks received, until the server closes the connection.
fn listen(mut client: Client, film: u64, class: usize, out: &Sender<(usize, u64, Instant)>) {
    while let Ok((block, data)) = client.answer(BLOCK as u32) {
        if let Ok(data) = data {
            assert_eq!(data[..8], mark(film, class, block), "the block that was asked for");
            let _ = out.send((class, block, Instant::now()));
        }
    }
}

/// Frames shown and frames lost, for each class.
type Shown = [(u64, u64); 3];

/// Shows the frames of a group that have arrived. Returns them as a line, with a dash for each lost
/// frame.
fn show(come: &BTreeMap<(usize, u64), Instant>, group: u64, by: Instant, shown: &mut Shown) -> String {
    let mut next = [0, 1, 2].map(|class| group * in_group(class));
    let mut line = String::new();
    for &class in &FRAMES {
        let blocks = next[class]..next[class] + CLASSES[class].blocks;
        next[class] = blocks.end;
        let whole = blocks.into_iter().all(|b| come.get(&(class, b)).is_some_and(|at| *at <= by));
        let counts = &mut shown[class];
        if whole {
            counts.0 += 1
        } else {
            counts.1 += 1
        }
        line += if whole { CLASSES[class].name } else { "-" };
    }
    line
}

/// Plays a film: requests a group in each period, and shows the one of [`PERIODS_AHEAD`] periods
/// ago.
fn play(path: &Path, film: u64, groups: u64) -> Shown {
    let (out, blocks): (_, Receiver<(usize, u64, Instant)>) = channel();
    let open = |class| Client::open(path, &export(film, class)).expect("the server has its films");
    let mut streams: Vec<Client> = (0..3).map(open).collect();
    for (class, stream) in streams.iter().enumerate() {
        let (stream, out) = (stream.split().expect("a socket"), out.clone());
        std::thread::spawn(move || listen(stream, film, class, &out));
    }
    let (began, mut come, mut shown) = (Instant::now(), BTreeMap::new(), Shown::default());
    for group in 0..groups + u64::from(PERIODS_AHEAD) {
        let now = began + GROUP * group as u32;
        std::thread::sleep(now.saturating_duration_since(Instant::now()));
        come.extend(blocks.try_iter().map(|(class, block, at)| ((class, block), at)));
        if let Some(old) = group.checked_sub(u64::from(PERIODS_AHEAD)) {
            let line = show(&come, old, now, &mut shown);
            if film == 0 && old < PRINTED_GROUPS {
                println!("    group {old}: {line}");
            }
        }
        if group < groups {
            for (class, stream) in streams.iter_mut().enumerate() {
                let mut blocks = group * in_group(class)..(group + 1) * in_group(class);
                let asked = blocks.try_for_each(|block| stream.ask(block, block * BLOCK, BLOCK as u32));
                asked.expect("the server reads");
            }
        }
    }
    for stream in streams {
        stream.hang_up();
    }
    shown
}

/// Reads random blocks, one at a time, until `stop` is set.
fn read(path: &Path, seed: u64, blocks: u64, stop: &AtomicBool, read: &AtomicU64) {
    let mut client = Client::open(path, "rest").expect("the server listens");
    let mut places = Places(seed);
    while !stop.load(Ordering::Relaxed) {
        client.read(places.below(blocks) * BLOCK, BLOCK as u32).expect("best effort waits, and has no period to miss");
        read.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    let figure = |at: usize, usual: u64| std::env::args().nth(at).map_or(usual, |a| a.parse().expect("a number"));
    let (seconds, films, readers) = (figure(1, 30), figure(2, 3), figure(3, 16));
    let groups = (Duration::from_secs(seconds).as_millis() / GROUP.as_millis()).max(1) as u64;
    let profile = profile::builtin("ultrastar36z15").expect("built in");
    let model = Model::new(&profile).expect("a model");
    let sectors = model.geometry.capacity();
    let dir = tempfile::tempdir().expect("a directory");
    let file = tempfile::tempfile().expect("a file");
    file.set_len(sectors * 512).expect("sparse");
    let spec = |name: String, first, sectors| ExportSpec {
        name,
        description: String::new(),
        first,
        sectors,
        read_only: true,
        weight: 100,
    };
    // Films are spread over the disk, and so are the parts of each.
    let apart = sectors / (3 * films + 1) / SECTORS * SECTORS;
    let mut specs = Vec::new();
    for (at, (film, class)) in (0..films).flat_map(|film| (0..3).map(move |class| (film, class))).enumerate() {
        let first = at as u64 * apart;
        specs.push(spec(export(film, class), first, EXPORT_BYTES / 512));
        for block in 0..(groups * in_group(class)).min(EXPORT_BYTES / BLOCK) {
            file.write_all_at(&mark(film, class, block), first * 512 + block * BLOCK).expect("room for it");
        }
    }
    assert!(
        groups * in_group(2) <= EXPORT_BYTES / BLOCK,
        "expected fewer seconds: a film has {} blocks of a class",
        EXPORT_BYTES / BLOCK
    );
    specs.push(spec("rest".into(), 0, sectors));
    let exports = Exports::new(specs, sectors, profile.sector_bytes)
        .expect("exports that fit")
        .with_requests_up_to(LARGEST_BYTES);
    let wanted: Vec<(u32, Stream)> = (0..films)
        .flat_map(|film| (0..3).map(move |class| (film, class)))
        .map(|(film, class)| {
            let quality = Quality::from_ppm(CLASSES[class].ppm).expect("a quality");
            let period = Dur(GROUP.as_nanos() as u64);
            let stream = Stream::new(in_group(class) as u32, period, quality, SECTORS as u32).expect("a stream");
            (film as u32 * 3 + class as u32, stream)
        })
        .collect();
    let disk = Disk::of(&profile, &model, 2).expect("its times were measured");
    let setup = GuaranteeConfig::of(disk.clone(), &profile, &model, Exhausted::Skip).expect("a worst case");
    let core = Config::new(Order::Sptf).with_capacity(CAPACITY);
    let mut core = Core::new(core, model).guaranteeing(&setup);
    let load = match streams::begin(&mut core, &exports, &wanted) {
        Ok(load) => load,
        Err((at, why)) => return println!("{films} films cannot be had: {}: {why}", export(at as u64 / 3, at % 3)),
    };
    println!(
        "{films} films, {readers} readers, {seconds} s; streams are expected to take {:.0}% of the drive",
        load.expected_ppm as f64 / 1e4
    );
    let drive = VirtualDrive::new(&profile, DriveConfig::default(), file.into()).expect("a drive");
    let note: Note = Arc::new(|_, line| eprintln!("{line}"));
    let path = dir.path().join("nbd");
    let mut service = Service::new(vec![Address::Unix(path.clone())], exports, note);
    service.streams = Some(Arc::new(disk));
    service.clients = (films * 3 + readers) as usize;
    let blocks = drive.sectors() / SECTORS;
    let server = Server::start(core, drive, service).expect("it starts");
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let shown: Vec<Shown> = std::thread::scope(|scope| {
        for seed in 0..readers {
            let (path, stop, done) = (&path, &stop, &done);
            scope.spawn(move || read(path, seed, blocks, stop, done));
        }
        let players: Vec<_> = (0..films)
            .map(|film| {
                scope.spawn({
                    let path = &path;
                    move || play(path, film, groups)
                })
            })
            .collect();
        let shown = players.into_iter().map(|p| p.join().expect("it plays to the end")).collect();
        stop.store(true, Ordering::Relaxed);
        shown
    });
    let seconds = began.elapsed().as_secs_f64();
    let s = server.snapshot().expect("it runs");
    println!("class  frames  lost           promised  done in time  given up");
    for (at, class) in CLASSES.iter().enumerate() {
        let of = |figure: fn(&(u64, u64)) -> u64| shown.iter().map(|s| figure(&s[at])).sum::<u64>();
        let (whole, lost) = (of(|c| c.0), of(|c| c.1));
        let mine = || s.streams.iter().filter(|s| s.owner as usize % 3 == at).map(|s| s.tally);
        let (asked, in_time) = (mine().map(|t| t.asked).sum::<u64>(), mine().map(|t| t.in_time).sum::<u64>());
        println!(
            "{:<5}  {:>6}  {lost:>4} ({:>5.2}%)  {:>8.2}%  {:>11.2}%  {:>8}",
            class.name,
            whole + lost,
            100.0 * lost as f64 / (whole + lost).max(1) as f64,
            f64::from(class.ppm) / 1e4,
            100.0 * in_time as f64 / asked.max(1) as f64,
            mine().map(|t| t.given_up).sum::<u64>()
        );
    }
    let done = done.load(Ordering::Relaxed) * BLOCK;
    println!("readers had {:.2} MB/s", done as f64 / 1e6 / seconds);
    println!("late p99 {} us; commands beyond the worst case: {}", s.lateness.p99_us, s.overdue.0);
    server.stop().expect("it stops");
}
