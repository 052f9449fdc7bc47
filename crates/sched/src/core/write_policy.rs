//! Whether the drive's write cache is on, as its answers show.
//!
//! The profile, or the kernel, says whether the drive caches writes. That can be wrong: some
//! bridges and controllers hide the cache, some firmware ignores the setting, and it can be
//! switched while the disk is in use. Scheduling for the wrong policy is expensive. A drive that
//! caches writes moves its head at times of its own, so gaps are filled at the wrong place. A drive
//! that is believed to cache, and does not, orders everything itself without need.
//!
//! A write that has to move the arm shows the policy. Through to the media it cannot be answered
//! before the arm has moved, and it is answered when predicted. A cached one is answered when its
//! data is in the cache. Writes that move no arm, and those that continue another, show nothing: a
//! stream of cached writes is answered at the rate of the media, too. Once most of the last
//! [`WINDOW`] writes contradict what is believed, the core changes its belief and reports it
//! ([`Stats::write_cache`]). From then on FILL pauses while the cache may hold data
//! ([`super::handover`]).
//!
//! Writes with FUA are counted apart. They go to the media first whatever the cache is, so answers
//! at the predicted time say nothing of the cache; they only show that FUA is honoured. Where early
//! answers are far more than those, a cache is on that ignores FUA (as one does that a kernel takes
//! to be off). Some early ones show nothing: a host that hears of one completion late finds the
//! next one early. A belief that rests on FUA alone ends once answers show that FUA is honoured.
//! Were both kinds counted together, a drive that honours FUA would hide its cache behind the
//! writes with FUA.
//!
//! While the drive orders commands itself, few answers can be compared with a prediction: a cache
//! that is wrongly believed to be on is found once few commands wait. (Ordering some commands
//! outside from time to time, only to see, raised the p99 of a drive whose cache is always full:
//! 103.6% of the bare drive's in 20 s of `oltp`.)
//!
//! [`Stats::write_cache`]: crate::stats::Stats::write_cache

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::Dur;

use super::Core;
use crate::classify::CLOSE;
use crate::dispatch::Sent;
use crate::request::{Prediction, Surprise};

/// The latest writes that are looked at.
const WINDOW: u32 = 32;
/// That many early answers among them show a cache. An arm that is faster than believed answers a
/// few writes early; with half of them early, every prediction is worthless, cache or not.
const EARLY: u32 = 16;
/// That many answers at the predicted time show that there is none. Answers from a full cache are
/// at the predicted time by accident: 150 us either way of a turn of 4 to 11 ms.
const AS_PREDICTED: u32 = 24;
/// That many early answers, of the last 32 to writes with FUA that were early or as predicted, show
/// that FUA is ignored. All others show nothing: a full cache gives them, and so does a host that
/// is late. In simulations of an Atlas 10K with 1 to 32 random writes outstanding a full cache that
/// ignores FUA is found after 200 to 750 writes, and a drive that honours FUA is not taken for one
/// in 10,000 writes while the host is late by up to 9 ms in one of five events.
const EARLY_FUA: u32 = 24;

/// Ends of writes that are remembered: that many streams are recognised when they take turns.
const STREAMS: usize = 16;

/// How the latest writes of a kind were answered that had to move the arm, the last one in the
/// lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    early: u32,
    as_predicted: u32,
}

impl Answers {
    fn add(&mut self, surprise: Surprise) {
        const { assert!(WINDOW == u32::BITS, "a bit for each write") };
        self.early = self.early << 1 | u32::from(surprise == Surprise::CacheHit);
        self.as_predicted = self.as_predicted << 1 | u32::from(surprise == Surprise::None);
    }

    fn early(&self) -> u32 {
        self.early.count_ones()
    }

    fn are_as_predicted(&self) -> bool {
        self.as_predicted.count_ones() >= AS_PREDICTED
    }
}

/// How writes were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct WritePolicy {
    plain: Answers,
    fua: Answers,
    ignores_fua: bool,
    /// The cache is believed to be on for no other reason than early answers to writes with FUA.
    by_fua: bool,
    /// The last command ended later than predicted, or the host heard of it late.
    late: bool,
    /// Where the latest writes ended.
    ends: [u64; STREAMS],
    written: usize,
}

impl Default for WritePolicy {
    fn default() -> WritePolicy {
        WritePolicy {
            plain: Answers::default(),
            fua: Answers::default(),
            ignores_fua: false,
            by_fua: false,
            late: false,
            ends: [u64::MAX; STREAMS],
            written: 0,
        }
    }
}

