//! ORDER and FILL in a server's configuration: the scheduler's names, and one more of each.

use headtime_sched::{Algorithm, NameError, Order, joined};

/// Names of ORDER.
const ORDERS: [&str; Order::NAMES.len() + 1] = joined(&Order::NAMES, &["drive"]);
/// Names of FILL.
const FILLS: [&str; Algorithm::NAMES.len() + 1] = joined(&["none"], &Algorithm::NAMES);

/// Who orders requests.
pub(super) enum HostOrder {
    /// The scheduler.
    Host(Order),
    /// The drive.
    Drive,
}

/// Parses a name of ORDER.
pub(super) fn order(name: &str) -> Result<HostOrder, NameError> {
    match name {
        "drive" => Ok(HostOrder::Drive),
        _ => name.parse().map(HostOrder::Host).map_err(|e: NameError| e.among(&ORDERS)),
    }
}

/// Parses a name of FILL; `None` for `none`.
pub(super) fn fill(name: &str) -> Result<Option<Algorithm>, NameError> {
    match name {
        "none" => Ok(None),
        _ => name.parse().map(Some).map_err(|e: NameError| e.among(&FILLS)),
    }
}
