//! Consistency checks of a profile across figures: overlaps, gaps, sums, tables that fall.

use super::decimal::Decimal;
use super::fault::{At, ProfileError, Reason, Warning, WarningKind, Warnings};
use super::places::Places;
use super::{GeometrySpec, Layout, Profile, Skew, Slip, ZoneSpec, known_check, service};
use crate::geometry::Geometry;
use crate::rotation::Rotation;
use crate::seek::{LONGEST_SEEK, extrapolated_ns};
use crate::time::Dur;

/// Maximum head switch time.
pub(super) const MAX_HEAD_SWITCH: Dur = Dur::from_ms(100);
/// Maximum number of points of a seek table.
const MAX_POINTS: usize = 60_000;
/// Maximum seek distance, whatever the file states.
const MAX_DISTANCE: u32 = 10_000_000;

/// Checks a profile made by a program. Cylinders without a zone are accepted.
///
/// # Errors
/// The first contradiction, located by the profile's name.
pub fn check(profile: &Profile) -> Result<Vec<Warning>, ProfileError> {
    let mut places = Places::new(At::file(&format!("profile {}", profile.name)));
    places.unused = unused_cylinders(&profile.geometry);
    check_at(profile, &places)
}

/// Checks a profile with known locations in its file.
pub(super) fn check_at(p: &Profile, places: &Places) -> Result<Vec<Warning>, ProfileError> {
    let mut warnings = Warnings::default();
    names(p, places)?;
    if ![512, 4096].contains(&p.sector_bytes) {
        let at = places.key("sector_bytes");
        return Err(ProfileError::range(at, "sector_bytes", p.sector_bytes, "512 or 4096"));
    }
    geometry(&p.geometry, places)?;
    for (i, z) in p.geometry.zones.iter().enumerate() {
        let mut seen = std::collections::BTreeSet::new();
        if let Some(slip) = z.slips.iter().find(|s| !seen.insert(**s)) {
            warnings.note(places.nth(&places.zones, i), WarningKind::SlipTwice(slip.to_string()));
        }
    }
    // The compiled mapping decides what fits where.
    let computed = match Geometry::new(&p.geometry) {
        Ok(g) => g.capacity(),
        Err(why) => {
            let remap = |lbn| p.geometry.remaps.iter().position(|r| Some(r.0) == lbn);
            let at = match (why.zone(), remap(why.lbn())) {
                (Some(zone), _) => places.zones.get(zone),
                (None, Some(remap)) => places.remaps.get(remap),
                (None, None) => None,
            };
            let at = at.unwrap_or(places.key("geometry.zones"));
            return Err(ProfileError::impossible(at, why.to_string()));
        }
    };
    if let Some(stated) = p.stated_sectors
        && stated != computed
    {
        let text = format!("{stated} sectors are stated, but the zones hold {computed}");
        return Err(ProfileError::impossible(places.key("sectors"), text));
    }
    let (num, den) = p.mechanics.rpm;
    let Some(rotation) = Rotation::from_rpm(num, den) else {
        let at = places.key("mechanics.rpm");
        return Err(ProfileError::range(at, "rpm", format!("{num}/{den}"), "between 60 and 60000"));
    };
    if p.mechanics.head_switch > MAX_HEAD_SWITCH {
        let at = places.key("mechanics.head_switch_ms");
        return Err(ProfileError::range(at, "head_switch_ms", p.mechanics.head_switch, "at most 100 ms"));
    }
    let cylinders = p.geometry.cylinders;
    let at = places.key("mechanics.seek_ms");
    let odd = places.odd_seeks || p.seeks_from_disksim();
    seeks(Table { points: &p.mechanics.seek, cylinders, whole: at, lines: &places.seek, odd }, &mut warnings)?;
    if let Some(table) = &p.mechanics.write_seek {
        let at = places.key("mechanics.write_seek_ms");
        seeks(Table { points: table, cylinders, whole: at, lines: &places.write_seek, odd }, &mut warnings)?;
    }
    for (name, e) in [("electronics", Some(&p.electronics)), ("rig", p.rig.as_ref())] {
        if let Some(e) = e
            && !(1..=256).contains(&e.queue.depth)
        {
            let at = places.key(&format!("{name}.queue.depth"));
            return Err(ProfileError::range(at, "depth", e.queue.depth, "between 1 and 256"));
        }
    }
    noise(p, places)?;
    known_check::check(p, places)?;
    drifting_speed(p, &rotation, places)?;
    service::check(&p.service_times, computed, places)?;
    Ok(warnings.0)
}

