//! Comparison of track boundaries, zones, surfaces and skews: both drives are walked in LBN order.
//!
//! Here a zone is a run of neighbouring cylinders of one surface with the same sectors per track;
//! it does not matter where a file splits it (for spares, say). It is located by its lowest LBN,
//! which a host can find, not by its cylinder, which a host must infer.

use std::collections::BTreeMap;
use std::iter::Peekable;

use super::Row;
use crate::geometry::{Geometry, Track};
use crate::profile::{HeadOrder, Layout, Profile};

/// Name of the row of track boundaries: the number of tracks that begin where none of the other
/// drive's does.
pub const BOUNDARIES: &str = "track boundaries";
/// Name of the row of tracks that both have, but with different sectors.
pub const OTHER_SECTORS: &str = "tracks with other sectors";
/// Names of the rows of skews.
pub const SKEWS: [&str; 3] = ["track skew", "cylinder skew", "skew from zone to zone"];

/// Tolerance of a skew in sectors (claim P3).
const SKEW_SECTORS: f64 = 0.5;

/// A run of neighbouring cylinders of a surface with the same sectors per track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    first_cylinder: u32,
    spt: u32,
    /// Its lowest LBN; `None`: it holds no data.
    lbn: Option<u64>,
}

/// The zones of each surface by cylinder.
struct Zones {
    seen: Vec<Vec<Zone>>,
    /// Zones as split in the file: first cylinder and number. A skew belongs to a zone of the file.
    written: Vec<Vec<(u32, usize)>>,
}

impl Zones {
    fn of(p: &Profile) -> Zones {
        let g = &p.geometry;
        let surfaces = usize::from(g.surfaces);
        let mut seen: Vec<Vec<Zone>> = vec![Vec::new(); surfaces];
        let mut written = vec![Vec::new(); surfaces];
        for (i, z) in g.zones.iter().enumerate() {
            for s in (0..surfaces).filter(|&s| z.surface.is_none_or(|of| usize::from(of) == s)) {
                seen[s].push(Zone { first_cylinder: z.first_cylinder, spt: z.spt(s as u16), lbn: None });
                written[s].push((z.first_cylinder, i));
            }
        }
        for list in &mut seen {
            list.sort_by_key(|z| z.first_cylinder);
            list.dedup_by(|z, before| z.spt == before.spt);
        }
        written.iter_mut().for_each(|list| list.sort_unstable());
        Zones { seen, written }
    }

    /// Records a track; called in LBN order.
    fn tell(&mut self, track: &Track) {
        let list = &mut self.seen[usize::from(track.surface)];
        let i = list.partition_point(|z| z.first_cylinder <= track.cylinder).saturating_sub(1);
        // The first one recorded is the lowest.
        list[i].lbn.get_or_insert(track.first_lbn);
    }

    /// Returns the file's zone of a track.
    fn written(&self, track: &Track) -> usize {
        let list = &self.written[usize::from(track.surface)];
        list[list.partition_point(|z| z.0 <= track.cylinder).saturating_sub(1)].1
    }

    /// Returns the zones of a surface that hold data.
    fn seen(&self, surface: usize) -> Vec<(u32, u64)> {
        self.seen[surface].iter().filter_map(|z| Some((z.spt, z.lbn?))).collect()
    }
}

/// Kind of step from one track to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Track skew.
    Track,
    /// Cylinder skew.
    Cylinder,
    /// Zone boundary.
    Zone,
}

/// Kind of step, surface, and zones in the two files.
type Key = (Step, u16, [usize; 2]);

/// Results of the walk.
#[derive(Default)]
struct Walked {
    tracks: [u64; 2],
    shared: u64,
    /// Shared tracks with a different number of sectors, including spare and defective ones.
    other_sectors: u64,
    first_unshared: Option<u64>,
    other_surface: u64,
    most_cylinders: u32,
    /// Differences in sectors, each with the first drive's skew.
    skews: BTreeMap<Key, Vec<(f32, f32)>>,
}

/// Iterates over a drive's tracks with data, in LBN order.
fn walk(g: &Geometry) -> Peekable<impl Iterator<Item = Track> + '_> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let track = g.track_of(next)?;
        next = track.first_lbn + u64::from(track.lbns);
        Some(track)
    })
    .peekable()
}

fn step(layout: Layout, same_zone: bool, from: &Track, to: &Track) -> Step {
    match layout {
        _ if !same_zone => Step::Zone,
        Layout::HeadFirst(_) if from.cylinder == to.cylinder => Step::Track,
        Layout::HeadFirst(_) => Step::Cylinder,
        Layout::SeekFirst { group_tracks: g, .. } => {
            let sweep = |t: &Track| (t.surface, t.cylinder / g.max(1));
            if sweep(from) == sweep(to) { Step::Track } else { Step::Cylinder }
        }
    }
}

