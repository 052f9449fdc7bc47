//! `headtime top` and the metrics of a busy server.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::nbd_client::Nbd;
use super::{Server, disk, finish, headtime, next, scratch, serve};
use crate::support::{self, Process, wait_until};

/// Random reads until the server is gone.
fn reader(server: &Server) -> thread::JoinHandle<()> {
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    thread::spawn(move || {
        let mut seed = 5;
        loop {
            seed = next(seed);
            if nbd.read(seed % 4096 * 4096, 4096).is_err() {
                return;
            }
        }
    })
}

#[test]
fn top_prints_once_what_a_server_does() {
    let dir = scratch("top");
    let server = Server::start(dir.path(), serve(dir.path()));
    let reading = reader(&server);
    let top = |more: &[&str]| {
        let mut command = headtime();
        command.current_dir(dir.path()).args(["top", "--interval-ms", "500"]).args(more);
        finish(&mut command)
    };
    // The socket is in this directory, and stdout is no terminal.
    for more in [&[][..], &["--once"]] {
        let (status, out, err) = top(more);
        assert!(status.success(), "{err}");
        let data = out.lines().find(|l| l.starts_with("data ")).unwrap_or_else(|| panic!("{out}"));
        let reads: f64 = data.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(reads > 20.0, "{out}");
        assert!(
            out.contains("A small drive for tests") && out.contains("head time") && out.contains("filling"),
            "{out}"
        );
    }
    let (status, out, err) = top(&["--once", "--json"]);
    assert!(status.success(), "{err}");
    let view: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(view["exports"][0]["response_mean_ms"].as_f64() > Some(0.5), "{view}");
    let shares = ["seek", "rotate", "transfer", "free", "idle"].map(|k| view["head_time"][k].as_f64().unwrap());
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{view}");
    drop(server);
    reading.join().unwrap();
    let (status, _, err) = top(&["--once"]);
    assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
    assert!(err.contains("control.sock"), "{err}");
}

#[test]
fn top_outlives_a_restart_of_the_server() {
    let dir = scratch("top-restart");
    let server = Server::start(dir.path(), serve(dir.path()));
    let mut command = headtime();
    command.current_dir(dir.path()).args(["top", "--json", "--interval-ms", "200", "--control", "control.sock"]);
    let said = dir.path().join("top-said");
    let said_to = std::fs::File::create(&said).unwrap();
    let mut top = Process(command.stdout(Stdio::piped()).stderr(said_to).spawn().unwrap());
    let (lines, views) = channel();
    let out = BufReader::new(top.0.stdout.take().unwrap());
    thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|l| lines.send(l)));
    let view = || -> serde_json::Value {
        serde_json::from_str(&views.recv_timeout(Duration::from_secs(20)).unwrap()).unwrap()
    };
    let (first, second) = (view(), view());
    assert!(second["up_seconds"].as_f64() > first["up_seconds"].as_f64());
    server.kill();
    assert!(wait_until(|| std::fs::read_to_string(&said).unwrap().contains("the server is gone")));
    while views.try_recv().is_ok() {}
    let server = Server::start(dir.path(), serve(dir.path()));
    let again = view();
    assert!(again["up_seconds"].as_f64() < second["up_seconds"].as_f64().map(|s| s + 5.0), "{again}");
    assert_eq!(again["exports"], serde_json::json!([]), "nothing was asked of it yet");
    server.stop();
}