fn names(p: &Profile, places: &Places) -> Result<(), ProfileError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if p.name.is_empty() || p.name.len() > 64 || !p.name.chars().all(good) {
        let expected = "a name of 1 to 64 lower-case letters, digits, `-`, `_` and `.`";
        return Err(ProfileError::expected(places.key("name"), expected, format!("`{}`", p.name)));
    }
    const TABLES: [&str; 6] = ["geometry", "mechanics", "electronics", "noise", "rig", "service_times"];
    for key in p.sources.keys() {
        if !TABLES.contains(&key.split('.').next().unwrap_or("")) {
            return Err(ProfileError {
                at: places.key(&format!("sources.{key}")).clone(),
                reason: Reason::UnknownName {
                    what: "table in [sources]".into(),
                    found: key.clone(),
                    known: TABLES.join(", "),
                },
            });
        }
    }
    Ok(())
}

fn geometry(g: &GeometrySpec, places: &Places) -> Result<(), ProfileError> {
    if g.zones.is_empty() {
        return Err(ProfileError::expected(places.key("geometry.zones"), "at least one zone", "none"));
    }
    for (i, z) in g.zones.iter().enumerate() {
        zone(g, z, places.nth(&places.zones, i))?;
    }
    for surface in 0..g.surfaces {
        let mut before: Option<&ZoneSpec> = None;
        for (i, z) in g.zones.iter().enumerate().filter(|(_, z)| z.surface.is_none_or(|s| s == surface)) {
            let at = places.nth(&places.zones, i);
            let Some(b) = before.replace(z) else { continue };
            if z.first_cylinder <= b.last_cylinder {
                let what = match z.last_cylinder < b.first_cylinder {
                    true => "comes after; zones are listed outside in",
                    false => "overlaps it",
                };
                let text = format!(
                    "zone of cylinders {} to {}: the zone of cylinders {} to {} {what}",
                    b.first_cylinder, b.last_cylinder, z.first_cylinder, z.last_cylinder
                );
                return Err(ProfileError::impossible(at, text));
            }
        }
        if before.is_none() {
            let text = format!("surface {surface} has no zone");
            return Err(ProfileError::impossible(places.key("geometry.zones"), text));
        }
    }
    let holes = unused_cylinders(g);
    if let Some((first, last)) = holes.iter().find(|h| !places.unused.contains(h)) {
        let next = g.zones.iter().position(|z| z.first_cylinder == last + 1);
        let at = next.map_or(places.key("geometry.zones"), |i| places.nth(&places.zones, i));
        let text = format!(
            "cylinders {first} to {last} belong to no zone; list them in `unused_cylinders` if they really hold no data"
        );
        return Err(ProfileError::impossible(at, text));
    }
    if let Some((first, last)) = places.unused.iter().find(|u| !holes.contains(u)) {
        let holes: Vec<String> = holes.iter().map(|(first, last)| format!("{first} to {last}")).collect();
        let gaps = match holes.is_empty() {
            true => "there is no gap between the zones".to_string(),
            false => format!("the gaps between the zones are {}", holes.join(", ")),
        };
        let text = format!("cylinders {first} to {last} are listed as unused, but {gaps}");
        return Err(ProfileError::impossible(places.key("geometry.unused_cylinders"), text));
    }
    for (i, &(lbn, to)) in g.remaps.iter().enumerate() {
        let at = places.nth(&places.remaps, i);
        let capacity = g.usable_sectors();
        if lbn >= capacity {
            return Err(ProfileError::range(at, "the remapped LBN", lbn, format!("below {capacity}")));
        }
        let zone = g.zones.iter().find(|z| (z.first_cylinder..=z.last_cylinder).contains(&to.cylinder));
        if zone.is_none_or(|z| to.sector >= z.spt(to.surface)) {
            let place = format!("cylinder {}, surface {}, sector {}", to.cylinder, to.surface, to.sector);
            return Err(ProfileError::expected(at, "a place on the drive", place));
        }
    }
    Ok(())
}