fn walk_both(layout: Layout, ga: &Geometry, za: &mut Zones, gb: &Geometry, zb: &mut Zones) -> Walked {
    let mut w = Walked::default();
    let (mut ta, mut tb) = (walk(ga), walk(gb));
    // The last track that both have.
    let mut before: Option<(Track, Track)> = None;
    while let Some(lbn) = [ta.peek(), tb.peek()].into_iter().flatten().map(|t| t.first_lbn).min() {
        let a = ta.next_if(|t| t.first_lbn == lbn);
        let b = tb.next_if(|t| t.first_lbn == lbn);
        w.tracks[0] += u64::from(a.is_some());
        w.tracks[1] += u64::from(b.is_some());
        a.iter().for_each(|t| za.tell(t));
        b.iter().for_each(|t| zb.tell(t));
        let (Some(a), Some(b)) = (a, b) else {
            w.first_unshared.get_or_insert(lbn);
            before = None;
            continue;
        };
        w.shared += 1;
        w.other_sectors += u64::from(a.spt != b.spt);
        w.other_surface += u64::from(a.surface != b.surface);
        w.most_cylinders = w.most_cylinders.max(a.cylinder.abs_diff(b.cylinder));
        if let Some((last_a, last_b)) = before
            && let Some(skew) = skew(ga, gb, last_a.first_lbn, lbn, a.spt)
        {
            let zones = [za.written(&a), zb.written(&b)];
            let same = zones == [za.written(&last_a), zb.written(&last_b)];
            w.skews.entry((step(layout, same, &last_a, &a), a.surface, zones)).or_default().push(skew);
        }
        before = Some((a, b));
    }
    w
}

/// Returns the difference of the skew between two tracks in sectors, and the first drive's skew.
/// Measured by the angle of the tracks' first LBNs: that is what a host observes, whatever is
/// reserved in front of them. `None` if those are remapped.
fn skew(ga: &Geometry, gb: &Geometry, from: u64, to: u64, spt: u32) -> Option<(f32, f32)> {
    if [ga, gb].iter().any(|g| g.is_remapped(from) || g.is_remapped(to)) {
        return None;
    }
    let of = |g: &Geometry| Some(g.locate(to)?.angle - g.locate(from)?.angle);
    let (a, b) = (of(ga)?, of(gb)?);
    let apart = (b - a).turns();
    Some((((apart - apart.round()) * f64::from(spt)) as f32, (a.turns() * f64::from(spt)) as f32))
}

fn letters(p: &Profile) -> String {
    let alone = p.geometry.surfaces == 1;
    match p.geometry.layout {
        // With one surface, there is no alternation.
        Layout::HeadFirst(_) if alone => "F".into(),
        Layout::HeadFirst(HeadOrder::Forward) => "F".into(),
        Layout::HeadFirst(HeadOrder::AlternatingInZone | HeadOrder::AlternatingOnDisk) => "A".into(),
        Layout::SeekFirst { .. } if alone => "FF, any group".into(),
        Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate } => {
            let letter = |alternate: bool| if alternate { 'A' } else { 'F' };
            format!("{}{}, groups of {group_tracks}", letter(tracks_alternate), letter(surfaces_alternate))
        }
    }
}

/// Compares layout, zones, boundaries and skews.
pub(super) fn rows(a: &Profile, ga: &Geometry, b: &Profile, gb: &Geometry) -> Vec<Row> {
    let (mut za, mut zb) = (Zones::of(a), Zones::of(b));
    let w = walk_both(a.geometry.layout, ga, &mut za, gb, &mut zb);
    let mut rows = layout_rows(a, ga, b, gb, &w);
    let surfaces = za.seen.len().min(zb.seen.len());
    for s in 0..surfaces {
        rows.extend(zone_rows(s, &za.seen(s), &zb.seen(s)));
    }
    rows.push(boundaries(&w));
    let other = Row::plain("zones", OTHER_SECTORS, "-", "-").apart(w.other_sectors as f64, "tracks");
    rows.push(other.at(format!("of {} that both have", w.shared)));
    rows.push(skew_row(SKEWS[0], Step::Track, &w).within(SKEW_SECTORS));
    rows.push(skew_row(SKEWS[1], Step::Cylinder, &w).within(SKEW_SECTORS));
    rows.push(skew_row(SKEWS[2], Step::Zone, &w));
    // What neither drive has cannot differ.
    for row in rows.iter_mut().filter(|r| r.group == "skews" && r.difference.is_none()) {
        row.holds = w.shared > 1;
    }
    rows
}

