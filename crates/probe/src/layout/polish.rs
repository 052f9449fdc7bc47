//! Refines zone starts and skews from some hundred sectors of each zone.
//!
//! The map samples a dozen places of a row. An answer is off by about 10 us, and a skew must be
//! known to half a sector: 2 us on some drives. So sectors all over a zone are measured, on
//! serpentines at both ends of sweeps, where they determine most, and three figures are fitted: the
//! zone's start, the skew to the next track and the skew to the next cylinder or sweep.
//!
//! Manufacturers choose skews by a rule: a constant time, which is the same part of a revolution
//! everywhere, or that rounded to whole sectors. If all zones agree with one rule within their
//! errors, it is applied to each zone.

use headtime_disk::Geometry;
use headtime_disk::profile::{GeometrySpec, Layout, SectorAddress, Skew, ZoneSpec};

use super::turn;
use crate::error::ProbeError;
use crate::fit::fit;
use crate::spindle::{apart, fraction};
use crate::tracks::Tracer;

/// Sectors measured per zone.
const SECTORS_PER_ZONE: u32 = 240;
/// Zones with less than this part of all sectors are not refined.
const PART: u64 = 400;
/// Sectors measured in all smaller zones together, and per small zone at least and at most.
const ALL_SMALL: usize = 6_000;
const MIN_ZONE_SAMPLES: usize = 6;
const MAX_ZONE_SAMPLES: usize = 16;
/// An answer off by more, ns, has another cause.
const OUTLIER_NS: f64 = 60e3;
/// Zones whose median error is the platter's, rather than theirs.
const MANY_ZONES: usize = 6;
/// A rule is rejected at this many standard errors.
const ERRORS: f64 = 4.0;
/// Largest error of a skew, in sectors, at which whole sectors can be recognised.
const MAX_SKEW_ERROR_SECTORS: f64 = 0.12;

/// A fitted zone.
struct Fitted {
    zone: usize,
    sectors: f64,
    /// Skews and their errors, in revolutions: to the next track, and to the next cylinder or
    /// sweep.
    skews: [(f64, f64); 2],
}

/// Refines the zones that span all surfaces.
///
/// # Errors
/// As [`crate::sampler::Sampler::run`].
pub(super) fn polish(tracer: &mut Tracer, spec: &mut GeometrySpec) -> Result<(), ProbeError> {
    tracer.sampler.stage("skews");
    let Ok(built) = Geometry::new(spec) else { return Ok(()) };
    let is_large = |z: &ZoneSpec| {
        let cylinders = u64::from(z.last_cylinder - z.first_cylinder + 1);
        let sectors = u64::from(z.sectors_per_track[0]) * cylinders * u64::from(spec.surfaces);
        z.surface.is_none() && sectors * PART >= built.capacity()
    };
    let large: Vec<usize> = (0..spec.zones.len()).filter(|i| is_large(&spec.zones[*i])).collect();
    let points = look(tracer, &built, spec, &large)?;
    let mut fitted: Vec<Fitted> = Vec::new();
    for (i, points) in large.into_iter().zip(points) {
        if points.len() < SECTORS_PER_ZONE as usize {
            continue;
        }
        let f = fit(&points);
        let z = &mut spec.zones[i];
        let alike = z.track_skew == z.cylinder_skew;
        let own = |s: Skew| s.angle(z.sectors_per_track[0]).turns();
        let (within, across) = (own(z.track_skew), own(z.cylinder_skew));
        let sectors = f64::from(z.sectors_per_track[0]);
        z.offset = z.offset.map(|o| turn(fraction(o.angle(z.sectors_per_track[0]).turns() + f.values[0])));
        let within = (fraction(within + f.values[1]), f.errors[1]);
        let across = if alike { within } else { (fraction(across + f.values[2]), f.errors[2]) };
        fitted.push(Fitted { zone: i, sectors, skews: [within, across] });
        (z.track_skew, z.cylinder_skew) = (turn(within.0), turn(across.0));
    }
    rules(spec, &fitted);
    let done: Vec<usize> = fitted.iter().map(|f| f.zone).collect();
    begins(tracer, spec, &done)
}

