//! `--disk NAME|FILE`: a built-in drive, or a profile file.

use std::path::Path;

use headtime_disk::profile::{self, Loaded, Profile};

use crate::failure::Failure;
use crate::screen;

/// Loads the profile called `name`: a built-in drive, or a file, native or DiskSim's. Oddities of a
/// file are noted on stderr.
pub fn find(name: &str) -> Result<Profile, Failure> {
    let Loaded { profile, warnings } = load(name)?;
    // A file measured by another program may have dozens of oddities; `profiles show` lists all.
    const MAX_WARNINGS: usize = 3;
    for w in warnings.iter().take(MAX_WARNINGS) {
        screen::warn(&format!("{w}"));
    }
    if warnings.len() > MAX_WARNINGS {
        let more = warnings.len() - MAX_WARNINGS;
        screen::note(&format!("{more} more warnings; `headtime profiles show {name}` lists them"));
    }
    Ok(profile)
}

/// The same, but returns all oddities to the caller.
pub fn load(name: &str) -> Result<Loaded, Failure> {
    if profile::builtin_names().any(|known| known == name) {
        let profile = profile::builtin(name).map_err(Failure::input)?;
        return Ok(Loaded { profile, warnings: Vec::new() });
    }
    if !looks_like_file(name) {
        let known: Vec<&str> = profile::builtin_names().collect();
        return Err(Failure::Input(format!(
            "no built-in drive and no file is called '{name}'; built in: {}",
            known.join(", ")
        )));
    }
    profile::load(name, &|path| read(Path::new(path))).map_err(Failure::input)
}

/// Returns whether a name is meant as a path even if no file exists, so that the error says so.
fn looks_like_file(name: &str) -> bool {
    name.contains('/') || name.contains('.') || Path::new(name).exists()
}

/// Reads a profile's text, up to a limit above the size of any profile.
fn read(path: &Path) -> Result<String, String> {
    const MAX_PROFILE_BYTES: u64 = 64 << 20;
    headtime_sim::input::text(path, MAX_PROFILE_BYTES)
}
