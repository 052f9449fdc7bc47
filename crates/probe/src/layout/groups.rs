//! Serpentines: rows as groups of adjacent tracks on each surface in turn.
//!
//! A *sweep* is the part of one group on one surface. Most sweeps are one row; if a zone ends
//! within a group, or a track has bad sectors, a sweep has several. Spare tracks at a zone's end
//! are in no row; where a sweep is short, they lie after the zone that ends in it.

use std::collections::BTreeSet;

use headtime_disk::profile::{GeometrySpec, SectorAddress, Slip, ZoneSpec};

use super::rows::Row;
use super::slips::Slips;
use super::surfaces::Groups;
use super::{spares, turn};
use crate::spindle::{apart, fraction};

/// Tracks of one sweep with equal numbers of sectors.
#[derive(Clone, Debug)]
struct Part {
    /// Range of rows.
    rows: std::ops::Range<usize>,
    /// Number of tracks, with those that are skipped whole.
    tracks: u64,
    /// Skipped tracks in front of its first row.
    front: u64,
    spt: u32,
}

/// The tracks of one group on one surface, in LBN order.
type Sweep = Vec<Part>;

/// A part with its position.
struct Placed<'p> {
    surface: u16,
    /// First and last cylinder of the disk.
    cylinders: (u64, u64),
    outwards: bool,
    /// Spare tracks in front of its first one.
    front: u64,
    part: Option<&'p Part>,
}

/// Returns the geometry of rows in groups. `same`: tolerance of angles, in revolutions. `None`: the
/// rows do not fit.
pub(super) fn geometry(rows: &[Row], slips: &Slips, how: Groups, same: f64) -> Option<GeometrySpec> {
    let sweeps = sweeps(rows, how, same);
    let usual = Usual::of(rows, &sweeps)?;
    let surfaces = usize::from(how.surfaces);
    let groups: Vec<&[Sweep]> = sweeps.chunks(surfaces).collect();
    let full = u64::from(how.tracks);
    let mut zones: Vec<ZoneSpec> = Vec::new();
    let mut at = 0;
    while at < groups.len() {
        let alike = (at..groups.len()).take_while(|&g| is_like(rows, groups[at], groups[g], how)).count();
        let block = &groups[at..at + alike];
        let regular = regular(rows, block, how, same);
        if regular > 0 {
            zones.extend(whole(rows, &block[..regular], how, at, same));
            at += regular;
            continue;
        }
        let is_last = at + 1 == groups.len();
        let width = if is_last { longest(groups[at]) } else { full };
        for placed in places(rows, &groups, how, at, width)? {
            zones.push(alone(rows, slips, &placed, usual));
        }
        at += 1;
    }
    let cylinders = zones.iter().map(|z| z.last_cylinder + 1).max()?;
    Some(GeometrySpec { surfaces: how.surfaces, cylinders, layout: how.layout(), zones, remaps: Vec::new() })
}

/// Divides rows into sweeps. A sweep ends when it is full, when a track with equally many sectors
/// begins at another angle than expected, and when the next zone would lie on the wrong side.
fn sweeps(rows: &[Row], how: Groups, same: f64) -> Vec<Sweep> {
    let full = u64::from(how.tracks);
    let mut sweeps: Vec<Sweep> = Vec::new();
    let mut tracks = full;
    // Latest angle from a whole sweep to the next.
    let mut usual = None;
    let mut known: BTreeSet<u32> = BTreeSet::new();
    for (i, row) in rows.iter().enumerate() {
        let outwards = sweeps.len().checked_sub(1).is_some_and(|sweep| how.is_outwards(sweep));
        let skipped = row.skipped;
        let continues = i > 0 && tracks + skipped + row.tracks <= full && {
            let last = &rows[i - 1];
            // A single track has the skew of the last tracks with equally many sectors.
            let own = [last, row].into_iter().find(|r| r.tracks > 1);
            let like = || rows[..i].iter().rev().find(|r| r.tracks > 1 && r.spt == row.spt);
            let skew = own.or_else(like).map_or(0.0, |r| r.skew);
            let sector = f64::from(row.missing().min(2)) / f64::from(row.spt);
            let lies = |joint: f64| apart(last.last_begins() + joint, row.angle).abs() <= same + sector;
            match row.spt == last.spt {
                true => lies(fraction(skew * (1 + skipped) as f64)),
                false if skipped > 0 => false,
                false if lies(skew) => true,
                false if usual.is_some_and(lies) => false,
                // Spare tracks lie between: the side of the next zone decides.
                false => (row.spt < last.spt) != outwards,
            }
        };
        if i > 0 && tracks == full && skipped == 0 && rows[i - 1].missing() == 0 {
            usual = Some(fraction(row.angle - rows[i - 1].last_begins()));
        }
        let mut front = 0;
        if !continues {
            // Skipped tracks are the last tracks of the previous sweep, then the first of this one.
            let behind = skipped.min(full.saturating_sub(tracks));
            front = skipped - behind;
            tracks += behind;
            if let Some(part) = sweeps.last_mut().and_then(|sweep| sweep.last_mut()) {
                part.tracks += behind;
            }
            if tracks < full && !known.contains(&row.spt) && begins_a_zone(&rows[i..], how) {
                // A zone begins on the first surface of a group, so the rest of the previous group
                // is spare.
                sweeps.resize(sweeps.len().next_multiple_of(usize::from(how.surfaces)), Sweep::new());
            }
            sweeps.push(Sweep::new());
            tracks = 0;
        }
        let more = row.tracks + if continues { skipped } else { front };
        tracks += more;
        known.insert(row.spt);
        let sweep = sweeps.last_mut().expect("one was just begun");
        match sweep.last_mut().filter(|p| p.spt == row.spt) {
            Some(part) => (part.rows.end, part.tracks) = (i + 1, part.tracks + more),
            None => sweep.push(Part { rows: i..i + 1, tracks: more, front, spt: row.spt }),
        }
    }
    sweeps
}

