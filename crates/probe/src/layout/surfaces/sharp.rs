//! Serpentines whose skews are all alike, so that angles do not show where a sweep ends.
//!
//! The way from a sweep's first track becomes longer with each track, until the next sweep begins:
//! if all sweeps go the same way, the arm is then back at the first cylinder. Bisection finds that
//! track, and the one at which the sweep after it begins.

use super::{Ways, is_less};
use crate::border::{Border, SHOTS};
use crate::error::ProbeError;

/// Fewest and most tracks of a sweep that are searched for.
const FEWEST: u64 = 24;
const MOST: u64 = 4_096;
/// Growth of the distances at which the way is measured, in hundredths.
const GROWTH: u64 = 118;
/// First tracks from which the way is measured: few, so that their distances are as good as equal.
const FROM: u64 = 4;

/// Where the first sweeps end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layout) struct Sweeps {
    /// Tracks of a whole sweep.
    pub(in crate::layout) tracks: u64,
    /// Visible tracks of the first one.
    pub(in crate::layout) first: u64,
}

impl Ways<'_, '_, '_> {
    /// Finds the sweeps of a drive of `tracks` tracks. `None`: the way does not become shorter
    /// anywhere, or not at once.
    pub(super) fn sharp_sweeps(&mut self, tracks: u64) -> Result<Option<Sweeps>, ProbeError> {
        let Some(first) = self.sharp_end(0, tracks)? else { return Ok(None) };
        // With two surfaces the second sweep is followed by the next cylinder, and the third by
        // the start of its group.
        let second = match self.sharp_end(first, tracks)? {
            Some(second) => Some(second),
            None => self.sharp_end(2 * first, tracks)?.map(|end| end - first),
        };
        let full = second.map_or(first, |end| end - first);
        // The front of the first sweep may be reserved.
        Ok((first <= full).then_some(Sweeps { tracks: full, first }))
    }

    /// The first track after `begin` to which the way is suddenly shorter than to the one before.
    fn sharp_end(&mut self, begin: u64, tracks: u64) -> Result<Option<u64>, ProbeError> {
        let mut last: Option<(u64, Border)> = None;
        let mut by = FEWEST;
        let drop = loop {
            if by > MOST || begin + by + FROM >= tracks {
                return Ok(None);
            }
            let time = self.time(SHOTS / 2, |s| {
                let from = s.below(FROM);
                Some((begin + from, begin + by + from))
            })?;
            if let (Some((at, before)), Some(time)) = (last, time)
                && is_less(&time, &before)
            {
                break (at, by, (time.at + before.at) / 2.0);
            }
            last = time.map(|t| (by, t)).or(last);
            by = (by * GROWTH / 100).max(by + 1);
        };
        let (mut far, mut near, limit) = drop;
        while near - far > 1 {
            let middle = u64::midpoint(far, near);
            match self.is_within(limit, |_| Some((begin, begin + middle)))? {
                Some(true) => near = middle,
                Some(false) => far = middle,
                None => return Ok(None),
            }
        }
        let end = begin + near;
        // The step across it is as long as the sweep; on a drive whose sweeps go there and back it
        // is none.
        let crosses = self.is_within(limit, |_| Some((end - 1, end)))?;
        Ok((crosses == Some(false)).then_some(end))
    }
}
