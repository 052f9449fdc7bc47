//! Recordings: read completely or refused with a line; replayed in recorded order with the recorded
//! pauses.

use std::collections::BTreeMap;

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Kind, Time};
use headtime_sched::Order;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Done;
use headtime_sim::traces::{Recorded, Recording};
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Mode, Playback, Population, Target, Workload, by_name};
use xxhash_rust::xxh3::xxh3_64;

/// Returns a recording with these lines after its header, with checksums as written by `headtime
/// serve`.
fn text(sectors: u64, lines: &[String]) -> String {
    let mut text = format!("headtime recording 1\ndisk a drive\nsectors {sectors} of 512\nclient 0 a\nclient 1 b\n");
    let check = |text: &mut String| *text += &format!("K {:016x}\n", xxh3_64(text.as_bytes()));
    check(&mut text);
    for (i, line) in lines.iter().enumerate() {
        text += &format!("{line}\n");
        if i % 4 == 3 {
            check(&mut text);
        }
    }
    if !lines.len().is_multiple_of(4) {
        check(&mut text);
    }
    let requests = lines.iter().filter(|l| l.starts_with(['R', 'W', 'V', 'F'])).count();
    text + &format!("end {requests}\n")
}

fn sample() -> String {
    let lines = [
        "R 0 0 8 16",
        "R 100 0 24 16",
        "W 50 1 100 8",
        "C 4000 0",
        "R 20 0 40 16",
        "C 900 2",
        "F 10 1",
        "C 5 1",
        "C 400 4",
        "E 10 3",
        "V 3 1 200 8",
        "C 100 5",
    ];
    text(1_000, &lines.map(str::to_owned))
}

fn read(text: &[u8]) -> Result<Recording, String> {
    Recording::read(text, "t".into()).map_err(|e| e.to_string())
}

fn target(sectors: u64) -> Target {
    Target { capacity: sectors, sector_bytes: 512, geometry: None }
}

#[test]
fn a_recording_is_read_with_what_each_request_waited_for() {
    let r = read(sample().as_bytes()).unwrap();
    assert_eq!((r.disk.as_str(), r.sectors, &r.clients[..]), ("a drive", 1_000, &["a".to_owned(), "b".to_owned()][..]));
    let after: Vec<Option<u32>> = r.requests.iter().map(|r| r.after).collect();
    assert_eq!(after, [None, None, None, Some(0), Some(2), Some(4)]);
    let times = |r: &Recorded| (r.submitted.0 / 1_000, r.done.map(|d| d.0 / 1_000));
    assert_eq!(times(&r.requests[3]), (4_170, Some(5_495)));
    assert_eq!((r.requests[5].kind, r.requests[5].fua), (Kind::Write, true));
    assert_eq!(r.length(), Dur::from_us(5_598));
}

#[test]
fn every_altered_byte_and_every_cut_is_refused_with_its_line() {
    let whole = sample();
    let lines = whole.lines().count();
    let refused = |bytes: &[u8], what: String| {
        let e = read(bytes).expect_err(&what);
        let line: usize = e.strip_prefix("t:").and_then(|r| r.split(':').next()?.parse().ok()).expect(&e);
        assert!((1..=lines + 1).contains(&line) && e.contains("expected") && e.contains("found"), "{what}: {e}");
    };
    for at in 0..whole.len() {
        refused(&whole.as_bytes()[..at], format!("cut at {at}"));
        for byte in *b"0 9RCK\n\xff" {
            let mut bytes = whole.clone().into_bytes();
            if bytes[at] != byte {
                bytes[at] = byte;
                refused(&bytes, format!("{:?} at {at}", byte as char));
            }
        }
    }
    let all: Vec<&str> = whole.lines().collect();
    for i in 0..lines - 1 {
        let mut swapped = all.clone();
        swapped.swap(i, i + 1);
        refused((swapped.join("\n") + "\n").as_bytes(), format!("lines {} and {} swapped", i + 1, i + 2));
        let mut lost = all.clone();
        lost.remove(i);
        refused((lost.join("\n") + "\n").as_bytes(), format!("line {} lost", i + 1));
    }
    refused((whole.clone() + "R 0 0 8 8\n").as_bytes(), "more behind its end".into());
}

