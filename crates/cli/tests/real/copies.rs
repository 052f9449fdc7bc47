//! `headtime copy`: one server's disk to another's, killed in the middle and continued.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::{SMALL_BYTES, Server, finish, headtime, noise, scratch, serve};

/// The size of the export `data` that [`serve`] configures.
const DATA: usize = 16 << 20;

/// Runs a copy from the server in `from` to that in `to`; returns its status, the JSON object that
/// it printed, and its messages.
fn copy(from: &Path, to: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    let (status, out, err) = finish(command(from, to, arguments).arg("--json"));
    (status.code(), serde_json::from_str(&out).unwrap_or_default(), err)
}

fn command(from: &Path, to: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = headtime();
    command.current_dir(from).env("XDG_STATE_HOME", from).arg("copy").arg(to.join("control.sock"));
    command.args(["--control", "control.sock", "--export", "data", "--to-export", "data"]).args(arguments);
    command
}

#[test]
fn a_copy_is_continued_after_each_kill_and_is_then_the_source() {
    let (from, to) = (scratch("copy-from"), scratch("copy-to"));
    let (from, to) = (from.path(), to.path());
    let data = noise(SMALL_BYTES as usize, 3);
    fs::write(from.join("disk.img"), &data).unwrap();
    fs::write(to.join("disk.img"), vec![0; SMALL_BYTES as usize]).unwrap();
    let servers = [Server::start(from, serve(from)), Server::start(to, serve(to))];

    // At this rate it would take 13 s. The journal is written at the beginning, and every five
    // seconds.
    let live = ["--live", "--verify", "--at-most", "1"];
    for after in [500, 500, 6_500] {
        let said = fs::File::create(from.join("said")).unwrap();
        let mut killed = command(from, to, &live).stderr(said).spawn().unwrap();
        sleep(Duration::from_millis(after));
        let ended = killed.try_wait().unwrap();
        assert!(ended.is_none(), "before it was killed: {}", fs::read_to_string(from.join("said")).unwrap());
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    let (status, _, err) = copy(from, to, &["--live"]);
    assert!(status == Some(2) && err.contains("--restart"), "what is to be verified is another copy: {err}");
    let (status, report, err) = copy(from, to, &["--live", "--verify"]);
    assert_eq!(
        (status, &report["wrong_bytes"], &report["bytes"]),
        (Some(0), &0.into(), &DATA.into()),
        "{report} {err}"
    );
    assert!(fs::read(to.join("disk.img")).unwrap()[..DATA] == data[..DATA]);
    let left: Vec<_> = fs::read_dir(from.join("headtime")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().ends_with(".lock")), "{left:?}");

    // Now there is data at the destination.
    let (status, _, err) = copy(from, to, &[]);
    assert!(status == Some(2) && err.contains("--overwrite"), "{err}");
    let (status, report, err) = copy(from, to, &["--overwrite"]);
    assert_eq!((status, &report["moment"]), (Some(0), &"point-in-time".into()), "{report} {err}");

    let damaged = from.join("journal");
    fs::write(&damaged, "no journal").unwrap();
    let nowhere = from.join("nowhere");
    for (to, words, why) in [
        (to, &["--overwrite", "--journal", "journal"][..], "journal"),
        (to, &["--overwrite", "--live", "--journal", "journal"], "journal"),
        (to, &["--unit", "0"], "--unit"),
        (&nowhere, &[], "nowhere"),
        (from, &["--overwrite"], "overlaps the source"),
    ] {
        let (status, _, err) = copy(from, to, words);
        assert!(status == Some(2) && err.contains(why), "{words:?}: {err}");
    }
    assert_eq!(fs::read(&damaged).unwrap(), b"no journal");
    servers.into_iter().for_each(|server| assert!(server.stop().0.success()));
}
