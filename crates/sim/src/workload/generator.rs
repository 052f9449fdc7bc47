//! Generation of requests: read or write, size, and place.
//!
//! A [`PatternSpec`] is in bytes and fits any disk; a [`Pattern`] is compiled for one disk and
//! draws ranges.

use std::sync::Arc;

use headtime_disk::{Geometry, Kind};

use super::size::{SIZE_KEYS, Size, SizeSpec, sectors};
use super::variates::{Share, Variates};
use super::{About, Target, WorkloadError};

/// Maximum number of draws of a place when the disk has no data there (gaps between zones, unused
/// surfaces).
const TRIES: u32 = 1_000;

/// Places of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaceSpec {
    /// Uniform over the disk.
    Uniform,
    /// Uniform over a part of the disk, given as shares of its capacity.
    Part {
        /// Where it begins, 0 to 1.
        from: f64,
        /// Where it ends, 0 to 1.
        to: f64,
    },
    /// Each request begins where the task's previous one ended; the first is at random.
    Sequential,
    /// Each request begins where the group's previous one ended, whichever task submitted it: N
    /// tasks are one reader with N requests outstanding.
    SharedSequential,
    /// Each request ends where the group's previous one began, whichever task submitted it.
    SharedBackward,
    /// Uniform over the tracks of the given number of neighbouring cylinders, at a random place
    /// that depends on the seed.
    Window {
        /// Cylinders.
        cylinders: u32,
    },
    /// The given share of the requests is in the cylinder group of the previous request (of any
    /// task); the others are at random.
    RecentGroup {
        /// Share that stays.
        share: Share,
        /// Cylinders per group.
        cylinders: u32,
    },
}

/// Pattern of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternSpec {
    /// Share of reads; the rest are writes.
    pub reads: Share,
    /// Sizes.
    pub size: SizeSpec,
    /// Places.
    pub place: PlaceSpec,
    /// Alignment of first sectors in bytes from the disk's start (with locality by cylinder: from
    /// the track's).
    pub align_bytes: u64,
    /// Whether writes have FUA.
    pub fua: bool,
}

impl PatternSpec {
    /// Creates reads of one size, at random places aligned to 4 KiB.
    pub fn random_reads(bytes: u64) -> PatternSpec {
        PatternSpec {
            reads: Share::ALL,
            size: SizeSpec::Fixed { bytes },
            place: PlaceSpec::Uniform,
            align_bytes: 4096,
            fua: false,
        }
    }
}

#[derive(Clone, Debug)]
enum Place {
    Part {
        from: u64,
        to: u64,
    },
    Sequential,
    /// End of the group's last request.
    SharedSequential(Option<u64>),
    SharedBackward(Option<u64>),
    Tracks(Vec<(u64, u32)>),
    RecentGroup(RecentGroup),
}

#[derive(Clone, Debug)]
struct RecentGroup {
    share: Share,
    cylinders: u32,
    last_cylinder: u32,
    geometry: Arc<Geometry>,
}

/// A pattern compiled for one disk.
#[derive(Clone, Debug)]
pub struct Pattern {
    reads: Share,
    size: Size,
    place: Place,
    align: u64,
    capacity: u64,
    fua: bool,
}

/// A request drawn by [`Pattern::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Read or write.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// Force unit access.
    pub fua: bool,
}