/// Returns the ranges of cylinders on which no surface has a zone.
pub(super) fn unused_cylinders(g: &GeometrySpec) -> Vec<(u32, u32)> {
    let mut spans: Vec<(u32, u32)> = g.zones.iter().map(|z| (z.first_cylinder, z.last_cylinder)).collect();
    spans.sort_unstable();
    let mut holes = Vec::new();
    let mut next = 0u32;
    for (first, last) in spans {
        if first > next {
            holes.push((next, first - 1));
        }
        next = next.max(last.saturating_add(1));
    }
    if next < g.cylinders {
        holes.push((next, g.cylinders - 1));
    }
    holes
}

fn zone(g: &GeometrySpec, z: &ZoneSpec, at: &At) -> Result<(), ProfileError> {
    let head_first = matches!(g.layout, Layout::HeadFirst(_));
    let impossible = |text: String| Err(ProfileError::impossible(at, text));
    if z.first_cylinder > z.last_cylinder {
        return impossible(format!("a zone from cylinder {} back to {}", z.first_cylinder, z.last_cylinder));
    }
    if z.last_cylinder >= g.cylinders {
        return impossible(format!("a zone up to cylinder {} on a drive of {}", z.last_cylinder, g.cylinders));
    }
    if let Some(surface) = z.surface
        && surface >= g.surfaces
    {
        return impossible(format!("a zone on surface {surface} of a drive of {} surfaces", g.surfaces));
    }
    if head_first && z.surface.is_some() {
        return impossible("a zone of one surface only, on a drive whose cylinders are followed head by head".into());
    }
    let figures = z.sectors_per_track.len();
    if figures != 1 && (figures != usize::from(g.surfaces) || z.surface.is_some()) {
        return impossible(format!("{figures} figures of sectors per track; expected 1 or one a surface"));
    }
    if let Some(spt) = z.sectors_per_track.iter().find(|&&s| !(1..=100_000).contains(&s)) {
        return Err(ProfileError::range(at, "sectors_per_track", spt, "between 1 and 100000"));
    }
    if head_first && z.offset.is_none() {
        return impossible("a zone without an offset, on a drive whose cylinders are followed head by head".into());
    }
    let turn = z.sectors_per_track.iter().copied().min().unwrap_or(1);
    let skews = [("offset", z.offset), ("track_skew", Some(z.track_skew)), ("cylinder_skew", Some(z.cylinder_skew))];
    for (name, skew) in skews {
        if let Some(Skew::Sectors(n)) = skew
            && n >= turn
        {
            return Err(ProfileError::range(
                at,
                name,
                format!("{n} sectors"),
                format!("below a turn of {turn} sectors"),
            ));
        }
    }
    let total = z.physical_sectors(g.surfaces);
    if z.reserved_sectors > total {
        let range = format!("at most the zone's {total} sectors");
        return Err(ProfileError::range(at, "reserved_sectors", z.reserved_sectors, range));
    }
    if z.usable_sectors(g.surfaces) == 0 && z.reserved_sectors < total {
        return impossible(format!("spares and slips leave nothing of the zone's {total} sectors"));
    }
    slips(g, z, at, head_first, total)
}

