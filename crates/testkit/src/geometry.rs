//! A slow, simple reference mapping: every physical sector of a small drive is listed in LBN order,
//! then sectors are removed one by one. Nothing is shared with the fast mapping except the profile.

use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, ZoneSpec};

/// The location of one LBN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceSector {
    /// Its address.
    pub at: SectorAddress,
    /// Physical sectors on its track.
    pub spt: u32,
    /// Angle of its start in revolutions, 0 to 1.
    pub turns: f64,
}

/// A track and its contents.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceTrack {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical sectors.
    pub spt: u32,
    /// Angle of its sector 0 in revolutions, 0 to 1.
    pub turns: f64,
    /// By sector: its LBN without remaps.
    pub lbns: Vec<Option<u64>>,
    zone: usize,
    /// Its group (seek-first); its cylinder in the zone (head-first).
    group: u32,
    /// By sector: skipped as a defect.
    slipped: Vec<bool>,
}

/// A drive, sector by sector.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Tracks in LBN order.
    pub tracks: Vec<ReferenceTrack>,
    /// By LBN.
    pub sectors: Vec<ReferenceSector>,
    /// LBNs that are remapped.
    pub moved: Vec<u64>,
}

impl Reference {
    /// Builds the mapping. `Err` with the reason if the figures are inconsistent: too many slips,
    /// too little room, no data. Zones, slips and remaps must refer to existing sectors.
    pub fn new(spec: &GeometrySpec) -> Result<Reference, String> {
        let mut tracks = match spec.layout {
            Layout::HeadFirst(order) => head_first(spec, order),
            Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate } => {
                seek_first(spec, group_tracks, tracks_alternate, surfaces_alternate)
            }
        };
        for (zone, z) in spec.zones.iter().enumerate() {
            for slip in &z.slips {
                mark(&mut tracks, spec, zone, *slip);
            }
        }
        let mut holds_data: Vec<Vec<bool>> = tracks.iter().map(|t| vec![true; t.spt as usize]).collect();
        for (zone, z) in spec.zones.iter().enumerate() {
            strike_out(&mut tracks, &mut holds_data, spec, zone, z)?;
        }
        let mut lbn = 0;
        for (t, data) in tracks.iter_mut().zip(&holds_data) {
            for (s, holds) in data.iter().enumerate() {
                if *holds {
                    t.lbns[s] = Some(lbn);
                    lbn += 1;
                }
            }
        }
        if lbn == 0 {
            return Err("no usable sector".to_string());
        }
        let mut sectors = Vec::new();
        for t in &tracks {
            for s in (0..t.spt).filter(|s| t.lbns[*s as usize].is_some()) {
                sectors.push(t.sector(s));
            }
        }
        let mut reference = Reference { tracks, sectors, moved: Vec::new() };
        reference.move_lbns(spec);
        Ok(reference)
    }

    /// Physical sectors without an LBN that are not defects either: spares, and reserved ones.
    pub fn spares(&self) -> Vec<SectorAddress> {
        let mut found = Vec::new();
        for t in &self.tracks {
            for s in 0..t.spt {
                if t.lbns[s as usize].is_none() && !t.slipped[s as usize] {
                    found.push(SectorAddress { cylinder: t.cylinder, surface: t.surface, sector: s });
                }
            }
        }
        found
    }

    /// A zone's physical sectors in LBN order.
    pub fn zone_sectors(&self, zone: usize) -> Vec<SectorAddress> {
        let ours = self.tracks.iter().filter(|t| t.zone == zone);
        let address = |t: &ReferenceTrack, s| SectorAddress { cylinder: t.cylinder, surface: t.surface, sector: s };
        ours.flat_map(|t| (0..t.spt).map(move |s| address(t, s))).collect()
    }

    /// The track of a sector.
    pub fn track_at(&self, cylinder: u32, surface: u16) -> Option<&ReferenceTrack> {
        self.tracks.iter().find(|t| t.cylinder == cylinder && t.surface == surface)
    }

    fn natural_lbn(&self, at: SectorAddress) -> Option<u64> {
        self.track_at(at.cylinder, at.surface)?.lbns[at.sector as usize]
    }

    fn move_lbns(&mut self, spec: &GeometrySpec) {
        let mut moves = spec.remaps.clone();
        for (zone, z) in spec.zones.iter().enumerate() {
            let sectors = self.zone_sectors(zone);
            for (bad, replacement) in &z.defects {
                let (bad, replacement) = (sectors[*bad as usize], sectors[*replacement as usize]);
                if let Some(lbn) = self.natural_lbn(bad)
                    && bad != replacement
                {
                    moves.push((lbn, replacement));
                }
            }
        }
        for (lbn, to) in moves {
            let track = self.track_at(to.cylinder, to.surface).expect("remaps name tracks that exist");
            self.sectors[lbn as usize] = track.sector(to.sector);
            self.moved.push(lbn);
        }
    }
}

