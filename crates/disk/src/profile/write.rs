//! Formatting of a [`Profile`] as a profile file. It reads back as the same profile, to the
//! nanosecond and to 2^-64 revolution; defaults are omitted.

use std::fmt::Write;

use super::check::unused_cylinders;
use super::decimal::Decimal;
use super::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, Figure, FirmwareOrder, HeadOrder, Layout, MechanicsSpec,
    NoiseSpec, Overheads, Prefetch, Profile, QueueSpec, QueuedOverheads, ServiceTimes, Skew, Slip, SpareUnit, ZoneSpec,
    skew, toml,
};
use crate::time::Dur;

const WIDTH: usize = 116;

/// Returns the text of the profile file for `profile`.
pub fn write(profile: &Profile) -> String {
    let mut w = Writer { out: String::new() };
    w.line(&format!("format = {}", toml::FORMAT));
    w.line(&format!("name = {}", text(&profile.name)));
    w.line(&format!("title = {}", text(&profile.title)));
    if let Some(year) = profile.year {
        w.line(&format!("year = {year}"));
    }
    if let Some(how) = &profile.synthesised {
        w.line(&format!("synthesised = {}", text(how)));
    }
    w.line(&format!("sector_bytes = {}", profile.sector_bytes));
    if let Some(sectors) = profile.stated_sectors {
        w.line(&format!("sectors = {sectors}"));
    }
    w.line("\n[sources]");
    for (key, source) in &profile.sources {
        w.line(&format!("{} = {}", text(key), text(source)));
    }
    geometry(&mut w, profile);
    mechanics(&mut w, &profile.mechanics);
    electronics(&mut w, "electronics", &profile.electronics);
    noise(&mut w, &profile.noise);
    w.line("\n[known]");
    for figure in Figure::ALL {
        w.line(&format!("{} = {}", figure.key(), text(&profile.known.of(figure).to_string())));
    }
    if let Some(late) = &profile.known.late {
        w.line(&format!("verified_reads = {}", late.reads));
        if !late.by_turns.is_empty() {
            w.list("late_reads", &late.by_turns.iter().map(u32::to_string).collect::<Vec<_>>());
        }
    }
    if let Some(rig) = &profile.rig {
        electronics(&mut w, "rig", rig);
    }
    profile.service_times.iter().for_each(|x| service_times(&mut w, x));
    w.out
}

struct Writer {
    out: String,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Writes `key = [ ... ]`, wrapped.
    fn list(&mut self, key: &str, items: &[String]) {
        let one = format!("{key} = [{}]", items.join(", "));
        if one.len() <= WIDTH {
            return self.line(&one);
        }
        self.line(&format!("{key} = ["));
        let mut line = String::from("   ");
        for item in items {
            if line.len() + item.len() + 2 > WIDTH {
                self.line(&line);
                line = String::from("   ");
            }
            write!(line, " {item},").unwrap_or_default();
        }
        self.line(&line);
        self.line("]");
    }

    fn time(&mut self, key: &str, value: Dur, places: u32) {
        if value != Dur::ZERO {
            self.line(&format!("{key} = {}", figure(value, places)));
        }
    }

    fn count(&mut self, key: &str, value: u64) {
        if value != 0 {
            self.line(&format!("{key} = {value}"));
        }
    }

    fn on(&mut self, key: &str, value: bool) {
        if value {
            self.line(&format!("{key} = true"));
        }
    }
}

/// Formats a text with TOML's escapes.
fn text(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn figure(value: Dur, places: u32) -> String {
    Decimal::from_units(value.0 as i64, places).to_string()
}

fn geometry(w: &mut Writer, profile: &Profile) {
    let g = &profile.geometry;
    w.line("\n[geometry]");
    w.line(&format!("surfaces = {}", g.surfaces));
    w.line(&format!("cylinders = {}", g.cylinders));
    match g.layout {
        Layout::HeadFirst(HeadOrder::Forward) => w.line("layout = \"F\""),
        Layout::HeadFirst(HeadOrder::AlternatingInZone) => w.line("layout = \"A\""),
        Layout::HeadFirst(HeadOrder::AlternatingOnDisk) => w.line("layout = \"A-disk\""),
        Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate } => {
            let letter = |alternate| if alternate { 'A' } else { 'F' };
            w.line(&format!("layout = \"{}{}\"", letter(tracks_alternate), letter(surfaces_alternate)));
            w.line(&format!("group_tracks = {group_tracks}"));
        }
    }
    let holes: Vec<String> = unused_cylinders(g).iter().map(|(a, b)| format!("[{a}, {b}]")).collect();
    if !holes.is_empty() {
        w.list("unused_cylinders", &holes);
    }
    if !g.remaps.is_empty() {
        let remaps: Vec<String> = g
            .remaps
            .iter()
            .map(|(lbn, to)| format!("[{lbn}, {}, {}, {}]", to.cylinder, to.surface, to.sector))
            .collect();
        w.list("remaps", &remaps);
    }
    let head_first = matches!(g.layout, Layout::HeadFirst(_));
    w.line("zones = [");
    for z in &g.zones {
        w.line(&format!("    {{ {} }},", zone(z, head_first).join(", ")));
    }
    w.line("]");
}

