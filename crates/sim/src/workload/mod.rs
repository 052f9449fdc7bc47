//! Sources of requests: synthetic tasks, streams and recorded traces.
//!
//! A [`Workload`] is a state machine in virtual time: it returns when its next request is due,
//! returns the request, and is notified when one is finished. Synthetic workloads are a
//! [`Population`] of tasks; the named ones (`oltp`, `closed:N`, ...) are functions that return a
//! [`GroupSpec`], so that an experiment can start from a name and change a figure.

mod beside;
mod beyond;
mod closed;
mod contract;
pub mod das;
mod files;
mod generator;
mod host_time;
mod micro;
mod oltp;
mod open;
mod playback;
mod population;
mod random;
mod replay;
mod size;
mod streams;
pub mod suite;
pub mod variates;

pub use beside::{Beside, FOREGROUND, Pace, READER, ReaderSpec, SCAN};
pub use beyond::Beyond;
pub use closed::closed;
pub(crate) use contract::{About, shown, unknown};
pub use contract::{Ask, Target, Workload, WorkloadError};
pub use files::{Files, FilesSpec, Layout, LayoutSpec, Range};
pub use generator::{Pattern, PatternSpec, PlaceSpec};
pub use host_time::HostTime;
pub use micro::{MICRO_OUTSTANDING, freeblock_micro, freeblock_micro_open};
pub use oltp::oltp;
pub use open::open;
pub use playback::Playback;
pub use population::{Arrivals, Gaps, GroupSpec, Population, Think};
pub use random::{local_4k, random_4k, random_40k};
pub use replay::{Mode, Refusals, Replay};
pub use size::SizeSpec;
pub use streams::{BEST_EFFORT, FIRST_STREAM, MOST_STREAMS, StreamCall, StreamSpec, Streams, stream_of};

/// Named workloads that consist of tasks, as typed.
const TASKS: [&str; 6] = ["oltp", "closed:N", "random-4k[:N]", "random-40k[:N]", "local-4k[:N]", "open:RATE"];

/// All named workloads, as typed: tasks, the benchmark suite's, and those with streams.
pub const NAMES: [&str; 11] = {
    let ([a, b, c, d, e, f], [g, h, i], [j, k]) = (TASKS, suite::named::NAMES, das::NAMES);
    [a, b, c, d, e, f, g, h, i, j, k]
};

/// Returns the tasks of a named workload. Errors list the known names, or the valid range.
pub fn by_name(name: &str) -> Result<GroupSpec, WorkloadError> {
    let (word, figure) = match name.split_once(':') {
        Some((w, f)) => (w, Some(f)),
        None => (name, None),
    };
    let unknown = || WorkloadError::Unknown { what: "workload", name: name.to_owned(), known: TASKS.join(", ") };
    let level = |default: u32| match figure {
        None => Ok(default),
        Some(f) => f.parse().ok().filter(|n| (1..=population::MOST_TASKS).contains(n)).ok_or_else(|| {
            WorkloadError::range(format!("N of workload {word}:N"), format!("\"{f}\""), 1, population::MOST_TASKS)
        }),
    };
    match (word, figure) {
        ("oltp", None) => Ok(oltp()),
        ("closed", Some(_)) => Ok(closed(level(1)?)),
        ("random-4k", _) => Ok(random_4k(level(random::OUTSTANDING)?)),
        ("random-40k", _) => Ok(random_40k(level(random::OUTSTANDING)?)),
        ("local-4k", _) => Ok(local_4k(level(random::OUTSTANDING)?)),
        ("open", Some(f)) => {
            let rate = f.parse().map_err(|_| {
                WorkloadError::range(
                    "RATE of workload open:RATE (requests per second)",
                    format!("\"{f}\""),
                    open::MIN_RATE_PER_S,
                    open::MAX_RATE_PER_S,
                )
            })?;
            open(rate)
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_workloads_list_the_known_ones() {
        for name in ["", "tpcc", "oltp:3", "closed", "open"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("closed:N") && e.contains("open:RATE"), "{e}");
        }
    }

    #[test]
    fn figures_out_of_range_say_the_range() {
        for name in ["closed:0", "closed:x", "random-4k:0", "closed:100001"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("expected 1 to 100000"), "{name}: {e}");
        }
        for name in ["open:0", "open:fast", "open:1e9", "open:-5", "open:nan"] {
            let e = by_name(name).unwrap_err().to_string();
            assert!(e.contains("expected 0.001 to 1000000"), "{name}: {e}");
        }
    }

    #[test]
    fn every_name_gives_a_workload() {
        for name in ["oltp", "closed:10", "random-4k", "random-40k:3", "local-4k", "open:100", "open:0.5"] {
            assert!(by_name(name).is_ok(), "{name}");
        }
    }
}
