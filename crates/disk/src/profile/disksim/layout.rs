//! Layout g1: zones, skews, sparing, slips.
//!
//! DiskSim counts the reserved space at a zone's front in the zone's data sectors, before slips
//! push them and before spares are set aside; a profile counts it in physical sectors. [`Front`]
//! converts.

use crate::angle::Angle;
use crate::profile::decimal::Decimal;
use crate::profile::fault::{At, ProfileError, WarningKind, Warnings};
use crate::profile::places::Places;
use crate::profile::{GeometrySpec, HeadOrder, Layout, Skew, Slip, SpareUnit, Sparing, ZoneSpec, check};

use super::params::{self, Params};
use super::parser::{Block, Node, Value};

const MAX_CYLINDERS: i64 = 10_000_000;
const MAX_SPT: i64 = 100_000;
const MAX_SECTORS: i64 = 1 << 46;

/// Reads the geometry of a `dm_disk` block, without its `Mechanical Model`. Records the zones'
/// locations in `places`; cylinders without a zone give a warning and are recorded as unused. The
/// caller checks the consistency of the result.
pub(super) fn geometry(
    model: &mut Params,
    places: &mut Places,
    warnings: &mut Warnings,
) -> Result<GeometrySpec, ProfileError> {
    let surfaces = model.int("Number of data surfaces", 1, 256)? as u16;
    let stated_cylinders = model.int("Number of cylinders", 1, MAX_CYLINDERS)? as u32;
    let stated_sectors = model.get("Block count");
    let node = model.need("Layout Model")?;
    let layout = match &node.value {
        Value::Block(b) if b.kind == "dm_layout_g1" => b,
        other => {
            return Err(ProfileError::expected(&node.at, "a layout of type dm_layout_g1", other.describe()));
        }
    };
    let mut spec = g1(layout, surfaces, places, warnings)?;
    let last = spec.zones.iter().map(|z| z.last_cylinder).max().unwrap_or(0);
    if last >= stated_cylinders {
        let kind = WarningKind::MoreCylinders { last, stated: stated_cylinders };
        warnings.note(&layout.at, kind);
    }
    spec.cylinders = stated_cylinders.max(last + 1);
    places.remember_at("geometry.zones", &layout.at);
    places.unused = check::unused_cylinders(&spec);
    for &(first, last) in &places.unused {
        let next = spec.zones.iter().position(|z| z.first_cylinder == last + 1);
        let at = next.and_then(|i| places.zones.get(i)).unwrap_or(&layout.at);
        warnings.note(at, WarningKind::UnzonedCylinders { first, last });
    }
    if let Some(node) = stated_sectors {
        let stated = params::int(node)?;
        let computed = spec.usable_sectors();
        if stated != computed as i64 {
            let stated = stated.max(0) as u64;
            warnings.note(&node.at, WarningKind::Capacity { stated, computed });
        }
    }
    Ok(spec)
}

