//! The profile file: conversion of TOML to a [`Profile`].
//!
//! Times are decimal figures in the unit that ends the key and are converted to whole nanoseconds
//! exactly; docs/profile-format.md documents each key. Errors name the line; inconsistencies across
//! lines (overlaps, sums) are detected by [`super::check`].

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::check;
use super::decimal::Decimal;
use super::fault::{ProfileError, Reason};
use super::keys;
use super::known;
use super::places::Places;
use super::service;
use super::skew;
use super::table::{Item, Source, Table};
use super::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, FirmwareOrder, GeometrySpec, HeadOrder, Layout, Loaded,
    MechanicsSpec, NoiseSpec, Overheads, Prefetch, Profile, QueueSpec, QueuedOverheads, SectorAddress, Skew, Slip,
    SpareUnit, Sparing, ZoneSpec,
};
use crate::time::Dur;

/// Version of the file format.
pub const FORMAT: i64 = 1;

const SECTORS: i64 = 1 << 46;
const CYLINDERS: i64 = 10_000_000;
const SECOND: Dur = Dur(1_000_000_000);
const US: u32 = 3;
const MS: u32 = 6;

/// Parses and checks a profile from the text of the file `path`.
///
/// # Errors
/// File, line and reason: syntax, an unknown or missing key, a wrong type, a figure out of range,
/// or figures that contradict each other.
pub fn read(path: &str, text: &str) -> Result<Loaded, ProfileError> {
    let source = Source::new(path, text);
    let root = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(source.whole(), |s| source.at(s.start));
        ProfileError::expected(&at, "TOML", e.message())
    })?;
    let top = Table::new("the profile".into(), source.whole(), keys::TOP, root.get_ref(), &source)?;
    let mut places = Places::new(source.whole());
    let profile = profile(&top, &mut places)?;
    let warnings = check::check_at(&profile, &places)?;
    Ok(Loaded { profile, warnings })
}

fn profile(top: &Table, places: &mut Places) -> Result<Profile, ProfileError> {
    let format = top.need("format")?;
    if format.int(0, i64::MAX)? != FORMAT {
        return format.refuse("1, the only version there is,");
    }
    let mut sources = BTreeMap::new();
    for (key, value, at) in top.need("sources")?.texts()? {
        places.keyed.insert(format!("sources.{key}"), at);
        sources.insert(key, value);
    }
    for key in ["name", "sector_bytes", "sectors"] {
        places.remember(key, top.get(key));
    }
    let electronics = electronics(&top.need("electronics")?, None, places)?;
    let rig = match top.get("rig") {
        Some(item) => Some(self::electronics(&item, Some(&electronics), places)?),
        None => None,
    };
    Ok(Profile {
        name: top.need("name")?.text()?.to_string(),
        title: top.need("title")?.text()?.to_string(),
        year: top.or("year", None, |v| v.int(1956, 2100).map(|y| Some(y as u16)))?,
        synthesised: top.or("synthesised", None, |v| Ok(Some(v.text()?.to_string())))?,
        sources,
        sector_bytes: top.or("sector_bytes", 512, |v| v.int(0, 1 << 20).map(|n| n as u32))?,
        stated_sectors: top.or("sectors", None, |v| v.int(1, SECTORS).map(|n| Some(n as u64)))?,
        geometry: geometry(&top.need("geometry")?.table(keys::GEOMETRY)?, places)?,
        mechanics: mechanics(&top.need("mechanics")?.table(keys::MECHANICS)?, places)?,
        electronics,
        noise: top.or("noise", NoiseSpec::default(), |v| noise(&v.table(keys::NOISE)?, places))?,
        known: known::read(top, places)?,
        rig,
        service_times: top.or("service_times", Vec::new(), |v| service::read(&v, places))?,
    })
}

fn unknown<T>(item: &Item, what: &str, known: &str) -> Result<T, ProfileError> {
    let reason = Reason::UnknownName { what: what.into(), found: item.text()?.into(), known: known.into() };
    Err(ProfileError { at: item.at.clone(), reason })
}

