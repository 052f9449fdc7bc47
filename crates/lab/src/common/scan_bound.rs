//! A lower bound of a scan's duration, for the gaps left by a run's foreground.
//!
//! With the foreground served as it was, the head is free from the end of one request's transfer to
//! the start of the next one's, and of that time the move between the two tracks is lost in any
//! case. In one of [`BANDS`] bands of cylinders the free time is further reduced by the moves to
//! and from it. So up to any instant a scan has read no more
//!
//! * in total than passes in the free time of all gaps and in the foreground's own reads;
//! * of a band than passes in the time that the head could have been there, and no more than the
//!   band holds.
//!
//! Nothing is deducted for commands, margins, rotation, the choice between two bands, or for not
//! knowing the future: no scheduler reaches it. It shows how much of a scan's length is due to the
//! foreground, and, share by share, where the rest is lost. Another order of the requests has other
//! gaps, and another bound.

use headtime_disk::{Command, Completion, Dur, Kind, Model, Outcome, Time};
use headtime_sim::observe::Observer;

/// Shares of the disk for which the bound is computed, in thousandths.
pub(crate) const SHARES: [u64; 5] = [500, 900, 990, 999, 1000];
/// Number of bands, with about equal numbers of cylinders.
const BANDS: usize = 64;

/// The earliest times at which the [`SHARES`] can have been read; `None`: not in this run.
pub(crate) type Bound = [Option<Time>; SHARES.len()];

/// A band of cylinders.
#[derive(Clone, Copy, Debug, Default)]
struct Band {
    first: u32,
    last: u32,
    /// Total transfer time of its data.
    media: Dur,
    /// The time that the head could have been there.
    free: Dur,
}

/// An observer that computes the bound.
#[derive(Debug)]
pub(crate) struct GapBound {
    model: Model,
    /// End of the last foreground transfer, and its track.
    left: (Time, (u32, u16)),
    bands: [Band; BANDS],
    /// The same for the whole disk.
    whole: Band,
    bound: Bound,
}

impl GapBound {
    pub(crate) fn new(model: Model) -> GapBound {
        let g = &model.geometry;
        let first = |band: usize| (u64::from(g.cylinders()) * band as u64 / BANDS as u64) as u32;
        let media = |cylinder: u32| -> u64 {
            let tracks = (0..g.surfaces()).filter_map(|s| g.track(cylinder, s));
            tracks.map(|t| model.mechanics.rotation.sectors(u64::from(t.lbns), t.spt).0).sum()
        };
        let band = |i: usize| {
            let (first, end) = (first(i), first(i + 1));
            let media = Dur((first..end).map(media).sum());
            Band { first, last: end.saturating_sub(1).max(first), media, free: Dur::ZERO }
        };
        let bands: [Band; BANDS] = std::array::from_fn(band);
        let all = Dur(bands.iter().map(|b| b.media.0).sum());
        let whole = Band { first: 0, last: g.cylinders() - 1, media: all, free: Dur::ZERO };
        GapBound { left: (Time::ZERO, (0, 0)), bands, whole, bound: Bound::default(), model }
    }

    /// The bound.
    pub(crate) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Adds a gap: the head is free until it must be on track `to` at `until`.
    fn gap(&mut self, to: (u32, u16), kind: Kind, until: Time) {
        let (since, from) = self.left;
        let mechanics = &self.model.mechanics;
        let all = until.saturating_since(since);
        let usable = all.saturating_sub(mechanics.reposition(from, to, kind));
        self.whole.free += usable;
        for band in &mut self.bands {
            let away = |c: u32| band.first.saturating_sub(c).max(c.saturating_sub(band.last));
            let moves = mechanics.reposition_floor(away(from.0)) + mechanics.reposition_floor(away(to.0));
            band.free += usable.min(all.saturating_sub(moves));
        }
    }

    /// Adds a foreground read; `takes`: the transfer time of its sectors.
    fn read(&mut self, cylinder: u32, takes: Dur) {
        self.whole.free += takes;
        self.bands.iter_mut().filter(|b| (b.first..=b.last).contains(&cylinder)).for_each(|b| b.free += takes);
    }

    fn note(&mut self, now: Time) {
        let of_bands = self.bands.iter().map(|b| b.media.min(b.free).0).sum::<u64>();
        let most = u128::from(of_bands.min(self.whole.free.0));
        for (share, bound) in SHARES.into_iter().zip(&mut self.bound) {
            if most * 1_000 >= u128::from(self.whole.media.0) * u128::from(share) {
                bound.get_or_insert(now);
            }
        }
    }
}

impl Observer for GapBound {
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        let (lbn, count) = (command.lbn + u64::from(free), command.count - free);
        if command.kind == Kind::Flush || count == 0 || completion.outcome != Outcome::Ok {
            return;
        }
        let Some(place) = self.model.place(lbn, count, command.kind) else { return };
        if let Some(media) = completion.media {
            // Free sectors at its front passed before.
            let begins = Time(media.end.0.saturating_sub(place.transfer.0));
            self.gap((place.cylinder, place.surface), command.kind, begins);
            self.left = (media.end, (place.end_cylinder, place.end_surface));
        }
        if command.kind == Kind::Read {
            self.read(place.cylinder, place.media);
        }
        self.note(completion.at);
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::Profile;
    use headtime_sched::{Algorithm, Conservatism, Order, Placement, TaskEvent};
    use headtime_sim::workload::oltp;