impl Pattern {
    /// Compiles a pattern. `rng` draws what is chosen once (the place of a window).
    pub fn new(spec: &PatternSpec, target: &Target, rng: &mut Variates) -> Result<Pattern, WorkloadError> {
        let align = sectors("alignment", spec.align_bytes, target).about(&["align"])?;
        let size = Size::new(&spec.size, target)?;
        let longest = size.longest();
        if u64::from(longest) > target.capacity {
            return Err(WorkloadError::range("request size in sectors", longest, 1, target.capacity).about(SIZE_KEYS));
        }
        let place = compile_place(&spec.place, target, rng)?;
        let room = match &place {
            Place::Part { from, to } => to - from,
            _ => target.capacity,
        };
        if room < u64::from(longest) {
            return Err(WorkloadError::Conflict(format!(
                "part of the disk: expected room for a request of {longest} sectors, found {room} sectors"
            ))
            .about(&["to", "from"]));
        }
        if align > room {
            return Err(WorkloadError::range("alignment in sectors", align, 1, room).about(&["align"]));
        }
        Ok(Pattern { reads: spec.reads, size, place, align, capacity: target.capacity, fua: spec.fua })
    }

    /// Returns the sectors of the longest possible request.
    pub fn longest(&self) -> u32 {
        self.size.longest()
    }

    /// Draws the next request. `position` is the task's own: the end of its last request
    /// (sequential patterns), `None` before the first.
    pub fn next(&mut self, rng: &mut Variates, position: &mut Option<u64>) -> Drawn {
        let read = self.reads == Share::ALL || rng.chance(self.reads);
        let count = self.size.draw(rng);
        let (align, capacity) = (self.align, self.capacity);
        let lbn = match &mut self.place {
            Place::Part { from, to } => draw_aligned(*from, *to, align, count, rng),
            Place::Sequential => draw_next(position, capacity, align, count, rng),
            Place::SharedSequential(position) => draw_next(position, capacity, align, count, rng),
            Place::SharedBackward(position) => draw_before(position, capacity, align, count, rng),
            Place::Tracks(tracks) => {
                let (first, lbns) = tracks[rng.below(tracks.len() as u64) as usize];
                draw_on_track(first, lbns, align, count, capacity, rng)
            }
            Place::RecentGroup(group) => group.draw(align, count, capacity, rng),
        };
        Drawn { kind: if read { Kind::Read } else { Kind::Write }, lbn, count, fua: self.fua && !read }
    }
}

impl RecentGroup {
    fn draw(&mut self, align: u64, count: u32, capacity: u64, rng: &mut Variates) -> u64 {
        if rng.chance(self.share) {
            let first = self.last_cylinder / self.cylinders * self.cylinders;
            for _ in 0..TRIES {
                let cylinder = first + rng.below(u64::from(self.cylinders)) as u32;
                let surface = rng.below(u64::from(self.geometry.surfaces())) as u16;
                if let Some(t) = self.geometry.track(cylinder, surface)
                    && t.lbns > 0
                {
                    self.last_cylinder = cylinder;
                    return draw_on_track(t.first_lbn, t.lbns, align, count, capacity, rng);
                }
            }
        }
        let lbn = draw_aligned(0, capacity, align, count, rng);
        if let Some(p) = self.geometry.locate(lbn) {
            self.last_cylinder = p.cylinder;
        }
        lbn
    }
}

/// Returns the range after the previous one; the first is at random.
fn draw_next(position: &mut Option<u64>, capacity: u64, align: u64, count: u32, rng: &mut Variates) -> u64 {
    let at = match *position {
        Some(at) if at + u64::from(count) <= capacity => at,
        // At the disk's end it restarts from the beginning.
        Some(_) => 0,
        None => draw_aligned(0, capacity, align, count, rng),
    };
    *position = Some(at + u64::from(count));
    at
}

/// Returns the range before the previous one; the first is at random.
fn draw_before(position: &mut Option<u64>, capacity: u64, align: u64, count: u32, rng: &mut Variates) -> u64 {
    let count = u64::from(count);
    let at = match *position {
        // At the disk's beginning it restarts from the end.
        Some(end) => end.checked_sub(count).unwrap_or(capacity - count),
        None => draw_aligned(0, capacity, align, count as u32, rng),
    };
    *position = Some(at);
    at
}