fn geometry(t: &Table, places: &mut Places) -> Result<GeometrySpec, ProfileError> {
    let layout = t.need("layout")?;
    let seek_first = |tracks_alternate, surfaces_alternate| -> Result<Layout, ProfileError> {
        let group_tracks = t.need("group_tracks")?.int(1, CYLINDERS)? as u32;
        Ok(Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate })
    };
    let layout = match layout.text()? {
        "F" => Layout::HeadFirst(HeadOrder::Forward),
        "A" => Layout::HeadFirst(HeadOrder::AlternatingInZone),
        "A-disk" => Layout::HeadFirst(HeadOrder::AlternatingOnDisk),
        "FF" => seek_first(false, false)?,
        "FA" => seek_first(false, true)?,
        "AF" => seek_first(true, false)?,
        "AA" => seek_first(true, true)?,
        _ => return unknown(&layout, "layout", "F, A, A-disk, FF, FA, AF, AA"),
    };
    if let (Layout::HeadFirst(_), Some(item)) = (layout, t.get("group_tracks")) {
        return Err(ProfileError::impossible(&item.at, "group_tracks goes with the layouts FF, FA, AF and AA only"));
    }
    for key in ["surfaces", "cylinders", "unused_cylinders", "group_tracks"] {
        places.remember(&format!("geometry.{key}"), t.get(key));
    }
    let mut zones = Vec::new();
    let list = t.need("zones")?;
    places.remember("geometry.zones", Some(list.clone()));
    for item in list.list()? {
        let zone_table = item.table(keys::ZONE)?;
        let at = zone_table.need("cylinders")?.at;
        zones.push(zone(&zone_table, matches!(layout, Layout::HeadFirst(_)))?);
        places.zones.push(at);
    }
    let mut remaps = Vec::new();
    for item in t.or("remaps", Vec::new(), |v| v.list())? {
        let [lbn, c, h, s] = item.tuple("a list of LBN, cylinder, surface and sector")?;
        remaps.push((lbn.int(0, SECTORS)? as u64, address(&c, &h, &s)?));
        places.remaps.push(item.at);
    }
    for item in t.or("unused_cylinders", Vec::new(), |v| v.list())? {
        let [first, last] = item.tuple("a list of the first and the last unused cylinder")?;
        let first = first.int(0, CYLINDERS)? as u32;
        places.unused.push((first, last.int(first.into(), CYLINDERS)? as u32));
    }
    Ok(GeometrySpec {
        surfaces: t.need("surfaces")?.int(1, 256)? as u16,
        cylinders: t.need("cylinders")?.int(1, CYLINDERS)? as u32,
        layout,
        zones,
        remaps,
    })
}

fn address(c: &Item, h: &Item, s: &Item) -> Result<SectorAddress, ProfileError> {
    Ok(SectorAddress {
        cylinder: c.int(0, CYLINDERS)? as u32,
        surface: h.int(0, 255)? as u16,
        sector: s.int(0, 100_000)? as u32,
    })
}

fn zone(t: &Table, head_first: bool) -> Result<ZoneSpec, ProfileError> {
    let [first, last] = t.need("cylinders")?.tuple("a list of the first and the last cylinder")?;
    let first = first.int(0, CYLINDERS)?;
    let spt_item = t.need("sectors_per_track")?;
    let one = |v: &Item| v.int(1, 100_000).map(|n| n as u32);
    let sectors_per_track = match spt_item.is_list() {
        true => spt_item.list()?.iter().map(one).collect::<Result<Vec<u32>, _>>()?,
        false => vec![one(&spt_item)?],
    };
    let spt = match sectors_per_track.as_slice() {
        [spt] => Some(*spt),
        _ => None,
    };
    let angle = |v: Item| -> Result<Skew, ProfileError> {
        let text = v.text_or_number()?;
        skew::parse(&text, spt).or_else(|form| v.refuse(form))
    };
    let mut slips = Vec::new();
    for item in t.or("slips", Vec::new(), |v| v.list())? {
        slips.push(Slip::Index(item.int(0, SECTORS)? as u64));
    }
    for item in t.or("slipped_tracks", Vec::new(), |v| v.list())? {
        slips.push(Slip::TrackIndex(item.int(0, SECTORS)? as u64));
    }
    for item in t.or("slips_at", Vec::new(), |v| v.list())? {
        let [c, h, s] = item.tuple("a list of cylinder, surface and sector")?;
        slips.push(Slip::Sector(address(&c, &h, &s)?));
    }
    for item in t.or("slipped_tracks_at", Vec::new(), |v| v.list())? {
        let [c, h] = item.tuple("a list of cylinder and surface")?;
        slips.push(Slip::Track { cylinder: c.int(0, CYLINDERS)? as u32, surface: h.int(0, 255)? as u16 });
    }
    let mut defects = Vec::new();
    for item in t.or("defects", Vec::new(), |v| v.list())? {
        let [bad, spare] = item.tuple("a list of a bad sector and its replacement")?;
        defects.push((bad.int(0, SECTORS)? as u64, spare.int(0, SECTORS)? as u64));
    }
    Ok(ZoneSpec {
        first_cylinder: first as u32,
        last_cylinder: last.int(first, CYLINDERS)? as u32,
        surface: t.or("surface", None, |v| v.int(0, 255).map(|s| Some(s as u16)))?,
        sectors_per_track,
        offset: t.or("offset", head_first.then_some(Skew::ZERO), |v| angle(v).map(Some))?,
        track_skew: angle(t.need("track_skew")?)?,
        cylinder_skew: angle(t.need("cylinder_skew")?)?,
        reserved_sectors: t.count("reserved_sectors", 0, SECTORS as u64)?,
        sparing: sparing(t)?,
        slips,
        defects,
    })
}

