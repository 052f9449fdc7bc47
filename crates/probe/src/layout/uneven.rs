//! Drives whose heads or cylinders differ: heads with different numbers of sectors in one cylinder,
//! and free sectors on each track or in each cylinder.
//!
//! There the map is a pattern of short rows that repeats with each cylinder, so it reveals the
//! number of heads. A track with free sectors ends before the angle of its start: the mean rate of
//! some tracks gives their number.

use headtime_disk::Geometry;
use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, SectorAddress, Slip, SpareUnit, Sparing, ZoneSpec};

use super::surfaces::Order;
use super::units::MOST_SURFACES;
use super::{spares, turn};
use crate::error::ProbeError;
use crate::fit::fit;
use crate::map::Span;
use crate::spindle::{NORMAL, apart, fraction};
use crate::tracks::Tracer;

/// Tracks measured for a rate.
const RATE_TRACKS: usize = 24;
/// Threshold of free sectors: in errors of the mean, and in sectors.
const ERRORS: f64 = 5.0;
const PART: f64 = 0.6;
/// Tracks of a zone for the first estimate of its skews.
const SKEWS: usize = 64;
/// Points of a zone for the fit of its skews.
const POINTS: usize = 400;

/// One track of the map.
#[derive(Clone, Copy, Debug)]
struct Track {
    first: u64,
    sectors: u32,
    angle: f64,
}

/// Returns the geometry of such a map, with its head order. `None`: the map is of another kind.
///
/// # Errors
/// As [`crate::sampler::Sampler::run`].
pub(super) fn geometry(tracer: &mut Tracer, spans: &[Span]) -> Result<Option<(GeometrySpec, Order)>, ProbeError> {
    let Some((heads, order)) = heads(spans) else { return Ok(None) };
    let tracks = unrolled(spans);
    let mut zones = Vec::new();
    let (mut at, mut cylinder) = (0, 0);
    while at < tracks.len() {
        let Some(zone) = Zone::find(&tracks[at..], heads, order, tracer.same()) else { return Ok(None) };
        at += zone.tracks.len() + zone.others;
        let Some(spec) = zone.spec(tracer, cylinder)? else { return Ok(None) };
        cylinder = spec.last_cylinder + 1;
        zones.push(spec);
    }
    let surfaces = heads as u16;
    let order = if order == HeadOrder::AlternatingInZone { on_disk(&mut zones) } else { order };
    let spec =
        GeometrySpec { surfaces, cylinders: cylinder, layout: Layout::HeadFirst(order), zones, remaps: Vec::new() };
    Ok(Some((spec, Order::Heads { surfaces, order })))
}

/// Decides whether heads alternate in each zone or on the whole disk: then a zone that begins with
/// an odd cylinder begins with the last surface, and the sectors of its surfaces are the other way
/// round than in the first zone.
fn on_disk(zones: &mut [ZoneSpec]) -> HeadOrder {
    let Some(first) = zones.first().map(|z| z.sectors_per_track.clone()) else { return HeadOrder::AlternatingInZone };
    // By how much the surfaces' shares of a cylinder differ from those of the first zone.
    let apart = |each: &mut dyn Iterator<Item = &u32>, z: &ZoneSpec| -> f64 {
        let (mine, all): (f64, f64) =
            (z.sectors_per_track.iter().sum::<u32>().into(), first.iter().sum::<u32>().into());
        each.zip(&first).map(|(n, f)| (f64::from(*n) / mine - f64::from(*f) / all).abs()).sum()
    };
    let is_odd = |z: &ZoneSpec| z.first_cylinder % 2 == 1 && z.sectors_per_track.len() > 1;
    let turned =
        |z: &ZoneSpec| apart(&mut z.sectors_per_track.iter().rev(), z) < apart(&mut z.sectors_per_track.iter(), z);
    let odd = zones.iter().filter(|z| is_odd(z)).count();
    if odd == 0 || 2 * zones.iter().filter(|z| is_odd(z) && turned(z)).count() <= odd {
        return HeadOrder::AlternatingInZone;
    }
    for zone in zones.iter_mut().filter(|z| z.first_cylinder % 2 == 1) {
        zone.sectors_per_track.reverse();
        for slip in &mut zone.slips {
            if let Slip::Track { surface, .. } | Slip::Sector(SectorAddress { surface, .. }) = slip {
                *surface = first.len() as u16 - 1 - *surface;
            }
        }
    }
    HeadOrder::AlternatingOnDisk
}

