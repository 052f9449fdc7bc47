//! What a scheduler believes of a drive: its geometry and mechanics and the rules of its
//! electronics, without noise or faults.

use crate::angle::Angle;
use crate::command::Kind;
use crate::geometry::Geometry;
use crate::mechanics::{Head, Mechanics};
use crate::profile::{BusSpec, CacheSpec, Overheads, Prefetch, Profile};
use crate::time::Dur;

/// A range of blocks, translated once: where it starts, where it ends, how long its transfer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Cylinder of the first sector.
    pub cylinder: u32,
    /// Surface of the first sector.
    pub surface: u16,
    /// Tracks it touches.
    pub tracks: u16,
    /// Physical sectors on the first track.
    pub spt: u32,
    /// Angle of the first sector's left edge.
    pub angle: Angle,
    /// From the first sector's left edge to the last sector's right edge, moves between tracks
    /// included.
    pub transfer: Dur,
    /// Of `transfer`, the time in which sectors pass (the rest is moving and waiting at track
    /// ends).
    pub media: Dur,
    /// Cylinder of the last sector.
    pub end_cylinder: u32,
    /// Surface of the last sector.
    pub end_surface: u16,
    /// Angle of the last sector's right edge.
    pub end_angle: Angle,
}

/// One access, term by term; `end - start = seek + latency + transfer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Moving to the first track.
    pub seek: Dur,
    /// Waiting for the first sector.
    pub latency: Dur,
    /// Reading or writing, track ends included.
    pub transfer: Dur,
    /// Where the head is afterwards.
    pub end: Head,
}

impl Access {
    /// Seek, rotational latency and transfer: the time the head is given to this request (Lumb 2002
    /// section 4.2).
    #[inline]
    pub fn head_time(&self) -> Dur {
        self.seek + self.latency + self.transfer
    }

    /// Seek and rotational latency.
    #[inline]
    pub fn positioning(&self) -> Dur {
        self.seek + self.latency
    }
}

/// The scheduler's model of one drive.
#[derive(Clone, Debug)]
pub struct Model {
    /// Where the sectors lie.
    pub geometry: Geometry,
    /// How arm and platter move.
    pub mechanics: Mechanics,
    /// Command overheads.
    pub overheads: Overheads,
    /// The bus: what it adds behind the end of a media transfer.
    pub bus: BusSpec,
    /// The rules of the drive's cache: what it keeps, and how far it reads ahead.
    pub cache: CacheSpec,
    /// A drive with a cache keeps whatever passes under the head on the track of a read, not only
    /// what was asked for.
    pub keep_passing: bool,
    /// Bytes a sector holds.
    pub sector_bytes: u32,
}

/// Why a profile gives no model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The geometry does not work.
    #[error("geometry: {0}")]
    Geometry(#[from] crate::geometry::GeometryError),
    /// A seek table does not work.
    #[error("seek table: {0}")]
    Seek(#[from] crate::seek::SeekError),
    /// The speed of rotation is outside 60 to 60,000 rpm.
    #[error("rotation of {num}/{den} rpm: expected 60 to 60000 rpm")]
    Rotation {
        /// Numerator.
        num: u64,
        /// Denominator.
        den: u64,
    },
}

impl Model {
    /// Compiles a profile.
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

    /// Translates a range once; `None` when it is empty or reaches beyond the last sector.
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

    /// Whether the drive reads ahead, and so goes on without a break for a queued read that
    /// continues the one before.
    #[inline]
    pub fn reads_ahead(&self) -> bool {
        self.cache.segments > 0 && self.cache.prefetch != Prefetch::None
    }

    /// The access to `place` when the head starts to move at `head.at` from where it is. The hot
    /// path of SPTF.
    #[inline]
    pub fn access(&self, head: &Head, place: &Place, kind: Kind) -> Access {
        let access = self.access_in_order(head, place, kind);
        // The head landed inside the range when what it would wait and what the range takes exceed
        // a turn.
        if self.mechanics.on_arrival(kind)
            && access.latency + place.media > self.mechanics.rotation.period()
            && let Some(landed) = self.access_on_arrival(head, place, kind, access.seek)
        {
            return landed;
        }
        access
    }

    /// The same from front to back, even on a drive that begins with whatever comes first: what a
    /// cache has the front of is read on like this.
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

    /// The access of a drive that reads on arrival, when the head lands inside the first stretch of
    /// the range: it reads from the next sector on to the stretch's end, goes round, and reads what
    /// it missed. `None` when that gains nothing.
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

    /// Bytes the model takes.
    pub fn memory_bytes(&self) -> usize {
        self.geometry.memory_bytes() + self.mechanics.memory_bytes()
    }
}
