//! What a stream has asked for and had, and what its requests cost.

use headtime_disk::time::Dur;

/// What a stream has asked for and had so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub asked: u64,
    /// Done in the period that they belong to.
    pub in_time: u64,
    /// Not done by its end.
    pub late: u64,
    /// Given a later period although the one under way had room: they came too late for it.
    pub deferred: u64,
    /// Of the late ones, those that were given up: nothing was done for them.
    pub given_up: u64,
}

/// What a request that is done costs its stream's reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How long the drive was busy with it.
    pub took: Dur,
    /// How long it would have been with one like those that X was measured with.
    pub usual: Dur,
}
