//! Statistics of a stream, and the cost of its requests.

use headtime_disk::Dur;

/// Statistics of a stream's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Submitted requests.
    pub asked: u64,
    /// Completed in their period.
    pub in_time: u64,
    /// Not completed by its end.
    pub late: u64,
    /// Deferred to a later period although the current one had room: they arrived too late for it.
    pub deferred: u64,
    /// Of the late ones, those that expired without being served.
    pub given_up: u64,
}

/// Cost of a completed request to its stream's reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Its service time.
    pub took: Dur,
    /// Service time of a request like those that X was measured with.
    pub usual: Dur,
}