/// Returns whether a zone over all surfaces begins with these rows, the first with their number of
/// sectors: all of the next rows have it.
fn begins_a_zone(rows: &[Row], how: Groups) -> bool {
    let spt = rows[0].spt;
    let next = rows.iter().filter(|r| r.tracks > 1).take(usize::from(how.surfaces));
    next.clone().count() == usize::from(how.surfaces) && next.clone().all(|r| r.spt == spt)
}

fn length(sweep: &Sweep) -> u64 {
    sweep.iter().map(|p| p.tracks).sum()
}

fn longest(group: &[Sweep]) -> u64 {
    group.iter().map(length).max().unwrap_or(0)
}

/// Returns whether all sweeps of a group are single whole rows with the number of sectors that
/// their surfaces have in another group.
fn is_like(rows: &[Row], first: &[Sweep], group: &[Sweep], how: Groups) -> bool {
    let n = usize::from(how.surfaces);
    let of = |sweeps: &[Sweep], sweep: usize| sweeps.get(sweep).and_then(|l| l.first()).map(|p| p.spt);
    let is_whole = |sweep: &Sweep| {
        sweep.len() == 1
            && sweep[0].rows.len() == 1
            && rows[sweep[0].rows.start].tracks == u64::from(how.tracks)
            && rows[sweep[0].rows.start].missing() == 0
    };
    let is_same =
        |i: usize| of(first, i) == of(group, i) || (how.surfaces_alternate && of(first, i) == of(group, n - 1 - i));
    group.len() == n && group.iter().all(is_whole) && (0..n).all(is_same)
}

/// The single row of a whole sweep.
fn row<'r>(rows: &'r [Row], sweep: &Sweep) -> &'r Row {
    &rows[sweep[0].rows.start]
}

/// Angles from the last track of each sweep to the first of the next; one fewer than sweeps.
fn joints(rows: &[Row], block: &[&[Sweep]]) -> Vec<f64> {
    let all: Vec<&Row> = block.iter().flat_map(|g| g.iter()).map(|sweep| row(rows, sweep)).collect();
    all.windows(2).map(|w| fraction(w[1].angle - w[0].last_begins())).collect()
}

/// The mean of angles that are close together.
fn mean(angles: impl IntoIterator<Item = f64>) -> f64 {
    let (mut first, mut sum, mut n) = (None, 0.0, 0.0);
    for angle in angles {
        sum += apart(*first.get_or_insert(angle), angle);
        n += 1.0;
    }
    first.map_or(0.0, |f| fraction(f + sum / f64::max(n, 1.0)))
}

/// Returns how many groups of a block repeat the joints of the first ones.
fn regular(rows: &[Row], block: &[&[Sweep]], how: Groups, same: f64) -> usize {
    let n = usize::from(how.surfaces);
    let joints = joints(rows, block);
    // If surfaces alternate, a joint between two sweeps depends on the direction of the group.
    let period = if how.surfaces_alternate { 2 * n } else { n };
    let odd = (0..joints.len()).find(|&i| i >= period && apart(joints[i - period], joints[i]).abs() > 2.0 * same);
    match odd {
        // The group that contains the end of the odd joint is excluded.
        Some(i) => (i + 1) / n,
        None => block.len(),
    }
}