/// Returns the number of heads from the pattern with most tracks, if its tracks differ; a pattern
/// that is symmetric is a cylinder forwards and one backwards.
fn heads(spans: &[Span]) -> Option<(usize, HeadOrder)> {
    let tracks = |s: &Span| s.runs.iter().map(|r| r.tracks).sum::<u64>();
    let all: u64 = spans.iter().map(|s| s.times * tracks(s)).sum();
    let is_uneven = |s: &&Span| {
        let first = &s.runs[0];
        s.times > 2 && tracks(s) <= 2 * MOST_SURFACES && s.runs.iter().any(|r| r.sectors != first.sectors)
    };
    let most = spans.iter().filter(is_uneven).max_by_key(|s| s.times * tracks(s))?;
    let length = tracks(most);
    let in_such: u64 = spans.iter().filter(is_uneven).filter(|s| tracks(s) == length).map(|s| s.times * length).sum();
    if 2 * in_such < all {
        return None;
    }
    let each: Vec<u32> = most.runs.iter().flat_map(|r| (0..r.tracks).map(|_| r.sectors)).collect();
    let half = each.len() / 2;
    // It may begin anywhere in a cylinder.
    let turns_back = each.len().is_multiple_of(2)
        && half > 1
        && (0..each.len()).any(|from| {
            let at = |i: usize| each[(from + i) % each.len()];
            (0..half).all(|i| at(i) == at(each.len() - 1 - i))
        });
    Some(if turns_back { (half, HeadOrder::AlternatingInZone) } else { (each.len(), HeadOrder::Forward) })
}

/// Expands all tracks.
fn unrolled(spans: &[Span]) -> Vec<Track> {
    let mut tracks = Vec::new();
    for span in spans {
        for time in 0..span.times {
            let (ahead, turned) = (time * span.sectors(), fraction(span.advance * time as f64));
            for run in &span.runs {
                tracks.extend((0..run.tracks).map(|j| Track {
                    first: run.first + ahead + j * u64::from(run.sectors),
                    sectors: run.sectors,
                    angle: fraction(run.begins(j) + turned),
                }));
            }
        }
    }
    tracks
}

/// Equal cylinders.
struct Zone<'t> {
    heads: usize,
    order: HeadOrder,
    /// Its whole tracks.
    tracks: &'t [Track],
    /// Sectors with an LBN on the track of each surface.
    sectors: Vec<u32>,
    /// Skew to the next head, and to the next cylinder.
    skews: (f64, f64),
    /// Sectors after them, on tracks the last of which holds fewer.
    rest: u64,
    /// Number of the map's tracks that hold the rest.
    others: usize,
}

