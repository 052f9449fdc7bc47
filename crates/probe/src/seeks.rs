//! The seek table: the time from the end of one read until a read on another track can begin.
//!
//! For each distance many pairs of tracks, all over the disk and in both directions, show the
//! border between a second read that is caught and one that comes a revolution later
//! ([`crate::border`]). It includes an idle drive's time to decode a command and the overhead after
//! the media; on one track, without a move, the same border shows these alone. The difference is
//! the seek.
//!
//! Distances: each to 10, every 2nd to 20, 5th to 50, 10th to 100, 25th to 500 (Lumb, Schindler and
//! Ganger 2002, section 4.2), then some sixty more in growing steps, because a seek curve bends
//! little at long distances.

use headtime_disk::{Dur, Geometry};

use crate::border::{Border, SHOTS, Shot, find};
use crate::error::ProbeError;
use crate::pairs::{Apart, Pairs, When, holds_enough};
use crate::sampler::Sampler;
use crate::scattered::{Scattered, Side};
use crate::spindle::Spindle;

/// One distance of a seek table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekPoint {
    /// Cylinders.
    pub distance: u32,
    /// The mean seek time over places and both directions.
    pub time: Dur,
    /// Its standard error.
    pub error: Dur,
    /// Standard deviation of single seeks.
    pub spread: Dur,
}

/// The measured seeks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeks {
    /// By distance, ascending, as measured. Real tables are not monotone
    /// ([`headtime_disk::SeekCurve`]), nor is this one.
    pub points: Vec<SeekPoint>,
    /// Distances without a border.
    pub lost: Vec<u32>,
    /// To another surface of the same cylinder.
    pub head_switch: Option<SeekPoint>,
    /// To another surface of the next cylinder: with one arm for all surfaces the longer of seek
    /// and head switch.
    pub both: Option<SeekPoint>,
    /// An idle drive's time from a command until its mechanism starts, plus the overhead after the
    /// media: in every answer.
    pub command: Dur,
    /// Its standard error.
    pub command_error: Dur,
    /// Mean time to stop read-ahead before a seek; zero if it does not show. No seek time here
    /// includes it.
    pub stop: Dur,
}

/// Number of distances beyond the 500th cylinder.
const FAR_DISTANCES: u32 = 60;

/// Returns the longest distance between two tracks of one surface that hold data: spares may take
/// up the last cylinders.
pub fn longest(geometry: &Geometry) -> u32 {
    let holds = |cylinder, surface| geometry.track(cylinder, surface).is_some_and(|t| holds_enough(&t));
    let reach = |surface| {
        let first = (0..geometry.cylinders()).find(|c| holds(*c, surface))?;
        let last = (first..geometry.cylinders()).rev().find(|c| holds(*c, surface))?;
        Some(last - first)
    };
    (0..geometry.surfaces()).filter_map(reach).max().unwrap_or(0)
}

/// Returns the distances to measure, ascending, up to `longest`.
pub fn distances(longest: u32) -> Vec<u32> {
    let near = (1..10).chain((10..20).step_by(2)).chain((20..50).step_by(5)).chain((50..100).step_by(10));
    let mut all: Vec<u32> = near.chain((100..=500).step_by(25)).filter(|d| *d <= longest).collect();
    // The smallest growth, in thousandths, with at most `FAR_DISTANCES` steps; steps are hundreds,
    // as in data sheets.
    let steps = |permille: u32| -> Vec<u32> {
        let mut d = 500u32;
        let mut far = Vec::new();
        while far.len() <= 2 * FAR_DISTANCES as usize {
            let step = (u64::from(d) * u64::from(permille) / 1000).max(100).next_multiple_of(100);
            d = d.saturating_add(step as u32);
            if d >= longest {
                break;
            }
            far.push(d);
        }
        far
    };
    if longest > 500 {
        let growth = (1..1000).find(|g| steps(*g).len() < FAR_DISTANCES as usize).unwrap_or(1000);
        // A point just before the last would be redundant.
        all.extend(steps(growth).into_iter().filter(|d| longest - d > 50));
    }
    if longest > 0 && all.last() != Some(&longest) {
        all.push(longest);
    }
    all
}

/// Measures the seek times of `distances` (ascending), head switch and command time, of a drive
/// with known geometry.
///
/// # Errors
/// As [`Sampler::run`]; or the geometry is not this drive's; or even on one track no border is
/// found.
pub fn measure(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    geometry: &Geometry,
    distances: &[u32],
) -> Result<Seeks, ProbeError> {
    sampler.stage("seeks");
    let pairs = Pairs::new(sampler, spindle, geometry)?;
    let mut command = command_time(sampler, spindle, &pairs)?;
    let stop = stop_time(sampler, spindle, &pairs)?;
    let mut found = Seeks {
        points: Vec::with_capacity(distances.len()),
        lost: Vec::new(),
        head_switch: None,
        both: None,
        command: Dur(command.at.max(0.0).round() as u64),
        command_error: Dur(command.error.round() as u64),
        stop: Dur(stop.round() as u64),
    };
    // It does not show on one track: the next sector is caught whether the sector under the head is
    // finished or not.
    command.at += stop;
    for (i, &cylinders) in distances.iter().enumerate() {
        sampler.share(i as f64 / (distances.len() + 2) as f64);
        match seek(sampler, spindle, &pairs, &command, Apart { cylinders, other_surface: false })? {
            Some(point) => found.points.push(point),
            None => found.lost.push(cylinders),
        }
    }
    if geometry.surfaces() > 1 {
        found.head_switch = seek(sampler, spindle, &pairs, &command, Apart { cylinders: 0, other_surface: true })?;
        found.both = seek(sampler, spindle, &pairs, &command, Apart { cylinders: 1, other_surface: true })?;
    }
    Ok(found)
}

