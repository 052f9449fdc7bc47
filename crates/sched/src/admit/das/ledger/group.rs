//! Streams with equal parameters: their reservation, and the time that they take.

use std::sync::Arc;

use super::grid::Grid;
use super::sums::Sum;
use crate::admit::das::disk::Service;
use crate::admit::das::distribution::Distribution;
use crate::admit::das::reserve::Work;
use crate::admit::das::stream::Stream;

/// Streams with equal parameters.
#[derive(Clone, Debug)]
pub(in crate::admit::das) struct Group {
    pub(in crate::admit::das) stream: Stream,
    /// Number of streams, and the first of them.
    pub(in crate::admit::das) count: u64,
    pub(in crate::admit::das) first: usize,
    pub(in crate::admit::das) service: Service,
    pub(in crate::admit::das) work: Arc<Work>,
    pub(in crate::admit::das) grid: Grid,
    /// r in fine bins; unused for mandatory streams.
    pub(in crate::admit::das) reserved: usize,
    /// Time taken by one of them, in fine bins.
    pub(in crate::admit::das) takes: Distribution,
    /// The version at which its reservation was found to be sufficient.
    pub(in crate::admit::das) enough_at: u64,
    /// The version at which the time taken by its streams last changed.
    pub(in crate::admit::das) changed_at: u64,
    /// V, as last computed.
    pub(in crate::admit::das) sum: Option<Arc<Sum>>,
}

impl Group {
    /// Sets the reservation; returns whether the time taken by one of the streams has changed.
    pub(in crate::admit::das) fn reserve(&mut self, bins: usize) -> bool {
        // In whole wide bins, so that a slightly larger reservation changes nothing for others.
        let wide = |bins: usize| bins.next_multiple_of(self.grid.factor);
        let (was, is) = (wide(self.reserved), wide(bins));
        self.reserved = bins;
        if was != is {
            self.takes = self.work.stopped(is);
        }
        was != is
    }
}