/// `script` provides a terminal.
#[test]
fn top_gives_the_terminal_back_however_it_ends() {
    const NAME: &str = "top_gives_the_terminal_back_however_it_ends";
    if let Some(why) = support::missing_program(&["script", "stty"]) {
        return support::skipped(NAME, &why);
    }
    let dir = scratch("top-terminal");
    let server = Server::start(dir.path(), serve(dir.path()));
    for (key, status) in [(&b"q"[..], 0), (b"\x03", 130), (b"", 130)] {
        let mut command = Command::new("script");
        // The terminal's settings afterwards, and the status, are printed into it.
        let watched = format!(
            "stty rows 40 cols 120; {} top --interval-ms 200; echo \"status $?\"; stty -a",
            env!("CARGO_BIN_EXE_headtime")
        );
        command.current_dir(dir.path()).env("TERM", "xterm").args(["-qec", &watched, "/dev/null"]);
        let mut script = Process(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
        let mut out = script.0.stdout.take().unwrap();
        let mut text = String::new();
        let mut piece = [0; 4096];
        while !text.contains("head time") && !text.contains("seek") {
            let got = out.read(&mut piece).unwrap();
            assert!(got > 0, "it ended: {text}");
            text += &String::from_utf8_lossy(&piece[..got]);
        }
        if key.is_empty() {
            let shell = children(script.0.id());
            let top = shell.into_iter().flat_map(children).next().expect("top runs");
            super::run(Command::new("kill").args(["-TERM", &top.to_string()]));
        } else {
            script.0.stdin.as_mut().unwrap().write_all(key).unwrap();
        }
        let mut rest = Vec::new();
        out.read_to_end(&mut rest).unwrap();
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(rest.contains("\u{1b}[?1049l"), "the other screen is back: {rest}");
        assert!(rest.contains(&format!("status {status}")), "{rest}");
        assert!(rest.contains(" icanon") && rest.contains(" echo "), "lines and echo are back: {rest}");
    }
    server.stop();
}

/// The child processes of a process.
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|p| p.parse().unwrap()).collect()
}

#[test]
fn the_service_manager_hears_that_a_server_is_there_lives_and_leaves() {
    let dir = scratch("manager");
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let heard = || {
        let mut bytes = [0; 256];
        let length = manager.recv(&mut bytes).expect("it says something");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    for (number, command) in [disk(dir.path()), serve(dir.path())].iter_mut().enumerate() {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").env_remove("WATCHDOG_PID");
        let command = std::mem::replace(command, headtime());
        let server = Server::start(dir.path(), command);
        assert_eq!(heard(), "READY=1", "{number}");
        // Repeatedly, also while clients wait for the disk.
        let reading = (number == 1).then(|| reader(&server));
        (0..4).for_each(|_| assert_eq!(heard(), "WATCHDOG=1"));
        assert!(server.stop().0.success());
        let last = std::iter::repeat_with(heard).find(|notice| notice != "WATCHDOG=1");
        assert_eq!(last.as_deref(), Some("STOPPING=1"));
        if let Some(reading) = reading {
            reading.join().unwrap();
        }
    }
}

#[test]
fn metrics_count_what_clients_did() {
    let dir = scratch("metrics");
    let server = Server::start(dir.path(), serve(dir.path()));
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    for n in 0..10 {
        nbd.write(0, n * 4096, &[1; 4096]).unwrap();
    }
    nbd.flush().unwrap();
    nbd.read(0, 8192).unwrap();
    assert!(wait_until(|| server.said().contains("/metrics")));
    let said = server.said();
    let at = said.lines().find_map(|l| l.split_once("metrics: http://")?.1.strip_suffix("/metrics")).expect(&said);
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    for line in [
        r#"headtime_requests_total{export="data",kind="write"} 10"#,
        r#"headtime_requests_total{export="data",kind="read"} 1"#,
        r#"headtime_requests_total{export="data",kind="flush"} 1"#,
        r#"headtime_request_bytes_total{export="data"} 49152"#,
        r#"headtime_response_seconds_count{export="data"} 12"#,
        "headtime_requests_under_way 0",
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is not in {page}");
    }
    server.stop();
}

/// A closed terminal always polls as readable.
#[test]
fn top_ends_with_its_terminal_and_when_it_is_asked_to() {
    let dir = scratch("terminal");
    let server = Server::start(dir.path(), serve(dir.path()));
    for signal in [None, Some("TERM"), Some("HUP")] {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let theirs = || OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut top = headtime();
        top.current_dir(dir.path()).arg("top").env("TERM", "xterm");
        let mut child = top.stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        let mut terminal = File::from(terminal);
        let (mut seen, mut some) = (String::new(), [0; 4096]);
        while !seen.contains("quit") {
            let n = terminal.read(&mut some).unwrap();
            seen += &String::from_utf8_lossy(&some[..n]);
        }
        // On a signal the program restores the terminal; a closed terminal needs no restoring.
        let kept = signal.map(|signal| {
            finish(Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()));
            terminal
        });
        let mut status = None;
        wait_until(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        if status.is_none() {
            child.kill().unwrap();
        }
        assert_eq!(status.expect("it goes on without a terminal").code(), Some(130), "{signal:?}");
        drop(kept);
    }
    assert!(server.stop().0.success());
}
