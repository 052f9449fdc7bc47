//! What is between the media and the bus: long reads hide it, or show it.
//!
//! A drive that lets go of the bus while it seeks has to take it again before data flows. A read of
//! one sector is late by that; of a long one the first sectors are on the bus while the last still
//! pass under the head, and where the bus is quicker than the media it is not late at all. Where
//! the bus is slower, a long read is late by what the bus takes longer, and by what a drive waits
//! for before it begins: some let a part of a read come in first, the *watermark*.
//!
//! With s the time of a sector under the head, b that on the bus, and w the sectors that come in
//! first, a read of n sectors is heard of later than its last sector alone would be by
//!
//! * (w - 1) s + (n - 1) (b - s) where b > s,
//! * -r where b < s and n is large, r being the time to take the bus again.

use headtime_disk::command::Outcome;

use crate::device::Ask;
use crate::pairs::Pairs;
use crate::sampler::{ProbeError, Sampler};
use crate::spindle::{NORMAL, Spindle, apart};

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LongReads {
    /// What taking the bus again costs a read of one sector and not a long one, ns; 0: nothing, or
    /// the bus is too slow for it to show.
    pub reselect_ns: f64,
    /// The share of a read that comes in before data flows, in 1/1000; 0 where it does not show.
    pub watermark_permille: u32,
}

/// Reads of either kind.
const LOOKS: usize = 96;
/// Fewer tell nothing.
const ENOUGH: usize = 16;
/// Bus and media must differ by this part to be told apart.
const UNLIKE: f64 = 0.1;
/// By so much, ns, the bus is ahead at the end of a long read: more than it takes to be taken
/// again.
const AHEAD: f64 = 1e6;
/// Sectors of a long read where the bus is slower, or half a track: a watermark is good to one part
/// of as many.
const SLOW: u32 = 64;
/// A smaller share is not told from what long transfers take more now and then.
const LEAST: f64 = 0.1;
/// Less than this, ns, is not told from the jitter of longer transfers.
const LITTLE: f64 = 20e3;
/// So great a part of the answers are later than the earliest, but for single ones.
const EARLY: f64 = 0.9;

/// Times reads of many sectors. `block_ps`: what 512 bytes take on the bus.
///
/// # Errors
/// As [`Sampler::run`].
pub fn measure(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    block_ps: u64,
) -> Result<LongReads, ProbeError> {
    let bus = block_ps as f64 / 1e3 * f64::from((sampler.sector_bytes() / 512).max(1));
    let (mut early, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..LOOKS {
        spindle.keep(sampler)?;
        let lbn = sampler.below(sampler.sectors().min(pairs.geometry().capacity()));
        let Some(track) = pairs.geometry().track_of(lbn).filter(|t| t.plain) else { continue };
        let sector = pairs.sector(spindle, &track);
        let count = match bus / sector {
            x if x < 1.0 - UNLIKE => (AHEAD / (sector - bus)).ceil().min(f64::from(track.lbns)) as u32,
            x if x > 1.0 + UNLIKE => SLOW.min(track.lbns / 2),
            _ => continue,
        };
        if count < 2 || count > track.lbns / 2 {
            continue;
        }
        let first = track.first_lbn + sampler.below(u64::from(track.lbns - count));
        let answer = sampler.run(&[Ask::read(first, count)], 1)?[0];
        let Some(heard) = pairs.heard(first + u64::from(count) - 1) else { continue };
        if answer.outcome != Outcome::Ok {
            continue;
        }
        let n = f64::from(count);
        let late = apart(heard, spindle.angle_at(answer.done)) * spindle.period_ns();
        match bus < sector {
            true => early.push(-late),
            // More than half a turn later than the last sector passed it is behind the next
            // passing.
            false => {
                let slow = (n - 1.0) * (bus - sector);
                let turn = spindle.period_ns();
                let turns = (slow / turn).ceil() as i64 + 1;
                let waits = (-1..=turns).map(|k| (late + k as f64 * turn - slow) / sector + 1.0);
                shares.extend(waits.filter(|w| (0.0..=n + 1.0).contains(w)).map(|w| w / n).next());
            }
        }
    }
    let turn = spindle.period_ns();
    // How far bus and media overlap differs, the more the longer a read is, and only ever makes it
    // late: it is the earliest that say.
    let noise = NORMAL * pairs.off * turn;
    // A drive that begins with whatever comes first is early now and then, and most are not.
    let most = quantile(&mut early, 0.5).is_some_and(|ns| ns > LITTLE);
    let reselect_ns = match quantile(&mut early, EARLY) {
        Some(ns) if most && ns > LITTLE.max(3.0 * noise) => ns,
        _ => 0.0,
    };
    let watermark_permille = match quantile(&mut shares, 0.5) {
        Some(share) if share > LEAST => (share * 1e3).round().min(1e3) as u32,
        _ => 0,
    };
    Ok(LongReads { reselect_ns, watermark_permille })
}

/// What so great a part of them is below; `None`: they are few.
fn quantile(all: &mut [f64], part: f64) -> Option<f64> {
    all.sort_unstable_by(f64::total_cmp);
    (all.len() >= ENOUGH).then(|| all[(all.len() as f64 * part) as usize])
}