fn slips(g: &GeometrySpec, z: &ZoneSpec, at: &At, head_first: bool, total: u64) -> Result<(), ProfileError> {
    let tracks = z.cylinders() * z.tracks_per_cylinder(g.surfaces);
    let inside = |c: u32, h: u16| (z.first_cylinder..=z.last_cylinder).contains(&c) && z.spt(h) > 0;
    for slip in &z.slips {
        let good = match *slip {
            Slip::Index(i) => head_first && i < total,
            Slip::TrackIndex(i) => head_first && i < tracks,
            Slip::Sector(s) => inside(s.cylinder, s.surface) && s.sector < z.spt(s.surface),
            Slip::Track { cylinder, surface } => inside(cylinder, surface),
        };
        if !good {
            let expected = "slips inside the zone (by index only where cylinders are followed head by head)";
            return Err(ProfileError::expected(at, expected, slip.to_string()));
        }
    }
    if let Some((bad, to)) =
        z.defects.iter().find(|(bad, to)| !head_first || *bad >= total || *to >= total || bad == to)
    {
        let expected = "defects and replacements inside the zone (only where cylinders are followed head by head)";
        return Err(ProfileError::expected(at, expected, format!("{bad} replaced by {to}")));
    }
    Ok(())
}

/// A seek table and its location.
struct Table<'a> {
    points: &'a [(u32, Dur)],
    cylinders: u32,
    whole: &'a At,
    lines: &'a [At],
    /// It is DiskSim's.
    odd: bool,
}

/// Checks a seek table: distances must ascend and fit the drive. Times up to a third below a
/// shorter seek's are usual in measured tables and give a warning; lower ones are an error, as is a
/// table whose last two points extrapolate to less than half of the last time. DiskSim's tables are
/// accepted with such faults, as DiskSim accepts them.
fn seeks(
    Table { points: table, cylinders, whole, lines, odd }: Table<'_>,
    warnings: &mut Warnings,
) -> Result<(), ProfileError> {
    if table.len() > MAX_POINTS {
        let found = format!("{} points", table.len());
        return Err(ProfileError::expected(whole, format!("at most {MAX_POINTS} points of the seek table"), found));
    }
    if table.is_empty() {
        return Err(ProfileError::expected(whole, "at least one point of the seek table", "none"));
    }
    let mut before = 0u32;
    let mut slowest = (0u32, Dur::ZERO);
    let mut told = 0u32;
    for (i, &(d, t)) in table.iter().enumerate() {
        let at = lines.get(i).unwrap_or(whole);
        if d <= before {
            return Err(ProfileError::expected(at, format!("a seek distance beyond {before}"), d.to_string()));
        }
        if d >= cylinders.max(2) && (!odd || d > MAX_DISTANCE) {
            let range = format!("below the drive's {cylinders} cylinders");
            return Err(ProfileError::range(at, "a seek distance", d, range));
        }
        if t > LONGEST_SEEK {
            return Err(ProfileError::range(at, "a seek time", t, "at most 1000 ms"));
        }
        if t < slowest.1 {
            let kind = WarningKind::SeekFalls {
                distance: d,
                ms: t.as_ms_f64(),
                before_distance: slowest.0,
                before_ms: slowest.1.as_ms_f64(),
            };
            if t.0 * 3 < slowest.1.0 * 2 && !odd {
                return Err(ProfileError::impossible(
                    at,
                    format!("{kind}: more than a third less, which no drive does"),
                ));
            }
            // One warning per peak: the peak is the oddity, not each point after it.
            if t.0 * 5 < slowest.1.0 * 4 && told != slowest.0 {
                told = slowest.0;
                warnings.note(at, kind);
            }
        }
        if t > slowest.1 {
            slowest = (d, t);
        }
        before = d;
    }
    tail(Table { points: table, cylinders, whole, lines, odd }, warnings)
}

/// Extrapolates the last two points to the drive's longest distance.
fn tail(t: Table<'_>, warnings: &mut Warnings) -> Result<(), ProfileError> {
    let Some(&(distance, time)) = t.points.last() else {
        return Ok(());
    };
    let at = t.lines.last().unwrap_or(t.whole);
    let longest = t.cylinders.saturating_sub(1).max(distance);
    let end = extrapolated_ns(t.points, longest);
    let text = format!(
        "the last two points of the seek table lead to {} ms over {longest} cylinders",
        Decimal::from_units(end.clamp(i64::MIN.into(), i64::MAX.into()) as i64, 6)
    );
    if end > i128::from(LONGEST_SEEK.0) {
        return Err(ProfileError::impossible(at, format!("{text}; it must be at most 1000 ms")));
    }
    if end * 2 < i128::from(time.0) {
        let text = format!("{text}, less than half of the {} ms over {distance}", time.as_ms_f64());
        if !t.odd {
            return Err(ProfileError::impossible(at, format!("{text}: give a time at the longest distance")));
        }
        warnings.note(at, WarningKind::Assumed(text));
    }
    Ok(())
}

