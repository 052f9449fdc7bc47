//! Admission control: whether a set of streams is feasible, with the figures (Reuther and Pohlack
//! 2003, sections 2 and 3.1).
//!
//! [`super::disk`] has the drive's parameters and [`super::verdict`] the results. `demand` has
//! condition 2, for mandatory streams, and [`super::ledger`] condition 3, for optional ones.

use super::disk::Disk;
use super::ledger::{Ledger, TRIED_ALONE, TRIED_BESIDE};
use super::stream::Stream;
use super::subset::Exhausted;
use super::verdict::{Admitted, Refusal};

/// Admits these streams if all are feasible. A refusal names the nearest alternatives for the first
/// that is infeasible beside the previous ones.
///
/// # Errors
/// The reason.
pub fn admit(disk: &Disk, streams: &[Stream]) -> Result<Admitted, Refusal> {
    admit_under(disk, Exhausted::default(), streams)
}

/// The same with this handling of used-up reservations.
///
/// # Errors
/// As of [`admit`].
pub fn admit_under(disk: &Disk, exhausted: Exhausted, streams: &[Stream]) -> Result<Admitted, Refusal> {
    let mut ledger = Ledger::new(disk.clone()).under(exhausted);
    let (few, rest) = streams.split_at(streams.len().min(TRIED_BESIDE));
    match ledger.with_all(few) {
        Ok(all) if !all.asks_little() => ledger = all,
        // A stream may be feasible only as a mandatory one, or leave more so, or be the refused
        // one.
        _ => few.iter().try_for_each(|&stream| ledger.add(stream))?,
    }
    // The same may hold for some more of them.
    let (some, mut rest) = rest.split_at(rest.len().min(TRIED_ALONE - TRIED_BESIDE));
    some.iter().try_for_each(|&stream| ledger.add(stream))?;
    // The others at once: all of them, or the largest feasible number, found by bisection.
    loop {
        let (mut good, mut bad) = (0, rest.len() + 1);
        let mut with = rest.len();
        while good < with {
            let mut more = ledger.clone();
            match more.extend(&rest[good..with]) {
                Ok(()) => (ledger, good) = (more, with),
                Err(_) => bad = with,
            }
            with = good + (bad - good) / 2;
        }
        let Some(&next) = rest.get(good) else { break };
        ledger.add(next)?;
        rest = &rest[good + 1..];
    }
    Ok(ledger.admitted())
}
