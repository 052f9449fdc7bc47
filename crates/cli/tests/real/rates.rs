//! Limits of exports: their rates, other exports beside them, and changes while they are served.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::behaviour::median_read;
use super::nbd_client::{Nbd, READ, request};
use super::{SMALL, Server, finish, headtime, next, scratch};
use crate::support::wait_until;

/// Bytes of a read of the export with a limit.
const BYTES: usize = 128 << 10;

/// A server with two exports, of which the first has these settings.
fn serve(dir: &Path, settings: &str) -> Command {
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\ncontrol = \
         \"control.sock\"\n[[export]]\nname = \"slow\"\nsize = \"16 MiB\"\n{settings}\n[[export]]\nname = \
         \"fast\"\nstart = \"16 MiB\"\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    command
}

/// A client that reads without end, until `stop` is set; returns when each read ended.
fn reader(socket: &Path, export: &'static str, bytes: usize, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<Instant>> {
    let (socket, stop) = (socket.to_owned(), Arc::clone(stop));
    thread::spawn(move || {
        let mut nbd = Nbd::open(&socket, export).unwrap();
        let places = (15 << 20) / bytes as u64;
        let mut ends = Vec::new();
        for n in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            nbd.read(n % places * bytes as u64, bytes as u32).unwrap();
            ends.push(Instant::now());
        }
        ends
    })
}

/// Bytes per second between the first and the last of these ends of reads.
fn rate(ends: &[Instant], bytes: usize) -> f64 {
    let took = ends[ends.len() - 1] - ends[0];
    ((ends.len() - 1) * bytes) as f64 / took.as_secs_f64()
}

/// Lets clients of these exports read for a time; returns the ends of all reads of each export.
fn read_for(server: &Server, exports: &[&'static str], time: Duration) -> Vec<Vec<Instant>> {
    let stop = Arc::new(AtomicBool::new(false));
    // Two clients each, so that one request waits while another is at the drive.
    let all = exports.iter().map(|export| [(); 2].map(|()| reader(&server.socket(), export, BYTES, &stop)));
    let all: Vec<_> = all.collect();
    thread::sleep(time);
    stop.store(true, Ordering::Relaxed);
    let ends = all.into_iter().map(|two| {
        let mut ends: Vec<Instant> = two.into_iter().flat_map(|one| one.join().unwrap()).collect();
        ends.sort();
        ends
    });
    ends.collect()
}

fn top(dir: &Path) -> serde_json::Value {
    let (status, out, err) =
        finish(headtime().current_dir(dir).args(["top", "--once", "--json", "--interval-ms", "1000"]));
    assert!(status.success(), "{err}");
    serde_json::from_str(&out).unwrap()
}

fn export<'a>(view: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    view["exports"].as_array().unwrap().iter().find(|e| e["name"] == name).unwrap_or_else(|| panic!("{view}"))
}

#[test]
fn an_export_keeps_its_limit_and_another_has_the_rest() {
    let dir = scratch("rate");
    let server = Server::start(dir.path(), serve(dir.path(), "max-mb-s = 0.8"));
    let alone = rate(&read_for(&server, &["fast"], Duration::from_secs(3))[0], BYTES);
    let view = {
        let dir = dir.path().to_owned();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(2));
            top(&dir)
        })
    };
    let both = read_for(&server, &["slow", "fast"], Duration::from_secs(6));
    // The first of them used what was left of the pause before.
    let (slow, fast) = (rate(&both[0][3..], BYTES), rate(&both[1], BYTES));
    assert!((0.95..=1.05).contains(&(slow / 0.8e6)), "{slow:.0} bytes/s");
    assert!(fast > 0.7 * alone, "{fast:.0} bytes/s beside it, {alone:.0} alone");
    // `top` says what each of them waits for.
    let view = view.join().unwrap();
    let (slow, fast) = (export(&view, "slow"), export(&view, "fast"));
    assert_eq!((&slow["max_mb_s"], &fast["max_mb_s"], &slow["weight"]), (&0.8.into(), &().into(), &100.into()));
    let part = |e: &serde_json::Value, part: &str| e["waits"][part].as_f64().unwrap();
    let sum = |e| ["limit_ms", "turn_ms", "idle_ms", "drive_ms"].map(|p| part(e, p)).iter().sum::<f64>();
    assert!(part(slow, "limit_ms") > 0.7 * sum(slow) && part(fast, "limit_ms") == 0.0, "{view}");
    for e in [slow, fast] {
        let mean = e["response_mean_ms"].as_f64().unwrap();
        assert!((sum(e) - mean).abs() < 0.05 * mean + 0.1 && part(e, "drive_ms") > 0.0, "{e}");
    }
    assert!(server.stop().0.success());
}

/// An export with a limit reads in order, so that the disk idles for it while it has its turn. That
/// must not be so while its next request waits for the limit: the other export would lose a slice
/// of 125 ms for each 125 ms.
#[test]
fn the_disk_does_not_idle_for_a_request_that_waits_for_its_limit() {
    let dir = scratch("rate-idle");
    let server = Server::start(dir.path(), serve(dir.path(), "max-iops = 50"));
    let alone = rate(&read_for(&server, &["fast"], Duration::from_secs(3))[0], BYTES);
    let both = read_for(&server, &["slow", "fast"], Duration::from_secs(6));
    let (slow, fast) = (rate(&both[0][10..], 1), rate(&both[1], BYTES));
    assert!((48.0..=52.0).contains(&slow), "{slow:.1} requests/s");
    // Measured: 62%, and 35% if the disk idles.
    assert!(fast > 0.5 * alone, "{fast:.0} bytes/s beside it, {alone:.0} alone");
    assert!(server.stop().0.success());
}