fn g1(
    block: &Block,
    surfaces: u16,
    places: &mut Places,
    warnings: &mut Warnings,
) -> Result<GeometrySpec, ProfileError> {
    let mut p = Params::new(block);
    let heads = match p.int("LBN-to-PBN mapping scheme", 0, 2)? {
        0 => HeadOrder::Forward,
        1 => HeadOrder::AlternatingInZone,
        _ => HeadOrder::AlternatingOnDisk,
    };
    let scheme = p.int("Sparing scheme used", 0, 10)?;
    let range = match scheme {
        8 => p.int("Rangesize for sparing", 1, MAX_CYLINDERS)? as u32,
        _ => {
            p.skip(&["Rangesize for sparing"]);
            1
        }
    };
    let turns = match p.get("Skew units") {
        None => false,
        Some(node) => match params::word(node)? {
            "revolutions" => true,
            "sectors" => false,
            other => {
                return Err(ProfileError::expected(&node.at, "`sectors` or `revolutions`", format!("`{other}`")));
            }
        },
    };
    let rules = Rules { scheme, range, turns, surfaces };
    let zones_at = p.need("Zones")?.at.clone();
    let mut zones: Vec<ZoneSpec> = Vec::new();
    for node in p.list("Zones")? {
        let zone = match &node.value {
            Value::Block(b) if b.kind == "dm_layout_g1_zone" => rules.zone(b, warnings)?,
            other => {
                return Err(ProfileError::expected(&node.at, "a block of type dm_layout_g1_zone", other.describe()));
            }
        };
        if let Some(other) =
            zones.iter().find(|o| o.first_cylinder <= zone.last_cylinder && zone.first_cylinder <= o.last_cylinder)
        {
            return Err(ProfileError::impossible(
                &node.at,
                format!(
                    "zone of cylinders {} to {} overlaps the zone of cylinders {} to {}",
                    zone.first_cylinder, zone.last_cylinder, other.first_cylinder, other.last_cylinder
                ),
            ));
        }
        zones.push(zone);
        places.zones.push(node.at.clone());
    }
    if zones.is_empty() {
        return Err(ProfileError::expected(&zones_at, "at least one zone", "none"));
    }
    p.finish(warnings);
    Ok(GeometrySpec { surfaces, cylinders: 0, layout: Layout::HeadFirst(heads), zones, remaps: Vec::new() })
}

/// Parameters common to all zones of a layout.
struct Rules {
    scheme: i64,
    range: u32,
    turns: bool,
    surfaces: u16,
}

impl Rules {
    fn zone(&self, block: &Block, warnings: &mut Warnings) -> Result<ZoneSpec, ProfileError> {
        let mut p = Params::new(block);
        let first = p.int("First cylinder number", 0, MAX_CYLINDERS)?;
        let last = p.int("Last cylinder number", first, MAX_CYLINDERS)?;
        let spt = p.int("Blocks per track", 1, MAX_SPT)? as u32;
        let offset = self.skew(&mut p, "Offset of first block", spt)?;
        let track_skew = self.skew(&mut p, "Skew for track switch", spt)?;
        let cylinder_skew = self.skew(&mut p, "Skew for cylinder switch", spt)?;
        let dead = p.int("Empty space at zone front", 0, MAX_SECTORS)? as u64;
        let spares = p.int("Number of spares", 0, MAX_SECTORS)? as u64;
        let tracks = (last - first + 1) as u64 * u64::from(self.surfaces);
        let sectors = tracks * u64::from(spt);
        let slip_limit = if self.scheme == 1 { tracks } else { sectors };
        let (slips_at, slips) = self.slips(&mut p, slip_limit)?;
        let defects = defects(&mut p, sectors)?;
        let mut sparing = self.sparing(&mut p, spares, spt);
        let mut slips = slips;
        if self.scheme == 0 && !slips.is_empty() {
            let kind = WarningKind::NoEffect {
                key: "slips".into(),
                value: format!("{} entries", slips.len()),
                why: "sparing scheme 0 does not look at them",
            };
            p.note(&slips_at, kind);
            slips.clear();
        }
        let unit_sectors = match sparing.unit {
            SpareUnit::Zone => sectors,
            SpareUnit::Cylinders(n) => u64::from(n) * u64::from(self.surfaces) * u64::from(spt),
            SpareUnit::Track => spt.into(),
        };
        let front = Front {
            dead,
            unit_sectors,
            slip_sectors: if self.scheme == 1 { spt.into() } else { 1 },
            whole_zone: sparing.unit == SpareUnit::Zone,
        };
        let reserved = front.reserve(&mut sparing, &mut slips);
        if reserved > sectors {
            return Err(ProfileError::range(
                &block.at,
                "Empty space at zone front",
                dead,
                format!("less than the zone's {sectors} sectors"),
            ));
        }
        // More slips than spares: DiskSim's walk would leave the zone. Here the zone's capacity is
        // reduced instead.
        let slipped = slips.len() as u64 * front.slip_sectors;
        if front.whole_zone && !sparing.slips_are_extra && slipped > sparing.spares {
            let spares = sparing.spares;
            let text =
                format!("{slipped} sectors slipped in a zone of {spares} spares; as many spares as slips were taken");
            p.note(&slips_at, WarningKind::Assumed(text));
            sparing.spares = slipped;
        }
        p.finish(warnings);
        Ok(ZoneSpec {
            first_cylinder: first as u32,
            last_cylinder: last as u32,
            surface: None,
            sectors_per_track: vec![spt],
            offset: Some(offset),
            track_skew,
            cylinder_skew,
            reserved_sectors: reserved,
            sparing,
            slips: slips
                .into_iter()
                .map(|s| match self.scheme {
                    1 => Slip::TrackIndex(s),
                    _ => Slip::Index(s),
                })
                .collect(),
            defects,
        })
    }