/// Refines the starts of small zones by the mean of some sectors of each.
fn begins(tracer: &mut Tracer, spec: &mut GeometrySpec, done: &[usize]) -> Result<(), ProbeError> {
    let Ok(built) = Geometry::new(spec) else { return Ok(()) };
    let small: Vec<usize> = (0..spec.zones.len()).filter(|i| !done.contains(i)).collect();
    // A drive of small zones only has too many of them.
    if small.len() > ALL_SMALL {
        return Ok(());
    }
    let looks = (ALL_SMALL / small.len().max(1)).clamp(MIN_ZONE_SAMPLES, MAX_ZONE_SAMPLES);
    for &i in &small {
        tracer.sampler.share(i as f64 / spec.zones.len() as f64);
        let z = spec.zones[i].clone();
        let mut off = Vec::with_capacity(looks);
        for _ in 0..4 * looks {
            let surface = z.surface.unwrap_or_else(|| tracer.sampler.below(u64::from(spec.surfaces)) as u16);
            let cylinders = u64::from(z.last_cylinder - z.first_cylinder + 1);
            let cylinder = z.first_cylinder + tracer.sampler.below(cylinders) as u32;
            let sector = tracer.sampler.below(u64::from(z.sectors_per_track[0])) as u32;
            let Some(lbn) = built.lbn_at(SectorAddress { cylinder, surface, sector }) else { continue };
            let Some(found) = off_by(tracer, &built, lbn)? else { continue };
            off.push(found);
            if off.len() == looks {
                break;
            }
        }
        if let (true, Some(o)) = (off.len() >= MIN_ZONE_SAMPLES, z.offset) {
            let mean = off.iter().sum::<f64>() / off.len() as f64;
            spec.zones[i].offset = Some(turn(fraction(o.angle(z.sectors_per_track[0]).turns() + mean)));
        }
    }
    Ok(())
}

/// Returns how much later than predicted a sector ends, in revolutions; `None`: too far off to be
/// useful.
fn off_by(tracer: &mut Tracer, built: &Geometry, lbn: u64) -> Result<Option<f64>, ProbeError> {
    let Some(at) = built.locate(lbn).filter(|_| !built.is_remapped(lbn)) else { return Ok(None) };
    let expected = fraction(at.angle.turns() + 1.0 / f64::from(at.spt.max(1)));
    let off = apart(expected, tracer.angle(lbn)?);
    let far = OUTLIER_NS.max(6.0 * tracer.spindle.noise_ns());
    Ok((off.abs() * tracer.spindle.period_ns() < far).then_some(off))
}

/// Tracks of a zone with the errors of their sectors' angles.
type Points = Vec<([f64; 3], f64)>;

/// Measures sectors of each zone, in rounds of one sector of each. The platter's angle at any time
/// is known to several microseconds from the last reads of the reference; over a zone measured at
/// once that error would be all of its sectors'. In rounds it averages out, and with many zones a
/// round's median shows it.
fn look(
    tracer: &mut Tracer,
    built: &Geometry,
    spec: &GeometrySpec,
    zones: &[usize],
) -> Result<Vec<Points>, ProbeError> {
    let mut all: Vec<Points> = vec![Vec::new(); zones.len()];
    for tried in 0..2 * SECTORS_PER_ZONE {
        tracer.sampler.share(f64::from(tried) / f64::from(SECTORS_PER_ZONE));
        let mut round: Vec<(usize, [f64; 3], f64)> = Vec::with_capacity(zones.len());
        for (n, &i) in zones.iter().enumerate() {
            let z = &spec.zones[i];
            if all[n].len() == SECTORS_PER_ZONE as usize {
                continue;
            }
            let place = place(tracer, spec, z);
            let sector = tracer.sampler.below(u64::from(z.sectors_per_track[0])) as u32;
            let address = SectorAddress { cylinder: place.cylinder, surface: place.surface, sector };
            let Some(lbn) = built.lbn_at(address) else { continue };
            if let Some(off) = off_by(tracer, built, lbn)? {
                let x = match z.track_skew == z.cylinder_skew {
                    true => [1.0, place.within + place.across, 0.0],
                    false => [1.0, place.within, place.across],
                };
                round.push((n, x, off));
            }
        }
        if round.is_empty() {
            break;
        }
        let mut errors: Vec<f64> = round.iter().map(|r| r.2).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let common = if errors.len() < MANY_ZONES { 0.0 } else { errors[errors.len() / 2] };
        round.into_iter().for_each(|(n, x, off)| all[n].push((x, off - common)));
    }
    Ok(all)
}

/// A track, and the number of steps of each kind from its zone's first.
struct Place {
    cylinder: u32,
    surface: u16,
    within: f64,
    across: f64,
}

