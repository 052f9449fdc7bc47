//! The configuration of a core, and its reasons to refuse a request.

use crate::fill::config::FillConfig;
use crate::fill::subsystem::promotion::MAX_PROMOTED;
use crate::merge::MAX_REQUESTS;
use crate::order::Order;
use crate::pool::Pool;

/// Configuration of a core.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Order of foreground requests.
    pub order: Order,
    /// Maximum number of commands in flight, except in handover and chains (2 hides overheads and
    /// leaves the drive no choice).
    pub max_outstanding: u32,
    /// Maximum number of waiting requests; more are refused with [`Refused::Full`].
    pub capacity: usize,
    /// Freeblock work before and between the requests; `None`: there is none.
    pub fill: Option<FillConfig>,
    /// Whether each completion corrects the predicted position of the head. Without this the
    /// predictor believes its own predictions: a switch for tests of what the correction is worth.
    pub resyncs: bool,
}

impl Config {
    /// Creates a configuration with this order, two commands in flight, room for 64 waiting
    /// requests and no freeblock work.
    pub fn new(order: Order) -> Config {
        Config { order, max_outstanding: 2, capacity: 64, fill: None, resyncs: true }
    }

    /// Returns the same with this maximum number of commands in flight.
    #[must_use]
    pub fn with_outstanding(self, max_outstanding: u32) -> Config {
        Config { max_outstanding, ..self }
    }

    /// Returns the same with this maximum number of waiting requests.
    #[must_use]
    pub fn with_capacity(self, capacity: usize) -> Config {
        Config { capacity, ..self }
    }

    /// Returns the same without correction by completions.
    #[must_use]
    pub fn without_resync(self) -> Config {
        Config { resyncs: false, ..self }
    }

    /// Returns the same with freeblock work, or without any.
    #[must_use]
    pub fn with_fill(self, fill: impl Into<Option<FillConfig>>) -> Config {
        Config { fill: fill.into(), ..self }
    }

    /// Creates a pool for the waiting requests and those of `depth` commands in flight.
    pub(super) fn pool(&self, depth: usize) -> Pool {
        // One held request; per command in flight its request and its front; and pieces of promoted
        // tasks.
        let spare = if self.fill.is_some() { 1 + 2 * depth + MAX_PROMOTED } else { depth };
        let behind = match self.order.looks_ahead() {
            true => self.max_outstanding as usize * (MAX_REQUESTS - 1),
            false => 0,
        };
        Pool::new(self.capacity + spare + behind, self.order.key())
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The maximum number of requests is waiting.
    #[error("expected fewer than {capacity} waiting requests: the queue is full")]
    Full {
        /// The limit.
        capacity: usize,
    },
    /// It is larger than the guarantees to streams allow, or than its stream's declared request
    /// size.
    #[error("{count} sectors asked for: expected at most {most}")]
    TooLarge {
        /// Sectors asked for.
        count: u32,
        /// The largest allowed number of sectors.
        most: u32,
    },
    /// It extends beyond the drive's last sector, or has no sectors.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// First LBN asked for.
        lbn: u64,
        /// Sectors asked for.
        count: u32,
        /// Usable sectors.
        capacity: u64,
    },
}