fn sparing(t: &Table) -> Result<Sparing, ProfileError> {
    let spares = t.count("spares", 0, SECTORS as u64)?;
    let unit = match t.get("spare_unit") {
        None => SpareUnit::Zone,
        Some(v) if !v.is_text() => SpareUnit::Cylinders(v.int(1, CYLINDERS)? as u32),
        Some(v) => match v.text()? {
            "zone" => SpareUnit::Zone,
            "track" => SpareUnit::Track,
            _ => return unknown(&v, "spare_unit", "zone, track, or a number of cylinders"),
        },
    };
    Ok(Sparing {
        unit,
        spares,
        at_front: t.flag("spares_at_front", false)?,
        // Without spares, slips are lost in any case.
        slips_are_extra: t.flag("slips_are_extra", spares == 0)?,
        slips_push_skew: t.flag("slips_push_skew", false)?,
    })
}

fn mechanics(t: &Table, places: &mut Places) -> Result<MechanicsSpec, ProfileError> {
    for key in ["rpm", "seek_ms", "write_seek_ms", "head_switch_ms"] {
        places.remember(&format!("mechanics.{key}"), t.get(key));
    }
    let rpm_item = t.need("rpm")?;
    let rpm_text = rpm_item.text_or_number()?;
    let rpm = match rpm_text.split_once('/') {
        Some((num, den)) => num.trim().parse().ok().zip(den.trim().parse().ok()),
        None => Decimal::parse(&rpm_text).and_then(Decimal::ratio),
    };
    let Some(rpm) = rpm else {
        return rpm_item.refuse("a speed such as 7200, 10025.5 or \"72000/7\"");
    };
    Ok(MechanicsSpec {
        rpm,
        seek: seek(&t.need("seek_ms")?, &mut places.seek)?,
        write_seek: match t.get("write_seek_ms") {
            Some(item) => Some(seek(&item, &mut places.write_seek)?),
            None => None,
        },
        head_switch: t.need("head_switch_ms")?.time(MS, SECOND)?,
        write_settle_ns: t.or("write_settle_ms", 0, |v| v.units(MS, -100_000_000, 100_000_000))?,
        read_on_arrival: t.flag("read_on_arrival", false)?,
        write_on_arrival: t.flag("write_on_arrival", false)?,
        keep_passing: t.flag("keep_passing", false)?,
    })
}

fn seek(item: &Item, lines: &mut Vec<super::At>) -> Result<Vec<(u32, Dur)>, ProfileError> {
    let mut points = Vec::new();
    for item in item.list()? {
        let [distance, ms] = item.tuple("a list of a distance and a time")?;
        points.push((distance.int(1, CYLINDERS)? as u32, ms.time(MS, SECOND)?));
        lines.push(item.at);
    }
    Ok(points)
}

/// Reads electronics from a table; missing keys are taken from `base` (a rig differs from the
/// drive's usual electronics in a few keys only) or are neutral.
fn electronics(item: &Item, base: Option<&Electronics>, places: &mut Places) -> Result<Electronics, ProfileError> {
    let t = item.table(keys::ELECTRONICS)?;
    let part = |key: &str, keys| -> Result<Option<Table>, ProfileError> {
        match (t.get(key), base) {
            (Some(item), _) => item.table(keys).map(Some),
            (None, None) if key == "bus" || key == "cache" => t.need(key).map(|_| None),
            _ => Ok(None),
        }
    };
    let bus_table = part("bus", keys::BUS)?;
    let overheads_table = part("overheads", keys::OVERHEADS)?;
    let cache_table = part("cache", keys::CACHE)?;
    let queue_table = part("queue", keys::QUEUE)?;
    if let Some(q) = &queue_table {
        places.remember(&format!("{}.queue.depth", item.label), q.get("depth"));
    }
    let base = base.cloned().unwrap_or_else(Electronics::neutral);
    let in_rig = item.label == "rig";
    Ok(Electronics {
        bus: bus_table.map_or(Ok(base.bus), |t| bus(&t, &base.bus, in_rig))?,
        overheads: overheads_table.map_or(Ok(base.overheads), |t| overheads(&t, &base.overheads))?,
        cache: cache_table.map_or(Ok(base.cache), |t| cache(&t, &base.cache, in_rig))?,
        queue: queue_table.map_or(Ok(base.queue), |t| queue(&t, &base.queue))?,
    })
}

