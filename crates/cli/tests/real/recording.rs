//! Recording and replay of a server's client requests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use super::nbd_client::Nbd;
use super::{SMALL, Server, finish, headtime, scratch, serve};

fn replay(file: &std::path::Path, more: &[&str]) -> Command {
    let mut command = headtime();
    command.args(["simulate", "--trace-format", "recording", "--json", "--trace"]).arg(file).args(more);
    command
}

#[test]
fn requests_of_a_server_are_recorded_and_take_as_long_when_they_are_replayed() {
    let dir = scratch("record");
    let file = dir.path().join("clients.rec");
    let mut command = serve(dir.path());
    command.arg("--record").arg(&file);
    let server = Server::start(dir.path(), command);
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    // Random reads with think times between them, then writes and a flush: half a second, most of
    // it pauses.
    for n in 0..20u64 {
        nbd.read(n * 7_919 % 4_000 * 512, 4_096).unwrap();
        sleep(Duration::from_millis(20));
    }
    for n in 0..5u64 {
        nbd.write(0, n << 20, &[7; 8_192]).unwrap();
    }
    nbd.flush().unwrap();
    drop(nbd);
    let mut other = Nbd::open(&server.socket(), "archive").unwrap();
    other.read(0, 512).unwrap();
    drop(other);
    let said_at = server.said.clone();
    assert!(server.stop().0.success());
    let said = fs::read_to_string(said_at).unwrap();
    assert!(said.contains("clients.rec holds 27 requests"), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let (status, out, err) = finish(&mut replay(&file, &["--disk", SMALL]));
    assert!(status.success(), "{err}");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let foreground = &result["foreground"];
    assert_eq!((&foreground["requests"], &foreground["errors"]), (&27.into(), &0.into()));
    let recorded = foreground["measures"]["recorded_seconds"].as_f64().unwrap();
    let replayed = result["virtual_seconds"].as_f64().unwrap();
    // Other load on the machine lengthens pauses, and those are recorded.
    assert!(recorded > 0.4 && (replayed / recorded - 1.0).abs() < 0.25, "{recorded} recorded, {replayed} replayed");

    let (status, _, err) = finish(&mut replay(&file, &["--disk", "atlas10k"]));
    assert_eq!(status.code(), Some(2));
    assert!(err.contains("clients.rec:3: expected a recording of a disk of 17"), "{err}");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("R ", "W ", 1)).unwrap();
    let (status, _, err) = finish(&mut replay(&file, &["--disk", SMALL]));
    assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
    assert!(err.contains("was altered, lost or moved"), "{err}");
}

#[test]
fn a_recording_is_always_a_new_file() {
    let dir = scratch("record-new");
    let (there, link) = (dir.path().join("there"), dir.path().join("link"));
    fs::write(&there, "a letter").unwrap();
    symlink(dir.path().join("nowhere"), &link).unwrap();
    for name in [&there, &link] {
        let (status, _, err) = finish(serve(dir.path()).arg("--record").arg(name));
        assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
        assert!(err.contains("expected no file of this name"), "{err}");
    }
    assert_eq!(fs::read(&there).unwrap(), b"a letter");
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn a_recording_is_not_the_backing_file_that_the_server_creates() {
    let dir = scratch("record-backing");
    let (status, _, err) = finish(serve(dir.path()).arg("--record").arg(dir.path().join("disk.img")));
    assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
    assert!(err.contains("expected no file of this name"), "{err}");
}
