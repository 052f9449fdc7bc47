//! `--disk NAME|FILE`: a built-in drive, or a profile file.

use headtime_disk::profile::{Loaded, Profile};
use headtime_sim::scenario;

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
    scenario::load_disk(name).map_err(Failure::input)
}
