//! `--disk NAME|FILE`: a built-in drive, or a profile file.

use std::path::Path;

use headtime_disk::profile::{self, Loaded, Profile};

use crate::failure::Failure;
use crate::screen;

/// The profile that `name` stands for: a built-in drive's, or that of a file, ours or DiskSim's.
/// What is odd about a file is noted on stderr.
pub fn find(name: &str) -> Result<Profile, Failure> {
    let Loaded { profile, warnings } = load(name)?;
    // A measured file of another program may hold dozens of oddities; `profiles show` tells all of
    // them.
    const SHOWN: usize = 3;
    for w in warnings.iter().take(SHOWN) {
        screen::warn(&format!("{w}"));
    }
    if warnings.len() > SHOWN {
        let more = warnings.len() - SHOWN;
        screen::note(&format!("{more} more warnings; `headtime profiles show {name}` lists them"));
    }
    Ok(profile)
}

/// The same, with everything that was odd left to the caller.
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

/// A name with a path's marks is meant as a file even where none is there, so that the error says
/// so.
fn looks_like_file(name: &str) -> bool {
    name.contains('/') || name.contains('.') || Path::new(name).exists()
}

/// A profile's text. Files that no profile is as large as are not read to their end.
fn read(path: &Path) -> Result<String, String> {
    const MOST: u64 = 64 << 20;
    headtime_sim::input::text(path, MOST)
}
