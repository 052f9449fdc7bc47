//! Temporary directories for unit tests, removed at the end of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test's temporary directory.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("headtime-host-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a file below it, with parent directories.
    pub(crate) fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// Creates an executable shell script below it. A shell writes it: a child that another thread
    /// starts meanwhile would inherit a file that this process writes, and a file that is open for
    /// writing cannot be executed.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let done = Command::new("/bin/sh").args(["-c", write, "sh"]).arg(&path).arg(text).status();
        assert!(done.unwrap().success());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
