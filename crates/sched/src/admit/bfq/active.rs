//! The turn of the application in service.

use headtime_disk::{Dur, Time};

use crate::admit::Class;

/// The application in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) queue: u32,
    pub(super) class: Class,
    pub(super) budget: u64,
    /// Sectors served, and sectors charged for them.
    pub(super) sectors: u64,
    pub(super) charged: u64,
    /// Number of its requests that were dispatched.
    pub(super) requests: u32,
    /// Maximum service time, from the dispatch of its first request.
    pub(super) slice: Dur,
    /// See `slice`.
    pub(super) since: Option<Time>,
    /// When idling for the application ends, after its last completion.
    pub(super) waits_until: Time,
    /// An application with a raised weight arrived, and this one's is not raised.
    pub(super) displaced: bool,
    /// Time in which the disk served streams since the application became idle; not part of its own
    /// time.
    pub(super) others: Dur,
}

impl Active {
    /// Creates a turn in which no request was dispatched yet.
    pub(super) fn new(queue: u32, class: Class, budget: u64, slice: Dur) -> Active {
        Active {
            queue,
            class,
            budget,
            sectors: 0,
            charged: 0,
            requests: 0,
            slice,
            since: None,
            waits_until: Time::ZERO,
            displaced: false,
            others: Dur::ZERO,
        }
    }
}