#[test]
fn what_is_expected_is_said() {
    let said = |text: String| read(text.as_bytes()).unwrap_err();
    let e = said(sample().replace("recording 1", "recording 2"));
    assert!(e.starts_with("t:1: expected headtime recording 1: this program reads no other version, found"), "{e}");
    let e = said(sample().replace("R 20 0 40 16", "R 20 0 41 16"));
    assert!(e.starts_with("t:16: expected K ") && e.contains("one of lines 12 to 15 was altered"), "{e}");
    let e = said("1.5,R,4096,8\n".into());
    assert!(e.starts_with("t:1: expected headtime recording 1, found \"1.5,R"), "{e}");
    let with = |lines: &[&str]| said(text(1_000, &lines.iter().map(|l| l.to_string()).collect::<Vec<_>>()));
    for (lines, line, expected) in [
        (&["C 5 0"][..], 7, "the number of a request that was submitted before"),
        (&["R 0 0 8 8", "C 1 0", "C 1 0"], 9, "the number of a request that was submitted before"),
        (&["R 0 2 8 8"], 7, "a client's number below 2"),
        (&["R 0 0 999 2"], 7, "one or more sectors below 1000"),
        (&["R 0 0 18446744073709551615 2"], 7, "one or more sectors below 1000"),
        (&["W 0 0 9 0"], 7, "one or more sectors below 1000"),
        (&["R -4 0 8 8"], 7, "whole microseconds"),
        (&["R 99999999999999999 0 8 8"], 7, "times that add up to at most 400 days"),
        (&["R 0 0 8"], 7, "R|W|V US CLIENT SECTOR SECTORS"),
        (&["X 0 0 8 8"], 7, "R|W|V US CLIENT SECTOR SECTORS"),
        (&[], 7, "a request at least"),
    ] {
        let e = with(lines);
        assert!(e.starts_with(&format!("t:{line}: expected {expected}")), "{lines:?}: {e}");
    }
    let r = read(sample().as_bytes()).unwrap();
    assert!(r.fits(1_000, 512).is_ok());
    for (sectors, bytes) in [(1_000, 4096), (999, 512)] {
        let e = r.fits(sectors, bytes).unwrap_err().to_string();
        let expected =
            format!("t:3: expected a recording of a disk of {sectors} sectors of {bytes} bytes, found 1000 of 512");
        assert!(e.starts_with(&expected), "{e}");
    }
    assert!(Playback::new(r, &target(2_000), Mode::Auto).is_err());
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let whole = sample();
    let mut rng = Variates::new(1, 0);
    for _ in 0..20_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=rng.below(6) {
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            if bytes.is_empty() {
                break;
            }
            match rng.below(4) {
                0 => bytes[at] = b"0123456789 KRWVFCE\n\x00\xff-"[rng.below(22) as usize],
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at + 1),
                _ => drop(bytes.splice(at..at, [b'9'; 20])),
            }
        }
        // Without checksums, mutated fields are not masked by checksum errors.
        let plain: Vec<String> = String::from_utf8_lossy(&bytes).lines().skip(5).map(str::to_owned).collect();
        let lines: Vec<String> = plain.into_iter().filter(|l| !l.starts_with(['K', 'e'])).collect();
        for text in [bytes, text(1_000, &lines).into_bytes()] {
            if let Ok(r) = read(&text) {
                drain(Playback::new(r, &target(1_000), Mode::Auto).unwrap(), &mut rng);
            }
        }
    }
}

/// Submits what is due and completes what is in flight in any order; returns each request's
/// submission and completion.
fn drain(mut p: Playback, rng: &mut Variates) -> Vec<(usize, Time, Time)> {
    let all = p.recording().requests.clone();
    let (mut now, mut under_way, mut seen) = (Time::ZERO, Vec::new(), Vec::new());
    loop {
        let due = p.next_due();
        if due.is_some() && (under_way.is_empty() || rng.below(2) == 0) {
            let ask = p.take().unwrap();
            assert_eq!(Some(ask.due), due);
            now = now.max(ask.due);
            under_way.push((ask, now));
        } else if !under_way.is_empty() {
            let (ask, submitted) = under_way.swap_remove(rng.below(under_way.len() as u64) as usize);
            now += Dur::from_us(rng.below(3_000));
            p.completed(&ask, now);
            let like = |r: &Recorded| (r.client, r.kind, r.lbn, r.count) == (ask.owner, ask.kind, ask.lbn, ask.count);
            let which = all.iter().position(like).expect("it was recorded");
            seen.push((which, submitted, now));
        } else {
            return seen;
        }
    }
}