/// Zones of equal groups: one for all surfaces if their skews agree, otherwise one each.
fn whole(rows: &[Row], block: &[&[Sweep]], how: Groups, at: usize, same: f64) -> Vec<ZoneSpec> {
    let n = usize::from(how.surfaces);
    let first_sweep = at * n;
    let sweeps: Vec<&Row> = block.iter().flat_map(|g| g.iter()).map(|sweep| row(rows, sweep)).collect();
    let joints = joints(rows, block);
    let of_surface = |i: usize| how.surface(first_sweep + i);
    let (first, last) = (at as u64 * u64::from(how.tracks), (at + block.len()) as u64 * u64::from(how.tracks) - 1);
    let skew = mean(sweeps.iter().map(|r| r.skew));
    let joint = mean(joints.iter().copied());
    let spt = |s: u16| (0..n).find(|&i| of_surface(i) == s).map_or(0, |i| sweeps[i].spt);
    // The difference must stay within the tolerance over a whole sweep.
    let is_one = sweeps.iter().all(|r| (apart(skew, r.skew) * how.tracks as f64).abs() <= same)
        && joints.iter().all(|j| apart(joint, *j).abs() <= same);
    let zone = |surface: Option<u16>, spts: Vec<u32>, angle: f64, skew: f64, joint: f64| {
        let cylinders = (first as u32, last as u32);
        zone(surface, cylinders, spts, Lie { angle, skew, joint }, 0)
    };
    if is_one {
        let mut spts: Vec<u32> = (0..how.surfaces).map(spt).collect();
        if spts.iter().all(|s| *s == spts[0]) {
            spts.truncate(1);
        }
        // The start of the first sweep, averaged over all sweeps.
        let step = fraction(skew * (how.tracks - 1) as f64 + joint);
        let begin = mean(sweeps.iter().enumerate().map(|(i, r)| fraction(r.angle - fraction(step * i as f64))));
        return vec![zone(None, spts, begin, skew, joint)];
    }
    (0..how.surfaces)
        .filter_map(|s| {
            let mine: Vec<usize> = (0..sweeps.len()).filter(|&i| of_surface(i) == s).collect();
            let begin = *mine.first()?;
            let skew = mean(mine.iter().map(|&i| sweeps[i].skew));
            let behind = mine.iter().filter_map(|&i| joints.get(i).copied());
            let joint = if behind.clone().count() > 0 { mean(behind) } else { joint };
            Some(zone(Some(s), vec![spt(s)], sweeps[begin].angle, skew, joint))
        })
        .collect()
}

/// Places every part of a group, and sweeps without visible sectors.
fn places<'p>(rows: &[Row], groups: &[&'p [Sweep]], how: Groups, at: usize, width: u64) -> Option<Vec<Placed<'p>>> {
    let n = usize::from(how.surfaces);
    let group = groups[at];
    let low = at as u64 * u64::from(how.tracks);
    // Sectors per track of a surface's innermost tracks in the previous group.
    let outside = |surface: u16| {
        let before = at.checked_sub(1)?;
        let visit = (0..n).find(|visit| how.surface(before * n + visit) == surface)?;
        Some(radial(groups[before].get(visit)?, how.is_outwards(before * n + visit)).last()?.spt)
    };
    let mut placed = Vec::new();
    for visit in 0..n {
        let sweep = at * n + visit;
        let (surface, outwards) = (how.surface(sweep), how.is_outwards(sweep));
        let parts = group.get(visit).map_or(Vec::new(), |l| radial(l, outwards));
        let visible: u64 = parts.iter().map(|p| p.tracks).sum();
        let spare = width.checked_sub(visible)?;
        let mut put = |from: u64, to: u64, front: u64, part: &'p Part| {
            let cylinders = (low + from, low + to - 1);
            placed.push(Placed { surface, cylinders, outwards, front, part: Some(part) });
        };
        if parts.is_empty() {
            let cylinders = (low, low + width - 1);
            placed.push(Placed { surface, cylinders, outwards, front: width, part: None });
            continue;
        }
        // All tracks of a zone that ends here may be spare: then only the next zone's part is
        // visible. Those tracks are counted with it; in outward order they come last.
        if let [part] = parts[..]
            && spare > 0
            && outside(surface).is_some_and(|spt| spt != part.spt)
        {
            put(0, width, if outwards { 0 } else { spare }, part);
            continue;
        }
        // Spares are at a zone's end: after a track that is not full, or after the outermost zone.
        let is_open = |p: &&Part| rows[p.rows.end - 1].missing() > 0;
        let open = parts.iter().position(is_open).unwrap_or(0);
        let mut from = 0;
        for (k, part) in parts.iter().enumerate() {
            let to = from + part.tracks + if k == open { spare } else { 0 };
            put(from, to, 0, part);
            from = to;
        }
    }
    Some(placed)
}

