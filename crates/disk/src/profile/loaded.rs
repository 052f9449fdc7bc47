//! A profile that was read, and how the reader gets its files.

use super::fault::Warning;
use super::spec::Profile;

/// Returns the text of a file by its path, or an error message. This crate opens no files itself.
pub type Resolver<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// A profile with the warnings about its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The profile.
    pub profile: Profile,
    /// The warnings, in order.
    pub warnings: Vec<Warning>,
}