fn zone(z: &ZoneSpec, head_first: bool) -> Vec<String> {
    let mut out = vec![format!("cylinders = [{}, {}]", z.first_cylinder, z.last_cylinder)];
    if let Some(surface) = z.surface {
        out.push(format!("surface = {surface}"));
    }
    let spt = match z.sectors_per_track.as_slice() {
        [spt] => Some(*spt),
        _ => None,
    };
    match spt {
        Some(spt) => out.push(format!("sectors_per_track = {spt}")),
        None => out.push(format!("sectors_per_track = {:?}", z.sectors_per_track)),
    }
    if let Some(offset) = z.offset.filter(|&o| !(head_first && o == Skew::ZERO)) {
        out.push(format!("offset = {}", skew::write(offset, spt)));
    }
    out.push(format!("track_skew = {}", skew::write(z.track_skew, spt)));
    out.push(format!("cylinder_skew = {}", skew::write(z.cylinder_skew, spt)));
    if z.reserved_sectors != 0 {
        out.push(format!("reserved_sectors = {}", z.reserved_sectors));
    }
    let s = &z.sparing;
    if s.spares != 0 {
        out.push(format!("spares = {}", s.spares));
    }
    match s.unit {
        SpareUnit::Zone => {}
        SpareUnit::Track => out.push("spare_unit = \"track\"".into()),
        SpareUnit::Cylinders(n) => out.push(format!("spare_unit = {n}")),
    }
    if s.at_front {
        out.push("spares_at_front = true".into());
    }
    if s.slips_are_extra != (s.spares == 0) {
        out.push(format!("slips_are_extra = {}", s.slips_are_extra));
    }
    if s.slips_push_skew {
        out.push("slips_push_skew = true".into());
    }
    let mut lists: [(&str, Vec<String>); 5] = [
        ("slips", Vec::new()),
        ("slipped_tracks", Vec::new()),
        ("slips_at", Vec::new()),
        ("slipped_tracks_at", Vec::new()),
        ("defects", z.defects.iter().map(|(bad, to)| format!("[{bad}, {to}]")).collect()),
    ];
    for slip in &z.slips {
        let (list, item) = match *slip {
            Slip::Index(i) => (0, i.to_string()),
            Slip::TrackIndex(i) => (1, i.to_string()),
            Slip::Sector(a) => (2, format!("[{}, {}, {}]", a.cylinder, a.surface, a.sector)),
            Slip::Track { cylinder, surface } => (3, format!("[{cylinder}, {surface}]")),
        };
        lists[list].1.push(item);
    }
    for (key, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        out.push(format!("{key} = {}", wrapped(items)));
    }
    out
}

/// Formats a list inside a zone, on separate lines if it is long.
fn wrapped(items: &[String]) -> String {
    let one = format!("[{}]", items.join(", "));
    if one.len() <= 40 {
        return one;
    }
    let mut out = String::from("[\n       ");
    let mut column = 7;
    for item in items {
        if column + item.len() + 2 > WIDTH {
            out.push_str("\n       ");
            column = 7;
        }
        write!(out, " {item},").unwrap_or_default();
        column += item.len() + 2;
    }
    out.push_str("\n    ]");
    out
}