    fn sparing(&self, p: &mut Params, spares: u64, spt: u32) -> Sparing {
        let zone = |spares, slips_are_extra| Sparing { spares, slips_are_extra, ..Sparing::NONE };
        let unit = |unit, at_front, slips_are_extra, slips_push_skew| Sparing {
            unit,
            spares,
            at_front,
            slips_are_extra,
            slips_push_skew,
        };
        let cylinder = SpareUnit::Cylinders(1);
        match self.scheme {
            1 => zone(spares * u64::from(spt), false),
            2 => unit(cylinder, false, false, true),
            3 => unit(SpareUnit::Track, false, false, true),
            4 => unit(cylinder, false, true, true),
            5 => unit(cylinder, true, false, true),
            6 => unit(cylinder, true, true, true),
            8 => unit(SpareUnit::Cylinders(self.range), false, false, false),
            9 => zone(spares, false),
            10 => zone(spares, true),
            // Schemes 0 and 7 keep no spares, whatever number is given.
            _ => {
                p.without_effect("Number of spares", "0", "this sparing scheme keeps no spares");
                Sparing::NONE
            }
        }
    }

    fn skew(&self, p: &mut Params, key: &'static str, spt: u32) -> Result<Skew, ProfileError> {
        let node = p.need(key)?;
        let figure = params::real(node)?;
        let too_long = || ProfileError::range(&node.at, key, figure, "a number of at most 15 digits");
        let beyond = |p: &mut Params| {
            let kind = WarningKind::SkewBeyondTurn { what: key, found: figure.to_string(), turn: spt };
            p.note(&node.at, kind);
        };
        if self.turns {
            let magnitude = match figure.is_negative() {
                true => figure.times(Decimal::from_int(-1)).ok_or_else(too_long)?,
                false => figure,
            };
            let (num, den) = magnitude.ratio().ok_or_else(too_long)?;
            if num >= den {
                beyond(p);
            }
            let angle = Angle::fraction(num, den);
            return Ok(Skew::Turn(match figure.is_negative() {
                true => Angle::ZERO - angle,
                false => angle,
            }));
        }
        let sectors = figure.truncated().ok_or_else(too_long)?;
        if sectors.unsigned_abs() >= spt.into() {
            beyond(p);
        }
        // Whole revolutions do not change an angle; a negative skew equals a positive one in the
        // other direction.
        let reduced = sectors.rem_euclid(spt.into()) as u32;
        Ok(Skew::Sectors(reduced))
    }

