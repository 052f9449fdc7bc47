//! Overheads between the media and the bus, which long reads hide or reveal.
//!
//! A drive that releases the bus while it seeks has to reselect it before data flows. This delays a
//! read of one sector; in a long read the first sectors are on the bus while the last still pass
//! under the head, and if the bus is faster than the media there is no delay. If the bus is slower,
//! a long read is delayed by the difference, and by the data that a drive waits for before it
//! begins: some buffer a part of a read first, the *watermark*.
//!
//! With s the time of a sector under the head, b that on the bus, and w the buffered sectors, the
//! completion of a read of n sectors is later than its last sector alone would be by
//!
//! * (w - 1) s + (n - 1) (b - s) if b > s,
//! * -r if b < s and n is large, r being the reselection time.

use headtime_disk::Outcome;

use crate::device::Ask;
use crate::error::ProbeError;
use crate::pairs::Pairs;
use crate::sampler::Sampler;
use crate::spindle::{NORMAL, Spindle, apart};

/// The results of long reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LongReads {
    /// Reselection time of a read of one sector, which a long one hides, ns; 0: none, or the bus is
    /// too slow for it to show.
    pub reselect_ns: f64,
    /// Watermark: the share of a read that is buffered before data flows, in 1/1000; 0 if it does
    /// not show.
    pub watermark_permille: u32,
}

/// Reads of either kind.
const READS_OF_EACH_KIND: usize = 96;
/// Fewest useful reads.
const MIN_READS: usize = 16;
/// Relative difference of bus and media rates below which they count as equal.
const MIN_RATE_DIFFERENCE: f64 = 0.1;
/// Lead of the bus at the end of a long read, ns: more than the reselection time.
const BUS_LEAD_NS: f64 = 1e6;
/// Sectors of a long read if the bus is slower, or half a track: the resolution of a watermark.
const SLOW_BUS_SECTORS: u32 = 64;
/// Smallest watermark that is distinguishable from occasional delays of long transfers.
const MIN_WATERMARK_SHARE: f64 = 0.1;
/// Smallest time, ns, that is distinguishable from the jitter of longer transfers.
const MIN_RESELECT_NS: f64 = 20e3;
/// This share of the answers is later than the earliest, apart from outliers.
const LATER_SHARE: f64 = 0.9;

/// Times reads of many sectors. `block_ps`: time of 512 bytes on the bus.
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
    for _ in 0..READS_OF_EACH_KIND {
        spindle.keep(sampler)?;
        let lbn = sampler.below(sampler.sectors().min(pairs.geometry().capacity()));
        let Some(track) = pairs.geometry().track_of(lbn).filter(|t| t.plain) else { continue };
        let sector = pairs.sector(spindle, &track);
        let count = match bus / sector {
            x if x < 1.0 - MIN_RATE_DIFFERENCE => {
                (BUS_LEAD_NS / (sector - bus)).ceil().min(f64::from(track.lbns)) as u32
            }
            x if x > 1.0 + MIN_RATE_DIFFERENCE => SLOW_BUS_SECTORS.min(track.lbns / 2),
            _ => continue,
        };
        if count < 2 || count > track.lbns / 2 {
            continue;
        }
        let first = track.first_lbn + sampler.below(u64::from(track.lbns - count));
        let answer = sampler.run(&[Ask::read(first, count)], 1)?[0];
        let Some(completion) = pairs.completion_angle(first + u64::from(count) - 1) else { continue };
        if answer.outcome != Outcome::Ok {
            continue;
        }
        let n = f64::from(count);
        let late = apart(completion, spindle.angle_at(answer.done)) * spindle.period_ns();
        match bus < sector {
            true => early.push(-late),
            // More than half a revolution after the last sector passed is closer to its next
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
    // The overlap of bus and media varies, more so for longer reads, and only ever delays them: the
    // earliest answers count.
    let noise = NORMAL * pairs.off * turn;
    // A drive that reads on arrival is early occasionally, not in most reads.
    let most = quantile(&mut early, 0.5).is_some_and(|ns| ns > MIN_RESELECT_NS);
    let reselect_ns = match quantile(&mut early, LATER_SHARE) {
        Some(ns) if most && ns > MIN_RESELECT_NS.max(3.0 * noise) => ns,
        _ => 0.0,
    };
    let watermark_permille = match quantile(&mut shares, 0.5) {
        Some(share) if share > MIN_WATERMARK_SHARE => (share * 1e3).round().min(1e3) as u32,
        _ => 0,
    };
    Ok(LongReads { reselect_ns, watermark_permille })
}

/// The quantile `part`; `None`: too few values.
fn quantile(all: &mut [f64], part: f64) -> Option<f64> {
    all.sort_unstable_by(f64::total_cmp);
    (all.len() >= MIN_READS).then(|| all[(all.len() as f64 * part) as usize])
}