impl<'t> Zone<'t> {
    /// Returns the zone that begins with these tracks; `None`: there are no two equal cylinders.
    fn find(tracks: &'t [Track], heads: usize, order: HeadOrder, same: f64) -> Option<Zone<'t>> {
        let sectors: Vec<u32> = tracks.get(..heads)?.iter().map(|t| t.sectors).collect();
        let step = |i: usize| fraction(tracks[i].angle - tracks[i - 1].angle);
        let median = |crosses: bool| {
            let first = SKEWS.max(3 * heads).min(tracks.len());
            let mut all: Vec<f64> = (1..first).filter(|i| i.is_multiple_of(heads) == crosses).map(step).collect();
            all.sort_unstable_by(f64::total_cmp);
            all.get(all.len() / 2).copied()
        };
        let skews = (median(false)?, median(true)?);
        let mut zone = Zone { heads, order, tracks, sectors, skews, rest: 0, others: 0 };
        let lies = |i: usize| {
            let skew = if i.is_multiple_of(heads) { skews.1 } else { skews.0 };
            i == 0 || apart(skew, step(i)).abs() <= same
        };
        let end = (0..tracks.len()).find(|&i| tracks[i].sectors != zone.sectors[zone.surface(i)] || !lies(i));
        let end = end.unwrap_or(tracks.len());
        zone.tracks = &tracks[..end];
        // The last track may hold fewer, unless a surface of the next cylinders does, in either order. At the drive's end the map
        // may be off by some sectors, because nothing follows that shows where a track ends.
        let is_open = |t: &Track| {
            let again = tracks[end + 1..].iter().take(2 * heads).any(|next| next.sectors == t.sectors);
            t.sectors < zone.sectors[zone.surface(end)] && lies(end) && !again
        };
        zone.others = match tracks.len() - end {
            left if left <= heads => left,
            _ => usize::from(tracks.get(end).is_some_and(is_open)),
        };
        zone.rest = tracks[end..end + zone.others].iter().map(|t| u64::from(t.sectors)).sum();
        (end >= 2 * heads).then_some(zone)
    }

    /// The surface of track number `i`.
    fn surface(&self, i: usize) -> usize {
        let (cylinder, head) = (i / self.heads, i % self.heads);
        if self.order.is_turned(0, cylinder as u32) { self.heads - 1 - head } else { head }
    }

    /// Revolutions from its first track to this one.
    fn turned(&self, i: usize) -> f64 {
        let cylinders = i / self.heads;
        fraction(self.skews.0 * (i - cylinders) as f64 + self.skews.1 * cylinders as f64)
    }

    /// The zone in the profile's form; `None`: its free sectors fit no rule.
    fn spec(mut self, tracer: &mut Tracer, first: u32) -> Result<Option<ZoneSpec>, ProbeError> {
        let begin = self.fit();
        let mut free = Vec::with_capacity(self.heads);
        for surface in 0..self.heads {
            free.push(self.free(tracer, surface)?);
        }
        let spts: Vec<u32> = self.sectors.iter().zip(&free).map(|(n, f)| n + f).collect();
        let (last, rest) = (free[self.heads - 1], &free[..self.heads - 1]);
        let unit = match last {
            0 if rest.iter().all(|f| *f == 0) => SpareUnit::Zone,
            n if rest.iter().all(|f| *f == n) => SpareUnit::Track,
            _ if rest.iter().all(|f| *f == 0) && self.order == HeadOrder::Forward => SpareUnit::Cylinders(1),
            _ => return Ok(None),
        };
        // Tracks that hold the rest.
        let (mut rest, mut count) = (self.rest, self.tracks.len());
        while rest > 0 {
            rest = rest.saturating_sub(u64::from(self.sectors[self.surface(count)]));
            count += 1;
        }
        rest = self.rest;
        let cylinders = count.div_ceil(self.heads);
        let place = |i: usize| (first + (i / self.heads) as u32, self.surface(i) as u16);
        let (mut empty, mut slips) = (0, Vec::new());
        for i in self.tracks.len()..cylinders * self.heads {
            let ((cylinder, surface), spt) = (place(i), spts[self.surface(i)]);
            let holds = rest.min(u64::from(self.sectors[surface as usize])) as u32;
            rest -= u64::from(holds);
            if holds == self.sectors[surface as usize] {
                continue;
            }
            match unit {
                SpareUnit::Zone => empty += u64::from(spt - holds.min(spt)),
                _ if holds == 0 => slips.push(Slip::Track { cylinder, surface }),
                _ => slips.extend(
                    (holds..spts[surface as usize])
                        .map(|sector| Slip::Sector(SectorAddress { cylinder, surface, sector })),
                ),
            }
        }
        let sparing = match unit {
            SpareUnit::Zone => spares(empty),
            unit => Sparing { unit, spares: u64::from(last), ..Sparing::NONE },
        };
        let alike = spts.iter().all(|n| *n == spts[0]);
        Ok(Some(ZoneSpec {
            first_cylinder: first,
            last_cylinder: first + cylinders as u32 - 1,
            surface: None,
            sectors_per_track: if alike { vec![spts[0]] } else { spts },
            offset: Some(turn(begin)),
            track_skew: turn(self.skews.0),
            cylinder_skew: turn(self.skews.1),
            reserved_sectors: 0,
            sparing,
            slips,
            defects: Vec::new(),
        }))
    }

    /// Fits the first track's angle and both skews to all tracks.
    fn fit(&mut self) -> f64 {
        let begin = self.tracks[0].angle;
        let each = (self.tracks.len() / POINTS).max(1);
        let (mut left, mut points) = (0.0, Vec::new());
        for i in (0..self.tracks.len()).step_by(each) {
            left += apart(fraction(begin + left + self.turned(i)), self.tracks[i].angle);
            let cylinders = i / self.heads;
            points.push(([1.0, (i - cylinders) as f64, cylinders as f64], left));
        }
        let [offset, within, across] = fit(&points).values;
        self.skews = (fraction(self.skews.0 + within), fraction(self.skews.1 + across));
        fraction(begin + offset)
    }

    /// Free sectors at the end of each track of a surface.
    fn free(&self, tracer: &mut Tracer, surface: usize) -> Result<u32, ProbeError> {
        let cylinders = (self.tracks.len() / self.heads) as u64;
        free(tracer, self.sectors[surface], |tracer| {
            let cylinder = tracer.sampler.below(cylinders) as usize;
            let of = |head: usize| cylinder * self.heads + head;
            (0..self.heads).map(of).find(|i| self.surface(*i) == surface).map(|i| self.tracks[i].first)
        })
    }
}

/// Sets the free sectors per track, if all tracks of a zone have them and nothing else in it is
/// free. The map does not show them: evenly spaced tracks look alike, full or not.
///
/// # Errors
/// As [`crate::sampler::Sampler::run`].
pub(super) fn free_on_each_track(tracer: &mut Tracer, spec: &mut GeometrySpec) -> Result<(), ProbeError> {
    let Ok(built) = Geometry::new(spec) else { return Ok(()) };
    let width = |z: &ZoneSpec| z.last_cylinder - z.first_cylinder;
    let is_full = |z: &ZoneSpec| z.sparing.spares == 0 && z.slips.is_empty() && z.sectors_per_track.len() == 1;
    let mut full: Vec<usize> = (0..spec.zones.len()).filter(|i| is_full(&spec.zones[*i])).collect();
    // The widest zone decides whether to measure the others.
    full.sort_by_key(|i| std::cmp::Reverse(width(&spec.zones[*i])));
    for (n, &i) in full.iter().enumerate() {
        let zone = &spec.zones[i];
        let (first, cylinders) = (zone.first_cylinder, u64::from(width(zone)) + 1);
        let sectors = zone.sectors_per_track[0];
        let found = free(tracer, sectors, |tracer| {
            let surface = tracer.sampler.below(u64::from(built.surfaces())) as u16;
            let cylinder = first + tracer.sampler.below(cylinders) as u32;
            built.track(cylinder, zone.surface.unwrap_or(surface)).filter(|t| t.lbns == sectors).map(|t| t.first_lbn)
        })?;
        if n == 0 && found == 0 {
            return Ok(());
        }
        let zone = &mut spec.zones[i];
        zone.sectors_per_track = vec![sectors + found];
        zone.sparing = Sparing { unit: SpareUnit::Track, spares: u64::from(found), ..Sparing::NONE };
    }
    Ok(())
}

/// Number of free sectors after `sectors` visible ones, on tracks whose first sector `choose`
/// returns.
fn free(
    tracer: &mut Tracer,
    sectors: u32,
    mut choose: impl FnMut(&mut Tracer) -> Option<u64>,
) -> Result<u32, ProbeError> {
    let mut seen = Vec::with_capacity(RATE_TRACKS);
    for _ in 0..RATE_TRACKS {
        let Some(first) = choose(tracer) else { continue };
        // In descending order, so that read-ahead gives no answer.
        let end = tracer.angle(first + u64::from(sectors) - 1)?;
        let begin = tracer.angle(first)? - 1.0 / f64::from(sectors);
        seen.push(fraction(apart(end, begin)));
    }
    Ok(free_sectors(&seen, f64::from(sectors)))
}

/// Converts free parts of a revolution after `sectors` sectors to a number of sectors.
fn free_sectors(seen: &[f64], sectors: f64) -> u32 {
    let Some(&first) = seen.first() else { return 0 };
    let mut about: Vec<f64> = seen.iter().map(|s| apart(first, *s)).collect();
    about.sort_unstable_by(f64::total_cmp);
    let median = about[about.len() / 2];
    let mut off: Vec<f64> = about.iter().map(|a| (a - median).abs()).collect();
    off.sort_unstable_by(f64::total_cmp);
    let error = NORMAL * off[off.len() / 2] / (off.len() as f64).sqrt();
    let part = apart(0.0, first + median);
    // The free share of all sectors in a revolution.
    let free = sectors * part / (1.0 - part);
    if free < PART || part < ERRORS * error { 0 } else { free.round() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_distinguished_from_nothing_and_from_noise() {
        let seen = |free: f64, noise: f64| -> Vec<f64> {
            (0..24).map(|i| fraction(free / 738.0 + noise / 738.0 * (f64::from(i % 5) - 2.0))).collect()
        };
        for (free, noise, found) in [(4.0, 0.5, 4), (1.0, 0.1, 1), (0.0, 0.5, 0), (1.0, 3.0, 0), (100.0, 0.5, 100)] {
            assert_eq!(free_sectors(&seen(free, noise), 738.0 - free), found, "{free} {noise}");
        }
        assert_eq!(free_sectors(&[], 738.0), 0);
    }
}