fn bus(t: &Table, base: &BusSpec, in_rig: bool) -> Result<BusSpec, ProfileError> {
    let block = |key: &str, base: u64| match t.get(key) {
        None if in_rig => Ok(base),
        _ => t.need(key)?.units(3, 0, 1_000_000_000_000).map(|ps| ps as u64),
    };
    Ok(BusSpec {
        read_block_ps: block("read_block_ns", base.read_block_ps)?,
        write_block_ps: block("write_block_ns", base.write_block_ps)?,
        hold_for_reads: t.flag("hold_for_reads", base.hold_for_reads)?,
        hold_for_writes: t.flag("hold_for_writes", base.hold_for_writes)?,
        never_disconnect: t.flag("never_disconnect", base.never_disconnect)?,
        arbitration: t.or("arbitration_us", base.arbitration, |v| v.time(US, SECOND))?,
    })
}

fn overheads(t: &Table, base: &Overheads) -> Result<Overheads, ProfileError> {
    let time = |key: &str, base: Dur| t.or(key, base, |v| v.time(US, SECOND));
    let pair = |key: &str, base: ByLast| {
        t.or(key, base, |v| {
            if v.is_table() {
                let pair = v.table(keys::BY_LAST)?;
                let half = |key: &str| pair.need(key)?.time(US, SECOND);
                Ok(ByLast { after_read: half("after_read")?, after_write: half("after_write")? })
            } else {
                let both = v.time(US, SECOND)?;
                Ok(ByLast { after_read: both, after_write: both })
            }
        })
    };
    Ok(Overheads {
        read_hit: pair("read_hit_us", base.read_hit)?,
        read_miss: pair("read_miss_us", base.read_miss)?,
        write_hit: pair("write_hit_us", base.write_hit)?,
        write_miss: pair("write_miss_us", base.write_miss)?,
        read_completion: time("read_completion_us", base.read_completion)?,
        write_completion: time("write_completion_us", base.write_completion)?,
        data_preparation: time("data_preparation_us", base.data_preparation)?,
        reselect: time("reselect_us", base.reselect)?,
        other_reselect: time("other_reselect_us", base.other_reselect)?,
        read_disconnect: pair("read_disconnect_us", base.read_disconnect)?,
        write_disconnect: time("write_disconnect_us", base.write_disconnect)?,
        minimum_seek: time("minimum_seek_us", base.minimum_seek)?,
        per_request: time("per_request_us", base.per_request)?,
        extra_disconnect: t.or("extra_disconnect_us", None, |v| {
            let t = v.table(keys::EXTRA_DISCONNECT)?;
            let time = |key: &str| t.or(key, Dur::ZERO, |v| v.time(US, SECOND));
            Ok(Some(ExtraDisconnect {
                command: time("command")?,
                disconnect: time("disconnect")?,
                between: time("between")?,
                second: time("second")?,
                seek_delta: time("seek_delta")?,
            }))
        })?,
        queued: t.or("queued_us", base.queued, |v| {
            let t = v.table(keys::QUEUED)?;
            let time = |key: &str| t.or(key, Dur::ZERO, |v| v.time(US, SECOND));
            Ok(QueuedOverheads {
                read_read: time("read_read")?,
                read_write: time("read_write")?,
                write_read: time("write_read")?,
                write_write: time("write_write")?,
            })
        })?,
    })
}