#[test]
fn a_reload_changes_limits_also_for_requests_that_wait() {
    let dir = scratch("rate-reload");
    let server = Server::start(dir.path(), serve(dir.path(), "max-mb-s = 0.01"));
    let mut nbd = Nbd::open(&server.socket(), "slow").unwrap();
    nbd.read(0, BYTES as u32).unwrap();
    // At this rate the next one waits for 13 s.
    let waits = thread::spawn(move || nbd.read(0, BYTES as u32).map(|_| nbd));
    assert!(wait_until(|| export(&top(dir.path()), "slow")["limited"] == 1));
    assert!(!waits.is_finished());
    let reload = |settings: &str, said: &str| {
        serve(dir.path(), settings);
        server.signal("HUP");
        assert!(wait_until(|| server.said().contains(said)), "{}", server.said());
    };
    let begun = Instant::now();
    reload("max-mb-s = 2\nlatency-target-ms = 25", "export \"slow\": limit 0.01 MB/s is now 2 MB/s");
    assert!(server.said().contains("export \"slow\": latency target none is now 25 ms"), "{}", server.said());
    waits.join().unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let slow = rate(&read_for(&server, &["slow"], Duration::from_secs(3))[0][3..], BYTES);
    assert!((0.95..=1.05).contains(&(slow / 2e6)), "{slow:.0} bytes/s");
    reload("max-iops = 10", "export \"slow\": limit 2 MB/s is removed");
    let slow = rate(&read_for(&server, &["slow"], Duration::from_secs(3))[0][3..], 1);
    assert!((9.5..=10.5).contains(&slow), "{slow} requests/s");
    reload("", "export \"slow\": limit 10 requests/s is removed");
    let slow = rate(&read_for(&server, &["slow"], Duration::from_secs(2))[0], BYTES);
    assert!(slow > 4e6, "{slow:.0} bytes/s without a limit");
    // A bad value is refused with file and line, and nothing changes.
    for (bad, said) in [
        ("max-mb-s = 0", "serve.toml:10: max-mb-s: expected 10^6 bytes per second, a number from 0.001 to 1000000"),
        ("max-iops = \"5\"", "serve.toml:10: max-iops: expected requests per second"),
        (
            "write-cache = \"1 MiB\"\nmax-iops = 5",
            "serve.toml:10: export 1 (\"slow\"), write-cache: expected an export",
        ),
    ] {
        reload(bad, said);
        let (status, _, err) = finish(serve(dir.path(), bad).arg("--check"));
        assert!(status.code() == Some(2) && err.contains(said), "{err}");
    }
    assert!(!server.said().contains("needs a new start"), "{}", server.said());
    let (status, out, err) = finish(serve(dir.path(), "max-iops = 5\nlatency-target-ms = 9").arg("--check"));
    assert!(status.success() && out.contains("weight 100, limit 5 requests/s, latency target 9 ms\n"), "{out}{err}");
    assert!(server.stop().0.success());
}

#[test]
fn requests_that_wait_for_a_limit_hold_up_no_other_export_and_no_end() {
    let dir = scratch("rate-flood");
    let server = Server::start(dir.path(), serve(dir.path(), "max-iops = 2"));
    // More than the server holds for the export.
    let flood: Vec<_> = (0..20u64)
        .map(|n| {
            let mut stream = Nbd::open(&server.socket(), "slow").unwrap().stream;
            let mut back = stream.try_clone().unwrap();
            let asks: Vec<u8> =
                (0..200).flat_map(|i| request(READ, 0, i, next(n << 32 | i) % 4_000 * 4096, 4096)).collect();
            thread::spawn(move || std::io::Write::write_all(&mut stream, &asks));
            thread::spawn(move || std::io::copy(&mut back, &mut std::io::sink()))
        })
        .collect();
    // Half of the budget is divided into three parts; a client takes no more than it leaves free.
    let limited = || export(&top(dir.path()), "slow")["limited"].as_u64().unwrap();
    assert!(wait_until(|| limited() > 600), "{}", limited());
    assert!(limited() <= 4096 / 2 / 3, "{}", limited());
    // Other clients have their places, and requests of the largest size of this disk.
    let mut other = Nbd::open(&server.socket(), "fast").unwrap();
    let took = median_read(&mut other);
    assert!(took < Duration::from_millis(60), "half of the reads of another took {took:?} or longer");
    let large: Vec<_> = (0..6)
        .map(|_| {
            let socket = server.socket();
            thread::spawn(move || Nbd::open(&socket, "fast").unwrap().read(0, 16 << 20).map(|_| ()))
        })
        .collect();
    large.into_iter().for_each(|one| one.join().unwrap().unwrap());
    let (_, took) = server.stop();
    assert!(took < Duration::from_secs(12), "it ended after {took:?}");
    drop(flood);
}