impl WritePolicy {
    /// Whether a write goes on where one of the latest ended. A stream of cached writes is answered
    /// at the rate of the media, as one without a cache is.
    fn continues(&mut self, lbn: u64, count: u32) -> bool {
        let continues = self.ends.contains(&lbn);
        self.ends[self.written % STREAMS] = lbn + u64::from(count);
        self.written += 1;
        continues
    }

    /// Adds a write; what the last ones show if that is not what is believed.
    fn add(&mut self, surprise: Surprise, fua: bool, believed: bool) -> Option<bool> {
        let on = if fua { self.add_fua(surprise, believed) } else { self.add_plain(surprise, believed) };
        if on.is_some() {
            (self.plain, self.fua) = (Answers::default(), Answers::default());
        }
        on
    }

    fn add_plain(&mut self, surprise: Surprise, believed: bool) -> Option<bool> {
        self.plain.add(surprise);
        let cached = self.plain.early() >= EARLY;
        if believed {
            // That the cache is on has another reason now.
            self.by_fua &= !cached;
            let off = self.plain.are_as_predicted();
            if off {
                (self.ignores_fua, self.by_fua) = (false, false);
            }
            return off.then_some(false);
        }
        cached.then_some(true)
    }

    fn add_fua(&mut self, surprise: Surprise, believed: bool) -> Option<bool> {
        if matches!(surprise, Surprise::CacheHit | Surprise::None) {
            self.fua.add(surprise);
        }
        let was = self.ignores_fua;
        self.ignores_fua = match was {
            false => self.fua.early() >= EARLY_FUA,
            true => !self.fua.are_as_predicted(),
        };
        if self.ignores_fua == was {
            return None;
        }
        self.fua = Answers::default();
        match self.ignores_fua {
            true => {
                self.by_fua = !believed;
                self.by_fua.then_some(true)
            }
            false => std::mem::take(&mut self.by_fua).then_some(false),
        }
    }

    /// Whether the drive's cache, which is on, takes writes with FUA as well.
    #[inline]
    pub(super) fn ignores_fua(&self) -> bool {
        self.ignores_fua
    }
}

