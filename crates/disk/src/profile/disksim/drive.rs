//! Conversion of parsed files to a profile: disk, bus and electronics.

use std::collections::BTreeMap;

use crate::profile::decimal::Decimal;
use crate::profile::fault::{At, ProfileError, WarningKind, Warnings};
use crate::profile::places::Places;
use crate::profile::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, FROM_DISKSIM, Figure, FirmwareOrder, Knowledge, Known,
    Loaded, NoiseSpec, Overheads, Prefetch, Profile, QueueSpec, QueuedOverheads, Resolver, check,
};
use crate::time::Dur;

use super::params::{self, Params};
use super::parser::{Block, Component, Document, Node, Value};
use super::{layout, lexer, mech, parser};

/// Loads the disk that a `.parv` file (or a `.diskspecs` file alone) describes.
///
/// The disk is the first one of the topology, else the first one instantiated, else the first one
/// defined. Its bus is its parent in the topology. Without a topology only the disk's own transfer
/// time counts.
///
/// # Errors
/// File, line, what was expected and what was found.
pub(crate) fn load(path: &str, resolver: &Resolver) -> Result<Loaded, ProfileError> {
    let whole = At::file(path);
    let doc = parser::parse(lexer::tokens(path, resolver)?, &whole)?;
    let mut warnings = Warnings::default();
    let (disk, parents) = find_disk(&doc, &whole, &mut warnings)?;
    let mut p = Params::new(disk);

    let bus_ps = bus_times(&doc, &parents, &mut p, &mut warnings)?;
    let electronics = electronics(&mut p, bus_ps)?;

    let model_node = p.need("Model")?;
    let model_block = resolve(&doc, model_node, "dm_disk")?;
    let mut model = Params::new(model_block);
    let mut places = Places::new(model_block.at.clone());
    places.odd_seeks = true;
    let geometry = layout::geometry(&mut model, &mut places, &mut warnings)?;
    let mut mechanics = mech::mechanics(&mut model, geometry.cylinders, (path, resolver), &mut places, &mut warnings)?;
    // The meaning of these three parameters; DiskSim 4.0 never applies them
    // (DriveConfig::disksim_exact).
    mechanics.read_on_arrival = p.flag("Immediate buffer read")?;
    mechanics.write_on_arrival = p.flag("Immediate buffer write")?;
    mechanics.keep_passing = p.flag("Read any free blocks")?;
    model.finish(&mut warnings);
    p.finish(&mut warnings);

    let title = disk.name.clone().unwrap_or_default();
    let stem = path.rsplit('/').next().unwrap_or(path);
    let stem = stem.split('.').next().unwrap_or(stem);
    let source = format!("{FROM_DISKSIM}{stem}, disk {title}");
    // DiskSim's drives have no random components; that says nothing about a real drive of that
    // name.
    let mut known = Known::default();
    for figure in [Figure::SettleTurns, Figure::Recalibration, Figure::SeekSpread, Figure::Overlap] {
        known.set(figure, Knowledge::Unknown);
    }
    if !places.keyed.contains_key("mechanics.write_settle_ms") {
        known.set(Figure::WriteSettle, Knowledge::Unknown);
    }
    let profile = Profile {
        name: short_name(stem),
        title,
        year: None,
        synthesised: None,
        sources: ["geometry", "mechanics", "electronics", "noise"]
            .map(|table| (table.to_string(), source.clone()))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        sector_bytes: 512,
        stated_sectors: None,
        geometry,
        mechanics,
        electronics,
        noise: NoiseSpec::default(),
        known,
        rig: None,
        service_times: Vec::new(),
    };
    // The checks of a profile file apply here, so that the loaded profile can be written and read
    // again.
    warnings.0.append(&mut check::check_at(&profile, &places)?);
    Ok(Loaded { profile, warnings: warnings.0 })
}

/// Converts a file's name to a profile name: invalid characters become `-`.
fn short_name(stem: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c.to_ascii_lowercase() } else { '-' };
    let name: String = stem.chars().take(64).map(fit).collect();
    if name.is_empty() { "disk".into() } else { name }
}

const DISK: &str = "disksim_disk";

fn definition<'a>(doc: &'a Document, name: &str) -> Option<&'a Block> {
    doc.blocks.iter().find(|b| b.name.as_deref() == Some(name))
}

