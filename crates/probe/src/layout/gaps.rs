//! Cylinders without data between zones.
//!
//! Spare cylinders at a zone's end hold no visible sectors, but the arm has to cross them. A move
//! across a zone's border takes as long as a seek within a zone that is longer by the number of
//! spare cylinders, so the known seek curve gives that number. Serpentines need no such
//! measurement: their groups have equal widths, and what is missing in one is spare.

use headtime_disk::profile::{GeometrySpec, Layout, Slip, SpareUnit};
use headtime_disk::{Geometry, Track};

use crate::border::{Border, SHOTS, find as border};
use crate::error::ProbeError;
use crate::pairs::{Pairs, When, holds_enough};
use crate::sampler::Sampler;
use crate::spindle::Spindle;

/// Measured distances within zones: no zone has more spare cylinders than the longest.
const CURVE: [u32; 23] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 20, 25, 32, 40, 50, 64, 80, 100, 115, 130];
/// Distances of the moves across a border, without the spare cylinders. Seek times grow most at
/// short distances; but a real curve is level in places, so two distances are used.
const ACROSS_CYLINDERS: [u32; 2] = [2, 7];
/// Attempts to find two suitable tracks.
const TRIES: u32 = 40;
/// Lower bound of a time's error, ns.
const MIN_ERROR_NS: f64 = 2e3;
/// By how much a gap must fit better than none, as a sum of squared errors.
const MIN_IMPROVEMENT: f64 = 9.0;

/// A distance and its time.
type Point = (f64, Border);

/// Widens the zones of a drive with cylinder-wise head order by their spare cylinders.
///
/// # Errors
/// As [`Sampler::run`]; or the geometry is not this drive's.
pub(super) fn widen(sampler: &mut Sampler, spindle: &mut Spindle, spec: &mut GeometrySpec) -> Result<(), ProbeError> {
    let Ok(built) = Geometry::new(spec) else { return Ok(()) };
    if !matches!(spec.layout, Layout::HeadFirst(_)) || spec.surfaces < 2 || spec.zones.len() < 2 {
        return Ok(());
    }
    sampler.stage("gaps between zones");
    let pairs = Pairs::new(sampler, spindle, &built)?;
    let mut ways = Ways { sampler, spindle, pairs: &pairs, built: &built };
    let zones: Vec<(u32, u32)> = spec.zones.iter().map(|z| (z.first_cylinder, z.last_cylinder)).collect();
    let mut curve: Vec<Point> = Vec::new();
    for distance in CURVE {
        let wide: Vec<(u32, u32)> = zones.iter().copied().filter(|(a, b)| b - a > 2 * distance).collect();
        if wide.is_empty() {
            break;
        }
        let within = ways.time(|s| {
            let (first, last) = wide[s.below(wide.len() as u64) as usize];
            let from = first + s.below(u64::from(last - first - distance)) as u32;
            (from, from + distance)
        })?;
        curve.extend(within.map(|b| (f64::from(distance), b)));
    }
    let mut shift = 0;
    for i in 0..zones.len() {
        shift_by(&mut spec.zones[i], shift);
        let Some(&(next, end)) = zones.get(i + 1) else { break };
        let (begin, last) = zones[i];
        // If only a skew differs, misidentified tracks have split one zone.
        if spec.zones[i].sectors_per_track == spec.zones[i + 1].sectors_per_track {
            continue;
        }
        let mut ways_across: Vec<Point> = Vec::new();
        for across in ACROSS_CYLINDERS {
            if last - begin < across || end - next < across {
                continue;
            }
            let time = ways.time(|s| {
                let behind = s.below(u64::from(across)) as u32;
                (last - (across - 1 - behind), next + behind)
            })?;
            ways_across.extend(time.map(|b| (f64::from(across), b)));
        }
        let gap = between(&curve, &ways_across);
        let (zone, heads) = (&mut spec.zones[i], u64::from(spec.surfaces));
        if zone.sparing.unit != SpareUnit::Zone {
            // Spares per track or cylinder do not show the zone's spares.
            continue;
        }
        let cylinder = match zone.sectors_per_track[..] {
            [all] => u64::from(all) * heads,
            ref each => each.iter().map(|n| u64::from(*n)).sum(),
        };
        zone.last_cylinder += gap;
        zone.sparing.spares += u64::from(gap) * cylinder;
        shift += gap;
    }
    spec.cylinders += shift;
    Ok(())
}

