//! Unwritable output, closed pipes, endless input, and signals.

#![cfg(unix)]

use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Scratch, command, headtime, run};

#[test]
fn a_reader_that_has_gone_is_no_error() {
    for args in [&["profiles"][..], &["profiles", "show", "atlas10k"], &["--help"], &["simulate", "--requests", "10"]] {
        let mut c = command(args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        c.stdout(writer).stderr(Stdio::piped());
        let o = c.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!((o.status.code(), o.stderr.len()), (Some(0), 0), "{args:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_gives_one_line_and_status_2() {
    for args in [&["profiles"][..], &["--help"], &["simulate", "--requests", "10", "--json"]] {
        let mut c = command(args);
        c.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped());
        let o = c.spawn().unwrap().wait_with_output().unwrap();
        let err = String::from_utf8(o.stderr).unwrap();
        assert_eq!((o.status.code(), err.lines().count()), (Some(2), 1), "{args:?}: {err}");
        assert!(err.contains("cannot write"), "{err}");
    }
    let e = headtime(&["demo", "-o", "/dev/full"]).refused();
    assert!(e.contains("/dev/full"), "{e}");
    let e = headtime(&["reproduce", "F1", "-o", "/dev/full"]).refused();
    assert_eq!(e, "headtime: cannot write /dev/full: expected a directory, found a device, pipe or socket\n");
}

/// Results go to standard output, so nothing else can; a file called `-` is never intended.
#[test]
fn a_minus_is_not_taken_for_a_file() {
    let there = Scratch::new("minus");
    let trace = there.file("t.trace", "R Miss 100 8 5000 100\n");
    for args in [
        &["simulate", "--requests", "10", "--perfetto", "-"][..],
        &["simulate", "--requests", "10", "--json", "--perfetto", "-"],
        &["validate", "--disk", "atlas10k", "--trace", &trace, "--svg", "-"],
        &["demo", "-o", "-"],
        &["reproduce", "F1", "--quick", "-o", "-"],
    ] {
        let mut c = command(args);
        c.current_dir(&there.0);
        let e = run(c).refused();
        assert!(e.contains("expected a name (standard output is for the results") && e.contains("found \"-\""), "{e}");
    }
    let mut c = command(&["simulate", "--requests", "10", "--perfetto", "./-"]);
    c.current_dir(&there.0);
    run(c).ok();
    assert_eq!(there.names(), ["-", "t.trace"]);
}

#[test]
fn files_that_cannot_be_made_are_named_before_the_work_begins() {
    let there = Scratch::new("cannot");
    let none = there.path("no/such/dir.svg");
    let trace = there.file("t.trace", "R Miss 100 8 5000 100\n");
    let file = there.file("file", "");
    let below = there.path("file/out");
    for args in [
        &["demo", "-o", &none][..],
        &["simulate", "--seconds", "100000000", "--perfetto", &none],
        &["validate", "--disk", "atlas10k", "--trace", &trace, "--svg", &none],
        &["reproduce", "-o", &below],
        &["reproduce", "-o", &file],
    ] {
        let e = headtime(args).refused();
        assert!(e.contains("cannot write"), "{args:?}: {e}");
    }
    assert_eq!(there.names(), ["file", "t.trace"]);
}

#[test]
fn input_that_does_not_end_is_refused_in_one_line() {
    let there = Scratch::new("endless");
    let pipe = there.path("pipe.toml");
    let mut mkfifo = std::process::Command::new("mkfifo");
    mkfifo.arg(&pipe);
    assert_eq!(run(mkfifo).status, Some(0));
    let source = there.file("zero.parv", "source /dev/zero\n");
    for args in [
        &["simulate", "--disk", "/dev/zero"][..],
        &["profiles", "show", &source],
        &["profiles", "show", &pipe],
        &["simulate", "/dev/zero"],
        &["simulate", &pipe],
    ] {
        let e = headtime(args).refused();
        assert!(e.contains("expected a regular file, found a device"), "{args:?}: {e}");
    }
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let there = Scratch::new("mode");
    let path = there.file("head.json", "old");
    for mode in [0o600, 0o664] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        headtime(&["simulate", "--requests", "50", "--perfetto", &path, "--overwrite"]).ok();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn an_output_of_a_simulation_replaces_no_input_and_no_other_file_unasked() {
    let there = Scratch::new("inputs");
    let trace = there.file("t.csv", "0,R,0,8\n20,W,8,8\n");
    let scenario = there.file("s.toml", "trace = \"t.csv\"\ntrace_format = \"csv\"\n");
    let disk = there.file("d.toml", &headtime(&["profiles", "show", "atlas10k"]).ok());
    let (hard, soft) = (there.path("hard"), there.path("soft"));
    std::fs::hard_link(&trace, &hard).unwrap();
    std::os::unix::fs::symlink("t.csv", &soft).unwrap();
    let contents = |path: &String| std::fs::read(path).unwrap();
    let before = [&trace, &scenario, &disk].map(contents);
    for flag in ["--requests-out", "--perfetto"] {
        for (output, what) in
            [(&trace, "trace"), (&hard, "trace"), (&soft, "trace"), (&scenario, "scenario"), (&disk, "profile")]
        {
            let e = headtime(&["simulate", &scenario, "--disk", &disk, flag, output, "--overwrite"]).refused();
            assert!(e.contains(&format!("{flag}: expected another file than the run's {what}")), "{output}: {e}");
        }
        let other = there.file("other", "kept");
        let args = ["simulate", "--trace", &trace, "--trace-format", "csv", flag, &other];
        let e = headtime(&args).refused();
        assert!(e.contains("other: expected no file of this name, found one (--overwrite replaces it)"), "{e}");
        assert_eq!(contents(&other), b"kept");
        headtime(&[&args[..], &["--overwrite"]].concat()).ok();
        assert_ne!(contents(&other), b"kept");
    }
    let new = there.path("new");
    let e = headtime(&["simulate", "--requests", "5", "--perfetto", &new, "--requests-out", &new]).refused();
    assert!(e.contains("--requests-out: expected another file than --perfetto"), "{e}");
    assert_eq!([&trace, &scenario, &disk].map(contents), before);
}

#[test]
fn output_goes_to_a_device_without_replacing_it() {
    headtime(&["simulate", "--requests", "50", "--perfetto", "/dev/null"]).ok();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_signal_stops_at_once_with_status_130_and_leaves_nothing_half_written() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        stopped_by(signal);
    }
}

/// A program without files whose stderr is not read.
#[test]
fn a_signal_stops_a_program_that_cannot_say_so() {
    let (unread, mut full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let mut c = command(&["simulate", "--workload", "closed:8", "--seconds", "300000000"]);
    let mut child = c.stdout(Stdio::null()).stderr(full).spawn().unwrap();
    // The `Command` keeps its own copy of the pipe.
    drop(c);
    std::thread::sleep(Duration::from_millis(500));
    let mut kill = std::process::Command::new("kill");
    kill.args(["-TERM", &child.id().to_string()]);
    assert_eq!(run(kill).status, Some(0));
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.try_wait().unwrap().and_then(|s| s.code()), Some(130), "it waits for the reader of stderr");
    drop(unread);
}

fn stopped_by(signal: &str) {
    let there = Scratch::new(&format!("stopped{signal}"));
    let path = there.path("head.json");
    let mut c = command(&["simulate", "--workload", "closed:8", "--seconds", "300000000", "--perfetto", &path]);
    let mut child = c.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while there.names().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "the program never began its file");
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut kill = std::process::Command::new("kill");
    kill.args([signal, &child.id().to_string()]);
    assert_eq!(run(kill).status, Some(0));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{signal}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.ends_with("headtime: stopped by a signal; an unfinished file was removed\n"), "{said}");
    assert_eq!(there.names(), Vec::<String>::new());
}
