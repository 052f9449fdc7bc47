//! Cache of the work of a stream's requests in a period ([`Work`]), shared by all ways of serving
//! the streams that are tried.

use std::sync::Arc;

use super::super::disk::Service;
use super::super::family::Family;
use super::super::reserve::Work;
use super::super::stream::{Kinds, Stream};
use super::{Grid, Group, Ledger};

/// The work of a stream's requests, and the parameters for which it was computed.
#[derive(Clone, Debug)]
pub(super) struct Made {
    requests: u32,
    kinds: Kinds,
    sectors: u32,
    /// Number of older requests before each.
    older: u32,
    grid: Grid,
    work: Arc<Work>,
}

/// Returns the number of older requests before each own one in the work of a stream: for an
/// optional stream those that may block it. For a mandatory one they are added separately: all of
/// its requests are served, so their order does not matter, and a sum of many is quick.
fn older_in(stream: &Stream) -> u32 {
    if stream.is_mandatory() { 0 } else { stream.blocked_by }
}

impl Ledger {
    /// Computes the work of an optional stream that is tried in several ways.
    pub(super) fn made_for(&self, stream: Stream) -> Option<Made> {
        let service = self.disk.service_of(&stream).ok().filter(|_| !stream.is_mandatory())?;
        let (grid, sectors) = (Grid::of(stream.period, service.times.bin()), service.sectors);
        let work = self.work(&stream, service, grid);
        let older = older_in(&stream);
        Some(Made { requests: stream.requests, kinds: stream.kinds, sectors, older, grid, work })
    }

    /// Returns the same ledger with this work cached.
    pub(super) fn knowing(&self, made: &Option<Made>) -> Ledger {
        Ledger { made: made.iter().cloned().collect(), ..self.clone() }
    }

    /// Returns all work computed for this ledger.
    pub(super) fn all_made(&self) -> Vec<Made> {
        let of = |g: &Group| Made {
            requests: g.stream.requests,
            kinds: g.stream.kinds,
            sectors: g.service.sectors,
            older: older_in(&g.stream),
            grid: g.grid,
            work: Arc::clone(&g.work),
        };
        self.groups.iter().map(of).chain(self.made.iter().cloned()).collect()
    }

    /// Returns the work of a stream's requests, shared with an equal one if possible.
    pub(super) fn work(&self, stream: &Stream, service: &Service, grid: Grid) -> Arc<Work> {
        let older = older_in(stream);
        let wanted = (stream.requests, stream.kinds, service.sectors, older, grid.fine);
        let same = self.groups.iter().find(|g| {
            let has = (g.stream.requests, g.stream.kinds, g.service.sectors, older_in(&g.stream), g.grid.fine);
            has == wanted && g.work.limit() >= grid.period
        });
        let made = self.made.iter().find(|made| {
            let has = (made.requests, made.kinds, made.sectors, made.older, made.grid.fine);
            has == wanted && made.grid.period == grid.period
        });
        let make = || {
            let factor = (grid.fine.0 / service.times.bin().0) as usize;
            let times = service.times.coarser(factor);
            // Blocked requests are no candidates: the stream has one candidate at a time.
            let times = if older > 0 { Family::flat(times.fewest().clone()) } else { times };
            let before = self.older().in_bins(grid.fine, grid.period);
            Arc::new(Work::new(&times, stream.requests, (older, &before), grid.period))
        };
        same.map(|g| &g.work).or(made.map(|made| &made.work)).cloned().unwrap_or_else(make)
    }
}