fn mechanics(w: &mut Writer, m: &MechanicsSpec) {
    w.line("\n[mechanics]");
    w.line(&format!("rpm = {}", speed(m.rpm)));
    let points = |table: &[(u32, Dur)]| -> Vec<String> {
        table.iter().map(|&(d, t)| format!("[{d}, {}]", figure(t, 6))).collect()
    };
    w.line(&format!("head_switch_ms = {}", figure(m.head_switch, 6)));
    if m.write_settle_ns != 0 {
        w.line(&format!("write_settle_ms = {}", Decimal::from_units(m.write_settle_ns, 6)));
    }
    w.on("read_on_arrival", m.read_on_arrival);
    w.on("write_on_arrival", m.write_on_arrival);
    w.on("keep_passing", m.keep_passing);
    w.list("seek_ms", &points(&m.seek));
    if let Some(table) = &m.write_seek {
        w.list("write_seek_ms", &points(table));
    }
}

/// Formats a decimal figure if it equals the ratio, else the ratio.
fn speed((num, den): (u64, u64)) -> String {
    for places in 0..=9u32 {
        let scaled = u128::from(num) * 10u128.pow(places);
        if scaled % u128::from(den.max(1)) == 0
            && let Ok(units) = i64::try_from(scaled / u128::from(den.max(1)))
            && Decimal::from_units(units, places).ratio() == Some((num, den))
        {
            return Decimal::from_units(units, places).to_string();
        }
    }
    format!("\"{num}/{den}\"")
}

fn electronics(w: &mut Writer, name: &str, e: &Electronics) {
    w.line(&format!("\n[{name}.bus]"));
    bus(w, &e.bus);
    w.line(&format!("\n[{name}.overheads]"));
    overheads(w, &e.overheads);
    w.line(&format!("\n[{name}.cache]"));
    cache(w, &e.cache);
    let QueueSpec { depth, order } = e.queue;
    w.line(&format!("\n[{name}.queue]\ndepth = {depth}"));
    w.line(match order {
        FirmwareOrder::Fcfs => "order = \"fcfs\"",
        FirmwareOrder::Sptf => "order = \"sptf\"",
    });
}

fn bus(w: &mut Writer, b: &BusSpec) {
    let ns = |ps: u64| Decimal::from_units(ps as i64, 3);
    w.line(&format!("read_block_ns = {}", ns(b.read_block_ps)));
    w.line(&format!("write_block_ns = {}", ns(b.write_block_ps)));
    w.line(&format!("hold_for_reads = {}", b.hold_for_reads));
    w.line(&format!("hold_for_writes = {}", b.hold_for_writes));
    w.line(&format!("never_disconnect = {}", b.never_disconnect));
    w.line(&format!("arbitration_us = {}", figure(b.arbitration, 3)));
}

fn overheads(w: &mut Writer, o: &Overheads) {
    let us = |t: Dur| figure(t, 3);
    // Everything is written, zeros too: what a rig omits is taken from the drive's usual
    // electronics.
    let pair = |w: &mut Writer, key: &str, p: ByLast| {
        if p.after_read == p.after_write {
            w.line(&format!("{key} = {}", us(p.after_read)));
        } else {
            w.line(&format!("{key} = {{ after_read = {}, after_write = {} }}", us(p.after_read), us(p.after_write)));
        }
    };
    pair(w, "read_hit_us", o.read_hit);
    pair(w, "read_miss_us", o.read_miss);
    pair(w, "write_hit_us", o.write_hit);
    pair(w, "write_miss_us", o.write_miss);
    pair(w, "read_disconnect_us", o.read_disconnect);
    for (key, t) in [
        ("per_request_us", o.per_request),
        ("read_completion_us", o.read_completion),
        ("write_completion_us", o.write_completion),
        ("data_preparation_us", o.data_preparation),
        ("reselect_us", o.reselect),
        ("other_reselect_us", o.other_reselect),
        ("write_disconnect_us", o.write_disconnect),
        ("minimum_seek_us", o.minimum_seek),
    ] {
        w.line(&format!("{key} = {}", us(t)));
    }
    if let Some(ExtraDisconnect { command, disconnect, between, second, seek_delta }) = o.extra_disconnect {
        w.line(&format!(
            "extra_disconnect_us = {{ command = {}, disconnect = {}, between = {}, second = {}, seek_delta = {} }}",
            us(command),
            us(disconnect),
            us(between),
            us(second),
            us(seek_delta)
        ));
    }
    let QueuedOverheads { read_read, read_write, write_read, write_write } = o.queued;
    w.line(&format!(
        "queued_us = {{ read_read = {}, read_write = {}, write_read = {}, write_write = {} }}",
        us(read_read),
        us(read_write),
        us(write_read),
        us(write_write)
    ));
}