    /// Returns the slip list, sorted, each index once and none beyond `limit`, such that it gives
    /// the same result as DiskSim's walk: a repeated slip slips the next sector too, and one beyond
    /// the zone still costs a sector where slips are counted.
    fn slips(&self, p: &mut Params, limit: u64) -> Result<(At, Vec<u64>), ProfileError> {
        let at = p.need("slips")?.at.clone();
        let mut found: Vec<(u64, &Node)> = Vec::new();
        for node in p.list("slips")? {
            let n = params::int(node)?;
            let index = u64::try_from(n).map_err(|_| ProfileError::range(&node.at, "a slip", n, "0 or more"))?;
            found.push((index, node));
        }
        if let Some(w) = found.windows(2).find(|w| w[1].0 < w[0].0) {
            let kind = WarningKind::UnsortedSlips { found: w[1].0, after: w[0].0 };
            p.note(&w[1].1.at, kind);
            found.sort_by_key(|&(index, _)| index);
        }
        if found.len() as u64 > limit {
            return Err(ProfileError::range(
                &at,
                "the number of slips",
                found.len(),
                format!("at most {limit}, as many as the zone has"),
            ));
        }
        for w in found.windows(2) {
            if w[0].0 == w[1].0 {
                p.note(&w[1].1.at, WarningKind::RepeatedSlip(w[1].0));
            }
        }
        for (index, node) in &found {
            if *index >= limit {
                let kind = WarningKind::SlipBeyondZone { found: *index, last: limit - 1 };
                p.note(&node.at, kind);
            }
        }
        let mut slips: Vec<u64> = found.into_iter().map(|(index, _)| index).collect();
        for i in 1..slips.len() {
            slips[i] = slips[i].max(slips[i - 1] + 1);
        }
        if matches!(self.scheme, 4 | 6 | 7 | 10) {
            // These schemes count slips, and lose a sector for each.
            let count = slips.len() as u64;
            for (i, slip) in slips.iter_mut().enumerate() {
                *slip = (*slip).min(limit - (count - i as u64));
            }
        } else {
            slips.retain(|&s| s < limit);
        }
        Ok((at, slips))
    }
}

/// Returns the pairs of a defective sector and its replacement.
fn defects(p: &mut Params, sectors: u64) -> Result<Vec<(u64, u64)>, ProfileError> {
    let at = p.need("defects")?.at.clone();
    let items = p.list("defects")?;
    if items.len() % 2 != 0 {
        return Err(ProfileError::expected(
            &at,
            "pairs of a bad sector and its replacement",
            format!("{} numbers", items.len()),
        ));
    }
    let index = |node: &Node| {
        let n = params::int(node)?;
        u64::try_from(n)
            .ok()
            .filter(|&i| i < sectors)
            .ok_or_else(|| ProfileError::range(&node.at, "a defect", n, format!("below {sectors}, inside its zone")))
    };
    let mut out = Vec::new();
    for pair in items.chunks(2) {
        let (bad, replacement) = (index(&pair[0])?, index(&pair[1])?);
        if bad == replacement {
            p.note(&pair[0].at, WarningKind::DefectToItself(bad));
        } else {
            out.push((bad, replacement));
        }
    }
    Ok(out)
}

/// The reserved space at a zone's front, as DiskSim counts it.
struct Front {
    /// Reserved data sectors.
    dead: u64,
    /// Physical sectors of the spare unit.
    unit_sectors: u64,
    /// Sectors per slip.
    slip_sectors: u64,
    /// The spare unit is the whole zone.
    whole_zone: bool,
}

impl Front {
    /// Returns the number of physical sectors before the first one with data, including spares and
    /// slips. Slips among them are removed from a whole-zone list together with the spares they
    /// used, so that nothing is counted twice.
    fn reserve(&self, sparing: &mut Sparing, slips: &mut Vec<u64>) -> u64 {
        if self.dead == 0 {
            return 0;
        }
        let spares_in_unit = if self.whole_zone { 0 } else { sparing.spares };
        let data = self.unit_sectors.saturating_sub(spares_in_unit).max(1);
        let unit_start = self.dead / data * self.unit_sectors;
        let mut at = unit_start + self.dead % data;
        if sparing.at_front && at > unit_start {
            at += spares_in_unit;
        }
        let mut passed = 0;
        for slip in slips.iter().map(|s| s * self.slip_sectors) {
            if slip >= unit_start && slip <= at {
                at += self.slip_sectors;
                passed += 1;
            }
        }
        if self.whole_zone {
            slips.drain(..passed);
            if !sparing.slips_are_extra {
                sparing.spares = sparing.spares.saturating_sub(passed as u64 * self.slip_sectors);
            }
        }
        at
    }
}