impl ReferenceTrack {
    fn new(spec: &GeometrySpec, zone: usize, cylinder: u32, surface: u16, group: u32, turns: f64) -> ReferenceTrack {
        let spt = match spec.zones[zone].sectors_per_track.as_slice() {
            [one] => *one,
            several => several[surface as usize],
        };
        let turns = turns.rem_euclid(1.0);
        let (lbns, slipped) = (vec![None; spt as usize], vec![false; spt as usize]);
        ReferenceTrack { cylinder, surface, spt, turns, lbns, zone, group, slipped }
    }

    fn sector(&self, sector: u32) -> ReferenceSector {
        ReferenceSector {
            at: SectorAddress { cylinder: self.cylinder, surface: self.surface, sector },
            spt: self.spt,
            turns: (self.turns + f64::from(sector) / f64::from(self.spt)).rem_euclid(1.0),
        }
    }
}

/// A skew in revolutions.
fn turns(z: &ZoneSpec, skew: Skew) -> f64 {
    match skew {
        Skew::Sectors(n) => (f64::from(n) / f64::from(z.sectors_per_track[0])).rem_euclid(1.0),
        Skew::Turn(a) => a.turns(),
    }
}

fn head_first(spec: &GeometrySpec, order: HeadOrder) -> Vec<ReferenceTrack> {
    let mut tracks = Vec::new();
    let mut at = 0.0;
    for (zone, z) in spec.zones.iter().enumerate() {
        at = z.offset.map_or(at, |o| turns(z, o));
        for cylinder in z.first_cylinder..=z.last_cylinder {
            let in_zone = cylinder - z.first_cylinder;
            let turned = match order {
                HeadOrder::Forward => false,
                HeadOrder::AlternatingInZone => in_zone % 2 == 1,
                HeadOrder::AlternatingOnDisk => cylinder % 2 == 1,
            };
            for h in 0..spec.surfaces {
                let surface = if turned { spec.surfaces - 1 - h } else { h };
                tracks.push(ReferenceTrack::new(spec, zone, cylinder, surface, in_zone, at));
                let last = h == spec.surfaces - 1;
                at += turns(z, if last { z.cylinder_skew } else { z.track_skew });
            }
        }
    }
    tracks
}

fn seek_first(
    spec: &GeometrySpec,
    group_tracks: u32,
    tracks_alternate: bool,
    surfaces_alternate: bool,
) -> Vec<ReferenceTrack> {
    let mut tracks: Vec<ReferenceTrack> = Vec::new();
    let mut begun = vec![false; spec.zones.len()];
    for group in 0..spec.cylinders.div_ceil(group_tracks) {
        let mut surfaces: Vec<u16> = (0..spec.surfaces).collect();
        if surfaces_alternate && group % 2 == 1 {
            surfaces.reverse();
        }
        for (visit, surface) in surfaces.into_iter().enumerate() {
            let mut cylinders: Vec<u32> = (group * group_tracks..(group + 1) * group_tracks).collect();
            if tracks_alternate && visit % 2 == 1 {
                cylinders.reverse();
            }
            for cylinder in cylinders {
                let holds = |z: &ZoneSpec| {
                    z.surface.is_none_or(|s| s == surface) && (z.first_cylinder..=z.last_cylinder).contains(&cylinder)
                };
                let Some(zone) = spec.zones.iter().position(holds) else {
                    continue;
                };
                let z = &spec.zones[zone];
                let follows_on = tracks.last().map_or(0.0, |before| {
                    let b = &spec.zones[before.zone];
                    let same = (before.surface, before.group) == (surface, group);
                    before.turns + turns(b, if same { b.track_skew } else { b.cylinder_skew })
                });
                let at = match z.offset {
                    Some(offset) if !begun[zone] => turns(z, offset),
                    _ => follows_on,
                };
                begun[zone] = true;
                tracks.push(ReferenceTrack::new(spec, zone, cylinder, surface, group, at));
            }
        }
    }
    tracks
}

/// Marks the sectors that a slip skips.
fn mark(tracks: &mut [ReferenceTrack], spec: &GeometrySpec, zone: usize, slip: Slip) {
    let mut ours: Vec<&mut ReferenceTrack> = tracks.iter_mut().filter(|t| t.zone == zone).collect();
    match slip {
        Slip::Index(mut i) => {
            assert!(matches!(spec.layout, Layout::HeadFirst(_)), "an index in a seek-first layout");
            for t in ours {
                if i < u64::from(t.spt) {
                    t.slipped[i as usize] = true;
                    return;
                }
                i -= u64::from(t.spt);
            }
            panic!("a slip beyond its zone");
        }
        Slip::TrackIndex(i) => ours[i as usize].slipped.fill(true),
        Slip::Sector(at) => {
            let t = ours.into_iter().find(|t| (t.cylinder, t.surface) == (at.cylinder, at.surface));
            t.expect("a slip in its zone").slipped[at.sector as usize] = true;
        }
        Slip::Track { cylinder, surface } => {
            let t = ours.into_iter().find(|t| (t.cylinder, t.surface) == (cylinder, surface));
            t.expect("a slip in its zone").slipped.fill(true);
        }
    }
}