/// The parts of a sweep from the outside in.
fn radial(sweep: &Sweep, outwards: bool) -> Vec<&Part> {
    let mut parts: Vec<&Part> = sweep.iter().collect();
    if outwards {
        parts.reverse();
    }
    parts
}

/// Typical values of sweeps, for those that are too short or invisible.
#[derive(Clone, Copy, Debug)]
struct Usual {
    /// Sectors per track.
    spt: u32,
    /// Skew from track to track, and from sweep to sweep, in revolutions.
    skew: f64,
    joint: f64,
}

impl Usual {
    fn of(rows: &[Row], sweeps: &[Sweep]) -> Option<Usual> {
        let mut whole = sweeps.iter().filter(|l| l.len() == 1 && l[0].rows.len() == 1).map(|l| row(rows, l));
        let (a, b) = (whole.next()?, whole.next()?);
        Some(Usual { spt: a.spt, skew: a.skew, joint: fraction(b.angle - a.last_begins()) })
    }
}

/// Returns the zone of one part.
fn alone(rows: &[Row], slips: &Slips, placed: &Placed, usual: Usual) -> ZoneSpec {
    let (from, to) = placed.cylinders;
    let cylinders = (from as u32, to as u32);
    let Some(part) = placed.part else {
        let lie = Lie { angle: 0.0, skew: usual.skew, joint: usual.joint };
        let none = zone(Some(placed.surface), cylinders, vec![usual.spt], lie, 0);
        return ZoneSpec { reserved_sectors: placed.front * u64::from(usual.spt), ..none };
    };
    let spt = u64::from(part.spt);
    let mine = &rows[part.rows.clone()];
    // The longest row has the smallest error; it gives the first track's angle.
    let skipped = |i: usize| if i > 0 { mine[i].skipped } else { part.front };
    let (mut before, mut best) = (0, (0, part.front));
    for (i, row) in mine.iter().enumerate() {
        before += skipped(i);
        if row.tracks > mine[best.0].tracks {
            best = (i, before);
        }
        before += row.tracks;
    }
    let skew = if mine[best.0].tracks > 1 { mine[best.0].skew } else { usual.skew };
    let ahead = placed.front + best.1;
    let angle = fraction(mine[best.0].angle - fraction(skew * ahead as f64));
    let (mut bad, mut track, mut lost) = (Vec::new(), placed.front, 0);
    let cylinder = |track: u64| if placed.outwards { to - track } else { from + track } as u32;
    let whole = |track: u64| Slip::Track { cylinder: cylinder(track), surface: placed.surface };
    for (i, row) in mine.iter().enumerate() {
        bad.extend((track..track + skipped(i)).map(whole));
        track += skipped(i);
        match slips.of(row) {
            Some(found) => {
                let begins = fraction(angle + fraction(skew * track as f64));
                let cylinder = cylinder(track);
                let at = |sector| Slip::Sector(SectorAddress { cylinder, surface: placed.surface, sector });
                bad.extend(found.sectors(begins, row.spt).into_iter().map(at));
            }
            None => lost += row.tracks * u64::from(row.missing()),
        }
        track += row.tracks;
    }
    bad.extend((track..placed.front + part.tracks).map(whole));
    let empty = (to + 1 - from).saturating_sub(placed.front + part.tracks) * spt + lost;
    let lie = Lie { angle, skew, joint: usual.joint };
    let whole = zone(Some(placed.surface), cylinders, vec![part.spt], lie, empty);
    ZoneSpec { slips: bad, reserved_sectors: placed.front * spt, ..whole }
}

/// The angles of a zone's tracks: the first track's start, the skew to the next track, and the skew
/// to the next sweep.
struct Lie {
    angle: f64,
    skew: f64,
    joint: f64,
}

fn zone(surface: Option<u16>, cylinders: (u32, u32), spts: Vec<u32>, lie: Lie, empty: u64) -> ZoneSpec {
    ZoneSpec {
        first_cylinder: cylinders.0,
        last_cylinder: cylinders.1,
        surface,
        sectors_per_track: spts,
        offset: Some(turn(lie.angle)),
        track_skew: turn(lie.skew),
        cylinder_skew: turn(lie.joint),
        reserved_sectors: 0,
        sparing: spares(empty),
        slips: Vec::new(),
        defects: Vec::new(),
    }
}