/// Returns a recording of requests that overlap at random.
fn any(rng: &mut Variates) -> String {
    let (mut lines, mut open, mut requests) = (Vec::new(), Vec::new(), 0);
    for _ in 0..60 {
        let us = rng.below(2_000);
        if !open.is_empty() && rng.below(2) == 0 {
            let which: u64 = open.swap_remove(rng.below(open.len() as u64) as usize);
            lines.push(format!("C {us} {which}"));
        } else {
            let client = rng.below(2);
            // Each at a distinct place, which identifies it.
            match rng.below(6) {
                0 if open.len() < 9 => lines.push(format!("F {us} {client}")),
                1 | 2 => lines.push(format!("W {us} {client} {} 8", 8 * requests)),
                _ => lines.push(format!("R {us} {client} {} 8", 8 * requests)),
            }
            open.push(requests);
            requests += 1;
        }
    }
    text(1_000, &lines)
}

#[test]
fn each_request_follows_what_it_waited_for_whatever_the_disk_does() {
    let mut rng = Variates::new(7, 0);
    for round in 0..500 {
        let r = read(any(&mut rng).as_bytes()).unwrap();
        let flushes = r.requests.iter().filter(|r| r.kind == Kind::Flush).count();
        let seen = drain(Playback::new(r.clone(), &target(1_000), Mode::Closed).unwrap(), &mut rng);
        assert_eq!(seen.len(), r.requests.len(), "round {round}");
        let done: BTreeMap<usize, Time> = seen.iter().map(|s| (s.0, s.2)).collect();
        assert!(done.len() + flushes >= seen.len(), "each once");
        for &(i, submitted, _) in seen.iter().filter(|s| r.requests[s.0].kind != Kind::Flush) {
            let request = &r.requests[i];
            let Some(after) = request.after.map(|a| a as usize) else { continue };
            if r.requests[after].kind == Kind::Flush {
                continue;
            }
            let pause = request.submitted.since(r.requests[after].done.unwrap());
            assert!(submitted >= done[&after] + pause, "round {round}, request {i}");
        }
    }
}

#[test]
fn a_flush_waits_for_all_that_was_done_before_it() {
    let lines = ["W 0 0 0 8", "W 0 0 8 8", "W 0 0 16 8", "C 9 1", "C 9 0", "F 7 0", "C 5 2", "C 5 3"];
    let r = read(text(1_000, &lines.map(str::to_owned)).as_bytes()).unwrap();
    let mut p = Playback::new(r, &target(1_000), Mode::Auto).unwrap();
    let asks: Vec<_> = (0..3).map(|_| p.take().unwrap()).collect();
    p.completed(&asks[0], Time(100_000));
    assert_eq!(p.next_due(), None, "request 1 was done before it, too");
    p.completed(&asks[1], Time(200_000));
    assert_eq!(p.next_due(), Some(Time(207_000)));
}

/// Records a run in the format of a server's recording.
#[derive(Default)]
struct Writer(Vec<Done>);