fn layout_rows(a: &Profile, ga: &Geometry, b: &Profile, gb: &Geometry, w: &Walked) -> Vec<Row> {
    let (la, lb) = (letters(a), letters(b));
    let (sa, sb) = (ga.surfaces(), gb.surfaces());
    let (ca, cb) = (ga.cylinders(), gb.cylinders());
    vec![
        Row::plain("layout", "surfaces", sa, sb).apart(f64::from(sb) - f64::from(sa), "surfaces").within(0.0),
        Row::plain("layout", "layout", &la, &lb).same(&la, &lb),
        Row::plain("layout", "tracks on another surface", "-", "-")
            .apart(w.other_surface as f64, "tracks")
            .within(0.0)
            .at(format!("of {} that both have", w.shared)),
        Row::plain("layout", "cylinders", ca, cb)
            .apart(f64::from(cb) - f64::from(ca), "cylinders")
            .at(format!("a track that both have lies at most {} apart", w.most_cylinders)),
    ]
}

fn zone_rows(surface: usize, a: &[(u32, u64)], b: &[(u32, u64)]) -> Vec<Row> {
    let spts = |z: &[(u32, u64)]| match (z.first(), z.last()) {
        (Some(first), Some(last)) => format!("{} to {}", first.0, last.0),
        _ => "-".into(),
    };
    let pairs = || a.iter().zip(b).enumerate();
    let other = pairs().filter(|(_, (x, y))| x.0 != y.0).count() + a.len().abs_diff(b.len());
    let first_other = match pairs().find(|(_, (x, y))| x.0 != y.0) {
        Some((i, (x, y))) => format!("zone {i}: {} and {} sectors", x.0, y.0),
        None => String::new(),
    };
    // Boundaries are compared one by one only if both drives have the same zones.
    let shifted: Vec<(usize, f64, u32)> =
        pairs().filter(|(_, (x, y))| x.1 != y.1).map(|(i, (x, y))| (i, y.1 as f64 - x.1 as f64, x.0)).collect();
    let furthest = shifted.iter().max_by(|x, y| x.1.abs().total_cmp(&y.1.abs()));
    let place = match furthest {
        Some((i, by, spt)) => {
            let tracks = by / f64::from(*spt);
            format!("{} of them; zone {i} begins {by} sectors off ({tracks:.1} tracks)", shifted.len())
        }
        None => String::new(),
    };
    let row = |of: &str, a: String, b: String| Row::plain("zones", of, a, b).on(surface as u16);
    vec![
        row("zones", a.len().to_string(), b.len().to_string())
            .apart(b.len() as f64 - a.len() as f64, "zones")
            .within(0.0),
        row("sectors per track", spts(a), spts(b)).apart(other as f64, "zones").within(0.0).at(first_other),
        row("zone boundaries", a.len().to_string(), b.len().to_string())
            .apart(furthest.map_or(0.0, |f| f.1), "sectors")
            .within(0.0)
            .at(place),
    ]
}

fn boundaries(w: &Walked) -> Row {
    let apart = w.tracks[0] + w.tracks[1] - 2 * w.shared;
    let place = match w.first_unshared {
        Some(lbn) => format!("the first that only one of them has: sector {lbn}"),
        None => String::new(),
    };
    Row::plain("zones", BOUNDARIES, w.tracks[0], w.tracks[1]).apart(apart as f64, "tracks").at(place)
}

/// Returns the row for the zone with the largest skew difference. A zone's difference is the median
/// of its tracks: a slip shifts single ones.
fn skew_row(what: &str, step: Step, w: &Walked) -> Row {
    let mut worst: Option<(Key, f32, f32)> = None;
    for (key, all) in w.skews.iter().filter(|(key, _)| key.0 == step) {
        let mut all = all.clone();
        all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
        let (apart, of_a) = all[all.len() / 2];
        if worst.is_none_or(|(_, most, _)| apart.abs() > most.abs()) {
            worst = Some((*key, apart, of_a));
        }
    }
    let Some(((_, surface, zones), apart, of_a)) = worst else {
        return Row::plain("skews", what, "-", "-").at("no two tracks in a row that both have");
    };
    let said = |sectors: f32| format!("{sectors:.2} sectors");
    Row::plain("skews", what, said(of_a), said(of_a + apart))
        .apart(f64::from(apart), "sectors")
        .at(format!("surface {surface}, zone {} of the first file", zones[0]))
}
