//! One track as a search sees it: which of its LBNs pass in a given time.
//!
//! Sector k of a track of n sectors has its left edge at the track's angle + k/n revolutions. From
//! an instant at which the angle a is under the head, the first sector that passes whole is s =
//! ceil((a - track angle) * n), its edge is w away, and the following sectors pass in order: s,
//! s+1, ..., n-1, then 0, ..., s-1. So the LBNs that pass in a time t are at most two contiguous
//! ranges of the track.

use headtime_disk::internals::{JUST_PASSED, sectors_time};
use headtime_disk::profile::SectorAddress;
use headtime_disk::{AlikeTracks, Angle, Dur, Geometry, Kind, Mechanics, Model, Track};

/// A track, and the positions of its LBNs.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The track.
    pub track: Track,
    /// The physical sector of its first LBN.
    first_sector: u32,
    /// Whether its LBNs lie in consecutive sectors.
    plain: bool,
    step: Angle,
    sector_fx: u64,
    /// Cylinder of the next track in LBN order and its additional skew, if that track is alike.
    next: Option<(u32, Angle)>,
}

/// The line examined last, and its neighbours that are like it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    tracks: AlikeTracks,
    line: Line,
}

/// The sectors that pass on a track from an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The first sector that passes whole.
    pub sector: u32,
    /// Time until its left edge is under the head.
    pub wait: Dur,
}

impl Line {
    /// Creates the line of a track.
    #[inline]
    pub fn new(geometry: &Geometry, mechanics: &Mechanics, track: Track) -> Line {
        let (step, sector_fx) = (Angle(u64::MAX / u64::from(track.spt)), mechanics.rotation.sector_fx(track.spt));
        if track.plain {
            return Line { track, first_sector: 0, plain: true, step, sector_fx, next: None };
        }
        let run = geometry.run_at(track.first_lbn, track.lbns);
        let on_track = run.filter(|r| (r.start.cylinder, r.start.surface) == (track.cylinder, track.surface));
        let plain = on_track.is_some_and(|r| r.count == track.lbns && r.span == track.lbns);
        let first_sector = on_track.filter(|_| plain).map_or(0, |r| r.start.sector);
        Line { track, first_sector, plain, step, sector_fx, next: None }
    }

    /// Returns the next track in LBN order.
    #[inline]
    pub fn behind(&self, geometry: &Geometry, mechanics: &Mechanics) -> Option<Line> {
        match self.next {
            Some((cylinder, skew)) => {
                let track = Track { cylinder, first_lbn: self.end(), angle: self.track.angle + skew, ..self.track };
                Some(Line { track, next: None, ..*self })
            }
            None => Some(Line::new(geometry, mechanics, geometry.track_of(self.end())?)),
        }
    }

    /// Returns the track's address.
    #[inline]
    pub fn at(&self) -> (u32, u16) {
        (self.track.cylinder, self.track.surface)
    }

    /// Returns one past its last LBN.
    #[inline]
    pub fn end(&self) -> u64 {
        self.track.first_lbn + u64::from(self.track.lbns)
    }

    /// Returns the time in which this number of sectors passes.
    #[inline]
    pub fn takes(&self, sectors: u32) -> Dur {
        sectors_time(self.sector_fx, u64::from(sectors))
    }

    /// Returns the time of one sector, in 2^-32 ns.
    #[inline]
    pub fn sector_fx(&self) -> u64 {
        self.sector_fx
    }

    /// Returns the time from the end of its last LBN until the first LBN of the next track passes,
    /// for a command of this kind.
    pub fn over(&self, next: &Line, geometry: &Geometry, mechanics: &Mechanics, kind: Kind) -> Dur {
        let moved = mechanics.reposition(self.at(), next.at(), kind);
        let behind = self.angle_of(self.sector_behind(geometry, self.end()));
        let arrived = behind + mechanics.rotation.angle_after(moved);
        let first = next.sector_of(geometry, next.track.first_lbn);
        moved + mechanics.rotation.wait(arrived, next.angle_of(first))
    }

    /// Returns the number of whole sectors that pass in a time, at most a revolution.
    #[inline]
    pub fn passes(&self, time: Dur) -> u32 {
        // Times are less than a second, so the shift does not overflow.
        let fx = time.0.min(1 << 31) << 32;
        (fx / self.sector_fx).min(u64::from(self.track.spt)) as u32
    }

    /// Returns what passes from the instant at which `angle` is under the head.
    #[inline]
    pub fn from(&self, mechanics: &Mechanics, angle: Angle) -> Passing {
        let past = angle - self.track.angle;
        let mut sector = match past.0 <= JUST_PASSED.0 {
            true => 0,
            false => ((past.0 - JUST_PASSED.0).div_ceil(self.step.0)) as u32,
        };
        if sector >= self.track.spt {
            sector = 0;
        }
        Passing { sector, wait: mechanics.rotation.wait(angle, self.angle_of(sector)) }
    }

    /// Returns the angle of a sector's left edge.
    #[inline]
    pub fn angle_of(&self, sector: u32) -> Angle {
        self.track.angle + self.step * u64::from(sector)
    }

