//! A scan of the whole disk that tracks the remaining blocks of each zone: the background of
//! Thereska 2003 figures 5 to 7.
//!
//! A block across the boundary of two zones belongs to neither. Spares are at a zone's end, so the
//! two parts of such a block are ten cylinders apart on the Cheetah 36ES; no gap delivers it, and
//! it is fetched without a gap when nothing else is left. If it were counted, all zones would seem
//! to end at the very end, 2 s apart.

use headtime_disk::profile::GeometrySpec;
use headtime_disk::{Geometry, Kind, Time};
use headtime_sched::internals::promotion::PATIENCE;
use headtime_sched::{Core, FillReport, TaskError, TaskEvent, TaskRange, TaskSpec};
use headtime_sim::background::{Background, Progress};

/// Points of a progress curve.
const POINTS: u64 = 200;

/// Share of the delivered sectors at which fragments are counted, percent.
pub(crate) const COUNTED_AT: u64 = 90;

/// The first LBN of each zone of a disk with zones in LBN order, and its capacity.
pub(crate) fn zone_bounds(spec: &GeometrySpec, geometry: &Geometry) -> Vec<u64> {
    let mut bounds = Vec::with_capacity(spec.zones.len() + 1);
    for zone in &spec.zones {
        // A zone that is entirely reserved or spare holds nothing.
        let first = (zone.first_cylinder..=zone.last_cylinder)
            .find_map(|c| (0..geometry.surfaces()).filter_map(|s| geometry.track(c, s)).map(|t| t.first_lbn).min());
        bounds.extend(first);
    }
    bounds.push(geometry.capacity());
    assert!(bounds.is_sorted(), "zones do not follow each other in LBN order");
    bounds
}

/// The division of a scan into tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Number of tasks, each of equally many consecutive sectors, in order.
    pub tasks: u64,
    /// Block size, sectors.
    pub blksize: u32,
    /// Pick-up size, sectors.
    pub min_pickup: u32,
}

impl Cut {
    /// One task in units of `unit` sectors.
    pub(crate) fn whole(unit: u32) -> Cut {
        Cut { tasks: 1, blksize: unit, min_pickup: unit }
    }
}

/// The scan.
#[derive(Clone, Debug)]
pub(crate) struct ZoneScan {
    cut: Cut,
    capacity: u64,
    /// For each zone, the first and one past the last LBN of its own blocks.
    zones: Vec<(u64, u64)>,
    left: Vec<u64>,
    done_at: Vec<Option<Time>>,
    nearly_at: Vec<Option<Time>>,
    delivered: u64,
    /// Time of the last delivery, and the number of times when it came [`PATIENCE`] or more
    /// after its predecessor.
    last: Time,
    waits: u64,
    tasks_left: u64,
    ended: Option<Time>,
    curve: Vec<(Time, u64)>,
    /// Whether each block is wanted. Blocks across two tasks count as two.
    blocks: Vec<bool>,
    fragments: Option<Fragments>,
    registered: Option<FillReport>,
}

/// Remaining fragments when [`COUNTED_AT`] percent are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragments {
    /// Maximal sequences of consecutive wanted LBNs.
    pub stretches: u64,
    /// Time of the count.
    pub at: Time,
}

impl ZoneScan {
    /// A scan of a disk whose zones begin at `bounds`; the last one is its capacity.
    pub(crate) fn new(bounds: &[u64], cut: Cut) -> ZoneScan {
        let capacity = bounds.last().copied().unwrap_or(0);
        let unit = u64::from(cut.blksize);
        let within = |w: &[u64]| {
            let first = w[0].next_multiple_of(unit);
            let end = if w[1] == capacity { capacity } else { w[1] / unit * unit };
            (first, end.max(first))
        };
        let zones: Vec<(u64, u64)> = bounds.windows(2).map(within).collect();
        let left: Vec<u64> = zones.iter().map(|(first, end)| end - first).collect();
        ZoneScan {
            cut,
            capacity,
            done_at: vec![None; left.len()],
            nearly_at: vec![None; left.len()],
            last: Time::ZERO,
            waits: 0,
            left,
            zones,
            delivered: 0,
            tasks_left: 0,
            ended: None,
            curve: Vec::new(),
            blocks: vec![true; capacity.div_ceil(u64::from(cut.blksize)) as usize],
            fragments: None,
            registered: None,
        }
    }

    /// Time at which each zone's last own block was picked up, outermost zone first.
    pub(crate) fn zones_done_at(&self) -> &[Option<Time>] {
        &self.done_at
    }

    /// Number of delivered sectors over time: 200 points.
    pub(crate) fn curve(&self) -> &[(Time, u64)] {
        &self.curve
    }

    /// Time at which `percent` had been delivered; to half a percent.
    pub(crate) fn percent_at(&self, percent: f64) -> Option<Time> {
        let wanted = percent / 100.0 * self.capacity as f64;
        self.curve.iter().find(|(_, sectors)| *sectors as f64 >= wanted).map(|(t, _)| *t)
    }

    /// Remaining fragments when [`COUNTED_AT`] percent were done.
    pub(crate) fn fragments(&self) -> Option<Fragments> {
        self.fragments
    }

    /// Bytes of both layers when everything was registered, with bits at their maximum.
    pub(crate) fn bytes(&self) -> usize {
        self.registered.as_ref().map_or(0, |r| r.tasks.held() + r.regions.total())
    }

    /// Time at which 99% of each zone had been picked up.
    pub(crate) fn zones_nearly_at(&self) -> &[Option<Time>] {
        &self.nearly_at
    }