fn cache(t: &Table, base: &CacheSpec, in_rig: bool) -> Result<CacheSpec, ProfileError> {
    const BLOCKS: u64 = 1 << 24;
    let sized = |key: &str, base: u32, max: i64| match t.get(key) {
        None if in_rig => Ok(base),
        _ => t.need(key)?.int(0, max).map(|n| n as u32),
    };
    let share = |key: &str, base: u32| t.or(key, base, |v| v.units(3, 0, 1000).map(|n| n as u32));
    let count = |key: &str, base: u32, max: u64| t.count(key, base.into(), max).map(|n| n as u32);
    let ahead = || t.need("prefetch_sectors")?.int(0, BLOCKS as i64).map(|n| n as u32);
    let prefetch = match t.get("prefetch") {
        None => base.prefetch,
        Some(v) => match v.text()? {
            "none" => Prefetch::None,
            "track-ahead" => Prefetch::TrackAhead,
            "to-track-end" => Prefetch::ToTrackEnd(ahead()?),
            "to-cylinder-end" => Prefetch::ToCylinderEnd(ahead()?),
            "sectors" => Prefetch::Sectors(ahead()?),
            _ => return unknown(&v, "prefetch", "none, track-ahead, to-track-end, to-cylinder-end, sectors"),
        },
    };
    if let (Prefetch::None | Prefetch::TrackAhead, Some(v)) = (prefetch, t.get("prefetch_sectors")) {
        return Err(ProfileError::impossible(&v.at, "prefetch_sectors has no meaning with this kind of prefetch"));
    }
    Ok(CacheSpec {
        segments: sized("segments", base.segments, 100_000)?,
        segment_sectors: sized("segment_sectors", base.segment_sectors, BLOCKS as i64)?,
        prefetch,
        minimum_prefetch_sectors: count("minimum_prefetch_sectors", base.minimum_prefetch_sectors, BLOCKS)?,
        prefetch_on_idle_hit: t.flag("prefetch_on_idle_hit", base.prefetch_on_idle_hit)?,
        stop_in_sector: t.flag("stop_in_sector", base.stop_in_sector)?,
        prefetch_only_sequential: t.flag("prefetch_only_sequential", base.prefetch_only_sequential)?,
        same_track_prefetch_delays: t.flag("same_track_prefetch_delays", base.same_track_prefetch_delays)?,
        keep_delivered: t.flag("keep_delivered", base.keep_delivered)?,
        read_watermark_permille: share("read_watermark", base.read_watermark_permille)?,
        write_watermark_permille: share("write_watermark", base.write_watermark_permille)?,
        watermark_by_request: t.flag("watermark_by_request", base.watermark_by_request)?,
        write_back: t.flag("write_back", base.write_back)?,
        dirty_segments: count("dirty_segments", base.dirty_segments, 100_000)?,
        read_hits_on_written: t.flag("read_hits_on_written", base.read_hits_on_written)?,
        writes_update_segments: t.flag("writes_update_segments", base.writes_update_segments)?,
        combine_sequential_writes: t.flag("combine_sequential_writes", base.combine_sequential_writes)?,
        write_burst_sectors: count("write_burst_sectors", base.write_burst_sectors, 10_000)?,
        almost_hits: t.flag("almost_hits", base.almost_hits)?,
        separate_write_segment: t.flag("separate_write_segment", base.separate_write_segment)?,
        write_segments: count("write_segments", base.write_segments, 100_000)?,
    })
}

fn queue(t: &Table, base: &QueueSpec) -> Result<QueueSpec, ProfileError> {
    Ok(QueueSpec {
        depth: t.or("depth", base.depth, |v| v.int(1, 256).map(|n| n as u32))?,
        order: t.or("order", base.order, |v| match v.text()? {
            "fcfs" => Ok(FirmwareOrder::Fcfs),
            "sptf" => Ok(FirmwareOrder::Sptf),
            _ => unknown(&v, "order", "fcfs, sptf"),
        })?,
    })
}

fn noise(t: &Table, places: &mut Places) -> Result<NoiseSpec, ProfileError> {
    for key in keys::NOISE.1 {
        places.remember(&format!("noise.{key}"), t.get(key));
    }
    let us = |key: &str| t.or(key, Dur::ZERO, |v| v.time(US, SECOND));
    let hour = Dur::from_secs(3600);
    Ok(NoiseSpec {
        seek_sd: us("seek_sd_us")?,
        seek_max: us("seek_max_us")?,
        completion_jitter: us("completion_jitter_us")?,
        overlap_jitter_per_4k: us("overlap_jitter_per_4k_us")?,
        settle_retry_ppm: t.count("settle_retry_ppm", 0, 1_000_000)? as u32,
        settle_retry_again_ppm: t
            .get("settle_retry_again_ppm")
            .map(|_| t.count("settle_retry_again_ppm", 0, 1_000_000).map(|n| n as u32))
            .transpose()?,
        settle_retry_turns: t.count("settle_retry_turns", 0, 100)? as u32,
        recalibrate_every: t.or("recalibrate_every_s", Dur::ZERO, |v| v.time(9, Dur(hour.0 * 24 * 365)))?,
        recalibrate_takes: t.or("recalibrate_takes_ms", Dur::ZERO, |v| v.time(MS, hour))?,
        speed_error_ppb: t.or("speed_error_ppb", 0, |v| v.int(-100_000_000, 100_000_000))?,
        speed_drift_ppb: t.count("speed_drift_ppb", 0, 100_000_000)? as u32,
    })
}