/// Returns the definition of an instance, or else the definition of that name.
fn instance<'a>(doc: &'a Document, name: &str) -> Option<&'a Block> {
    let made_from = doc.instances.iter().find(|(n, _)| n == name);
    definition(doc, made_from.map_or(name, |(_, d)| d))
}

fn find_disk<'a>(
    doc: &'a Document,
    whole: &At,
    warnings: &mut Warnings,
) -> Result<(&'a Block, Vec<&'a Component>), ProfileError> {
    let mut found: Vec<Vec<&Component>> = Vec::new();
    for root in &doc.topology {
        walk(root, &mut Vec::new(), &mut found);
    }
    let mut choices: Vec<(&Block, Vec<&Component>)> = Vec::new();
    for mut chain in found {
        let Some(leaf) = chain.pop() else { continue };
        match instance(doc, &leaf.name) {
            Some(block) if block.kind == DISK => choices.push((block, chain)),
            _ => {
                return Err(ProfileError::expected(
                    whole,
                    format!("a definition of type {DISK} for `{}` of the topology", leaf.name),
                    "none",
                ));
            }
        }
    }
    if choices.is_empty() {
        let instances = doc.instances.iter().filter_map(|(_, d)| definition(doc, d));
        let all = instances.chain(&doc.blocks);
        choices.extend(all.filter(|b| b.kind == DISK).map(|b| (b, Vec::new())));
    }
    let Some((disk, parents)) = choices.first().cloned() else {
        let kinds: Vec<&str> = doc.blocks.iter().map(|b| b.kind.as_str()).collect();
        return Err(ProfileError::expected(
            whole,
            format!("a definition of type {DISK}"),
            match kinds.len() {
                0 => "no definition at all".to_string(),
                _ => format!("definitions of type {}", kinds.join(", ")),
            },
        ));
    };
    if let Some((other, _)) = choices.iter().find(|(b, _)| b.name != disk.name) {
        let text = format!(
            "more than one kind of disk; `{}` was taken, not `{}`",
            disk.name.as_deref().unwrap_or(""),
            other.name.as_deref().unwrap_or("")
        );
        warnings.note(&disk.at, WarningKind::Assumed(text));
    }
    Ok((disk, parents))
}

/// Collects the chains from the root to each disk, the disk last.
fn walk<'a>(at: &'a Component, above: &mut Vec<&'a Component>, found: &mut Vec<Vec<&'a Component>>) {
    above.push(at);
    if at.kind == DISK {
        found.push(above.clone());
    }
    for child in &at.children {
        walk(child, above, found);
    }
    above.pop();
}

fn resolve<'a>(doc: &'a Document, node: &'a Node, kind: &str) -> Result<&'a Block, ProfileError> {
    let block = match &node.value {
        Value::Block(b) => Some(b),
        Value::Word(name) => instance(doc, name),
        Value::List(_) => None,
    };
    block.filter(|b| b.kind == kind).ok_or_else(|| {
        let expected = format!("a block of type {kind}");
        ProfileError::expected(&node.at, expected, node.value.describe())
    })
}

/// Converts milliseconds per 512-byte block to picoseconds.
fn picoseconds(what: &str, ms: Decimal, at: &At) -> Result<u64, ProfileError> {
    ms.scaled(9)
        .and_then(|ps| u64::try_from(ps).ok())
        .filter(|&ps| ps <= 1_000_000_000_000)
        .ok_or_else(|| ProfileError::range(at, what, format!("{ms} ms"), "between 0 and 1000 ms"))
}

