//! The built-in profiles, from `profiles/*.toml`.

use super::{Profile, toml};

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),*]
    };
}

/// Name and text of each, oldest first.
const PROFILES: &[(&str, &str)] = profiles![
    "cheetah9lp",
    "atlas3",
    "cheetah18lp",
    "atlas10k",
    "ultrastar18lzx",
    "cheetah36es",
    "ultrastar36z15",
    "barracuda36es2",
    "cheetah73lp",
    "atlas10k3",
    "maxtor-6l080l0",
    "maxtor-7l250s0",
    "maxtor-stm332061",
    "hitachi-7k1000c",
    "toshiba-x300-5tb",
    "nearline-20tb",
];

/// Error: there is no built-in profile of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no built-in drive is called `{name}`; there are: {}", builtin_names().collect::<Vec<_>>().join(", "))]
pub struct UnknownProfile {
    /// The requested name.
    pub name: String,
}

/// Returns the names of the built-in profiles, oldest first.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

/// Returns the built-in profile of this name.
///
/// # Errors
/// The valid names, when `name` is not one of them.
pub fn builtin(name: &str) -> Result<Profile, UnknownProfile> {
    let found = PROFILES.iter().find(|(known, _)| *known == name);
    let (known, text) = found.ok_or_else(|| UnknownProfile { name: name.to_string() })?;
    match toml::read(&format!("{known}.toml"), text) {
        Ok(loaded) => Ok(loaded.profile),
        // The texts are part of the program, and a test reads each of them.
        Err(fault) => panic!("built-in profile: {fault}"),
    }
}
