//! Loading of a profile in either file format.

#[cfg(feature = "disksim")]
use super::disksim;
use super::fault::{At, ProfileError, Reason};
use super::loaded::{Loaded, Resolver};
#[cfg(feature = "toml")]
use super::toml;

/// Loads a profile from the file `path` in either format: a path that ends in `.parv`, `.diskspecs`
/// or `.model`, or a text that looks like DiskSim's, is read as DiskSim's, anything else as TOML.
///
/// Without the feature `disksim` every file is read as TOML, without `toml` as DiskSim's.
///
/// `resolver` is called for `path` first, then for each referenced file, relative to the
/// referencing file.
///
/// # Errors
/// File, line, what was expected and what was found.
pub fn load(path: &str, resolver: &Resolver) -> Result<Loaded, ProfileError> {
    let text = resolver(path).map_err(|why| ProfileError { at: At::file(path), reason: Reason::Unreadable(why) })?;
    #[cfg(feature = "disksim")]
    if looks_like_disksim(path, &text) || cfg!(not(feature = "toml")) {
        return disksim::load(path, resolver);
    }
    #[cfg(feature = "toml")]
    return toml::read(path, &text);
    #[cfg(not(feature = "toml"))]
    unreachable!("read above: {text}")
}

#[cfg(feature = "disksim")]
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
