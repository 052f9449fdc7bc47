//! The scheduler's model of a drive: its geometry, mechanics and electronics, without noise or
//! faults.

use crate::angle::Angle;
use crate::command::Kind;
use crate::error::ModelError;
use crate::geometry::Geometry;
use crate::mechanics::{Head, Mechanics};
use crate::profile::{BusSpec, CacheSpec, Overheads, Prefetch, Profile};
use crate::time::Dur;

/// A translated range of blocks: its start, its end, and its transfer time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First LBN.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// Cylinder of the first sector.
    pub cylinder: u32,
    /// Surface of the first sector.
    pub surface: u16,
    /// Number of tracks.
    pub tracks: u16,
    /// Physical sectors on the first track.
    pub spt: u32,
    /// Angle of the first sector's left edge.
    pub angle: Angle,
    /// From the first sector's left edge to the last sector's right edge, moves between tracks
    /// included.
    pub transfer: Dur,
    /// Part of `transfer` in which sectors pass; the rest is moves and waits at track ends.
    pub media: Dur,
    /// Cylinder of the last sector.
    pub end_cylinder: u32,
    /// Surface of the last sector.
    pub end_surface: u16,
    /// Angle of the last sector's right edge.
    pub end_angle: Angle,
}

/// Terms of an access: it ends `seek + latency + transfer` after the start of the move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Move to the first track.
    pub seek: Dur,
    /// Wait for the first sector.
    pub latency: Dur,
    /// Transfer, including track ends.
    pub transfer: Dur,
    /// Position of the head afterwards.
    pub end: Head,
}

impl Access {
    /// Returns seek, rotational latency and transfer: the head time of this request (Lumb 2002
    /// section 4.2).
    #[inline]
    pub fn head_time(&self) -> Dur {
        self.seek + self.latency + self.transfer
    }

    /// Returns seek plus rotational latency.
    #[inline]
    pub fn positioning(&self) -> Dur {
        self.seek + self.latency
    }
}

/// The scheduler's model of a drive.
#[derive(Clone, Debug)]
pub struct Model {
    /// Layout of the sectors.
    pub geometry: Geometry,
    /// Motion of arm and platter.
    pub mechanics: Mechanics,
    /// Command overheads.
    pub overheads: Overheads,
    /// The bus: its time after the end of a media transfer.
    pub bus: BusSpec,
    /// The cache: retention and read-ahead.
    pub cache: CacheSpec,
    /// The drive's cache keeps everything that passes under the head on the track of a read, not
    /// only the requested sectors.
    pub keep_passing: bool,
    /// Bytes per sector.
    pub sector_bytes: u32,
}

impl Model {
    /// Compiles a profile.
    ///
    /// # Errors
    /// Its geometry, speed or seek table is impossible: as [`Geometry::new`] and
    /// [`Mechanics::new`].
    pub fn new(profile: &Profile) -> Result<Model, ModelError> {
        let geometry = Geometry::new(&profile.geometry)?;
        let mechanics = Mechanics::new(&profile.mechanics, geometry.cylinders())?;
        let e = &profile.electronics;
        Ok(Model {
            geometry,
            mechanics,
            overheads: e.acting_overheads(),
            bus: e.bus,
            cache: e.cache,
            keep_passing: profile.mechanics.keep_passing,
            sector_bytes: profile.sector_bytes,
        })
    }

    /// Translates a range; `None` when it is empty or exceeds the capacity.
    pub fn place(&self, lbn: u64, count: u32, kind: Kind) -> Option<Place> {
        if count == 0 || lbn.checked_add(count as u64)? > self.geometry.capacity() {
            return None;
        }
        let run = self.geometry.run_at(lbn, count)?;
        let rotation = &self.mechanics.rotation;
        let media = rotation.sectors(run.span as u64, run.start.spt);
        let mut place = Place {
            lbn,
            count,
            cylinder: run.start.cylinder,
            surface: run.start.surface,
            tracks: 1,
            spt: run.start.spt,
            angle: run.start.angle,
            transfer: media,
            media,
            end_cylinder: run.start.cylinder,
            end_surface: run.start.surface,
            end_angle: run.start.angle + Angle::sectors(run.span, run.start.spt),
        };
        let mut done = run.count;
        while done < count {
            let run = self.geometry.run_at(lbn + done as u64, count - done)?;
            let here = (place.end_cylinder, place.end_surface);
            let there = (run.start.cylinder, run.start.surface);
            let reposition = self.mechanics.reposition(here, there, kind);
            let arrived = place.end_angle + rotation.angle_after(reposition);
            let media = rotation.sectors(run.span as u64, run.start.spt);
            let landing = match self.mechanics.on_arrival(kind) {
                true => self.mechanics.land(arrived, &run),
                false => None,
            };
            let (passing, end_angle) = match landing {
                Some(landing) => (landing.latency + landing.transfer, landing.end_angle),
                None => {
                    let span = Angle::sectors(run.span, run.start.spt);
                    (rotation.wait(arrived, run.start.angle) + media, run.start.angle + span)
                }
            };
            place.transfer += reposition + passing;
            place.media += media;
            if here != there {
                place.tracks = place.tracks.saturating_add(1);
            }
            (place.end_cylinder, place.end_surface) = there;
            place.end_angle = end_angle;
            done += run.count;
        }
        Some(place)
    }

