//! A disk by name: a built-in drive, or a profile file.

use std::path::Path;

use headtime_disk::profile::{self, Loaded, ProfileError};

use crate::input;

/// The disk of a scenario that names none.
pub const DEFAULT_DISK: &str = "atlas10k";
/// Above the size of any profile.
const MOST_PROFILE_BYTES: u64 = 64 << 20;

/// Why there is no disk of a name.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Neither a built-in drive nor a file.
    #[error("no built-in drive and no file is called '{name}'; built in: {}", built_in())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The file's text is not a profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Loads the profile called `name`: a built-in drive, or a file, native or DiskSim's. Oddities of a
/// file are returned as warnings.
///
/// # Errors
/// As [`DiskError`] says; those of a file have its line.
pub fn load(name: &str) -> Result<Loaded, DiskError> {
    match profile::builtin(name) {
        Ok(profile) => Ok(Loaded { profile, warnings: Vec::new() }),
        Err(_) if !looks_like_file(name) => Err(DiskError::Unknown { name: name.to_owned() }),
        Err(_) => Ok(profile::load(name, &|path| input::text(Path::new(path), MOST_PROFILE_BYTES))?),
    }
}

/// Returns whether a name is meant as a path even if no file exists, so that the error says so.
fn looks_like_file(name: &str) -> bool {
    name.contains('/') || name.contains('.') || Path::new(name).exists()
}

fn built_in() -> String {
    profile::builtin_names().collect::<Vec<_>>().join(", ")
}
