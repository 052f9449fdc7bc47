//! Running other programs: found or missed by name, never for longer than one would wait, and what
//! they said when they fail.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::systemd;

/// How often to look whether something has come true.
const PAUSE: Duration = Duration::from_millis(10);

/// A program that is run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A file as a block device.
    Losetup,
    /// An NBD export as a file.
    NbdFuse,
    /// An NBD export as a block device.
    NbdClient,
    /// What unmounts a file of nbdfuse's.
    Fusermount,
    /// What starts a program in a session of its own.
    Setsid,
}

impl Program {
    /// The file to look for.
    pub fn name(self) -> &'static str {
        match self {
            Program::Losetup => "losetup",
            Program::NbdFuse => "nbdfuse",
            Program::NbdClient => "nbd-client",
            Program::Fusermount => "fusermount3",
            Program::Setsid => "setsid",
        }
    }

    /// The Debian package that holds it.
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

/// Why a program did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not there.
    #[error("{} is not installed (on Debian: apt install {})", .program.name(), .program.package())]
    Missing {
        /// The program.
        program: Program,
    },
    /// It is there and cannot be started.
    #[error("cannot start {}: {source}", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It failed.
    #[error("{} failed with {status}: {said}", .program.name())]
    Failed {
        /// The program.
        program: Program,
        /// How it ended.
        status: ExitStatus,
        /// What it printed on its standard error.
        said: String,
    },
    /// It did not end, and was killed.
    #[error("{} did not end within {within:?}, and was killed: {said}", .program.name())]
    Slow {
        /// The program.
        program: Program,
        /// How long it was given.
        within: Duration,
        /// What it printed on its standard error.
        said: String,
    },
}

/// Where programs are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    places: Vec<PathBuf>,
}

impl Default for Programs {
    /// Where `PATH` says, and where the administrator's programs are, which the `PATH` of others
    /// leaves out.
    fn default() -> Programs {
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        Programs::within(std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]))
    }
}

impl Programs {
    /// In these directories, in this order.
    pub fn within(places: impl IntoIterator<Item = PathBuf>) -> Programs {
        // A relative directory would mean another one to a program that runs elsewhere.
        Programs { places: places.into_iter().filter(|place| place.is_absolute()).collect() }
    }

    /// Where a program is.
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

    /// A command that says what it says in English, reads nothing, and does not speak to the
    /// service manager for us.
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

    /// Runs a program to its end, and gives what it printed.
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

/// Looks again and again, for as long as `within`; what was found, if anything was.
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

/// What comes out of a pipe, taken without waiting: a daemon that a program leaves behind keeps the
/// other end open.
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
        /// More than any of these programs has to say.
        const MOST: usize = 64 << 10;
        let mut piece = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut piece) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let kept = read.min(MOST - self.bytes.len());
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

    /// A directory with a `losetup` that is this shell script.
    fn with_script(name: &str, script: &str) -> (Scratch, Programs) {
        let dir = Scratch::new(&format!("programs-{name}"));
        let path = dir.file("losetup", &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let programs = Programs::within([dir.path().to_path_buf()]);
        (dir, programs)
    }

    fn run(programs: &Programs, within: Duration) -> Result<String, ProgramError> {
        programs.run(Program::Losetup, &["-f".into()], within)
    }

    const LONG: Duration = Duration::from_secs(20);

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
        assert_eq!(run(&programs, LONG).unwrap(), "/dev/loop7 -f");
        let (_dir, programs) = with_script("fails", "echo no free device >&2; exit 3");
        let e = run(&programs, LONG).unwrap_err().to_string();
        assert_eq!(e, "losetup failed with exit status: 3: no free device");
    }

    #[test]
    fn a_program_that_says_much_is_not_stopped_by_it() {
        let (_dir, programs) = with_script("much", "head -c 1000000 /dev/zero; echo much >&2");
        assert_eq!(run(&programs, LONG).unwrap().len(), 64 << 10);
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
        assert_eq!(run(&programs, LONG).unwrap(), "done");
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}