    /// Blocks fetched without a gap after a long time without a delivery.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    fn delivered(&mut self, range: TaskRange, now: Time) {
        self.waits += u64::from(now.saturating_since(self.last) >= PATIENCE);
        self.last = now;
        let before = self.delivered;
        self.delivered += range.count;
        let step = (self.capacity / POINTS).max(1);
        if self.delivered / step > before / step {
            self.curve.push((now, self.delivered));
        }
        let first = self.zones.partition_point(|(_, end)| *end <= range.lbn);
        for (i, &(low, high)) in self.zones.iter().enumerate().skip(first).take_while(|(_, z)| z.0 < range.end()) {
            let brought = range.end().min(high).saturating_sub(range.lbn.max(low));
            assert!(brought <= self.left[i], "more of zone {i} was delivered than it has");
            self.left[i] -= brought;
            if self.nearly_at[i].is_none() && self.left[i] * 100 <= high - low {
                self.nearly_at[i] = Some(now);
            }
            if brought > 0 && self.left[i] == 0 {
                self.done_at[i] = Some(now);
            }
        }
        if self.fragments.is_none() {
            let unit = u64::from(self.cut.blksize);
            for block in range.lbn / unit..range.end().div_ceil(unit) {
                self.blocks[block as usize] = false;
            }
            if self.delivered * 100 >= self.capacity * COUNTED_AT {
                self.fragments = Some(Fragments { stretches: stretches(&self.blocks), at: now });
                self.blocks = Vec::new();
            }
        }
    }
}

/// Number of maximal sequences of set flags.
fn stretches(flags: &[bool]) -> u64 {
    let begins = |(i, wanted): (usize, &bool)| *wanted && (i == 0 || !flags[i - 1]);
    flags.iter().enumerate().filter(|f| begins(*f)).count() as u64
}

impl Background for ZoneScan {
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        let session = core.open(1, now)?;
        let Cut { tasks, blksize, min_pickup } = self.cut;
        // A task without sectors would be rejected.
        let tasks = tasks.clamp(1, self.capacity.max(1));
        let at = |n: u64| (u128::from(self.capacity) * u128::from(n) / u128::from(tasks)) as u64;
        for n in 0..tasks {
            let range = TaskRange { lbn: at(n), count: at(n + 1) - at(n) };
            core.register(session, &TaskSpec { kind: Kind::Read, ranges: vec![range], blksize, min_pickup }, now)?;
        }
        self.tasks_left = tasks;
        self.registered = core.freeblock();
        Ok(())
    }

    fn event(&mut self, event: &TaskEvent, _: &mut Core, now: Time) -> Result<(), TaskError> {
        match *event {
            TaskEvent::Delivered { range, .. } => self.delivered(range, now),
            TaskEvent::Done { .. } => {
                self.tasks_left -= 1;
                self.ended = (self.tasks_left == 0).then_some(now);
            }
            // It writes nothing, and its drives have no bad sectors.
            TaskEvent::GetBuffer { .. }
            | TaskEvent::Written { .. }
            | TaskEvent::Superseded { .. }
            | TaskEvent::Failed { .. } => {}
        }
        Ok(())
    }

    fn ends(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.ended.is_some()
    }

    fn progress(&self) -> Progress {
        let fraction = if self.capacity == 0 { 0.0 } else { self.delivered as f64 / self.capacity as f64 };
        let done_at = self.ended;
        Progress { sectors: self.delivered, fraction, done_at, by_session: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::Model;
    use headtime_disk::profile::builtin;

    fn scan() -> ZoneScan {
        ZoneScan::new(&[0, 105, 250], Cut::whole(10))
    }

    #[test]
    fn a_zone_is_done_with_its_last_block_and_one_on_the_border_belongs_to_neither() {
        let mut s = scan();
        s.delivered(TaskRange { lbn: 0, count: 90 }, Time(1));
        assert_eq!(s.zones_done_at(), [None, None]);
        s.delivered(TaskRange { lbn: 90, count: 10 }, Time(2));
        assert_eq!(s.zones_done_at(), [Some(Time(2)), None]);
        s.delivered(TaskRange { lbn: 110, count: 140 }, Time(3));
        s.delivered(TaskRange { lbn: 100, count: 10 }, Time(4));
        assert_eq!(s.zones_done_at(), [Some(Time(2)), Some(Time(3))]);
        assert_eq!(s.delivered, 250);
    }

    #[test]
    fn fragments_are_counted_when_nine_tenths_are_there() {
        let mut s = scan();
        // 225 sectors of 250, with three remaining fragments.
        s.delivered(TaskRange { lbn: 10, count: 100 }, Time(1));
        s.delivered(TaskRange { lbn: 120, count: 110 }, Time(2));
        assert_eq!(s.fragments(), None);
        s.delivered(TaskRange { lbn: 230, count: 15 }, Time(4));
        assert_eq!(s.fragments(), Some(Fragments { stretches: 2, at: Time(4) }));
    }

    #[test]
    fn runs_of_flags_are_counted_at_both_ends() {
        let flags = |s: &str| s.chars().map(|c| c == '#').collect::<Vec<_>>();
        assert_eq!(stretches(&flags("")), 0);
        assert_eq!(stretches(&flags("....")), 0);
        assert_eq!(stretches(&flags("##..#.###")), 3);
    }

    #[test]
    fn the_zones_of_the_cheetah_are_eleven_and_hold_all_of_it() {
        let profile = builtin("cheetah36es").unwrap();
        let model = Model::new(&profile).unwrap();
        let bounds = zone_bounds(&profile.geometry, &model.geometry);
        assert_eq!(bounds.len(), 12);
        assert_eq!((bounds[0], bounds[11]), (0, model.geometry.capacity()));
        for (zone, at) in profile.geometry.zones.iter().zip(&bounds) {
            assert_eq!(model.geometry.locate(*at).unwrap().cylinder, zone.first_cylinder);
        }
    }
}