/// Removes a zone's sectors without data, and shifts skews.
fn strike_out(
    tracks: &mut [ReferenceTrack],
    holds_data: &mut [Vec<bool>],
    spec: &GeometrySpec,
    zone: usize,
    z: &ZoneSpec,
) -> Result<(), String> {
    let ours: Vec<usize> = (0..tracks.len()).filter(|t| tracks[*t].zone == zone).collect();
    let all: Vec<(usize, usize)> =
        ours.iter().flat_map(|t| (0..tracks[*t].spt as usize).map(move |s| (*t, s))).collect();
    let reserved = z.reserved_sectors as usize;
    if reserved > all.len() {
        return Err(format!("zone {zone}: {reserved} of {} sectors reserved", all.len()));
    }
    for (t, s) in &all {
        holds_data[*t][*s] = !tracks[*t].slipped[*s];
    }
    let units: Vec<Vec<(usize, usize)>> = match z.sparing.unit {
        SpareUnit::Zone => vec![all[reserved..].to_vec()],
        SpareUnit::Track => split(tracks, &ours, |_, position| position),
        SpareUnit::Cylinders(n) => match spec.layout {
            Layout::HeadFirst(_) => split(tracks, &ours, |t, _| t.group / n),
            Layout::SeekFirst { .. } => {
                let sweeps = split(tracks, &ours, |t, _| (t.group, t.surface));
                sweeps
                    .iter()
                    .flat_map(|sweep| {
                        let mut of_sweep: Vec<usize> = sweep.iter().map(|p| p.0).collect();
                        of_sweep.dedup();
                        split(tracks, &of_sweep, |_, position| position / n)
                    })
                    .collect()
            }
        },
    };
    let mut pushed = 0;
    for unit in &units {
        if let SpareUnit::Cylinders(n) = z.sparing.unit {
            let mut of_unit: Vec<usize> = unit.iter().map(|p| p.0).collect();
            of_unit.dedup();
            let whole = match spec.layout {
                Layout::HeadFirst(_) => n as usize * spec.surfaces as usize,
                Layout::SeekFirst { .. } => n as usize,
            };
            if of_unit.len() < whole {
                push(tracks, unit, z, pushed);
                continue;
            }
        }
        push(tracks, unit, z, pushed);
        let good: Vec<(usize, usize)> = unit.iter().copied().filter(|(t, s)| !tracks[*t].slipped[*s]).collect();
        let slipped = unit.len() - good.len();
        let spares = z.sparing.spares as usize;
        let unused = if z.sparing.slips_are_extra {
            spares.min(good.len())
        } else if good.is_empty() && z.sparing.unit != SpareUnit::Zone {
            0
        } else if slipped > spares {
            return Err(format!("zone {zone}: {slipped} slips, {spares} spares"));
        } else {
            spares - slipped
        };
        if z.sparing.unit == SpareUnit::Zone && unused < spares && z.sparing.slips_are_extra {
            return Err(format!("zone {zone}: {spares} spares in {} good sectors", good.len()));
        }
        if unused > good.len() {
            return Err(format!("zone {zone}: {unused} spares in {} good sectors", good.len()));
        }
        let struck = if z.sparing.at_front { &good[..unused] } else { &good[good.len() - unused..] };
        for (t, s) in struck {
            holds_data[*t][*s] = false;
        }
        if z.sparing.slips_push_skew {
            pushed += slipped;
        }
    }
    for (t, s) in &all[..reserved] {
        holds_data[*t][*s] = false;
    }
    Ok(())
}

fn push(tracks: &mut [ReferenceTrack], unit: &[(usize, usize)], z: &ZoneSpec, sectors: usize) {
    for (t, _) in unit.iter().filter(|p| p.1 == 0) {
        let turns = tracks[*t].turns + sectors as f64 / f64::from(z.sectors_per_track[0]);
        tracks[*t].turns = turns.rem_euclid(1.0);
    }
}

/// Splits tracks into runs with the same key, which is derived from the track and its position in
/// the list.
fn split<K: PartialEq>(
    tracks: &[ReferenceTrack],
    list: &[usize],
    key: impl Fn(&ReferenceTrack, u32) -> K,
) -> Vec<Vec<(usize, usize)>> {
    let mut found: Vec<(K, Vec<(usize, usize)>)> = Vec::new();
    for (position, t) in list.iter().enumerate() {
        let k = key(&tracks[*t], position as u32);
        let sectors = (0..tracks[*t].spt as usize).map(|s| (*t, s));
        match found.last_mut() {
            Some(last) if last.0 == k => last.1.extend(sectors),
            _ => found.push((k, sectors.collect())),
        }
    }
    found.into_iter().map(|f| f.1).collect()
}