/// Draws an aligned range of `count` sectors between `from` and `to`; if alignment leaves no place,
/// the first sector.
fn draw_aligned(from: u64, to: u64, align: u64, count: u32, rng: &mut Variates) -> u64 {
    let last = to - u64::from(count);
    let first_slot = from.div_ceil(align);
    let last_slot = last / align;
    if first_slot > last_slot {
        return from;
    }
    (first_slot + rng.below(last_slot - first_slot + 1)) * align
}

/// Draws a range that begins on a track, aligned from the track's first sector, and does not exceed
/// the disk.
fn draw_on_track(first: u64, lbns: u32, align: u64, count: u32, capacity: u64, rng: &mut Variates) -> u64 {
    let slots = u64::from(lbns).div_ceil(align);
    (first + rng.below(slots) * align).min(capacity - u64::from(count))
}

fn compile_place(spec: &PlaceSpec, target: &Target, rng: &mut Variates) -> Result<Place, WorkloadError> {
    let geometry = |what| target.geometry.clone().ok_or(WorkloadError::NeedsGeometry { what });
    match spec {
        PlaceSpec::Uniform => Ok(Place::Part { from: 0, to: target.capacity }),
        PlaceSpec::Part { from, to } => {
            if !(0.0..1.0).contains(from) {
                return Err(WorkloadError::range("from (a share of the disk)", from, 0, "less than 1").about(&["from"]));
            }
            if to <= from || !(0.0..=1.0).contains(to) {
                return Err(WorkloadError::range(
                    "to (a share of the disk)",
                    to,
                    format!("more than {from} (from)"),
                    1,
                )
                .about(&["to", "from"]));
            }
            let at = |share: f64| ((target.capacity as f64 * share) as u64).min(target.capacity);
            Ok(Place::Part { from: at(*from), to: at(*to) })
        }
        PlaceSpec::Sequential => Ok(Place::Sequential),
        PlaceSpec::SharedSequential => Ok(Place::SharedSequential(None)),
        PlaceSpec::SharedBackward => Ok(Place::SharedBackward(None)),
        PlaceSpec::Window { cylinders } => {
            let geometry = geometry("locality by cylinder")?;
            check_cylinders(*cylinders, &geometry)?;
            let starts = u64::from(geometry.cylinders() - cylinders) + 1;
            for _ in 0..TRIES {
                let first = rng.below(starts) as u32;
                let tracks = tracks_of(&geometry, first, *cylinders);
                if !tracks.is_empty() {
                    return Ok(Place::Tracks(tracks));
                }
            }
            let none = format!("no {cylinders} neighbouring cylinders of this disk hold data");
            Err(WorkloadError::Conflict(none).about(&["cylinders"]))
        }
        PlaceSpec::RecentGroup { share, cylinders } => {
            let geometry = geometry("locality by cylinder group")?;
            check_cylinders(*cylinders, &geometry)?;
            Ok(Place::RecentGroup(RecentGroup {
                share: *share,
                cylinders: *cylinders,
                last_cylinder: rng.below(u64::from(geometry.cylinders())) as u32,
                geometry,
            }))
        }
    }
}

fn check_cylinders(cylinders: u32, geometry: &Geometry) -> Result<(), WorkloadError> {
    if (1..=geometry.cylinders()).contains(&cylinders) {
        Ok(())
    } else {
        let range = WorkloadError::range("cylinders of the locality", cylinders, 1, geometry.cylinders());
        Err(range.about(&["cylinders"]))
    }
}

/// Returns first LBN and number of LBNs of every track with data in a range of cylinders.
fn tracks_of(geometry: &Geometry, first: u32, cylinders: u32) -> Vec<(u64, u32)> {
    let mut tracks = Vec::new();
    for cylinder in first..first + cylinders {
        for surface in 0..geometry.surfaces() {
            if let Some(t) = geometry.track(cylinder, surface)
                && t.lbns > 0
            {
                tracks.push((t.first_lbn, t.lbns));
            }
        }
    }
    tracks
}

#[cfg(test)]
mod tests;
