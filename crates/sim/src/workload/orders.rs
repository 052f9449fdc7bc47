//! Names of ORDER policies.

use headtime_disk::time::Dur;
use headtime_sched::Order;

use super::WorkloadError;
use super::scenario::unknown;
use crate::simulate::Scheduling;

/// Names of ORDER; `drive` lets the drive order commands.
pub const ORDERS: [&str; 9] =
    ["fcfs", "clook", "sstf", "sptf", "sptf-ahead", "sptf-joint", "sptf-sw:N", "satfuf:MS", "drive"];

/// Maximum N of `sptf-sw:N`, in percent.
const WIDEST_WINDOW: u32 = 1_000;
/// Maximum threshold of `satfuf:MS`, in ms.
pub(super) const LONGEST_WAIT_MS: f64 = 1e6;

/// Returns an order by name. Errors list the known names, or the valid range.
pub fn order(name: &str) -> Result<Scheduling, WorkloadError> {
    let (word, figure) = name.split_once(':').map_or((name, None), |(w, f)| (w, Some(f)));
    let order = match (word, figure) {
        ("fcfs", None) => Order::Fcfs,
        ("clook", None) => Order::Clook,
        ("sstf", None) => Order::Sstf,
        ("sptf" | "satf", None) => Order::Sptf,
        ("sptf-ahead", None) => Order::SptfAhead,
        ("sptf-joint", None) => Order::SptfJoint,
        ("drive", None) => return Ok(Scheduling::Drive),
        ("sptf-sw", Some(f)) => match f.trim_end_matches('%').parse() {
            Ok(n) if n <= WIDEST_WINDOW => Order::SptfSw(n),
            _ => return Err(WorkloadError::range("N of order sptf-sw:N (percent)", quoted(f), 0, WIDEST_WINDOW)),
        },
        ("satfuf", Some(f)) => match f.parse::<f64>() {
            Ok(ms) if (0.0..=LONGEST_WAIT_MS).contains(&ms) => Order::SatfUf(Dur::from_ms_f64(ms)),
            _ => return Err(WorkloadError::range("MS of order satfuf:MS", quoted(f), 0, LONGEST_WAIT_MS)),
        },
        _ => return Err(unknown("order", name, &ORDERS)),
    };
    Ok(Scheduling::Host(order))
}

/// Returns the name of an order, as [`order`] accepts it.
pub fn order_name(order: Order) -> String {
    match order {
        Order::Fcfs => "fcfs".into(),
        Order::Clook => "clook".into(),
        Order::Sstf => "sstf".into(),
        Order::Sptf => "sptf".into(),
        Order::SptfSw(percent) => format!("sptf-sw:{percent}"),
        Order::SptfAhead => "sptf-ahead".into(),
        Order::SptfJoint => "sptf-joint".into(),
        Order::SatfUf(after) => format!("satfuf:{}", after.as_ms_f64()),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}
