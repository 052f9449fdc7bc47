//! What a stream's requests do in a period ([`Work`]), made once for all the ways in which a stream is looked for.

use std::sync::Arc;

use super::super::admission::Service;
use super::super::reserve::Work;
use super::super::stream::{Kinds, Stream};
use super::{Grid, Ledger};

/// The work of a stream's requests, and for which it was made.
#[derive(Debug)]
pub(super) struct Made {
    requests: u32,
    kinds: Kinds,
    sectors: u32,
    grid: Grid,
    work: Arc<Work>,
}

impl Ledger {
    /// The work of an optional stream that is looked for in several ways.
    pub(super) fn made_for(&self, stream: Stream) -> Option<Arc<Made>> {
        let service = self.disk.service_of(&stream).ok().filter(|_| !stream.is_mandatory())?;
        let (grid, sectors) = (Grid::of(stream.period, service.times.bin()), service.sectors);
        let work = self.work(&stream, service, grid);
        Some(Arc::new(Made { requests: stream.requests, kinds: stream.kinds, sectors, grid, work }))
    }

    /// The same ledger, which need not make this any more.
    pub(super) fn knowing(&self, made: &Option<Arc<Made>>) -> Ledger {
        Ledger { asked: made.clone(), ..self.clone() }
    }

    /// The work of a stream's requests; that of others may be the same.
    pub(super) fn work(&self, stream: &Stream, service: &Service, grid: Grid) -> Arc<Work> {
        let wanted = (stream.requests, stream.kinds, service.sectors, grid.fine);
        let same = self.groups.iter().find(|g| {
            let has = (g.stream.requests, g.stream.kinds, g.service.sectors, g.grid.fine);
            has == wanted && g.work.limit() >= grid.period
        });
        let asked = self.asked.as_ref().filter(|made| {
            let has = (made.requests, made.kinds, made.sectors, made.grid.fine);
            has == wanted && made.grid.period == grid.period
        });
        let make = || {
            let factor = (grid.fine.0 / service.times.bin().0) as usize;
            Arc::new(Work::new(&service.times.coarser(factor), stream.requests, grid.period))
        };
        same.map(|g| &g.work).or(asked.map(|made| &made.work)).cloned().unwrap_or_else(make)
    }
}
