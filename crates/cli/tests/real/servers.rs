//! Common parts of the tests with real clients: servers that are started and ended, and programs
//! that are run.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Scratch, wait_until};

/// The drive of these tests: 41,499,648 bytes, read whole in two seconds.
pub const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/small.toml");
pub const SMALL_BYTES: u64 = (334 + 229) * 6 * 24 * 512;

pub fn headtime() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headtime"));
    command.stdin(Stdio::null());
    command
}

/// A test's own server; killed at the test's end if it still runs.
pub struct Server {
    pub child: Child,
    pub dir: PathBuf,
    pub said: PathBuf,
}

/// The path of the socket in a test's directory.
pub fn socket(dir: &Path) -> PathBuf {
    dir.join("nbd.sock")
}

/// `headtime disk` with the small drive.
pub fn disk(dir: &Path) -> Command {
    let mut command = headtime();
    command.args(["disk", SMALL, "--backing"]).arg(dir.join("disk.img"));
    command.arg("--nbd").arg(format!("unix:{}", socket(dir).display()));
    command
}

/// `headtime serve` with the small drive, two exports, a control socket and metrics.
pub fn serve(dir: &Path) -> Command {
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\ncontrol = \
         \"control.sock\"\nmetrics = \"127.0.0.1:0\"\n[[export]]\nname = \"data\"\nsize = \"16 MiB\"\n[[export]]\nname \
         = \"archive\"\nstart = \"16 MiB\"\nread-only = true\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    command
}

impl Server {
    /// Starts it, and waits until clients can connect.
    pub fn start(dir: &Path, mut command: Command) -> Server {
        let said = dir.join("said");
        let _ = fs::remove_file(&said);
        let err = fs::OpenOptions::new().create(true).append(true).open(&said).unwrap();
        let child = command.stdout(Stdio::null()).stderr(err).spawn().unwrap();
        let mut server = Server { child, dir: dir.into(), said };
        let ready = wait_until(|| server.said().contains("clients: ") || server.child.try_wait().unwrap().is_some());
        assert!(ready && server.said().contains("clients: "), "it did not start: {}", server.said());
        server
    }

    pub fn disk(dir: &Path) -> Server {
        Server::start(dir, disk(dir))
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    pub fn socket(&self) -> PathBuf {
        socket(&self.dir)
    }

    pub fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Its resident memory, bytes.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        run(Command::new("kill").arg(format!("-{name}")).arg(self.pid()));
    }

    /// Sends SIGTERM; returns the exit status and the time that it took.
    pub fn stop(mut self) -> (ExitStatus, Duration) {
        self.signal("TERM");
        self.ended()
    }

    pub fn ended(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        let mut status = None;
        wait_until(|| {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        (status.expect("it did not end"), begun.elapsed())
    }

    /// Sends SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program that must succeed, and returns its output.
pub fn run(command: &mut Command) -> String {
    let (status, out, err) = finish(command);
    assert!(status.success(), "{command:?}: {status}: {out}{err}");
    out
}

/// Runs a program, which must end within a minute.
pub fn finish(command: &mut Command) -> (ExitStatus, String, String) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let err = std::thread::spawn(move || text(&mut err));
    let out = std::thread::spawn(move || text(&mut out));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            let _ = child.wait();
            panic!("{command:?} did not end: {}{}", out.join().unwrap(), err.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status, out.join().unwrap(), err.join().unwrap())
}

pub fn text(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes that differ at all places, the same in each run.
pub fn noise(bytes: usize, mut seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        seed = next(seed);
        out.extend_from_slice(&seed.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// SplitMix64, the next of a sequence of numbers.
pub fn next(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn scratch(name: &str) -> Scratch {
    Scratch::new(&format!("real-{name}"))
}
