//! Runs the program and checks its output.

// Each test file is a program of its own and uses a part of this.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run.
pub struct Ran {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn command(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_headtime"));
    c.args(args).stdin(Stdio::null());
    c
}

pub fn headtime(args: &[&str]) -> Ran {
    run(command(args))
}

pub fn run(mut c: Command) -> Ran {
    let o = c.output().expect("the program runs");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("output is text");
    Ran { status: o.status.code(), out: text(o.stdout), err: text(o.stderr) }
}

impl Ran {
    /// Checks for status 0; returns stdout.
    pub fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "stderr: {}", self.err);
        self.out
    }

    /// Checks for status 2, nothing on stdout, and one line on stderr, which it returns.
    pub fn refused(self) -> String {
        assert_eq!(self.status, Some(2), "stdout: {} stderr: {}", self.out, self.err);
        assert_eq!(self.out, "");
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(self.err.starts_with("headtime: "), "{}", self.err);
        self.err
    }

    /// Returns the one JSON document on stdout.
    pub fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }
}

/// A directory of a test's own, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("headtime-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}
