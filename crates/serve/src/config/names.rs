//! Names of ORDER and FILL as users write them.
//!
//! The same names are accepted by `headtime simulate`.

use headtime_disk::time::Dur;
use headtime_sched::{Algorithm, Conservatism, Order};

/// Names of ORDER.
const ORDERS: [&str; 9] =
    ["fcfs", "clook", "sstf", "sptf", "sptf-ahead", "sptf-joint", "sptf-sw:N", "satfuf:MS", "drive"];
/// Names of FILL.
const FILLS: [&str; 6] = ["none", "bw-greedy", "bw-ep-greedy", "angle-ep-greedy", "angle-ep-frag", "headtime"];
/// The widest window of `sptf-sw:N`, in percent.
const WIDEST_WINDOW: u32 = 1_000;
/// The longest threshold of `satfuf:MS`, in ms.
const LONGEST_WAIT_MS: f64 = 1e6;
/// The largest conservatism, in us.
const MAX_CONSERVATISM_US: u64 = 100_000;
/// The longest figure that a message repeats, in bytes.
const LONGEST_SHOWN: usize = 40;

/// Who orders requests.
pub(super) enum HostOrder {
    /// The scheduler.
    Host(Order),
    /// The drive.
    Drive,
}

/// Parses a name of ORDER. The error lists the known names, or the valid range of a figure.
pub(super) fn order(name: &str) -> Result<HostOrder, String> {
    let (word, figure) = name.split_once(':').map_or((name, None), |(w, f)| (w, Some(f)));
    Ok(HostOrder::Host(match (word, figure) {
        ("fcfs", None) => Order::Fcfs,
        ("clook", None) => Order::Clook,
        ("sstf", None) => Order::Sstf,
        ("sptf" | "satf", None) => Order::Sptf,
        ("sptf-ahead", None) => Order::SptfAhead,
        ("sptf-joint", None) => Order::SptfJoint,
        ("drive", None) => return Ok(HostOrder::Drive),
        ("sptf-sw", Some(f)) => match f.trim_end_matches('%').parse() {
            Ok(n) if n <= WIDEST_WINDOW => Order::SptfSw(n),
            _ => return Err(out_of_range("N of order sptf-sw:N (percent)", f, format!("0 to {WIDEST_WINDOW}"))),
        },
        ("satfuf", Some(f)) => match f.parse::<f64>() {
            Ok(ms) if (0.0..=LONGEST_WAIT_MS).contains(&ms) => Order::SatfUf(Dur::from_ms_f64(ms)),
            _ => return Err(out_of_range("MS of order satfuf:MS", f, format!("0 to {LONGEST_WAIT_MS}"))),
        },
        _ => return Err(unknown("order", name, &ORDERS)),
    }))
}

/// Parses a name of FILL; `None` for `none`.
pub(super) fn fill(name: &str) -> Result<Option<Algorithm>, String> {
    Ok(Some(match name {
        "none" => return Ok(None),
        "bw-greedy" => Algorithm::BwGreedy,
        "bw-ep-greedy" => Algorithm::BwEpGreedy,
        "angle-ep-greedy" => Algorithm::AngleEpGreedy,
        "angle-ep-frag" => Algorithm::AngleEpFrag,
        "headtime" => Algorithm::Headtime,
        _ => return Err(unknown("fill", name, &FILLS)),
    }))
}

/// Parses conservatism: a whole number of microseconds, or `adaptive`.
pub(super) fn conservatism(key: &str, text: &str) -> Result<Conservatism, String> {
    if text == "adaptive" {
        return Ok(Conservatism::Adaptive);
    }
    match text.parse::<u64>() {
        Ok(us) if us <= MAX_CONSERVATISM_US => Ok(Conservatism::Fixed(Dur::from_us(us))),
        _ => Err(out_of_range(key, text, format!("0 to {MAX_CONSERVATISM_US}, or \"adaptive\""))),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("unknown {what} \"{name}\"; known: {}", known.join(", "))
}

fn out_of_range(what: &str, found: &str, range: String) -> String {
    let found = format!("\"{found}\"");
    let shown = match found.len() <= LONGEST_SHOWN {
        true => found,
        false => format!("{}...", found.chars().take(LONGEST_SHOWN).collect::<String>()),
    };
    format!("{what}: expected {range}, found {shown}")
}