    /// Returns the first LBN in this sector or after it; the track's end when there is none.
    #[inline]
    pub fn lbn_from(&self, geometry: &Geometry, sector: u32) -> u64 {
        if self.plain {
            let index = sector.saturating_sub(self.first_sector).min(self.track.lbns);
            return self.track.first_lbn + u64::from(index);
        }
        let address = |sector| SectorAddress { cylinder: self.track.cylinder, surface: self.track.surface, sector };
        let here = self.track.first_lbn..self.end();
        // An LBN remapped to a spare of its own track is not next to its neighbours.
        let own = |l: &u64| here.contains(l) && !geometry.is_remapped(*l);
        let found = (sector..self.track.spt).find_map(|s| geometry.lbn_at(address(s)).filter(own));
        found.unwrap_or(self.end())
    }

    /// Returns the sector of one of its LBNs; of a remapped one, the sector after that of the
    /// preceding LBN.
    #[inline]
    pub fn sector_of(&self, geometry: &Geometry, lbn: u64) -> u32 {
        if self.plain {
            return self.first_sector + (lbn - self.track.first_lbn) as u32;
        }
        let mut at = lbn;
        loop {
            let place =
                geometry.locate(at).filter(|p| (p.cylinder, p.surface) == self.at() && !geometry.is_remapped(at));
            match place {
                Some(p) => return p.sector + (lbn - at) as u32,
                None if at > self.track.first_lbn => at -= 1,
                None => return (lbn - at) as u32,
            }
        }
    }

    /// Returns the sector after the one that holds the LBN before `end`: the position of the head
    /// after that LBN has passed.
    #[inline]
    pub fn sector_behind(&self, geometry: &Geometry, end: u64) -> u32 {
        self.sector_of(geometry, end - 1) + 1
    }
}

impl Lines {
    /// Returns the line of a track, reusing `known`. `None` where the drive has no such track or it
    /// holds no data.
    #[inline]
    pub(crate) fn at(known: &mut Option<Lines>, model: &Model, (cylinder, surface): (u32, u16)) -> Option<Line> {
        if let Some(Lines { tracks, line }) = known
            && let Some(track) = tracks.at(cylinder, surface)
        {
            return Some(Line { track, next: tracks.next(cylinder), ..*line });
        }
        let tracks = model.geometry.alike(cylinder, surface)?;
        let line = Line::new(&model.geometry, &model.mechanics, tracks.at(cylinder, surface)?);
        let line = Line { next: tracks.next(cylinder), ..line };
        *known = Some(Lines { tracks, line });
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile;

    /// Zone 0 of this drive has slips; the last cylinder of a zone has spares.
    #[test]
    fn sectors_and_lbns_of_a_track_agree_with_the_geometry_with_and_without_holes() {
        let m = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let mut holes = 0;
        for cylinder in (0..10_042).step_by(7).chain([27, 178, 432, 10_041]) {
            for surface in 0..6 {
                let Some(track) = m.geometry.track(cylinder, surface) else { continue };
                let line = Line::new(&m.geometry, &m.mechanics, track);
                holes += u32::from(!line.plain);
                for lbn in (track.first_lbn..line.end()).step_by(13) {
                    let p = m.geometry.locate(lbn).unwrap();
                    assert_eq!(line.sector_of(&m.geometry, lbn), p.sector);
                    assert_eq!(line.lbn_from(&m.geometry, p.sector), lbn);
                    let from = line.from(&m.mechanics, p.angle);
                    assert_eq!((from.sector, from.wait), (p.sector, Dur::ZERO));
                    let later = line.from(&m.mechanics, p.angle + Angle(line.step.0 / 2));
                    assert_eq!(later.sector, (p.sector + 1) % track.spt);
                }
            }
        }
        assert!(holes > 0);
    }

    /// Each track has a spare at its front, and one LBN is remapped to the spare of its own track.
    #[test]
    fn lbns_pass_in_order_though_one_was_moved_to_a_spare_of_its_own_track() {
        use headtime_disk::profile::{SectorAddress, SpareUnit, Sparing};
        use headtime_testkit::profiles::{layouts, rng, small_geometry};

        for layout in layouts() {
            let mut spec = small_geometry(layout, 3, &mut rng(3));
            for zone in &mut spec.zones {
                zone.sparing = Sparing { unit: SpareUnit::Track, spares: 1, at_front: true, ..Sparing::NONE };
            }
            let track = Geometry::new(&spec).unwrap().track(5, 1).unwrap();
            let moved = track.first_lbn + 4;
            spec.remaps = vec![(moved, SectorAddress { cylinder: 5, surface: 1, sector: 0 })];
            let geometry = Geometry::new(&spec).unwrap();
            let mechanics = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap().mechanics;
            let line = Line::new(&geometry, &mechanics, geometry.track(5, 1).unwrap());
            let from: Vec<u64> = (0..track.spt).map(|sector| line.lbn_from(&geometry, sector)).collect();
            assert!(from.is_sorted() && from[0] == track.first_lbn, "{layout:?}: {from:?}");
            let at: Vec<u32> = (track.first_lbn..line.end()).map(|lbn| line.sector_of(&geometry, lbn)).collect();
            assert!(at.is_sorted() && at[0] == 1, "{layout:?}: {at:?}");
        }
    }
}
