//! Settings as flags of a command line: parsers, whose errors state the valid range, and the help
//! of settings whose values have names, with the names that the parsers know.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use headtime_sched::streams::Exhausted;
use headtime_sched::write_cache::Limits;
use headtime_sched::{Order, Placement, Policy};

use super::filling::FILLS;
use super::{Bytes, Figure, LONGEST_RUN_S};
use crate::traces::TraceFormat;

/// Upper bound for any drive; a drive's own limit is checked with the drive.
const MAX_QUEUE_DEPTH: u64 = u32::MAX as u64;

/// Parses a whole number in a range.
pub fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let within = text.parse().ok().filter(|n| range.contains(n));
    within.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
}

/// Parses `--depth`.
pub fn depth(text: &str) -> Result<u32, String> {
    whole(text, 1..=MAX_QUEUE_DEPTH).map(|n| n as u32)
}

/// Parses `--device`.
pub fn device(text: &str) -> Result<u32, String> {
    whole(text, 0..=u64::from(u32::MAX)).map(|n| n as u32)
}

/// Parses `--requests`.
pub fn requests(text: &str) -> Result<u64, String> {
    whole(text, 1..=u64::MAX)
}

/// Parses `--seed`.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

/// Parses `--seconds`.
pub fn seconds(text: &str) -> Result<f64, String> {
    let within = text.parse().ok().filter(|s| *s > 0.0 && *s <= LONGEST_RUN_S);
    within.ok_or_else(|| format!("expected more than 0 to {LONGEST_RUN_S} seconds"))
}

/// Parses the memory of a write cache, in bytes.
pub fn memory(text: &str) -> Result<u64, String> {
    let within = Bytes::parse(text).filter(|&b| Limits::new(b).is_some());
    within.ok_or_else(|| "expected bytes, or a number and KiB, MiB or GiB, from 1 MiB to 16 GiB".into())
}

/// Parses `--write-cache`.
pub(super) fn cache(text: &str) -> Result<Bytes, String> {
    memory(text).map(Bytes)
}

/// Takes a figure or a word, which the scenario checks.
pub(super) fn figure(text: &str) -> Result<Figure, Infallible> {
    Ok(Figure::Word(text.to_owned()))
}

/// What each placement means, in the order of [`Placement::NAMES`].
const PLACEMENTS: [&str; Placement::NAMES.len()] = [
    "outside the drive, by prediction",
    "inside it, with the exact head position",
    "inside it, without background commands on the tracks of foreground requests",
];

/// Returns the help of `--trace-format`.
pub fn trace_formats() -> String {
    let names = TraceFormat::ALL.map(|(name, _)| name).join(", ");
    format!("{names}, or recording (written by headtime serve); docs/traces.md describes each")
}

/// Returns the help of `--admit`.
pub fn policies() -> String {
    let below: Vec<String> = Policy::NAMES.iter().filter(|n| **n != "none").map(|n| format!("das:{n}")).collect();
    format!(
        "Admission policy, which decides which queues are eligible: {} (bfq+:soft-rt,bursts,merging: with switches of \
         today's kernel), or das, which guarantees the scenario's streams their requests ({}: that policy for best \
         effort) [default: none]",
        Policy::NAMES.join(", "),
        below.join(", ")
    )
}

/// Returns the help of `--exhausted`.
pub fn exhausted() -> String {
    let names = Exhausted::NAMES.join(", ");
    format!(
        "With das, how an optional stream's requests are treated when its reservation is used up: {names} [default: \
         skip]"
    )
}

/// Returns the help of `--order`.
pub fn orders() -> String {
    let names = Order::NAMES.join(", ");
    format!("Dispatch order among eligible requests: {names}, or drive (its firmware) [default: sptf]")
}

/// Returns the help of `--fill`.
pub fn fills() -> String {
    let names = FILLS.join(", ");
    format!(
        "Planner of background work in rotational gaps and idle time: {names} [default: headtime with --background, \
         else none]"
    )
}

/// Returns the help of `--placement`.
pub fn placements() -> String {
    let each = Placement::NAMES.iter().zip(PLACEMENTS).map(|(name, what)| format!("{name} ({what})"));
    format!("Where gaps are planned: {} [default: host]", each.collect::<Vec<_>>().join(", "))
}
