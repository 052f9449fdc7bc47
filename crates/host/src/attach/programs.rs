//! Running helper programs: finding them by name, with a timeout, and with their output on failure.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::systemd;

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(10);

/// A helper program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Makes a block device of a file.
    Losetup,
    /// Makes a file of an NBD export.
    NbdFuse,
    /// Makes a block device of an NBD export.
    NbdClient,
    /// Unmounts nbdfuse's file.
    Fusermount,
    /// Starts a program in a session of its own.
    Setsid,
}

impl Program {
    /// Returns the name of the executable.
    pub fn name(self) -> &'static str {
        match self {
            Program::Losetup => "losetup",
            Program::NbdFuse => "nbdfuse",
            Program::NbdClient => "nbd-client",
            Program::Fusermount => "fusermount3",
            Program::Setsid => "setsid",
        }
    }

    /// Returns the Debian package that contains it.
    pub fn package(self) -> &'static str {
        match self {
            Program::Losetup => "mount",
            Program::NbdFuse => "libnbd-bin",
            Program::NbdClient => "nbd-client",
            Program::Fusermount => "fuse3",
            Program::Setsid => "util-linux",
        }
    }
}

/// Why a helper program failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It is not installed.
    #[error("{} is not installed (on Debian: apt install {})", .program.name(), .program.package())]
    Missing {
        /// The program.
        program: Program,
    },
    /// It is installed but cannot be started.
    #[error("cannot start {}: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{} failed with {status}: {said}", .program.name())]
    Failed {
        /// The program.
        program: Program,
        /// Its exit status.
        status: ExitStatus,
        /// Its standard error.
        said: String,
    },
    /// It exceeded the timeout and was killed.
    #[error("{} did not end within {within:?}, and was killed: {said}", .program.name())]
    Slow {
        /// The program.
        program: Program,
        /// The timeout.
        within: Duration,
        /// Its standard error.
        said: String,
    },
}

/// The directories that are searched for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    places: Vec<PathBuf>,
}

impl Default for Programs {
    /// Searches `PATH` and the directories for administrators, which other users' `PATH` omits.
    fn default() -> Programs {
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        Programs::within(std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]))
    }
}

impl Programs {
    /// Searches these directories, in this order.
    pub fn within(places: impl IntoIterator<Item = PathBuf>) -> Programs {
        // A relative directory would change its meaning with the working directory.
        Programs { places: places.into_iter().filter(|place| place.is_absolute()).collect() }
    }

    /// Returns the path of a program.
    ///
    /// # Errors
    /// [`ProgramError::Missing`].
    pub fn find(&self, program: Program) -> Result<PathBuf, ProgramError> {
        let runnable = |path: &PathBuf| {
            let meta = std::fs::metadata(path);
            meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        let found = self.places.iter().map(|place| place.join(program.name())).find(runnable);
        found.ok_or(ProgramError::Missing { program })
    }

    /// Builds a command with English output, empty standard input, and without the service
    /// manager's variables.
    ///
    /// # Errors
    /// [`ProgramError::Missing`].
    pub fn command(&self, program: Program) -> Result<Command, ProgramError> {
        let mut command = Command::new(self.find(program)?);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        for variable in systemd::VARIABLES {
            command.env_remove(variable);
        }
        Ok(command)
    }

    /// Runs a program to completion and returns its output.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn run(&self, program: Program, arguments: &[OsString], within: Duration) -> Result<String, ProgramError> {
        let mut command = self.command(program)?;
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut command)?;
        let (mut printed, mut said) = (Collected::new(child.stdout.take()), Collected::new(child.stderr.take()));
        let status = wait_until(within, || {
            printed.collect();
            said.collect();
            child.try_wait().ok().flatten()
        });
        if status.is_none() {
            end(&mut child);
        }
        printed.collect();
        said.collect();
        match status {
            Some(status) if status.success() => Ok(printed.text()),
            Some(status) => Err(ProgramError::Failed { program, status, said: said.text() }),
            None => Err(ProgramError::Slow { program, within, said: said.text() }),
        }
    }
}

/// Starts a program.
///
/// # Errors
/// [`ProgramError::Start`].
pub fn start(command: &mut Command) -> Result<Child, ProgramError> {
    command.spawn().map_err(|source| ProgramError::Start { path: command.get_program().into(), source })
}

/// Kills a child, and waits for it unless it hangs in the kernel.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    wait_until(Duration::from_secs(2), || child.try_wait().ok().flatten());
}

/// Polls `look` for up to `within`; returns its result, or `None` on timeout.
pub fn wait_until<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() >= within {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Output of a pipe, read without blocking: a daemon that the program leaves behind keeps the other
/// end open.
struct Collected<P> {
    pipe: Option<P>,
    bytes: Vec<u8>,
}

impl<P: Read + AsFd> Collected<P> {
    fn new(pipe: Option<P>) -> Collected<P> {
        let pipe = pipe.filter(|pipe| {
            let set = fcntl_getfl(pipe).and_then(|flags| fcntl_setfl(pipe, flags | OFlags::NONBLOCK));
            set.is_ok()
        });
        Collected { pipe, bytes: Vec::new() }
    }

    fn collect(&mut self) {
        /// More than any of these programs prints.
        const MAX_OUTPUT_BYTES: usize = 64 << 10;
        let mut piece = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut piece) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let kept = read.min(MAX_OUTPUT_BYTES - self.bytes.len());
                    self.bytes.extend_from_slice(&piece[..kept]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// Creates a directory with this shell script as `losetup`.
    fn with_script(name: &str, script: &str) -> (Scratch, Programs) {
        let dir = Scratch::new(&format!("programs-{name}"));
        dir.script("losetup", script);
        let programs = Programs::within([dir.path().to_path_buf()]);
        (dir, programs)
    }

    fn run(programs: &Programs, within: Duration) -> Result<String, ProgramError> {
        programs.run(Program::Losetup, &["-f".into()], within)
    }

    const AMPLE_TIME: Duration = Duration::from_secs(20);

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let (_dir, programs) = with_script("missing", "");
        let e = programs.find(Program::NbdFuse).unwrap_err().to_string();
        assert_eq!(e, "nbdfuse is not installed (on Debian: apt install libnbd-bin)");
        assert!(programs.find(Program::Losetup).is_ok());
    }

    #[test]
    fn a_program_prints_or_fails_with_its_words() {
        let (_dir, programs) = with_script("prints", "echo /dev/loop7 $*");
        assert_eq!(run(&programs, AMPLE_TIME).unwrap(), "/dev/loop7 -f");
        let (_dir, programs) = with_script("fails", "echo no free device >&2; exit 3");
        let e = run(&programs, AMPLE_TIME).unwrap_err().to_string();
        assert_eq!(e, "losetup failed with exit status: 3: no free device");
    }

    #[test]
    fn a_program_that_says_much_is_not_stopped_by_it() {
        let (_dir, programs) = with_script("much", "head -c 1000000 /dev/zero; echo much >&2");
        assert_eq!(run(&programs, AMPLE_TIME).unwrap().len(), 64 << 10);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let (_dir, programs) = with_script("hangs", "echo waiting >&2; exec sleep 100");
        let e = run(&programs, Duration::from_millis(300)).unwrap_err();
        assert!(matches!(&e, ProgramError::Slow { said, .. } if said == "waiting"), "{e}");
    }

    #[test]
    fn a_daemon_left_behind_is_not_waited_for() {
        let (_dir, programs) = with_script("daemon", "sleep 3 & echo done");
        let begun = Instant::now();
        assert_eq!(run(&programs, AMPLE_TIME).unwrap(), "done");
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}