/// Shifts a zone and its contents inwards.
fn shift_by(zone: &mut headtime_disk::profile::ZoneSpec, shift: u32) {
    zone.first_cylinder += shift;
    zone.last_cylinder += shift;
    for slip in &mut zone.slips {
        match slip {
            Slip::Sector(at) => at.cylinder += shift,
            Slip::Track { cylinder, .. } => *cylinder += shift,
            Slip::Index(_) | Slip::TrackIndex(_) => {}
        }
    }
}

/// Measures moves between cylinders on any one surface.
struct Ways<'w, 's, 'g> {
    sampler: &'w mut Sampler<'s>,
    spindle: &'w mut Spindle,
    pairs: &'w Pairs<'g>,
    built: &'w Geometry,
}

impl Ways<'_, '_, '_> {
    fn time(&mut self, mut choose: impl FnMut(&mut Sampler) -> (u32, u32)) -> Result<Option<Border>, ProbeError> {
        border(self.spindle.period_ns(), SHOTS, |aim| {
            let Some((a, b)) = (0..TRIES).find_map(|_| self.tracks(&mut choose)) else { return Ok(None) };
            self.pairs.between(self.sampler, self.spindle, ((&a, &b), When::AtOnce), aim)
        })
    }

    /// Chooses two tracks of one surface, in either order.
    fn tracks(&mut self, choose: &mut impl FnMut(&mut Sampler) -> (u32, u32)) -> Option<(Track, Track)> {
        let (from, to) = choose(self.sampler);
        let surface = self.sampler.below(u64::from(self.built.surfaces())) as u16;
        let on = |cylinder| self.built.track(cylinder, surface).filter(holds_enough);
        let (a, b) = (on(from)?, on(to)?);
        Some(if self.sampler.below(2) == 0 { (a, b) } else { (b, a) })
    }
}

/// Returns the number of cylinders by which moves across a border are longer than they seem: the
/// smallest among those that fit about equally well.
fn between(curve: &[Point], across: &[Point]) -> u32 {
    let Some(&(longest, _)) = curve.last() else { return 0 };
    let nearest = across.iter().map(|(d, _)| *d).fold(0.0, f64::max);
    let misfit = |gap: u32| -> f64 {
        let off = |(d, seen): &Point| {
            let (time, error) = at(curve, d + f64::from(gap));
            (seen.at - time).powi(2) / (seen.error.powi(2) + error.powi(2) + MIN_ERROR_NS * MIN_ERROR_NS)
        };
        across.iter().map(off).sum()
    };
    let all: Vec<f64> = (0..=(longest - nearest).max(0.0) as u32).map(misfit).collect();
    let best = all.iter().copied().fold(f64::INFINITY, f64::min);
    if all[0] - best < MIN_IMPROVEMENT {
        return 0;
    }
    all.iter().position(|m| *m <= best + 1.0).map_or(0, |gap| gap as u32)
}

/// The curve's time at a distance, and its error.
fn at(curve: &[Point], distance: f64) -> (f64, f64) {
    let above = curve.partition_point(|(d, _)| *d < distance).min(curve.len() - 1);
    let ((low, l), (high, h)) = (curve[above.saturating_sub(1)], curve[above]);
    let part = if high > low { ((distance - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    (l.at + part * (h.at - l.at), l.error.max(h.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(distance: u32, at: f64) -> Point {
        (f64::from(distance), Border { at, error: 4e3, spread: 0.0, shots: 100, useless: 0 })
    }

    #[test]
    fn what_is_between_two_zones_is_found_on_curves_with_steps_too() {
        let smooth = |d: u32| 600e3 + 70e3 * f64::from(d).sqrt();
        // Level from 5 to 7, a little less at 6.
        let steps = |d: u32| 800e3 + 170e3 * f64::from((d + 1) / 3) - if d == 6 { 5e3 } else { 0.0 };
        for time in [&smooth as &dyn Fn(u32) -> f64, &steps] {
            let curve: Vec<Point> = CURVE.into_iter().map(|d| point(d, time(d))).collect();
            for gap in [0, 1, 3, 9, 25] {
                let across: Vec<Point> = ACROSS_CYLINDERS.into_iter().map(|d| point(d, time(d + gap) + 1e3)).collect();
                assert!(between(&curve, &across).abs_diff(gap) <= gap / 8, "{gap}: {}", between(&curve, &across));
            }
        }
        assert_eq!((between(&[], &[]), between(&[point(1, 1e6)], &[point(2, 2e6)])), (0, 0));
    }
}