/// Returns the slower of the disk's and its bus's time per block, for reads and for writes, and the
/// arbitration time.
fn bus_times(
    doc: &Document,
    parents: &[&Component],
    disk: &mut Params,
    warnings: &mut Warnings,
) -> Result<(u64, u64, Dur), ProfileError> {
    let key = "Bulk sector transfer time";
    let own = picoseconds(key, disk.real_or_zero(key)?, disk.at())?;
    let mut times = (own, own, Dur::ZERO);
    if let Some(bus) = parents.iter().rev().find(|c| c.kind == "disksim_bus") {
        let block = instance(doc, &bus.name).filter(|b| b.kind == "disksim_bus");
        let block = block.ok_or_else(|| {
            let expected = format!("a definition of type disksim_bus for `{}`", bus.name);
            ProfileError::expected(disk.at(), expected, "none")
        })?;
        let mut p = Params::new(block);
        let rate = |p: &mut Params, key: &str| {
            let ms = p.real_or_zero(key)?;
            picoseconds(key, ms, &block.at).map(|ps| ps.max(own))
        };
        times.0 = rate(&mut p, "Read block transfer time")?;
        times.1 = rate(&mut p, "Write block transfer time")?;
        times.2 = p.time_or_zero("Arbitration time", Decimal::from_int(1))?;
        p.skip(&["type", "Arbitration type", "Print stats"]);
        p.finish(warnings);
    }
    let controllers = parents.iter().filter(|c| c.kind == "disksim_ctlr");
    for block in controllers.filter_map(|c| instance(doc, &c.name)) {
        let mut p = Params::new(block);
        p.without_effect("Scale for delays", "0", "a controller's own delays are not part of a drive's profile");
        let mut seen = Warnings::default();
        p.finish(&mut seen);
        // A controller's other parameters do not affect the disk.
        seen.0.retain(|w| matches!(w.kind, WarningKind::NoEffect { .. }));
        warnings.0.append(&mut seen.0);
    }
    Ok(times)
}

const MAX_BLOCKS: i64 = 1 << 24;

fn electronics(p: &mut Params, (read_ps, write_ps, arbitration): (u64, u64, Dur)) -> Result<Electronics, ProfileError> {
    let bus = BusSpec {
        read_block_ps: read_ps,
        write_block_ps: write_ps,
        hold_for_reads: p.flag("Hold bus entire read xfer")?,
        hold_for_writes: p.flag("Hold bus entire write xfer")?,
        never_disconnect: p.flag("Never disconnect")?,
        arbitration,
    };
    let overheads = overheads(p)?;
    let cache = cache(p)?;
    let depth = p.int_or("Max queue length", 1, 0, 1_000_000)?.clamp(1, 256);
    let queue = QueueSpec { depth: depth as u32, order: firmware_order(p)?, ..QueueSpec::default() };
    p.skip(&[
        // Statistics, and parameters without effect while one request is outstanding at a time.
        "Print stats",
        "Avg sectors per cylinder",
        "Calc sector by sector",
        "Write hit stop prefetch",
    ]);
    for (key, harmless) in [
        ("Allow sneaky full read hits", "0"),
        ("Allow sneaky partial read hits", "0"),
        ("Allow sneaky intermediate read hits", "0"),
        ("Allow write prebuffering", "0"),
        ("Preseeking level", "0"),
        ("Disconnect write if seek", "0"),
        ("Read directly to buffer", "1"),
        ("Immed transfer partial hit", "1"),
        // Stored in the profile but not used. `Use separate write segment` is not listed: Western
        // Digital's build of DiskSim, in which the known files were measured, ignores it as well.
        ("Allow almost read hits", "0"),
    ] {
        p.without_effect(key, harmless, "only the other value is modelled");
    }
    Ok(Electronics { bus, overheads, cache, queue })
}

fn overheads(p: &mut Params) -> Result<Overheads, ProfileError> {
    let one = Decimal::from_int(1);
    let scale = match p.get("Time scale for overheads") {
        Some(node) => params::real(node)?,
        None => one,
    };
    let mut time = |key: &str| p.time_or_zero(key, scale);
    let mut pair = |read: &str, write: &str| -> Result<ByLast, ProfileError> {
        Ok(ByLast { after_read: time(read)?, after_write: time(write)? })
    };
    let read_hit = pair("Read hit over. after read", "Read hit over. after write")?;
    let read_miss = pair("Read miss over. after read", "Read miss over. after write")?;
    let write_hit = pair("Write hit over. after read", "Write hit over. after write")?;
    let write_miss = pair("Write miss over. after read", "Write miss over. after write")?;
    let read_disconnect = pair("Read disconnect afterread", "Read disconnect afterwrite")?;
    let extra = ExtraDisconnect {
        command: time("Extradisc command overhead")?,
        disconnect: time("Extradisc disconnect overhead")?,
        between: time("Extradisc inter-disconnect delay")?,
        second: time("Extradisc 2nd disconnect overhead")?,
        seek_delta: time("Extradisc seek delta")?,
    };
    Ok(Overheads {
        read_hit,
        read_miss,
        write_hit,
        write_miss,
        read_completion: time("Read completion overhead")?,
        write_completion: time("Write completion overhead")?,
        data_preparation: time("Data preparation overhead")?,
        reselect: time("First reselect overhead")?,
        other_reselect: time("Other reselect overhead")?,
        read_disconnect,
        write_disconnect: time("Write disconnect overhead")?,
        per_request: time("Per-request overhead time")?,
        extra_disconnect: (extra != ExtraDisconnect::default()).then_some(extra),
        minimum_seek: p.time_or_zero("Minimum seek delay", one)?,
        queued: QueuedOverheads::default(),
    })
}

