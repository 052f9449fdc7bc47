//! Detection of the drive's write cache setting from completions.
//!
//! The profile, or the kernel, states whether the drive caches writes. That can be wrong: some
//! bridges and controllers hide the cache, some firmware ignores the setting, and it can be
//! switched while the disk is in use. Scheduling for the wrong policy is expensive. A drive that
//! caches writes moves its head at times of its own, so gaps are filled at the wrong place. A drive
//! wrongly assumed to cache orders commands itself without need.
//!
//! A write that requires a seek shows the policy. A write-through cannot complete before the seek,
//! and completes when predicted. A cached write completes when its data is in the cache. Writes
//! without a seek, and those that continue another, show nothing: a stream of cached writes also
//! completes at the media rate. Once most of the last [`WINDOW`] writes contradict the assumed
//! setting, the core changes it and reports it ([`Stats::write_cache`]). From then on FILL pauses
//! while the cache may hold data ([`super::handover`]).
//!
//! Writes with FUA are counted separately. They go to the media first whatever the cache setting
//! is, so completions at the predicted time say nothing about the cache; they only show that FUA is
//! honoured. If early completions far outnumber those, a cache is on that ignores FUA (as can one
//! that a kernel assumes to be off). A few early ones show nothing: if the host receives one
//! completion late, the next one appears early. A setting inferred from FUA alone is dropped once
//! completions show that FUA is honoured. If both kinds were counted together, the writes with FUA
//! would hide the cache of a drive that honours FUA.
//!
//! While the drive orders commands itself, few completions can be compared with a prediction: a
//! cache wrongly assumed to be on is detected once few commands wait. (Ordering some commands
//! outside from time to time, only to test, raised the p99 of a drive whose cache is always full:
//! 103.6% of the bare drive's in 20 s of `oltp`.)
//!
//! [`Stats::write_cache`]: crate::stats::Stats::write_cache

use headtime_disk::{Dur, Kind, Outcome};

use super::Core;
use crate::classify::CLOSE;
use crate::dispatch::Sent;
use crate::request::{Prediction, Surprise};

/// Number of latest writes considered.
const WINDOW: u32 = 32;
/// Number of early completions among them that shows a cache. A drive whose seeks are faster than
/// modelled completes a few writes early; if half of them are early, every prediction is worthless,
/// cache or not.
const EARLY: u32 = 16;
/// Number of completions at the predicted time that shows that there is none. Completions from a
/// full cache are at the predicted time by accident: 150 us either way of a revolution of 4 to 11
/// ms.
const AS_PREDICTED: u32 = 24;
/// Number of early completions, of the last 32 writes with FUA that were early or as predicted,
/// that shows that FUA is ignored. Other completions show nothing: they come from a full cache as
/// well as from a late host. In simulations of an Atlas 10K with 1 to 32 random writes outstanding
/// a full cache that ignores FUA is detected after 200 to 750 writes, and a drive that honours FUA
/// is not misjudged in 10,000 writes while the host is late by up to 9 ms in one of five events.
const EARLY_FUA: u32 = 24;

/// Number of ends of writes kept: that number of interleaved streams is recognised.
const STREAMS: usize = 16;

/// Completions of the latest writes with a seek, the last one in the lowest bit.
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

/// State of the detection.
#[derive(Clone, Copy, Debug)]
pub(super) struct WritePolicy {
    plain: Answers,
    fua: Answers,
    ignores_fua: bool,
    /// Only early completions of writes with FUA indicate that the cache is on.
    by_fua: bool,
    /// The last command ended later than predicted, or its completion was received late.
    late: bool,
    /// Ends of the latest writes.
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
    /// Returns whether a write continues one of the latest. A stream of cached writes completes at
    /// the media rate, as without a cache.
    fn continues(&mut self, lbn: u64, count: u32) -> bool {
        let continues = self.ends.contains(&lbn);
        self.ends[self.written % STREAMS] = lbn + u64::from(count);
        self.written += 1;
        continues
    }

    /// Adds a write; returns the setting shown by the latest ones if it differs from the assumed
    /// one.
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
            // Now other writes show that the cache is on, too.
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

    /// Returns whether the drive's cache, which is on, takes writes with FUA as well.
    #[inline]
    pub(super) fn ignores_fua(&self) -> bool {
        self.ignores_fua
    }
}

impl Core {
    /// Evaluates a completion.
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
        // A completion received late makes the next one appear early.
        if sent.command.fua && behind_late && p.surprise == Surprise::CacheHit {
            return;
        }
        if self.fill.as_ref().is_some_and(|fill| !fill.stops) {
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

    /// Returns the setting after the completions, and the number of completions until its last
    /// change.
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

    /// The same for writes with FUA only.
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
        // Neither do they if the cache is known to be on.
        let mut policy = WritePolicy::default();
        let every_second = [Surprise::CacheHit, Surprise::None].into_iter().cycle();
        assert_eq!(believes_of_fua(&mut policy, true, every_second.take(1_000)), (true, 0));
        assert!(!policy.ignores_fua());
    }

    #[test]
    fn a_full_cache_that_ignores_fua_is_found() {
        // Completions of the Atlas 10K: few at the predicted time, some early, the rest neither.
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