fn cache(w: &mut Writer, c: &CacheSpec) {
    let (kind, ahead) = match c.prefetch {
        Prefetch::None => ("none", None),
        Prefetch::TrackAhead => ("track-ahead", None),
        Prefetch::ToTrackEnd(n) => ("to-track-end", Some(n)),
        Prefetch::ToCylinderEnd(n) => ("to-cylinder-end", Some(n)),
        Prefetch::Sectors(n) => ("sectors", Some(n)),
    };
    w.line(&format!("segments = {}", c.segments));
    w.line(&format!("segment_sectors = {}", c.segment_sectors));
    w.line(&format!("prefetch = \"{kind}\""));
    if let Some(n) = ahead {
        w.line(&format!("prefetch_sectors = {n}"));
    }
    let share = |permille: u32| Decimal::from_units(permille.into(), 3);
    w.line(&format!("read_watermark = {}", share(c.read_watermark_permille)));
    w.line(&format!("write_watermark = {}", share(c.write_watermark_permille)));
    for (key, n) in [
        ("minimum_prefetch_sectors", c.minimum_prefetch_sectors),
        ("dirty_segments", c.dirty_segments),
        ("write_segments", c.write_segments),
        ("write_burst_sectors", c.write_burst_sectors),
    ] {
        w.line(&format!("{key} = {n}"));
    }
    for (key, on) in [
        ("prefetch_on_idle_hit", c.prefetch_on_idle_hit),
        ("stop_in_sector", c.stop_in_sector),
        ("prefetch_only_sequential", c.prefetch_only_sequential),
        ("same_track_prefetch_delays", c.same_track_prefetch_delays),
        ("keep_delivered", c.keep_delivered),
        ("watermark_by_request", c.watermark_by_request),
        ("write_back", c.write_back),
        ("read_hits_on_written", c.read_hits_on_written),
        ("writes_update_segments", c.writes_update_segments),
        ("combine_sequential_writes", c.combine_sequential_writes),
        ("almost_hits", c.almost_hits),
        ("separate_write_segment", c.separate_write_segment),
    ] {
        w.line(&format!("{key} = {on}"));
    }
}

fn noise(w: &mut Writer, n: &NoiseSpec) {
    if *n == NoiseSpec::default() {
        return;
    }
    w.line("\n[noise]");
    w.time("seek_sd_us", n.seek_sd, 3);
    w.time("seek_max_us", n.seek_max, 3);
    w.time("completion_jitter_us", n.completion_jitter, 3);
    w.time("overlap_jitter_per_4k_us", n.overlap_jitter_per_4k, 3);
    w.count("settle_retry_ppm", n.settle_retry_ppm.into());
    if let Some(again) = n.settle_retry_again_ppm {
        // Zero is meaningful here: failures never follow each other.
        w.line(&format!("settle_retry_again_ppm = {again}"));
    }
    w.count("settle_retry_turns", n.settle_retry_turns.into());
    w.time("recalibrate_every_s", n.recalibrate_every, 9);
    w.time("recalibrate_takes_ms", n.recalibrate_takes, 6);
    if n.speed_error_ppb != 0 {
        w.line(&format!("speed_error_ppb = {}", n.speed_error_ppb));
    }
    w.count("speed_drift_ppb", n.speed_drift_ppb.into());
}

fn service_times(w: &mut Writer, x: &ServiceTimes) {
    w.line("\n[[service_times]]");
    w.line(&format!("sectors = {}", x.sectors));
    w.line(&format!("workload = {}", text(&x.load.words)));
    w.line(&format!("reads = {}", Decimal::from_units(x.load.reads_ppm.into(), 6)));
    w.line(&format!("waiting = {}", x.load.waiting));
    if !x.load.is_steady() {
        w.line(&format!("candidates = {}", x.load.candidates));
    }
    w.line(&format!("order = {}", text(&x.load.order)));
    w.line(&format!("outstanding = {}", x.load.outstanding));
    w.line(&format!("samples = {}", x.samples));
    w.line(&format!("bin_us = {}", figure(x.bin, 3)));
    // A run is a nested list; its figures are wrapped like items of one.
    let mut figures = Vec::new();
    for run in &x.runs {
        figures.push(format!("[{}", run.first));
        figures.extend(run.counts.iter().map(u32::to_string));
        if let Some(last) = figures.last_mut() {
            last.push(']');
        }
    }
    w.list("histogram", &figures);
}