impl Core {
    /// A command was answered.
    pub(super) fn note_write_policy(&mut self, sent: &Sent, outcome: Outcome, prediction: Option<&Prediction>) {
        let late = prediction.is_some_and(|p| p.observed > p.predicted + CLOSE);
        let behind_late = std::mem::replace(&mut self.write_policy.late, late);
        if sent.command.kind != Kind::Write || outcome != Outcome::Ok {
            return;
        }
        if self.write_policy.continues(sent.command.lbn, sent.command.count) {
            return;
        }
        let believed = self.model.cache.write_back;
        let Some(p) = prediction.filter(|p| p.seek > Dur::ZERO) else { return };
        // What a host hears of late leaves less time for the next.
        if sent.command.fua && behind_late && p.surprise == Surprise::CacheHit {
            return;
        }
        if let Some(on) = self.write_policy.add(p.surprise, sent.command.fua, believed) {
            self.model.cache.write_back = on;
            self.set_handover(on);
            self.stats.write_cache = (on != self.stated_write_back).then_some(on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The belief after the answers, and how many it took to change it the last time.
    fn believes(believed: bool, answers: impl Iterator<Item = Surprise>) -> (bool, usize) {
        let mut policy = WritePolicy::default();
        answers.enumerate().fold((believed, 0), |(now, at), (i, surprise)| match policy.add(surprise, false, now) {
            Some(on) => (on, i + 1),
            None => (now, at),
        })
    }

    #[test]
    fn a_drive_that_answers_every_write_early_caches_them() {
        assert_eq!(believes(false, [Surprise::CacheHit].into_iter().cycle().take(100)), (true, EARLY as usize));
        let every_second = [Surprise::CacheHit, Surprise::Other].into_iter().cycle();
        assert_eq!(believes(false, every_second.take(100)), (true, 31));
    }

    /// Writes with FUA only: the belief after the answers, and how many it took to change it the
    /// last time.
    fn believes_of_fua(policy: &mut WritePolicy, now: bool, answers: impl Iterator<Item = Surprise>) -> (bool, usize) {
        answers.enumerate().fold((now, 0), |(now, at), (i, surprise)| match policy.add(surprise, true, now) {
            Some(on) => (on, i + 1),
            None => (now, at),
        })
    }

    #[test]
    fn early_answers_to_writes_with_fua_show_a_cache_that_ignores_it_and_later_ones_that_it_does_not() {
        let mut policy = WritePolicy::default();
        let early = || [Surprise::CacheHit].into_iter().cycle();
        let as_predicted = || [Surprise::None].into_iter().cycle();
        assert_eq!(believes_of_fua(&mut policy, false, as_predicted().take(1_000)), (false, 0));
        assert_eq!(believes_of_fua(&mut policy, false, early().take(100)), (true, EARLY_FUA as usize));
        assert!(policy.ignores_fua());
        assert_eq!(believes_of_fua(&mut policy, true, as_predicted().take(100)), (false, AS_PREDICTED as usize));
        assert!(!policy.ignores_fua());
    }

    #[test]
    fn a_few_early_answers_to_writes_with_fua_show_nothing_in_any_number_of_writes() {
        for every in [10_000, 100, 3, 2] {
            let seldom = (0..200_000).map(|i| if i % every == 0 { Surprise::CacheHit } else { Surprise::None });
            assert_eq!(believes_of_fua(&mut WritePolicy::default(), false, seldom), (false, 0), "1 in {every}");
        }
        // Neither do they where the cache is known to be on.
        let mut policy = WritePolicy::default();
        let every_second = [Surprise::CacheHit, Surprise::None].into_iter().cycle();
        assert_eq!(believes_of_fua(&mut policy, true, every_second.take(1_000)), (true, 0));
        assert!(!policy.ignores_fua());
    }

    #[test]
    fn a_full_cache_that_ignores_fua_is_found() {
        // As the Atlas 10K answers: few at the predicted time, some early, the rest neither.
        let one = [Surprise::Other, Surprise::Other, Surprise::CacheHit, Surprise::Overlap];
        let last = [Surprise::Other, Surprise::None, Surprise::CacheHit, Surprise::Overlap];
        let answers = one.into_iter().chain(one).chain(one).chain(one).chain(last).cycle();
        let (on, after) = believes_of_fua(&mut WritePolicy::default(), false, answers.take(1_000));
        assert!(on && after < 200, "{after}");
    }

    #[test]
    fn writes_with_fua_that_are_honoured_do_not_hide_a_cache() {
        let mut policy = WritePolicy::default();
        // Three of four have FUA.
        let on = (0..200).find_map(|i| match i % 4 {
            0 => policy.add(Surprise::CacheHit, false, false).map(|on| (i, on)),
            _ => policy.add(Surprise::None, true, false).map(|on| (i, on)),
        });
        assert_eq!((on, policy.ignores_fua()), (Some((4 * (EARLY as usize - 1), true)), false));
        assert_eq!((0..1_000).find_map(|_| policy.add(Surprise::None, true, true)), None, "they say nothing of it");
        let off = (0..100).find_map(|_| policy.add(Surprise::None, false, true));
        assert_eq!((off, policy.ignores_fua()), (Some(false), false));
    }

    #[test]
    fn a_cache_that_other_writes_have_shown_stays_when_fua_is_honoured_again() {
        let mut policy = WritePolicy::default();
        let ignored = (0..100).find_map(|_| policy.add(Surprise::CacheHit, true, false));
        assert_eq!((ignored, policy.ignores_fua()), (Some(true), true));
        assert_eq!((0..100).find_map(|_| policy.add(Surprise::CacheHit, false, true)), None);
        assert_eq!((0..100).find_map(|_| policy.add(Surprise::None, true, true)), None);
        assert!(!policy.ignores_fua());
    }

    #[test]
    fn a_drive_that_answers_every_third_write_early_is_not_taken_to() {
        let answers = [Surprise::CacheHit, Surprise::None, Surprise::ExtraTurn].into_iter().cycle();
        assert_eq!(believes(false, answers.take(1_000)), (false, 0));
    }

    #[test]
    fn a_drive_that_answers_writes_as_predicted_does_not_cache_them() {
        let answers = [Surprise::None, Surprise::None, Surprise::None, Surprise::Overlap].into_iter().cycle();
        assert_eq!(believes(true, answers.take(100)), (false, 31));
    }

    #[test]
    fn a_full_cache_is_still_a_cache() {
        // By accident one in four is as predicted.
        let answers = [Surprise::Other, Surprise::None, Surprise::CacheHit, Surprise::Other].into_iter().cycle();
        assert_eq!(believes(true, answers.take(1_000)), (true, 0));
    }
}
