//! `headtime reorganise`: what clients see, before, during and after, and when both sides are
//! killed in the middle.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::nbd_client::Nbd;
use super::{SMALL, SMALL_BYTES, Server, finish, headtime, noise, scratch};

/// Bytes of a unit, and the first byte of the export and its size.
const UNIT: usize = 64 << 10;
const START: usize = 4 << 20;
const DATA: usize = 28 << 20;

/// A server of two exports, of which the first is reorganised: its reserve is before it.
fn serve(at: &Path) -> Command {
    let config = at.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\ncontrol = \
         \"control.sock\"\n[[export]]\nname = \"data\"\nstart = \"4 MiB\"\nsize = \"28 MiB\"\n[export.reorganise]\n\
         start = 0\nsize = \"4 MiB\"\nunit = \"64 KiB\"\n[[export]]\nname = \"other\"\nstart = \"32 MiB\"\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    command
}

fn app(at: &Path, words: &[&str]) -> Command {
    let mut command = headtime();
    command.current_dir(at).args(words).args(["--control", "control.sock"]);
    command
}

/// Runs an application; returns its status, the JSON object that it printed, and its messages.
fn run(at: &Path, words: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    let (status, out, err) = finish(app(at, words).arg("--json"));
    (status.code(), serde_json::from_str(&out).unwrap_or_default(), err)
}

/// Units that are accessed often: one in eleven.
fn hot() -> impl Iterator<Item = usize> {
    (0..40).map(|n| 11 * n + 3)
}

fn heat(nbd: &mut Nbd) {
    for _ in 0..8 {
        hot().for_each(|unit| assert_eq!(nbd.read((unit * UNIT) as u64, 4096).unwrap().len(), 4096));
    }
}

fn seen(nbd: &mut Nbd) -> Vec<u8> {
    let parts = (0..DATA).step_by(1 << 20);
    parts.flat_map(|at| nbd.read(at as u64, 1 << 20).unwrap()).collect()
}

#[test]
fn clients_find_what_they_wrote_after_ten_kills_of_both_sides() {
    let dir = scratch("reorganise-kills");
    let at = dir.path();
    let disk = noise(SMALL_BYTES as usize, 5);
    fs::write(at.join("disk.img"), &disk).unwrap();
    let mut expected = disk[START..START + DATA].to_vec();
    let mut first = serve(at);
    first.args(["--new-map", "data"]);
    let mut server = Server::start(at, first);
    let mut moved = 0;
    for round in 0..10_u64 {
        let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
        heat(&mut nbd);
        let words: &[&str] = if round % 4 == 3 { &["reorganise", "data", "--undo"] } else { &["reorganise", "data"] };
        let said = fs::File::create(at.join("app")).unwrap();
        let mut killed = app(at, words).stderr(said).spawn().unwrap();
        let until = Instant::now() + Duration::from_millis(500 + round * 211);
        let mut n = 0;
        while Instant::now() < until {
            // Half of the units: one that is overwritten again and again stays where it is.
            let unit = hot().nth(n * 7 % 20 * 2).unwrap();
            let from = unit * UNIT + n % 16 * 4096;
            let data = noise(4096, round * 1_000 + n as u64);
            nbd.write(0, from as u64, &data).unwrap();
            expected[from..from + 4096].copy_from_slice(&data);
            n += 1;
            // In the longer pauses the disk is idle.
            sleep(Duration::from_millis(if n % 8 == 0 { 400 } else { 5 }));
        }
        nbd.flush().unwrap();
        server.kill();
        let _ = killed.kill();
        killed.wait().unwrap();
        server = Server::start(at, serve(at));
        let (status, report, err) = run(at, &["reorganise", "data", "--dry-run"]);
        assert_eq!(status, Some(0), "{err}");
        println!("round {round}: {n} writes, {} units in the reserve", report["in_reserve"]);
        moved += report["in_reserve"].as_u64().unwrap();
        let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
        assert!(seen(&mut nbd) == expected, "round {round}");
    }
    assert!(moved > 0, "no kill came while units were in the reserve");
    let (status, report, err) = run(at, &["reorganise", "data", "--undo"]);
    assert_eq!((status, &report["in_reserve"]), (Some(0), &0.into()), "{report} {err}");
    assert!(server.stop().0.success());
    assert!(fs::read(at.join("disk.img")).unwrap()[START..START + DATA] == expected);
}

#[test]
fn what_reads_or_writes_past_the_map_is_refused_and_the_map_is_made_once() {
    let dir = scratch("reorganise");
    let at = dir.path();
    let disk = noise(SMALL_BYTES as usize, 6);
    fs::write(at.join("disk.img"), &disk).unwrap();
    let (status, _, err) = finish(&mut serve(at));
    assert!(status.code() == Some(2) && err.contains("--new-map"), "{err}");
    let (status, _, err) = finish(serve(at).args(["--new-map", "other"]));
    assert!(status.code() == Some(2) && err.contains("expected a reorganised export"), "{err}");
    let mut first = serve(at);
    first.args(["--new-map", "data"]);
    let server = Server::start(at, first);
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    heat(&mut nbd);
    let (status, report, err) = run(at, &["reorganise", "data", "--dry-run"]);
    assert_eq!((status, &report["planned"], &report["moved"]), (Some(0), &40.into(), &0.into()), "{report} {err}");
    let (status, report, err) = run(at, &["reorganise", "data"]);
    assert_eq!((status, &report["moved"], &report["left"]), (Some(0), &40.into(), &0.into()), "{report} {err}");
    assert!(seen(&mut nbd) == disk[START..START + DATA]);
    for (words, why) in [
        (&["backup", "image", "--export", "data"][..], "--undo"),
        (&["search", "x", "--export", "data"], "--undo"),
        (&["task", "read", "--range", "8192+8"], "--undo"),
        (&["reorganise", "other"], "export.reorganise"),
        (&["reorganise", "none"], "expected one of the exports"),
        (&["reorganise", "data", "--at-most", "-1"], "expected more than 0"),
    ] {
        let (status, _, err) = run(at, words);
        assert!(status == Some(2) && err.contains(why), "{words:?}: {err}");
    }
    let (status, report, err) = run(at, &["scrub"]);
    assert_eq!((status, &report["bytes"]), (Some(0), &SMALL_BYTES.into()), "{report} {err}");
    assert!(server.stop().0.success());
    let (status, _, err) = finish(serve(at).args(["--new-map", "data"]));
    assert!(status.code() == Some(2) && err.contains("found one"), "{err}");
}