    use super::*;
    use crate::common::scan_run::ScanRun;
    use crate::common::scans::{Scan, Window};
    use crate::experiment::runner::tests::FAKE;

    /// Small drives: with a head switch shorter than the shortest seek, and vice versa.
    fn drives(by: u32) -> [Profile; 2] {
        [("atlas10k", by), ("nearline-20tb", 40 * by)].map(|(drive, narrowed)| {
            let scan = Scan { narrowed, write_through: true, ..Scan::new(drive, 8, Order::Sptf, Window::First(1)) };
            scan.profile(FAKE.spec).unwrap()
        })
    }

    fn filled(profile: &Profile, order: Order) -> ScanRun {
        let mut filled = ScanRun::new(FAKE.spec, "atlas10k", order, oltp(), 3).unwrap();
        filled.profile = profile.clone();
        filled.with(Algorithm::Headtime, Placement::Host, Conservatism::Adaptive)
    }

    /// Compares the delivered data with the bound at each foreground completion.
    struct Compare {
        bound: GapBound,
        /// Transfer time of the delivered data, by band.
        brought: [Dur; BANDS],
        compared: u64,
        /// The largest delivered share of the bound, after the first hundred gaps.
        closest: f64,
    }

    impl Observer for Compare {
        fn background(&mut self, event: &TaskEvent, _: Time) {
            let TaskEvent::Delivered { range, .. } = event else { return };
            let model = &self.bound.model;
            for lbn in range.lbn..range.end() {
                let track = model.geometry.track_of(lbn).unwrap();
                let band = self.bound.bands.iter().position(|b| (b.first..=b.last).contains(&track.cylinder)).unwrap();
                self.brought[band] += model.mechanics.rotation.sectors(1, track.spt);
            }
        }

        fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
            // The sectors of this command are delivered after this call.
            let before = self.bound.left;
            self.bound.completed(command, free, completion);
            if before == self.bound.left {
                return;
            }
            let rounding = Dur::from_us(50);
            for (band, brought) in self.bound.bands.iter().zip(self.brought) {
                assert!(brought <= band.free + rounding, "{brought} of {band:?} at {}", completion.at);
            }
            let brought = Dur(self.brought.iter().map(|b| b.0).sum());
            assert!(brought <= self.bound.whole.free + rounding, "{brought} of {:?}", self.bound.whole);
            self.compared += 1;
            if self.compared > 100 {
                self.closest = self.closest.max(brought.0 as f64 / self.bound.whole.free.0 as f64);
            }
        }
    }

    #[test]
    fn gaps_never_bring_more_than_the_bound_and_most_of_it_while_all_is_wanted() {
        for profile in drives(10) {
            let bound = GapBound::new(Model::new(&profile).unwrap());
            let mut watch = Compare { bound, brought: [Dur::ZERO; BANDS], compared: 0, closest: 0.0 };
            filled(&profile, Order::SptfJoint).seconds(20).scan(FAKE.spec, 8, &mut watch).unwrap();
            assert!(watch.compared > 2_000, "{}", watch.compared);
            assert!(watch.closest > 0.6, "{}: {}", profile.name, watch.closest);
        }
    }

    #[test]
    fn no_share_of_a_scan_is_read_before_its_bound() {
        for profile in drives(200) {
            let filled = filled(&profile, Order::Sptf).until_scanned(5_000);
            let mut bound = GapBound::new(Model::new(&profile).unwrap());
            let (stats, jobs) = filled.scan(FAKE.spec, 8, &mut bound).unwrap();
            let capacity = filled.capacity(FAKE.spec).unwrap();
            for (share, earliest) in SHARES.into_iter().zip(bound.bound) {
                let read = jobs.curve().iter().find(|(_, sectors)| sectors * 1_000 >= capacity * share);
                let (read, earliest) = (read.map_or(stats.ended_at, |(t, _)| *t), earliest.unwrap());
                // At the end few gaps are near wanted blocks; the first half is delivered almost as
                // early as possible.
                let part = if share == 500 { 2 } else { 10 };
                assert!(earliest <= read && earliest > Time(read.0 / part), "{}: {share}: {read}", profile.name);
            }
        }
    }

    #[test]
    fn a_gap_has_what_the_moves_leave_in_each_band() {
        let profile = &drives(1)[0];
        let model = Model::new(profile).unwrap();
        let mut bound = GapBound::new(model.clone());
        let (from, to) = ((2_000, 0), (2_500, 3));
        bound.left = (Time::ZERO, from);
        let usable = Dur::from_ms(2);
        let moves = model.mechanics.reposition(from, to, Kind::Read);
        bound.gap(to, Kind::Read, Time::ZERO + moves + usable);
        assert_eq!(bound.whole.free, usable);
        let free = bound.bands.map(|b| b.free);
        let band_of = |cylinder: u32| bound.bands.iter().position(|b| b.last >= cylinder).unwrap();
        assert_eq!((free[band_of(2_000)], free[band_of(2_500)]), (usable, usable));
        assert_eq!(free[band_of(9_000)], Dur::ZERO);
        // The free time decreases with the distance.
        let (below, above) = (&free[..band_of(2_000)], &free[band_of(2_500) + 1..]);
        assert!(below.is_sorted() && above.is_sorted_by(|a, b| a >= b), "{free:?}");
        assert!(below.first() < Some(&usable) && above.last() < Some(&usable));
        let media: u64 = bound.bands.iter().map(|b| b.media.0).sum();
        assert_eq!(media, bound.whole.media.0);
    }
}
