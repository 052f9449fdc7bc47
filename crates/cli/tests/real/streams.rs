//! Streams of `headtime serve` in normal use: guaranteed from the start, opened and closed at run
//! time, reloaded.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::nbd_client::Nbd;
use super::{Server, finish, headtime, scratch};
use crate::support::wait_until;

const KIB64: u32 = 64 << 10;

/// A drive with measured service times and two films, of which `second` is a stream or not, and the
/// rest.
fn config(dir: &Path, first: &str, second: &str) -> Command {
    let path = dir.join("serve.toml");
    let table = |requests: &str| match requests {
        "" => String::new(),
        n => format!("[export.stream]\nrequests = {n}\nperiod = \"500ms\"\nquality = \"99%\"\nsize = \"64 KiB\"\n"),
    };
    let text = format!(
        "[disk]\ndrive = \"ultrastar36z15\"\nbacking = \"disk.img\"\n[scheduler]\nadmit = \"das\"\nexhausted = \
         \"skip\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\ncontrol = \"control.sock\"\n\
         [[export]]\nname = \"film\"\nsize = \"1 GiB\"\n{}[[export]]\nname = \"other\"\nstart = \"1 GiB\"\nsize = \"1 \
         GiB\"\n{}[[export]]\nname = \"data\"\nstart = \"2 GiB\"\n",
        table(first),
        table(second)
    );
    fs::write(&path, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(path);
    command
}

/// `headtime stream` in this directory: its status and output.
fn stream(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let (status, out, err) = finish(headtime().current_dir(dir).arg("stream").args(args));
    (status.code(), out, err)
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_check_says_what_streams_have_and_refuses_what_cannot_be() {
    let dir = scratch("streams-check");
    let (status, out, err) = finish(config(dir.path(), "5", "10").arg("--check"));
    assert!(status.success(), "{err}");
    let row = |name: &str| out.lines().find(|l| l.trim_start().starts_with(name) && l.contains("500 ms")).expect(&out);
    assert!(row("film").contains("99%") && row("other").contains(" 10 "), "{out}");
    assert!(out.contains("if 8 always wait; its requests may have at most 1048576 bytes"), "{out}");
    let (status, out, err) = finish(config(dir.path(), "5", "500").arg("--check"));
    assert_eq!((status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
    assert!(err.contains("export \"other\", stream: it cannot be had beside those before it"), "{err}");
    let possible = err.split("possible: ").nth(1).expect(&err).split(' ').next().unwrap().to_string();
    // The suggested alternative is admitted, and a server does not start with more.
    assert!(finish(config(dir.path(), "5", &possible).arg("--check")).0.success(), "{possible}");
    let more = (possible.parse::<u32>().unwrap() + 1).to_string();
    assert_eq!(finish(&mut config(dir.path(), "5", &more)).0.code(), Some(2), "{more}");
}

#[test]
fn every_example_can_be_served_and_all_at_once_is_the_experiments() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for file in fs::read_dir(&examples).unwrap().map(|e| e.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let (status, out, err) = finish(headtime().args(["serve", "--check"]).arg(&file));
        assert!(status.success(), "{}: {err}", file.display());
        seen += 1;
        if file.ends_with("all-at-once.toml") {
            // As in crates/lab/src/combined/x01_everything_at_once.rs.
            let asked = [("5", "100%"), ("20", "95%"), ("10", "90%"), ("5", "100%"), ("10", "60%")];
            for (at, (requests, quality)) in asked.iter().enumerate() {
                let name = format!("stream-{}", at + 1);
                let row = out.lines().find(|l| l.contains(&name) && l.contains("500 ms")).expect(&out);
                let cells: Vec<&str> = row.split_whitespace().collect();
                assert_eq!((cells[1], cells[4]), (*requests, *quality), "{row}");
            }
        }
    }
    assert!(seen >= 3, "{seen} examples in {}", examples.display());
}

#[test]
fn a_profile_without_times_is_measured_for_a_virtual_drive_and_refused_for_a_real_one() {
    let dir = scratch("streams-measured");
    config(dir.path(), "2", "");
    let path = dir.path().join("serve.toml");
    let other = |from: &str, to: &str| {
        let text = fs::read_to_string(&path).unwrap().replace("ultrastar36z15", "cheetah9lp").replace(from, to);
        fs::write(&path, text).unwrap();
        finish(headtime().args(["serve", "--check"]).arg(&path))
    };
    let (status, out, err) = other("64 KiB", "32 KiB");
    assert!(status.success() && out.contains("film"), "{err}");
    assert!(err.contains("no service times for requests of 32768 bytes: measured on its virtual drive"), "{err}");
    let (status, _, err) = other("backing", "device");
    assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
    assert!(err.contains("expected service times") && err.contains("headtime profiles measure cheetah9lp"), "{err}");
}

#[test]
fn streams_are_listed_asked_for_opened_and_closed() {
    let dir = scratch("streams-live");
    let server = Server::start(dir.path(), config(dir.path(), "5", ""));
    let mut nbd = Nbd::open(&server.socket(), "film").unwrap();
    for n in 0..5 {
        nbd.read(n * 777 * u64::from(KIB64), KIB64).unwrap();
    }
    let said = nbd.read(0, 2 * KIB64).unwrap_err();
    assert_eq!(said.raw_os_error(), Some(22), "a stream is held to the size that it declared");
    let mut nbd = Nbd::open(&server.socket(), "film").unwrap();
    nbd.read(0, KIB64).unwrap();
    let (status, out, err) = stream(dir.path(), &["list", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let list = json(&out);
    let film = &list["streams"][0];
    assert_eq!((film["export"].as_str(), film["asked"].as_u64()), (Some("film"), Some(6)), "{list}");
    assert!(film["reservation_ms"].as_f64() > Some(15.0) && list["load"]["best_effort"].as_f64() > Some(0.9), "{list}");
    let line = |n: u32| format!("requests={n},period=500ms,quality=100%,size=64k");
    let (status, out, _) = stream(dir.path(), &["ask", &line(100), "--json"]);
    assert_eq!(status, Some(1), "{out}");
    let no = json(&out);
    let most = no["nearest"]["requests"].as_u64().expect("fewer would do") as u32;
    assert!(no["why_not"].as_str().unwrap().contains("at their worst") && most > 1, "{no}");
    let (status, out, err) = stream(dir.path(), &["open", "other", &line(most)]);
    assert_eq!(status, Some(0), "{out}{err}");
    assert!(out.starts_with("Yes. It is mandatory") && out.contains("The others have now: film: "), "{out}");
    let (status, out, _) = stream(dir.path(), &["ask", &line(1)]);
    assert!(status == Some(1) && out.starts_with("No. "), "{out}");
    let (status, out, err) = finish(headtime().current_dir(dir.path()).args(["top", "--once", "--interval-ms", "200"]));
    assert!(status.success(), "{err}");
    let row = |name: &str| out.lines().find(|l| l.starts_with(name) && l.contains("500")).expect(&out);
    assert!(row("film").contains("99.00%") && row("other").contains("mandatory"), "{out}");
    let (status, _, err) = stream(dir.path(), &["close", "data"]);
    assert!(status == Some(2) && err.contains("the export has no stream"), "{err}");
    assert_eq!(stream(dir.path(), &["close", "other"]).0, Some(0));
    assert_eq!(stream(dir.path(), &["ask", &line(1)]).0, Some(0));
    let (status, _, err) = stream(dir.path(), &["ask", "requests=1"]);
    assert!(status == Some(2) && err.contains("STREAM: expected period"), "{err}");
    assert!(server.stop().0.success());
}

#[test]
fn streams_are_taken_over_from_a_configuration_that_is_read_again() {
    let dir = scratch("streams-reload");
    let server = Server::start(dir.path(), config(dir.path(), "5", ""));
    let listed = || json(&stream(dir.path(), &["list", "--json"]).1)["streams"].clone();
    let requests = |name: &str| {
        let all = listed();
        all.as_array().unwrap().iter().find(|s| s["export"] == name).map(|s| s["requests"].as_u64().unwrap())
    };
    assert_eq!((requests("film"), requests("other")), (Some(5), None));
    // More of one and another one.
    config(dir.path(), "6", "7");
    server.signal("HUP");
    assert!(wait_until(|| requests("other") == Some(7)), "{}", server.said());
    assert_eq!(requests("film"), Some(6));
    // A rejected configuration changes nothing: no stream ends or begins.
    config(dir.path(), "", "500");
    server.signal("HUP");
    assert!(wait_until(|| server.said().contains("streams are as they were: export \"other\"")), "{}", server.said());
    assert_eq!((requests("film"), requests("other")), (Some(6), Some(7)));
    config(dir.path(), "", "");
    server.signal("HUP");
    assert!(wait_until(|| listed() == serde_json::json!([])), "{}", server.said());
    assert!(server.stop().0.success());
}

#[test]
fn a_server_without_streams_says_so() {
    let dir = scratch("streams-none");
    let server = Server::start(dir.path(), super::serve(dir.path()));
    let (status, _, err) = stream(dir.path(), &["list"]);
    assert!(status == Some(2) && err.contains("expected a scheduler that has streams"), "{err}");
    server.stop();
}
