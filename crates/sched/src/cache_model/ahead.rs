//! A prefetch as the host can compute it: begun when the drive had nothing else to do, and
//! simulated only when its progress is queried.

use headtime_disk::{Head, Model, Time};

use super::passed::{Passed, prefetch_limit, track_end};
use crate::passage::{Track, along};

/// A read that a prefetch may follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    pub command: u64,
    pub segment: usize,
    pub passed: Passed,
    /// One past the last LBN in the segment.
    pub from: u64,
    /// Whether it continues the read before it.
    pub sequential: bool,
    /// Set if the drive continued reading for this read without a break: one past the last LBN that
    /// it reads ahead, and [`Ahead::known_to`] of that read-ahead.
    pub on: Option<(u64, u64)>,
}

/// A prefetch that runs, or has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The segment it fills.
    pub segment: usize,
    /// The first LBN that it reads; later that of its current run.
    pub from: u64,
    /// One past the last LBN that it reads.
    pub limit: u64,
    /// When `limit` is reached, the LBNs up to here are buffered, too: they passed under the head
    /// before.
    pub known_to: u64,
    /// The head before the run that begins at `from`.
    pub head: Head,
}

/// State of a prefetch when a command arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrefetchState {
    /// One past the last LBN in the buffer.
    pub reached: u64,
    /// Whether it has completed.
    pub over: bool,
    /// When the command could begin.
    pub free: Time,
    /// One past the last LBN in the buffer at that time.
    pub end: u64,
    /// Where the arm is at that time.
    pub track: Track,
    /// The first LBN of its current run, and the head before that.
    pub base: (u64, Head),
}

impl Ahead {
    /// Returns its state at `t`. A seek in progress completes first; one that would begin at `t`
    /// does not start. A rotational wait or a sector in progress also completes, unless the drive
    /// can stop there (`in_sector`).
    pub(super) fn state_at(&self, model: &Model, t: Time, in_sector: bool) -> PrefetchState {
        let mut head = self.head;
        let mut at = self.from;
        let mut track = (head.cylinder, head.surface);
        while at < self.limit {
            let want = u32::try_from(self.limit - at).unwrap_or(u32::MAX);
            let Some(run) = model.geometry.run_at(at, want) else {
                break;
            };
            let leg = along(model, &head, &run);
            if t < leg.end.at && t == head.at {
                return PrefetchState { reached: at, over: false, free: t, end: at, track, base: (at, head) };
            }
            track = (run.start.cylinder, run.start.surface);
            if t < leg.end.at {
                let n = leg.count_at(t);
                let so_far = at + n as u64;
                let (free, end) = match () {
                    () if t < leg.arrived => (leg.arrived, so_far),
                    () if t < leg.start => (if in_sector { t } else { leg.start }, so_far),
                    () if in_sector || leg.passed(n) == t => (t, so_far),
                    // After the last block of a run there may be sectors without an LBN.
                    () => (leg.passed(n + 1).max(t), at + u64::from((n + 1).min(leg.count))),
                };
                return PrefetchState { reached: so_far, over: false, free, end, track, base: (at, head) };
            }
            head = leg.end;
            at += run.count as u64;
        }
        let reached = if at >= self.limit { at.max(self.known_to) } else { at };
        PrefetchState { reached, over: true, free: t, end: reached, track, base: (at, head) }
    }

    /// Returns when the last of `lbn..end` passes that it reads; time zero when it reads none of
    /// it.
    pub(super) fn brings(&self, model: &Model, lbn: u64, end: u64) -> Time {
        let (mut head, mut at, mut last) = (self.head, self.from, Time::ZERO);
        while at < end.min(self.limit) {
            let want = u32::try_from(self.limit - at).unwrap_or(u32::MAX);
            let Some(run) = model.geometry.run_at(at, want) else {
                break;
            };
            let leg = along(model, &head, &run);
            let upto = end.min(at + run.count as u64);
            if upto > at.max(lbn) {
                last = leg.passed((upto - at) as u32);
            }
            head = leg.end;
            at += run.count as u64;
        }
        last
    }
}

/// Returns the prefetch after a read that left the head as `head` with no command waiting; `None`
/// when there is none.
pub(super) fn begin_ahead(model: &Model, behind: &Behind, head: &Head) -> Option<Ahead> {
    let Behind { segment, passed, from, .. } = *behind;
    if let Some((limit, known_to)) = behind.on {
        return (limit > from).then_some(Ahead { segment, from, limit, known_to, head: *head });
    }
    let track = model.geometry.track_of(passed.asked)?;
    let first = passed.first().max(if passed.before > 0 { track.first_lbn } else { 0 });
    let tail = passed.tail(model);
    let limit = prefetch_limit(model, first, passed.end, behind.sequential);
    let limit = tail.map_or(limit, |t| limit.min(t)).max(from);
    let known_to = tail.filter(|&t| limit >= t).map_or(0, |_| track_end(model, passed.end - 1));
    (limit > from).then_some(Ahead { segment, from, limit, known_to, head: *head })
}

#[cfg(test)]
mod tests {
    use headtime_disk::Dur;
    use headtime_disk::profile::builtin;

    use super::*;

    /// Includes places where it passes several sectors without a block in a row.
    #[test]
    fn a_prefetch_is_never_out_of_the_way_before_it_is_asked_to_go() {
        let model = Model::new(&builtin("atlas10k").unwrap()).unwrap();
        let geometry = &model.geometry;
        let mut holes = 0;
        for i in 0..20_000u64 {
            let from = i * (geometry.capacity() / 20_000);
            let run = geometry.run_at(from, 2_000).unwrap();
            holes += u32::from(run.span > run.count + 1);
            let at = Time(1_000_000_000 + i * 7_919);
            let angle = model.mechanics.rotation.angle_after(Dur(at.0 % 6_000_000));
            let head = Head { cylinder: run.start.cylinder, surface: run.start.surface, angle, at };
            let ahead = Ahead { segment: 0, from, limit: from + 2_000, known_to: 0, head };
            for step in 0..200 {
                let t = at + Dur::from_us(step * 97);
                for in_sector in [true, false] {
                    let state = ahead.state_at(&model, t, in_sector);
                    assert!(state.free >= t && state.end >= state.reached, "{t}: {state:?}");
                }
            }
        }
        assert!(holes > 0, "no place without a block was passed");
    }
}