/// Chooses a random track of a zone.
fn place(tracer: &mut Tracer, spec: &GeometrySpec, z: &ZoneSpec) -> Place {
    let cylinders = u64::from(z.last_cylinder - z.first_cylinder + 1);
    let surfaces = u64::from(spec.surfaces);
    let mut below = |n: u64| tracer.sampler.below(n);
    match spec.layout {
        Layout::HeadFirst(order) => {
            let (at, head) = (below(cylinders), below(surfaces));
            let cylinder = z.first_cylinder + at as u32;
            let surface = super::heads::surface(order, spec.surfaces, (z.first_cylinder, cylinder), head as u16);
            Place { cylinder, surface, within: (at * (surfaces - 1) + head) as f64, across: at as f64 }
        }
        layout @ Layout::SeekFirst { group_tracks, .. } => {
            let tracks = u64::from(group_tracks).min(cylinders);
            let (group, visit) = (below((cylinders / tracks).max(1)), below(surfaces));
            let near = below((tracks / 16).max(1));
            let track = if below(2) == 0 { near } else { tracks - 1 - near };
            let first = u64::from(z.first_cylinder) + group * tracks;
            let (surface, outwards) = layout.sweep(spec.surfaces, (first / tracks) as u32, visit as u16);
            let cylinder = (first + if outwards { tracks - 1 - track } else { track }) as u32;
            let sweep = group * surfaces + visit;
            Place { cylinder, surface, within: (sweep * (tracks - 1) + track) as f64, across: sweep as f64 }
        }
    }
}

/// Applies the rule to a zone too short to be fitted: its middle stays at its measured angle.
fn straighten(z: &mut ZoneSpec, rule: &dyn Fn(&Fitted) -> f64) {
    let n = z.sectors_per_track[0];
    let own = z.track_skew.angle(n).turns();
    let found = rule(&Fitted { zone: 0, sectors: f64::from(n), skews: [(own, 0.0); 2] });
    let tracks = f64::from(z.last_cylinder - z.first_cylinder + 1) - (z.sparing.spares / u64::from(n)) as f64;
    if let Some(o) = z.offset {
        z.offset = Some(turn(fraction(o.angle(n).turns() + apart(found, own) * (tracks - 1.0) / 2.0)));
        z.track_skew = turn(found);
    }
}

/// Applies a rule to the skews of all zones, if one holds.
fn rules(spec: &mut GeometrySpec, fitted: &[Fitted]) {
    // With two zones any rule holds by chance.
    if fitted.len() < 4 {
        return;
    }
    let mut whole = false;
    for kind in 0..2 {
        let of = |f: &Fitted| f.skews[kind];
        let weight = |f: &Fitted| 1.0 / (of(f).1 * of(f).1).max(1e-24);
        let first = of(&fitted[0]).0;
        let sum: f64 = fitted.iter().map(weight).sum();
        let same = fraction(first + fitted.iter().map(|f| weight(f) * apart(first, of(f).0)).sum::<f64>() / sum);
        let in_sectors = |f: &Fitted| (of(f).0 * f.sectors).round() / f.sectors;
        let holds = |rule: &dyn Fn(&Fitted) -> f64| {
            fitted.iter().all(|f| apart(rule(f), of(f).0).abs() <= ERRORS * of(f).1.max(1e-9))
        };
        let sharp = fitted.iter().all(|f| of(f).1 * f.sectors < MAX_SKEW_ERROR_SECTORS);
        let mut take = |rule: &dyn Fn(&Fitted) -> f64| {
            for f in fitted {
                let z = &mut spec.zones[f.zone];
                let found = turn(rule(f));
                if kind == 0 { z.track_skew = found } else { z.cylinder_skew = found }
            }
            if kind == 0 {
                spec.zones.iter_mut().filter(|z| z.surface.is_some()).for_each(|z| straighten(z, rule));
            }
        };
        // If the skew to the next track is in whole sectors, so is the other.
        if kind == 1
            && whole
            && fitted.iter().all(|f| of(f).1 * f.sectors < 2.0 * MAX_SKEW_ERROR_SECTORS)
            && holds(&in_sectors)
        {
            take(&in_sectors);
        } else if !whole && holds(&|_| same) {
            take(&|_| same);
        } else if sharp && holds(&in_sectors) {
            take(&in_sectors);
            whole |= kind == 0;
        }
    }
}
