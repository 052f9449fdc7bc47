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
mod tests {
    use super::*;

    fn target(capacity: u64, sector_bytes: u32) -> Target {
        Target { capacity, sector_bytes, geometry: None }
    }

    fn draw(spec: &PatternSpec, t: &Target, n: usize) -> Vec<Drawn> {
        let mut rng = Variates::new(1, 0);
        let mut p = Pattern::new(spec, t, &mut rng).unwrap();
        let mut position = None;
        (0..n).map(|_| p.next(&mut rng, &mut position)).collect()
    }

    #[test]
    fn exponential_sizes_have_exactly_the_mean_asked_for() {
        for (mean, step) in [(8192u64, 4096u64), (65_536, 4096), (6144, 512), (4096, 4096)] {
            let spec = PatternSpec {
                size: SizeSpec::Exponential { mean_bytes: mean, step_bytes: step },
                ..PatternSpec::random_reads(4096)
            };
            let all = draw(&spec, &target(1 << 30, 512), 100_000);
            let sum: u64 = all.iter().map(|d| u64::from(d.count) * 512).sum();
            let got = sum as f64 / 1e5;
            assert!((got / mean as f64 - 1.0).abs() < 0.02, "{mean}: {got}");
            assert!(all.iter().all(|d| d.count > 0 && u64::from(d.count) * 512 % step == 0));
        }
    }

    #[test]
    fn half_of_the_steps_of_an_oltp_request_are_single() {
        let spec = PatternSpec {
            size: SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 },
            ..PatternSpec::random_reads(4096)
        };
        let all = draw(&spec, &target(1 << 30, 512), 100_000);
        for k in 1..5u32 {
            let share = all.iter().filter(|d| d.count == 8 * k).count() as f64 / 1e5;
            assert!((share - 0.5f64.powi(k as i32)).abs() < 0.006, "{k}: {share}");
        }
    }

    #[test]
    fn requests_are_aligned_and_stay_on_the_disk() {
        // A capacity that is no multiple of the alignment.
        let spec = PatternSpec {
            size: SizeSpec::Uniform { min_bytes: 512, max_bytes: 16_384, step_bytes: 512 },
            ..PatternSpec::random_reads(4096)
        };
        let t = target(1003, 512);
        let all = draw(&spec, &t, 20_000);
        assert!(all.iter().all(|d| d.lbn % 8 == 0 && d.lbn + u64::from(d.count) <= t.capacity));
        assert!(all.iter().any(|d| d.lbn + u64::from(d.count) > 990));
        assert!(all.iter().any(|d| d.count == 32) && all.iter().any(|d| d.count == 1));
    }

    #[test]
    fn sectors_of_4096_bytes_are_counted_as_such() {
        let all = draw(&PatternSpec::random_reads(40_960), &target(5000, 4096), 100);
        assert!(all.iter().all(|d| d.count == 10));
        let e = Pattern::new(&PatternSpec::random_reads(512), &target(5000, 4096), &mut Variates::new(1, 1))
            .unwrap_err()
            .to_string();
        assert!(e.contains("expected 4096 to"), "{e}");
    }

    #[test]
    fn sequential_requests_follow_each_other_and_begin_again_at_the_front() {
        let spec = PatternSpec { place: PlaceSpec::Sequential, ..PatternSpec::random_reads(4096) };
        let all = draw(&spec, &target(100, 512), 50);
        for w in all.windows(2) {
            let next = w[0].lbn + 8;
            assert_eq!(w[1].lbn, if next + 8 > 100 { 0 } else { next });
        }
    }

    #[test]
    fn backward_requests_end_where_the_one_before_began_and_begin_again_at_the_end() {
        let spec = PatternSpec { place: PlaceSpec::SharedBackward, ..PatternSpec::random_reads(4096) };
        let all = draw(&spec, &target(100, 512), 50);
        for w in all.windows(2) {
            assert_eq!(w[1].lbn, w[0].lbn.checked_sub(8).unwrap_or(92));
        }
    }

    #[test]
    fn tasks_that_share_a_position_read_on_where_any_of_them_ended() {
        let spec = PatternSpec { place: PlaceSpec::SharedSequential, ..PatternSpec::random_reads(4096) };
        let mut rng = Variates::new(1, 0);
        let mut p = Pattern::new(&spec, &target(1 << 30, 512), &mut rng).unwrap();
        let mut positions = [None; 3];
        let all: Vec<Drawn> = (0..30).map(|i| p.next(&mut rng, &mut positions[i % 3])).collect();
        assert!(all.windows(2).all(|w| w[1].lbn == w[0].lbn + 8));
    }

    #[test]
    fn a_part_of_the_disk_is_kept_to() {
        let spec = PatternSpec { place: PlaceSpec::Part { from: 0.5, to: 0.6 }, ..PatternSpec::random_reads(4096) };
        let all = draw(&spec, &target(100_000, 512), 1000);
        assert!(all.iter().all(|d| (50_000..=60_000 - 8).contains(&d.lbn)));
    }

    #[test]
    fn weights_are_kept() {
        let spec =
            PatternSpec { size: SizeSpec::Weighted(vec![(4096, 3), (65_536, 1)]), ..PatternSpec::random_reads(4096) };
        let all = draw(&spec, &target(100_000, 512), 40_000);
        let small = all.iter().filter(|d| d.count == 8).count();
        assert!((29_400..30_600).contains(&small), "{small}");
    }

    #[test]
    fn impossible_patterns_say_the_range() {
        let t = target(1000, 512);
        let with = |size, place, align_bytes| {
            Pattern::new(
                &PatternSpec { size, place, align_bytes, ..PatternSpec::random_reads(4096) },
                &t,
                &mut Variates::new(1, 1),
            )
            .unwrap_err()
            .to_string()
        };
        let fixed = |bytes| SizeSpec::Fixed { bytes };
        let u = PlaceSpec::Uniform;
        assert!(with(fixed(0), u.clone(), 4096).contains("expected 512 to"));
        assert!(with(fixed(700), u.clone(), 4096).contains("expected 512 to"));
        assert!(with(fixed(1 << 20), u.clone(), 4096).contains("expected 1 to 1000"));
        assert!(with(fixed(512), u.clone(), 100).contains("alignment"));
        let part = |from, to| with(fixed(4096), PlaceSpec::Part { from, to }, 512);
        assert!(part(0.7, 0.3).contains("to (a share of the disk): expected more than 0.7 (from) to 1, found 0.3"));
        assert!(part(0.7, 0.7).contains("expected more than 0.7 (from) to 1, found 0.7"));
        assert!(part(0.0, 1.1).contains("expected more than 0 (from) to 1, found 1.1"));
        assert!(part(1.0, 1.0).contains("from (a share of the disk): expected 0 to less than 1, found 1"));
        assert!(part(0.7, 0.703).contains("expected room for a request of 8 sectors, found 3 sectors"));
        assert!(with(fixed(512), PlaceSpec::Window { cylinders: 5 }, 512).contains("needs the disk's geometry"));
        assert!(with(SizeSpec::Weighted(vec![]), u.clone(), 512).contains("sum of the weights"));
        assert!(with(SizeSpec::Exponential { mean_bytes: 512, step_bytes: 4096 }, u, 512).contains("expected 4096 to"));
    }
}