fn cache(p: &mut Params) -> Result<CacheSpec, ProfileError> {
    let segments = p.int("Number of buffer segments", 1, 100_000)? as u32;
    let segment_sectors = p.int("Segment size (in blks)", 1, MAX_BLOCKS)? as u32;
    let enabled = p.int_or("Enable caching in buffer", 1, 0, 2)? != 0;
    let ahead = p.int_or("Maximum read-ahead (blks)", 0, 0, MAX_BLOCKS)? as u32;
    let prefetch = match p.int_or("Buffer continuous read", 0, 0, 4)? {
        _ if !enabled => Prefetch::None,
        1 => Prefetch::ToTrackEnd(ahead),
        2 => Prefetch::ToCylinderEnd(ahead),
        3 => Prefetch::Sectors(ahead),
        4 => Prefetch::TrackAhead,
        _ => Prefetch::None,
    };
    let extra_disconnect = p.flag("Extra write disconnect")?;
    Ok(CacheSpec {
        segments,
        segment_sectors,
        prefetch,
        minimum_prefetch_sectors: p.int_or("Minimum read-ahead (blks)", 0, 0, MAX_BLOCKS)? as u32,
        prefetch_on_idle_hit: p.flag("Read-ahead on idle hit")?,
        stop_in_sector: p.flag("Stop prefetch in sector")?,
        prefetch_only_sequential: false,
        same_track_prefetch_delays: false,
        keep_delivered: p.int_or("Read-ahead over requested", 0, -1, 1)? != -1 && enabled,
        read_watermark_permille: permille(p, "High (read) water mark")?,
        write_watermark_permille: permille(p, "Low (write) water mark")?,
        watermark_by_request: p.flag("Set watermark by reqsize")?,
        write_back: p.int_or("Fast write level", 0, 0, 2)? != 0,
        dirty_segments: 1,
        dirty_sectors: 0,
        destage_delay: Dur::ZERO,
        destage_above_permille: 500,
        read_hits_on_written: p.flag("Allow read hits on write data")? && enabled,
        writes_update_segments: false,
        combine_sequential_writes: p.flag("Combine seq writes")?,
        // DiskSim counts a write's first 10 sectors at once, or 15 if it has 45 or more.
        write_burst_sectors: if extra_disconnect { 10 } else { 0 },
        almost_hits: p.flag("Allow almost read hits")?,
        separate_write_segment: p.flag("Use separate write segment")?,
        write_segments: p.int_or("Maximum number of write segments", 1, 0, 100_000)? as u32,
    })
}

fn permille(p: &mut Params, key: &str) -> Result<u32, ProfileError> {
    let share = p.real_or_zero(key)?;
    match share.scaled(3) {
        Some(n) if (0..=1000).contains(&n) => Ok(n as u32),
        _ => Err(ProfileError::range(p.at(), key, share, "between 0 and 1")),
    }
}

/// DiskSim's policies 8 and 10 to 12 consider positioning times; 1 is first come, first served.
fn firmware_order(p: &mut Params) -> Result<FirmwareOrder, ProfileError> {
    let Some(node) = p.get("Scheduler") else {
        return Ok(FirmwareOrder::Fcfs);
    };
    let Value::Block(block) = &node.value else {
        return Ok(FirmwareOrder::Fcfs);
    };
    let mut scheduler = Params::new(block);
    let policy = scheduler.int_or("Scheduling policy", 1, 0, 1000)?;
    match policy {
        1 => Ok(FirmwareOrder::Fcfs),
        8 | 10 | 11 | 12 => Ok(FirmwareOrder::Sptf),
        other => {
            let kind = WarningKind::NoEffect {
                key: "Scheduling policy".into(),
                value: other.to_string(),
                why: "a drive's own queue is either first come, first served (1) or by positioning time (8)",
            };
            p.note(&node.at, kind);
            Ok(FirmwareOrder::Fcfs)
        }
    }
}
