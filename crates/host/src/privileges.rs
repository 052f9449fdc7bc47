//! Dropping privileges once everything that needs root is open.
//!
//! The underlying system calls act on the calling thread, unlike those of the C library, which act
//! on the process. So [`drop_to`] must be called while the process has one thread; it checks this.
//! What was opened before stays usable, including the files with which a
//! [`Tuning`](crate::tuning::Tuning) restores its settings.

use std::path::PathBuf;

use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

pub use crate::accounts::{Account, AccountError};
use crate::sys::{self, Sys, SysError};

/// Why privileges were not dropped. The caller should exit: some may be gone and others not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There are other threads, which would keep their privileges.
    #[error("expected one thread when privileges are dropped, found {found} in {}", path.display())]
    Threads {
        /// Where the threads were counted.
        path: PathBuf,
        /// The number of threads.
        found: usize,
    },
    /// Only root can change to another user.
    #[error("cannot become user {wanted}: expected to be root or that user, found user {own}")]
    NotRoot {
        /// The requested user.
        wanted: u32,
        /// The current user.
        own: u32,
    },
    /// The requested user is root.
    #[error("expected an ordinary user to become, found root")]
    StaysRoot,
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Refused {
        /// The operation.
        what: &'static str,
        /// The I/O error.
        source: std::io::Error,
    },
    /// Every call succeeded, but a privilege is still there.
    #[error("{}: expected {expected} after privileges were dropped, found {found:?}", path.display())]
    Kept {
        /// Where it was found.
        path: PathBuf,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A file in `/proc` is unusable.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// Changes to `account` permanently: its user, its group and no other group, no capabilities, and
/// none that a program started later could regain. Then verifies that.
///
/// Afterwards this process's files below `/proc/self` belong to root, as for every process that has
/// changed its user.
///
/// # Errors
/// [`PrivilegeError`].
pub fn drop_to(sys: &Sys, account: Account) -> Result<(), PrivilegeError> {
    let tasks = sys.proc.join("self/task");
    let found = sys::names(&tasks)?.len();
    if found != 1 {
        return Err(PrivilegeError::Threads { path: tasks, found });
    }
    if account.uid == 0 {
        return Err(PrivilegeError::StaysRoot);
    }
    let own = rustix::process::geteuid().as_raw();
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    if own == 0 {
        refused("give up what root may keep", thread::set_keep_capabilities(false))?;
        refused("set the groups", thread::set_thread_groups(&[gid]))?;
        refused("set the group", thread::set_thread_res_gid(gid, gid, gid))?;
        refused("set the user", thread::set_thread_res_uid(uid, uid, uid))?;
    } else if own != account.uid {
        return Err(PrivilegeError::NotRoot { wanted: account.uid, own });
    }
    match thread::clear_ambient_capability_set() {
        // Kernels before 4.3 have no ambient set.
        Ok(()) | Err(Errno::INVAL) => {}
        refusal => refused("clear the ambient capabilities", refusal)?,
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    refused("give up the capabilities", thread::set_capabilities(None, sets))?;
    refused("forbid new privileges", thread::set_no_new_privs(true))?;
    verify(sys, account, own == 0)
}

fn refused(what: &'static str, result: rustix::io::Result<()>) -> Result<(), PrivilegeError> {
    result.map_err(|e| PrivilegeError::Refused { what, source: e.into() })
}

/// Verifies that the privileges are gone, by `/proc/self/status` and by trying to regain them.
/// Groups are checked only if this process could set them.
fn verify(sys: &Sys, account: Account, groups: bool) -> Result<(), PrivilegeError> {
    let path = sys.proc.join("self/status");
    let status = sys::text(&path)?;
    let expect = |field: &str, expected: String, optional: bool| {
        let found = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let Some(found) = found else {
            let found = format!("no {field}");
            return if optional { Ok(()) } else { Err(PrivilegeError::Kept { path: path.clone(), expected, found }) };
        };
        let words: Vec<&str> = found.split_ascii_whitespace().collect();
        if words.join(" ") == expected {
            return Ok(());
        }
        let (expected, found) = (format!("{field} {expected}"), words.join(" "));
        Err(PrivilegeError::Kept { path: path.clone(), expected, found })
    };
    let four = |number: u32| [number; 4].map(|number| number.to_string()).join(" ");
    expect("Uid", four(account.uid), false)?;
    if groups {
        expect("Gid", four(account.gid), false)?;
        expect("Groups", account.gid.to_string(), false)?;
    }
    for set in ["CapInh", "CapPrm", "CapEff"] {
        expect(set, "0".repeat(16), false)?;
    }
    expect("CapAmb", "0".repeat(16), true)?;
    expect("NoNewPrivs", "1".into(), true)?;
    let root = Uid::ROOT;
    match thread::set_thread_res_uid(root, root, root) {
        Err(Errno::PERM) => Ok(()),
        Err(e) => Err(PrivilegeError::Refused { what: "find out whether root could be regained", source: e.into() }),
        Ok(()) => {
            let (expected, found) = ("no way back to root".into(), "root regained".into());
            Err(PrivilegeError::Kept { path, expected, found })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_threads_are_refused() {
        // The test harness has threads of its own; this one makes sure of a second.
        let (send, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let refusal = drop_to(&Sys::default(), Account { uid: 65534, gid: 65534 });
        drop(send);
        let _ = other.join();
        match refusal.unwrap_err() {
            PrivilegeError::Threads { found, .. } => assert!(found > 1),
            e => panic!("{e}"),
        }
    }
}
