//! Identification of a process that stays valid after its number is reused.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::sys::{self, Sys, SysError};

/// Raises the limit of open files to the hard limit, and returns it. Each client takes a
/// descriptor, and the usual soft limit is kept low only for old programs.
pub fn use_all_files() -> u64 {
    let now = getrlimit(Resource::Nofile);
    // A failure is reported when descriptors run out.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A process, distinguished from all earlier and later ones with its number.
///
/// Numbers are reused, so the start time is part of the identity, in ticks since boot; ticks start
/// anew at each boot, so the boot's ID is part of it, too. The number is that of the current PID
/// namespace. Where `/proc` is mounted with `hidepid`, processes of other users look as if they had
/// ended, except to a process with the privileges that this crate needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Start time in ticks since boot (field 22 of `/proc/PID/stat`).
    pub started: u64,
    /// Boot ID (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
}

impl Process {
    /// Identifies the calling process.
    ///
    /// # Errors
    /// [`SysError`] when `/proc` does not describe it.
    pub fn own(sys: &Sys) -> Result<Process, SysError> {
        let pid = std::process::id();
        let stat = sys.proc.join(pid.to_string()).join("stat");
        Process::of(sys, pid)?.ok_or_else(|| SysError::Unexpected {
            path: stat,
            expected: "a description of this process",
            found: String::new(),
        })
    }

    /// Identifies the process with this PID; `None` when there is none, or only a zombie.
    ///
    /// # Errors
    /// [`SysError`] when `/proc` cannot be read or understood.
    pub fn of(sys: &Sys, pid: u32) -> Result<Option<Process>, SysError> {
        let path = sys.proc.join(pid.to_string()).join("stat");
        let Some(stat) = sys::text_if_there(&path)? else { return Ok(None) };
        // The second field is the program's name in parentheses, and the name may hold spaces and
        // parentheses itself.
        let after_name = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next();
        let started = fields.nth(18).and_then(|ticks| ticks.parse().ok());
        match (state, started) {
            (Some("Z" | "X" | "x"), _) => Ok(None),
            (Some(_), Some(started)) => Ok(Some(Process { pid, started, boot: boot(sys)? })),
            _ => Err(SysError::Unexpected { path, expected: "the state and, in field 22, the start", found: stat }),
        }
    }

    /// Whether the process still runs.
    ///
    /// # Errors
    /// As [`Process::of`].
    pub fn is_running(&self, sys: &Sys) -> Result<bool, SysError> {
        Ok(Process::of(sys, self.pid)?.as_ref() == Some(self))
    }
}

/// Returns the boot ID.
///
/// # Errors
/// [`SysError::Read`].
pub fn boot(sys: &Sys) -> Result<String, SysError> {
    sys::text(&sys.proc.join("sys/kernel/random/boot_id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_process_that_runs_is_known_again() {
        let sys = Sys::default();
        let own = Process::own(&sys).unwrap();
        assert_eq!(own.pid, std::process::id());
        assert!(own.is_running(&sys).unwrap());
    }

    #[test]
    fn another_process_with_the_same_number_is_not_it() {
        let sys = Sys::default();
        let own = Process::own(&sys).unwrap();
        let earlier = Process { started: own.started - 1, ..own.clone() };
        assert!(!earlier.is_running(&sys).unwrap());
        let before_the_machine_started = Process { boot: "another".into(), ..own };
        assert!(!before_the_machine_started.is_running(&sys).unwrap());
    }

    #[test]
    fn a_child_that_ended_does_not_run_even_before_it_is_waited_for() {
        let sys = Sys::default();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::of(&sys, child.id()).unwrap();
        while Process::of(&sys, child.id()).unwrap().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if let Some(process) = process {
            assert!(!process.is_running(&sys).unwrap());
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let dir = Scratch::new("process");
        let sys = Sys::below(dir.path());
        dir.file("proc/sys/kernel/random/boot_id", "b\n");
        let fields = "S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        dir.file("proc/7/stat", &format!("7 (a) Z (b)) {fields}\n"));
        assert_eq!(Process::of(&sys, 7).unwrap(), Some(Process { pid: 7, started: 4711, boot: "b".into() }));
        dir.file("proc/8/stat", "8 (short) S 1\n");
        assert!(matches!(Process::of(&sys, 8), Err(SysError::Unexpected { .. })));
        assert_eq!(Process::of(&sys, 9).unwrap(), None);
    }
}