    /// Whether the drive reads ahead, and so serves a queued read that continues the previous one
    /// without a break.
    #[inline]
    pub fn reads_ahead(&self) -> bool {
        self.cache.segments > 0 && self.cache.prefetch != Prefetch::None
    }

    /// Returns the access to `place` when the head starts to move at `head.at` from its position.
    /// The hot path of SPTF.
    #[inline]
    pub fn access(&self, head: &Head, place: &Place, kind: Kind) -> Access {
        let access = self.access_in_order(head, place, kind);
        // The head landed inside the range if the wait plus the range's time exceed a revolution.
        if self.mechanics.on_arrival(kind)
            && access.latency + place.media > self.mechanics.rotation.period()
            && let Some(landed) = self.access_on_arrival(head, place, kind, access.seek)
        {
            return landed;
        }
        access
    }

    /// Returns the access from front to back, even on a zero-latency drive: a read whose front is
    /// cached continues like this.
    #[inline]
    pub fn access_in_order(&self, head: &Head, place: &Place, kind: Kind) -> Access {
        let mech = &self.mechanics;
        let seek = mech.reposition((head.cylinder, head.surface), (place.cylinder, place.surface), kind);
        let arrived = head.angle + mech.rotation.angle_after(seek);
        let latency = mech.rotation.wait(arrived, place.angle);
        let end = Head {
            cylinder: place.end_cylinder,
            surface: place.end_surface,
            angle: place.end_angle,
            at: head.at + seek + latency + place.transfer,
        };
        Access { seek, latency, transfer: place.transfer, end }
    }

    /// Returns the access of a zero-latency drive whose head lands inside the first run of the
    /// range: it reads from the next sector to the run's end, waits for its beginning, and reads
    /// what it missed. `None` when that gains nothing.
    #[cold]
    fn access_on_arrival(&self, head: &Head, place: &Place, kind: Kind, seek: Dur) -> Option<Access> {
        let mech = &self.mechanics;
        let arrived = head.angle + mech.rotation.angle_after(seek);
        let mut run = self.geometry.run_at(place.lbn, place.count)?;
        let first = mech.land(arrived, &run)?;
        let mut total = first.latency + first.transfer;
        let mut end_angle = first.end_angle;
        let mut transfer = mech.rotation.sectors(run.span as u64, run.start.spt);
        let mut done = run.count;
        while done < place.count {
            let next = self.geometry.run_at(place.lbn + done as u64, place.count - done)?;
            let there = (next.start.cylinder, next.start.surface);
            let reposition = mech.reposition((run.start.cylinder, run.start.surface), there, kind);
            let arrived = end_angle + mech.rotation.angle_after(reposition);
            let (spent, angle) = match mech.land(arrived, &next) {
                Some(l) => (l.latency + l.transfer, l.end_angle),
                None => {
                    let media = mech.rotation.sectors(next.span as u64, next.start.spt);
                    let span = Angle::fraction(next.span as u64, next.start.spt as u64);
                    (mech.rotation.wait(arrived, next.start.angle) + media, next.start.angle + span)
                }
            };
            total += reposition + spent;
            transfer += reposition + mech.rotation.sectors(next.span as u64, next.start.spt);
            end_angle = angle;
            run = next;
            done += run.count;
        }
        let transfer = transfer.min(total);
        let end = Head {
            cylinder: run.start.cylinder,
            surface: run.start.surface,
            angle: end_angle,
            at: head.at + seek + total,
        };
        Some(Access { seek, latency: total - transfer, transfer, end })
    }

    /// Returns the size of the model in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.geometry.memory_bytes() + self.mechanics.memory_bytes()
    }
}