fn noise(p: &Profile, places: &Places) -> Result<(), ProfileError> {
    let n = &p.noise;
    let least = n.move_error_sd.max(Dur(n.move_error_mean_ns.unsigned_abs()));
    if n.move_error_max < least {
        let range = format!("no less than move_error_sd_us and the size of move_error_mean_us ({least})");
        let key = places.key("noise.move_error_max_us");
        return Err(ProfileError::range(key, "move_error_max_us", n.move_error_max, range));
    }
    if n.seek_max < n.seek_sd {
        let range = format!("no less than seek_sd_us ({})", n.seek_sd);
        return Err(ProfileError::range(places.key("noise.seek_max_us"), "seek_max_us", n.seek_max, range));
    }
    if n.settle_retry_ppm > 0 && n.settle_retry_turns == 0 {
        let range = "at least 1 where settle_retry_ppm is given";
        return Err(ProfileError::range(places.key("noise.settle_retry_ppm"), "settle_retry_turns", 0, range));
    }
    if n.settle_retry_ppm > 1_000_000 {
        let at = places.key("noise.settle_retry_ppm");
        return Err(ProfileError::range(at, "settle_retry_ppm", n.settle_retry_ppm, "at most 1000000"));
    }
    if let Some(again) = n.settle_retry_again_ppm {
        let at = places.key("noise.settle_retry_again_ppm");
        if again > 1_000_000 {
            return Err(ProfileError::range(at, "settle_retry_again_ppm", again, "at most 1000000"));
        }
        if n.settle_retry_ppm == 0 {
            let found = format!("settle_retry_again_ppm = {again} without it");
            return Err(ProfileError::expected(at, "settle_retry_ppm of at least 1", found));
        }
    }
    if n.recalibrate_every > Dur::ZERO && n.recalibrate_takes >= n.recalibrate_every {
        let at = places.key("noise.recalibrate_takes_ms");
        return Err(ProfileError::range(
            at,
            "recalibrate_takes_ms",
            n.recalibrate_takes,
            "less than recalibrate_every_s",
        ));
    }
    if n.speed_error_ppb.abs() > 100_000_000 || n.speed_drift_ppb > 100_000_000 {
        let at = places.key("noise.speed_error_ppb");
        return Err(ProfileError::range(at, "the speed's error or drift", n.speed_error_ppb, "within 10%"));
    }
    Ok(())
}

/// Checks that the period, with its error and at both ends of its drift, stays within the limits of
/// a [`Rotation`], 1 ms to 1 s.
fn drifting_speed(p: &Profile, rotation: &Rotation, places: &Places) -> Result<(), ProfileError> {
    let (num, den) = rotation.period_ratio();
    let (num, den) = (i128::from(num), i128::from(den));
    let drift = i128::from(p.noise.speed_drift_ppb);
    for ppb in [-drift, drift] {
        let factor = 1_000_000_000 + i128::from(p.noise.speed_error_ppb) + ppb;
        // In units of 10^-9 ns / den.
        let period = num * factor;
        if period < den * 1_000_000 * 1_000_000_000 || period > den * 1_000_000_000 * 1_000_000_000 {
            let (num, den) = p.mechanics.rpm;
            let speed = num as f64 / den as f64 * 1e9 / factor as f64;
            let found = format!("{speed:.4} with the speed's error and drift");
            return Err(ProfileError::range(places.key("mechanics.rpm"), "rpm", found, "between 60 and 60000"));
        }
    }
    Ok(())
}
