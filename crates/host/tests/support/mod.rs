//! Shared by the tests on real devices: resources that clean up after themselves, and reporting of
//! skipped tests.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Reports a test that cannot run here. Writes to standard error directly, because the test harness
/// captures the output of passing tests, and appends a line to the file named by
/// `HEADTIME_SKIPPED`, if set, so that all skipped tests can be listed.
pub fn skipped(name: &str, why: &str) {
    let line = format!("skipped: {name}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("HEADTIME_SKIPPED") {
        let list = OpenOptions::new().create(true).append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}

/// Returns from a test, reporting it as skipped, when something it needs is missing.
#[macro_export]
macro_rules! needs {
    ($name:literal, $($program:literal),*) => {
        if let Some(why) = $crate::support::missing(&[$($program),*]) {
            return $crate::support::skipped($name, &why);
        }
    };
}

/// Serializes tests that claim devices: a program started by another test holds all open files of
/// this process until it calls exec, so a device that was just closed may still be in use.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what is missing for a test with loop devices that runs these programs.
pub fn missing(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".into());
    }
    if let Err(e) = OpenOptions::new().read(true).write(true).open("/dev/loop-control") {
        return Some(format!("no loop devices: {e}"));
    }
    missing_program(programs)
}

/// Returns the first of these programs that is not installed.
pub fn missing_program(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = || std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let gone = programs.iter().find(|program| !places().any(|place| place.join(program).is_file()));
    gone.map(|program| format!("{program} is not installed"))
}

/// A test's temporary directory.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("headtime-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a program to completion and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// A loop device on a sparse file.
pub struct Loop {
    pub device: PathBuf,
    pub scratch: Scratch,
}

impl Loop {
    pub fn new(name: &str, megabytes: u64) -> Loop {
        Loop::with(name, megabytes, &[])
    }

    pub fn with(name: &str, megabytes: u64, options: &[&str]) -> Loop {
        let scratch = Scratch::new(name);
        let file = scratch.path().join("disk.img");
        File::create(&file).unwrap().set_len(megabytes << 20).unwrap();
        let mut arguments = options.to_vec();
        arguments.extend(["--show", "-f", file.to_str().unwrap()]);
        let device = PathBuf::from(run("losetup", &arguments));
        Loop { device, scratch }
    }

    pub fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    pub fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }

    pub fn queue(&self, name: &str) -> PathBuf {
        Path::new("/sys/class/block").join(self.name()).join("queue").join(name)
    }

    pub fn backing(&self) -> PathBuf {
        self.scratch.path().join("disk.img")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        // It disappears on the last close.
        let behind = format!("/sys/class/block/{}/loop/backing_file", self.name());
        wait_until(|| !Path::new(&behind).exists());
    }
}

/// A mounted file system.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(device: &Path, at: PathBuf) -> Mount {
        run("mount", &[device.to_str().unwrap(), at.to_str().unwrap()]);
        Mount(at)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A child process.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Polls for up to 20 s; returns whether the condition became true.
pub fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    done()
}
