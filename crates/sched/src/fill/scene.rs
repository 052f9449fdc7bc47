//! The input of a search of the papers' algorithms ([`super::search`]).

use super::candidate::Look;
use super::regions::Regions;
use crate::tasks::Who;

/// Input of a search. It must be the same in every step; a search is restarted when something
/// changes.
#[derive(Debug)]
pub struct Scene<'a, W> {
    /// Gap, rules and wanted sectors. Its `by_angle` is set to the policy's.
    pub look: Look<'a, W>,
    /// Regions with wanted sectors.
    pub regions: &'a Regions,
    /// The session that won the lottery, or anyone.
    pub winner: Who,
}

impl<W> Scene<'_, W> {
    /// Returns whose sectors are sought: the winner's, or any session's.
    #[inline]
    pub(super) fn who(&self, of_winner: bool) -> Who {
        if of_winner { self.winner } else { Who::Anyone }
    }
}
