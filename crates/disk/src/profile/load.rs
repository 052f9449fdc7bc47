//! Loading of a profile in either file format.

use super::fault::{At, ProfileError, Reason};
use super::loaded::{Loaded, Resolver};
use super::{disksim, toml};

/// Loads a profile from the file `path` in either format: a path that ends in `.parv`, `.diskspecs`
/// or `.model`, or a text that looks like DiskSim's, is read as DiskSim's, anything else as TOML.
///
/// `resolver` is called for `path` first, then for each referenced file, relative to the
/// referencing file.
///
/// # Errors
/// File, line, what was expected and what was found.
pub fn load(path: &str, resolver: &Resolver) -> Result<Loaded, ProfileError> {
    let text = resolver(path).map_err(|why| ProfileError { at: At::file(path), reason: Reason::Unreadable(why) })?;
    if looks_like_disksim(path, &text) {
        return disksim::load(path, resolver);
    }
    toml::read(path, &text)
}

fn looks_like_disksim(path: &str, text: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or("");
    match extension {
        "parv" | "diskspecs" | "model" => true,
        "toml" => false,
        _ => text.lines().any(|line| {
            let line = line.trim_start();
            ["disksim_", "dm_disk ", "instantiate", "topology ", "source "].iter().any(|word| line.starts_with(word))
        }),
    }
}