/// The time of one move: the border of its pairs less that of pairs without a move.
///
/// # Errors
/// As [`Sampler::run`].
pub fn seek(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    command: &Border,
    how: Apart,
) -> Result<Option<SeekPoint>, ProbeError> {
    let mut border: Option<Border> = None;
    for _ in 0..MOST_TIMES {
        let once = find(spindle.period_ns(), SHOTS, |aim| pairs.idle(sampler, spindle, (how, When::AtOnce), aim))?;
        let Some(once) = once else { break };
        let all = border.map_or(once, |b| b.and(&once));
        border = Some(all);
        if all.error < SUFFICIENT_ERROR_NS {
            break;
        }
    }
    Ok(border.map(|b| SeekPoint {
        distance: how.cylinders,
        time: Dur((b.at - command.at).max(0.0).round() as u64),
        error: Dur((b.error * b.error + command.error * command.error).sqrt().round() as u64),
        spread: Dur(b.spread.round() as u64),
    }))
}

/// Sufficient error of a seek time, ns; where seeks vary much, one is measured again.
const SUFFICIENT_ERROR_NS: f64 = 6.5e3;
const MOST_TIMES: u32 = 3;

/// A distance at which one track more does not matter: read-ahead may end on another track than the
/// read.
const FAR_ENOUGH: u32 = 200;
/// Shots for a difference of some microseconds: a third of the usual error.
const FINE_SHOTS: u32 = 8 * SHOTS;

/// Smallest time, ns, that is searched for: it is below the error of a seek time.
const MIN_TIME_NS: f64 = 4e3;

/// Mean time to stop read-ahead, ns: zero or half a sector, because some drives complete the sector
/// under the head. It is the difference between immediate seeks and seeks after read-ahead has
/// finished.
fn stop_time(sampler: &mut Sampler, spindle: &mut Spindle, pairs: &Pairs) -> Result<f64, ProbeError> {
    let g = pairs.geometry();
    let how = Apart { cylinders: FAR_ENOUGH.min(g.cylinders() / 2), other_surface: false };
    let Some(track) = g.track_of(g.capacity() / 2) else { return Ok(0.0) };
    let half = pairs.sector(spindle, &track) / 2.0;
    if how.cylinders == 0 || half < MIN_TIME_NS {
        return Ok(0.0);
    }
    // A revolution, in which the track is read to its end, and a margin.
    let rested = Dur((1.25 * spindle.period_ns()) as u64);
    let mut border =
        |when| find(spindle.period_ns(), 2 * FINE_SHOTS, |aim| pairs.idle(sampler, spindle, (how, when), aim));
    let (Some(at_once), Some(later)) = (border(When::AtOnce)?, border(When::Later(rested))?) else { return Ok(0.0) };
    Ok(if at_once.at - later.at > half / 2.0 { half } else { 0.0 })
}

/// A sector that passed no longer ago than this, or than a hit takes, may have been read ahead when
/// its command arrives; a hit of a sector that has not passed says nothing.
const READ_AHEAD: f64 = 100e3;

/// The border on one track, without a move.
///
/// # Errors
/// As [`Sampler::run`]; or there is none.
pub fn command_time(sampler: &mut Sampler, spindle: &mut Spindle, pairs: &Pairs) -> Result<Border, ProbeError> {
    let ahead = READ_AHEAD.max(sampler.quick().0 as f64);
    let turn = spindle.period_ns();
    let mut seen = Scattered::default();
    let mut found = find(turn, FINE_SHOTS, |aim| {
        let Some(aimed) = pairs.same_track(sampler, spindle, When::AtOnce, aim)? else { return Ok(None) };
        seen.observe(aimed);
        Ok(match aimed.is_media {
            true => Some(aimed.shot),
            // It had passed when the command arrived, and was read ahead: too late for a media
            // read.
            false if aimed.shot.slack < ahead => Some(Shot { turns: 1, ..aimed.shot }),
            false => {
                sampler.forget_all()?;
                None
            }
        })
    })?;
    let (missed, caught) = (Side { cached: true, turns: &[1.0] }, Side { cached: false, turns: &[0.0] });
    if let (Some(found), Some((at, error))) = (&mut found, seen.border(pairs, turn, missed, caught)) {
        // Near the border a hit may take as long as a media read: all shots together are more
        // certain than each alone.
        (found.at, found.error) = (at, error);
    }
    found.ok_or_else(|| ProbeError::NoDisk {
        what: "reads of two sectors of one track in a row",
        expected: "one angle between them at which the second comes a turn late".into(),
        found: "none".into(),
    })
}

impl Seeks {
    /// The table in the profile's form.
    pub fn table(&self) -> Vec<(u32, Dur)> {
        self.points.iter().map(|p| (p.distance, p.time)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_dense_near_and_reach_the_last_cylinder() {
        for cylinders in [1, 2, 12, 40, 501, 502, 620, 10_042, 228_718, u32::MAX] {
            let all = distances(cylinders - 1);
            assert!(all.windows(2).all(|w| w[0] < w[1]), "{cylinders}: {all:?}");
            assert_eq!(all.last().copied().unwrap_or(0), cylinders - 1);
            let far = all.iter().filter(|d| **d > 500).count();
            assert!(far <= 61, "{cylinders}: {far}");
            assert!(cylinders < 10_000 || far >= 30, "{cylinders}: {far}");
            assert!(cylinders < 600 || all.iter().filter(|d| **d <= 500).count() == 9 + 5 + 6 + 5 + 17);
        }
    }
}
