//! Files with a disk's data or with records of its use: only their owner may read them, and a link
//! that another user has planted is not followed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// File mode: read and write for the owner only.
const MODE: u32 = 0o600;

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(MODE).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Opens a file of this user, or creates it if `make`; existing content is kept.
///
/// # Errors
/// The system's error; or the path is a symbolic link, or the file is not a plain file, belongs to
/// another user, or has another name (hard link).
pub fn open(path: &Path, make: bool) -> io::Result<File> {
    let file = options().create(make).truncate(false).open(path).map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::LOOP) => wrong("expected a file, found a symbolic link".into()),
        _ => e,
    })?;
    let found = file.metadata()?;
    let us = rustix::process::geteuid().as_raw();
    if !found.is_file() {
        return Err(wrong("expected a plain file, found something else".into()));
    }
    if found.uid() != us {
        return Err(wrong(format!("expected a file of user {us}, found one of user {}", found.uid())));
    }
    // Another user may have created the other name to make this program overwrite a different file.
    if found.nlink() != 1 {
        return Err(wrong(format!("expected a file with one name, found one with {}", found.nlink())));
    }
    Ok(file)
}

/// Creates a file in place of one left by a program that crashed.
///
/// # Errors
/// The system's error.
pub fn make_anew(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    options().create_new(true).open(path)
}

/// Syncs the directory entry of a file or directory: syncing a file does not sync its entry.
///
/// # Errors
/// The system's error.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Renames a file and replaces the target. When this returns, the name survives a power failure.
///
/// # Errors
/// The system's error.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync_name(to)
}

/// Writes a file under a temporary name in the same directory (`.NAME.new`), syncs it and renames
/// it. At any time either the old or the complete new file exists.
///
/// # Errors
/// The error of the system or of `write`; the temporary file is removed.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let new = path.with_file_name(name);
    let written = (|| -> io::Result<File> {
        let mut file = make_anew(&new)?;
        write(&mut file)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        Ok(file)
    })();
    if written.is_err() {
        // A partial file must not use up space, which may be what is missing.
        let _ = std::fs::remove_file(&new);
    }
    let file = written?;
    sync_name(path)?;
    Ok(file)
}

/// Opens or creates a file that a user names as a disk's data. A symbolic link is followed if this
/// user or root created it and its target exists.
///
/// # Errors
/// The system's error; or the file, or a link to it, belongs to neither this user nor root, or the
/// file has another name (hard link).
pub fn open_named(path: &Path, make: bool) -> io::Result<File> {
    let opened = options().create(make).truncate(false).open(path);
    let file = match opened {
        Err(e) if Errno::from_io_error(&e) == Some(Errno::LOOP) => {
            let owner = std::fs::symlink_metadata(path)?.uid();
            if owner != 0 && owner != rustix::process::geteuid().as_raw() {
                return Err(wrong(format!("expected a file, found a symbolic link of user {owner}")));
            }
            OpenOptions::new().read(true).write(true).open(path)?
        }
        opened => opened?,
    };
    // The owner of the file could read and change what is written to it.
    let found = file.metadata()?;
    let (owner, us) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != 0 && owner != us {
        return Err(wrong(format!("expected a file of user {us} or root, found one of user {owner}")));
    }
    if found.is_file() && found.nlink() > 1 {
        return Err(wrong(format!("expected a file with one name, found one with {}", found.nlink())));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_planted_name_leads_nowhere_and_no_other_user_reads_what_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let [victim, link, hard, new] = ["victim", "link", "hard", "new"].map(|n| dir.path().join(n));
        std::fs::write(&victim, "dear").unwrap();
        symlink(&victim, &link).unwrap();
        std::fs::hard_link(&victim, &hard).unwrap();
        for make in [false, true] {
            let e = open(&link, make).unwrap_err().to_string();
            assert_eq!(e, "expected a file, found a symbolic link");
            let e = open(&hard, make).unwrap_err().to_string();
            assert_eq!(e, "expected a file with one name, found one with 2");
        }
        drop(open(&new, true).unwrap());
        assert_eq!(std::fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o600);
        drop(make_anew(&link).unwrap());
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read(&victim).unwrap(), b"dear");
        assert!(open(dir.path(), false).is_err());
        if rustix::process::geteuid().is_root() {
            rustix::fs::chown(&new, Some(rustix::process::Uid::from_raw(65_534)), None).unwrap();
            let e = open(&new, true).unwrap_err().to_string();
            assert_eq!(e, "expected a file of user 0, found one of user 65534");
        }
    }

    #[test]
    fn a_users_own_link_to_a_disks_data_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let [data, link, dangling] = ["data", "link", "dangling"].map(|n| dir.path().join(n));
        std::fs::write(&data, "x").unwrap();
        symlink(&data, &link).unwrap();
        symlink(dir.path().join("none"), &dangling).unwrap();
        assert_eq!(open_named(&link, true).unwrap().metadata().unwrap().len(), 1);
        assert_eq!(open_named(&dangling, true).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is made through a link");
        let second = dir.path().join("second");
        std::fs::hard_link(&data, &second).unwrap();
        for name in [&data, &second] {
            assert_eq!(
                open_named(name, true).unwrap_err().to_string(),
                "expected a file with one name, found one with 2"
            );
        }
        std::fs::remove_file(&second).unwrap();
        // Only root can change the owner of a file.
        let others = Some(rustix::process::Uid::from_raw(65_534));
        if rustix::process::geteuid().is_root() {
            rustix::fs::chown(&data, others, None).unwrap();
            let e = open_named(&data, true).unwrap_err().to_string();
            assert_eq!(e, "expected a file of user 0 or root, found one of user 65534");
        }
    }
}
