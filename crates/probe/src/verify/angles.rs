//! Angles of sectors all over each part of a drive.
//!
//! Single answers scatter by tens of microseconds, so that a skew that is slightly wrong hardly
//! shows in random reads: it shows in the median of a zone's first tracks, or of its last.

use crate::error::ProbeError;
use crate::pairs::Pairs;
use crate::sampler::Sampler;
use crate::spindle::{NORMAL, Spindle, apart};

use super::parts::Part;
use super::{Checked, Class};

/// Ranges of a part's cylinders that have their own median: where its skews are wrong the angles
/// of its two ends differ.
const RANGES: u64 = 3;
/// Sectors of a range. The median of answers that scatter by 15 us is then 4 us off.
const SECTORS: usize = 24;
/// More sectors of a range that seems to be wrong.
const AGAIN: usize = 4 * SECTORS;
/// Largest median error of a range, ns.
const MOST_OFF_NS: f64 = 15e3;
/// On noisy drives, in standard errors of the median.
const ERRORS: f64 = 5.0;
/// A median's standard error over the mean's, for a normal distribution.
const MEDIAN: f64 = 1.25;
/// A sector that is off by more, ns, lies elsewhere, whatever the others do.
const ELSEWHERE_NS: f64 = 100e3;
/// Largest share of such sectors in a range, which may be late answers or moved sectors.
const MOST_ELSEWHERE: f64 = 0.1;
/// Attempts per sector.
const TRIES: usize = 4;

/// Sectors anywhere in each round.
const ANYWHERE: usize = 9;

/// A range with the errors of some of its sectors, ns.
struct Range {
    /// Number of its part.
    part: usize,
    place: Part,
    errors: Vec<f64>,
}

/// Compares the angles of sectors of each part with the profile.
///
/// # Errors
/// As [`Sampler::run`].
pub(super) fn check(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    parts: &[Part],
) -> Result<Vec<Checked>, ProbeError> {
    let mut ranges = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let width = u64::from(part.last - part.first) + 1;
        let count = RANGES.min(width);
        let at = |r: u64| part.first + (width * r / count) as u32;
        ranges.extend((0..count).map(|r| Range {
            part: i,
            place: Part { first: at(r), last: at(r + 1) - 1, ..*part },
            errors: Vec::new(),
        }));
    }
    look(sampler, spindle, pairs, &mut ranges, SECTORS)?;
    // Among hundreds of medians one may be off by chance.
    let (mut good, mut doubted): (Vec<Range>, Vec<Range>) = ranges.into_iter().partition(|r| judge(&r.errors).1);
    look(sampler, spindle, pairs, &mut doubted, AGAIN)?;
    good.extend(doubted);
    let of_part = |(i, part): (usize, &Part)| {
        let class = Class::Angles(part.first, part.last, part.surface);
        let mine = good.iter().filter(|r| r.part == i);
        mine.fold(Checked { class, asked: 0, wrong: 0, good: true }, |c, range| {
            let (wrong, good) = judge(&range.errors);
            let asked = c.asked + range.errors.len() as u32;
            Checked { class, asked, wrong: c.wrong + wrong, good: c.good && good }
        })
    };
    Ok(parts.iter().enumerate().map(of_part).collect())
}

/// Measures sectors of each range, in rounds of one sector of each, and of some anywhere. The angle
/// of the platter is known to several microseconds from the last reads of the reference: the median
/// of a round shows that error, which would be all sectors' of a range measured at once.
fn look(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    ranges: &mut [Range],
    count: usize,
) -> Result<(), ProbeError> {
    if ranges.is_empty() {
        return Ok(());
    }
    let g = pairs.geometry();
    for round in 0..count {
        sampler.share(round as f64 / count as f64);
        let mut all = Vec::with_capacity(ranges.len() + ANYWHERE);
        for _ in 0..ANYWHERE {
            let lbn = sampler.below(g.capacity());
            all.extend(error(sampler, spindle, pairs, lbn)?);
        }
        let mut mine = Vec::with_capacity(ranges.len());
        for range in ranges.iter() {
            let mut found = None;
            for _ in 0..TRIES {
                let (cylinder, surface) = range.place.place(sampler, g.surfaces());
                let Some(track) = g.track(cylinder, surface).filter(|t| t.lbns > 0) else { continue };
                let lbn = track.first_lbn + sampler.below(u64::from(track.lbns));
                found = error(sampler, spindle, pairs, lbn)?;
                break;
            }
            mine.push(found);
        }
        // Where only some ranges are measured again, they are no measure of the platter.
        if count == SECTORS {
            all.extend(mine.iter().flatten());
        }
        let common = median(all).unwrap_or(0.0);
        for (range, found) in ranges.iter_mut().zip(mine) {
            range.errors.extend(found.map(|e| e - common));
        }
    }
    Ok(())
}

/// How much later than predicted a sector passes, ns.
fn error(sampler: &mut Sampler, spindle: &mut Spindle, pairs: &Pairs, lbn: u64) -> Result<Option<f64>, ProbeError> {
    if pairs.geometry().is_remapped(lbn) {
        return Ok(None);
    }
    let Some(angle) = spindle.angle(sampler, lbn)? else { return Ok(None) };
    Ok(pairs.completion_angle(lbn).map(|expected| apart(expected, angle) * spindle.period_ns()))
}

/// Returns how many sectors lie elsewhere, and whether the range is as predicted.
fn judge(errors: &[f64]) -> (u32, bool) {
    let Some(middle) = median(errors.to_vec()) else { return (0, true) };
    let scatter = NORMAL * median(errors.iter().map(|e| (e - middle).abs()).collect()).unwrap_or(0.0);
    let error = MEDIAN * scatter / (errors.len() as f64).sqrt();
    let elsewhere = errors.iter().filter(|e| e.abs() > ELSEWHERE_NS.max(ERRORS * scatter)).count();
    let good =
        middle.abs() <= MOST_OFF_NS.max(ERRORS * error) && elsewhere as f64 <= MOST_ELSEWHERE * errors.len() as f64;
    (elsewhere as u32, good)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_off_by_more_than_its_noise_and_single_sectors_elsewhere_are_noticed() {
        let noisy = |off: f64, by: f64| -> Vec<f64> { (0..24).map(|i| off + by * f64::from(i % 5 - 2)).collect() };
        assert_eq!(judge(&noisy(3e3, 8e3)), (0, true));
        assert_eq!(judge(&noisy(25e3, 8e3)), (0, false));
        let mut some = noisy(0.0, 8e3);
        some[3] = 2e6;
        assert_eq!(judge(&some), (1, true));
        (some[7], some[9]) = (-2e6, 1e6);
        assert_eq!(judge(&some), (3, false));
        assert_eq!(judge(&[]), (0, true));
    }
}
