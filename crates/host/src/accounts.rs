//! Users and groups from `/etc/passwd` and `/etc/group`.
//!
//! Only these two files are read: a user known only to LDAP, SSSD or systemd must be given by
//! number. A static program without the C library's name services cannot look it up.

use std::path::{Path, PathBuf};

use crate::sys::{self, Sys, SysError};

/// The user and group to change to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
}

/// Why a user or group could not be looked up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// There is no entry of that name.
    #[error("expected {what} of this machine, found no {name:?} in {} (others can be given by number)", path.display())]
    Unknown {
        /// A user or a group.
        what: &'static str,
        /// The requested name.
        name: String,
        /// The file that was searched.
        path: PathBuf,
    },
    /// A user was given by number and has no entry, so its group is unknown.
    #[error("user {uid} is not in {}: expected a group, too", path.display())]
    NoGroup {
        /// The user.
        uid: u32,
        /// The file that was searched.
        path: PathBuf,
    },
    /// An entry is malformed.
    #[error("{}: expected an entry with numbers, found {found:?}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The entry.
        found: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Sys(#[from] SysError),
}

impl Account {
    /// Looks up a user by name or number, and a group likewise; without a group, the user's own.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn lookup(sys: &Sys, user: &str, group: Option<&str>) -> Result<Account, AccountError> {
        let gid = group.map(|group| group_number(sys, group)).transpose()?;
        let path = sys.etc.join("passwd");
        let text = sys::text_if_there(&path)?.unwrap_or_default();
        match (entry(&path, &text, user, 2)?, number(user)) {
            (Some((uid, rest)), _) => match gid {
                Some(gid) => Ok(Account { uid, gid }),
                None => {
                    let found = || AccountError::Entry { path: path.clone(), found: rest.to_string() };
                    let gid = rest.split(':').next().and_then(number).ok_or_else(found)?;
                    Ok(Account { uid, gid })
                }
            },
            (None, Some(uid)) => gid.map(|gid| Account { uid, gid }).ok_or(AccountError::NoGroup { uid, path }),
            (None, None) => Err(AccountError::Unknown { what: "a user", name: user.to_string(), path }),
        }
    }
}

fn group_number(sys: &Sys, group: &str) -> Result<u32, AccountError> {
    let path = sys.etc.join("group");
    let text = sys::text_if_there(&path)?.unwrap_or_default();
    match (entry(&path, &text, group, 2)?, number(group)) {
        (Some((gid, _)), _) | (None, Some(gid)) => Ok(gid),
        (None, None) => Err(AccountError::Unknown { what: "a group", name: group.to_string(), path }),
    }
}

/// Parses a user or group number. The highest one means "no change" to the system calls and is
/// rejected.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number != u32::MAX)
}

/// Returns the number in field `at` of the entry with this name or number, and the rest of the
/// line.
fn entry<'a>(path: &Path, text: &'a str, wanted: &str, at: usize) -> Result<Option<(u32, &'a str)>, AccountError> {
    for line in text.lines() {
        let mut fields = line.splitn(at + 2, ':');
        let name = fields.next().unwrap_or_default();
        let found = fields.nth(at - 1);
        let by_number = number(wanted).is_some() && found == Some(wanted);
        if name != wanted && !by_number {
            continue;
        }
        let bad = || AccountError::Entry { path: path.to_path_buf(), found: line.to_string() };
        return Ok(Some((found.and_then(number).ok_or_else(bad)?, fields.next().unwrap_or_default())));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn tree(name: &str) -> (Scratch, Sys) {
        let dir = Scratch::new(&format!("accounts-{name}"));
        dir.file(
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nheadtime:x:990:991::/:/bin/false\nbad:x:y:1::/:/bin/false\n",
        );
        dir.file("etc/group", "root:x:0:\ndisk:x:6:headtime\nheadtime:x:991:\n");
        let sys = Sys::below(dir.path());
        (dir, sys)
    }

    #[test]
    fn a_user_has_a_number_and_a_group() {
        let (_dir, sys) = tree("known");
        let own = Account { uid: 990, gid: 991 };
        assert_eq!(Account::lookup(&sys, "headtime", None).unwrap(), own);
        assert_eq!(Account::lookup(&sys, "990", None).unwrap(), own);
        assert_eq!(Account::lookup(&sys, "headtime", Some("disk")).unwrap(), Account { uid: 990, gid: 6 });
        assert_eq!(Account::lookup(&sys, "1234", Some("55")).unwrap(), Account { uid: 1234, gid: 55 });
    }

    #[test]
    fn who_is_not_there_is_named_with_the_file() {
        let (dir, sys) = tree("unknown");
        let e = Account::lookup(&sys, "nobody", None).unwrap_err().to_string();
        assert!(e.contains("no \"nobody\" in") && e.contains("etc/passwd"), "{e}");
        assert!(matches!(Account::lookup(&sys, "headtime", Some("sound")), Err(AccountError::Unknown { .. })));
        assert!(matches!(Account::lookup(&sys, "1234", None), Err(AccountError::NoGroup { uid: 1234, .. })));
        assert!(matches!(Account::lookup(&sys, "bad", None), Err(AccountError::Entry { .. })));
        assert!(matches!(Account::lookup(&sys, "", None), Err(AccountError::Unknown { .. })));
        assert!(matches!(Account::lookup(&sys, "4294967295", Some("1")), Err(AccountError::Unknown { .. })));
        std::fs::remove_file(dir.path().join("etc/passwd")).unwrap();
        assert!(matches!(Account::lookup(&sys, "root", None), Err(AccountError::Unknown { .. })));
    }
}