impl Observer for Writer {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

impl Writer {
    fn text(&self, sectors: u64) -> String {
        // Completions come first at one instant: submissions at that instant follow from them.
        let mut events: Vec<(u64, u8, u64)> = Vec::new();
        for d in &self.0 {
            events.push((d.submitted.0 / 1_000, 1, d.sequence));
            events.push((d.done.0 / 1_000, 0, d.sequence));
        }
        events.sort_unstable();
        let by_sequence: BTreeMap<u64, &Done> = self.0.iter().map(|d| (d.sequence, d)).collect();
        let (mut numbers, mut last, mut lines) = (BTreeMap::new(), events[0].0, Vec::new());
        for (at, what, sequence) in events {
            let us = at - std::mem::replace(&mut last, at);
            let d = by_sequence[&sequence];
            let kind = if d.kind == Kind::Read { 'R' } else { 'W' };
            match what {
                1 => {
                    numbers.insert(sequence, numbers.len());
                    lines.push(format!("{kind} {us} 0 {} {}", d.lbn, d.count));
                }
                _ => lines.push(format!("C {us} {}", numbers[&sequence])),
            }
        }
        text(sectors, &lines)
    }
}

fn run(profile: &Profile, seed: u64, workload: &mut dyn Workload, seconds: Option<u64>) -> (f64, Writer) {
    let simulation = Simulation::new(&Setup::new(profile, Order::Sptf, seed)).unwrap();
    let mut writer = Writer::default();
    let limits = Limits { until: seconds.map(|s| Time::ZERO + Dur::from_secs(s)), ..Limits::default() };
    let stats = simulation.run(workload, limits, None, &mut writer).unwrap();
    (stats.ended_at.0 as f64 / 1e9, writer)
}

/// Returns a recording of ten tasks with 30 ms of think time, 60 seconds long, and the profile of
/// its drive.
fn recorded() -> (Profile, Recording) {
    let profile = profile::builtin("atlas10k").unwrap();
    let simulation = Simulation::new(&Setup::new(&profile, Order::Sptf, 1)).unwrap();
    let sectors = simulation.target().capacity;
    let mut oltp = Population::of(&by_name("oltp").unwrap(), simulation.target(), 1).unwrap();
    let (_, writer) = run(&profile, 1, &mut oltp, Some(60));
    let recording = read(writer.text(sectors).as_bytes()).unwrap();
    (profile, recording)
}

#[test]
fn on_a_drive_like_the_one_recorded_the_replay_takes_as_long_and_is_repeatable() {
    let (profile, recording) = recorded();
    let length = recording.length().as_secs_f64();
    let replayed = |seed| {
        let simulation = Simulation::new(&Setup::new(&profile, Order::Sptf, seed)).unwrap();
        let mut p = Playback::new(recording.clone(), simulation.target(), Mode::Auto).unwrap();
        let (seconds, writer) = run(&profile, seed, &mut p, None);
        assert_eq!(writer.0.len(), recording.requests.len());
        seconds
    };
    // Another seed: the drive's noise differs, and occasionally another request is nearer.
    for seed in [2, 3] {
        let seconds = replayed(seed);
        assert!((seconds / length - 1.0).abs() < 0.03, "{length} recorded, {seconds} replayed");
    }
    assert_eq!(replayed(2), replayed(2));
}

#[test]
fn on_a_slow_drive_the_hosts_pauses_remain() {
    let (profile, recording) = recorded();
    // One request at a time, so that the duration is the sum of services and pauses.
    let mut lines = Vec::new();
    let mut pauses = 0;
    for (i, r) in recording.requests.iter().take(2_000).enumerate() {
        let kind = if r.kind == Kind::Read { 'R' } else { 'W' };
        let pause = 3_000 * (i as u64 % 3);
        lines.push(format!("{kind} {pause} 0 {} {}", r.lbn, r.count));
        lines.push(format!("C 8000 {i}"));
        pauses += if i == 0 { 0 } else { pause };
    }
    let serial = read(text(recording.sectors, &lines).as_bytes()).unwrap();
    let mut slow = profile.clone();
    slow.mechanics.rpm.0 /= 2;
    for p in [&profile, &slow] {
        let simulation = Simulation::new(&Setup::new(p, Order::Sptf, 1)).unwrap();
        let mut playback = Playback::new(serial.clone(), simulation.target(), Mode::Auto).unwrap();
        let (seconds, writer) = run(p, 1, &mut playback, None);
        let served: u64 = writer.0.iter().map(|d| d.done.since(d.submitted).0).sum();
        let all = (served as f64 / 1e9) + (pauses as f64 / 1e6);
        assert!((seconds - all).abs() < 1e-6, "{seconds} in all, {all} of service and pauses");
    }
    let of = |p: &Profile| {
        let simulation = Simulation::new(&Setup::new(p, Order::Sptf, 1)).unwrap();
        let mut playback = Playback::new(serial.clone(), simulation.target(), Mode::Auto).unwrap();
        run(p, 1, &mut playback, None).0
    };
    assert!(of(&slow) > 1.2 * of(&profile));
}
