//! Whether the drive's write cache is on, as its answers show.
//!
//! The profile, or the kernel, says whether the drive caches writes. That can be wrong: some bridges and controllers
//! hide the cache, some firmware ignores the setting, and it can be switched while the disk is in use. Scheduling for
//! the wrong policy is expensive. A drive that caches writes moves its head at times of its own, so gaps are filled at
//! the wrong place. A drive that is believed to cache, and does not, orders everything itself without need.
//!
//! A write that has to move the arm shows the policy. Through to the media it cannot be answered before the arm has
//! moved, and it is answered when predicted. A cached one is answered when its data is in the cache. Writes that move
//! no arm, and those that continue another, show nothing: a stream of cached writes is answered at the rate of the
//! media, too. With FUA the drive is to write to the media first whatever its cache is, so such a write shows
//! something only if it is answered early: that the cache is on, and that FUA is ignored (by a kernel, too, that
//! takes the cache to be off). Once most of the last [`WINDOW`] writes contradict what is believed, the core changes
//! its belief and reports it ([`Stats::write_cache`]). From then on FILL pauses while the cache may hold data
//! ([`super::handover`]).
//!
//! While the drive orders commands itself, few answers can be compared with a prediction: a cache that is wrongly
//! believed to be on is found once few commands wait. (Ordering some commands outside from time to time, only to see,
//! raised the p99 of a drive whose cache is always full: 103.6% of the bare drive's in 20 s of `oltp`.)
//!
//! [`Stats::write_cache`]: crate::stats::Stats::write_cache

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::Dur;

use super::Core;
use crate::dispatch::Sent;
use crate::request::{Prediction, Surprise};

/// The latest writes that are looked at.
const WINDOW: u32 = 32;
/// That many early answers among them show a cache. An arm that is faster than believed answers a few writes early;
/// with half of them early, every prediction is worthless, cache or not.
const EARLY: u32 = 16;
/// That many answers at the predicted time show that there is none. Answers from a full cache are at the predicted time
/// by accident: 150 us either way of a turn of 4 to 11 ms.
const AS_PREDICTED: u32 = 24;

/// Ends of writes that are remembered: that many streams are recognised when they take turns.
const STREAMS: usize = 16;

/// How writes were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct WritePolicy {
    /// The latest writes that had to move the arm, the last one in the lowest bit.
    early: u32,
    as_predicted: u32,
    /// Those of the early ones that had FUA.
    early_fua: u32,
    ignores_fua: bool,
    /// Where the latest writes ended.
    ends: [u64; STREAMS],
    written: usize,
}

impl Default for WritePolicy {
    fn default() -> WritePolicy {
        WritePolicy {
            early: 0,
            as_predicted: 0,
            early_fua: 0,
            ignores_fua: false,
            ends: [u64::MAX; STREAMS],
            written: 0,
        }
    }
}

impl WritePolicy {
    /// Whether a write goes on where one of the latest ended. A stream of cached writes is answered at the rate of the
    /// media, as one without a cache is.
    fn continues(&mut self, lbn: u64, count: u32) -> bool {
        let continues = self.ends.contains(&lbn);
        self.ends[self.written % STREAMS] = lbn + u64::from(count);
        self.written += 1;
        continues
    }

    /// Adds a write; what the last ones show if that is not what is believed.
    fn add(&mut self, surprise: Surprise, fua: bool, believed: bool) -> Option<bool> {
        let early = surprise == Surprise::CacheHit;
        // A drive whose cache is on writes these to the media first, unless it ignores FUA: one that is answered when
        // predicted says nothing of the others.
        if fua && (believed || !early) {
            return None;
        }
        self.early = self.early << 1 | u32::from(early);
        self.early_fua = self.early_fua << 1 | u32::from(early && fua);
        self.as_predicted = self.as_predicted << 1 | u32::from(surprise == Surprise::None);
        const { assert!(WINDOW == u32::BITS, "a bit for each write") };
        let wrong = match believed {
            true => self.as_predicted.count_ones() >= AS_PREDICTED,
            false => self.early.count_ones() >= EARLY,
        };
        wrong.then(|| {
            self.ignores_fua = !believed && self.early_fua > 0;
            (self.early, self.as_predicted, self.early_fua) = (0, 0, 0);
            !believed
        })
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
        if sent.command.kind != Kind::Write || outcome != Outcome::Ok {
            return;
        }
        if self.write_policy.continues(sent.command.lbn, sent.command.count) {
            return;
        }
        let believed = self.model.cache.write_back;
        let Some(p) = prediction.filter(|p| p.seek > Dur::ZERO) else { return };
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

    #[test]
    fn with_fua_only_an_early_answer_shows_something() {
        let mut policy = WritePolicy::default();
        let heeded = (0..1_000).find_map(|_| policy.add(Surprise::None, true, false));
        assert_eq!((heeded, policy.ignores_fua()), (None, false));
        let ignored = (0..100).find_map(|_| policy.add(Surprise::CacheHit, true, false));
        assert_eq!((ignored, policy.ignores_fua()), (Some(true), true));
        assert_eq!((0..1_000).find_map(|_| policy.add(Surprise::None, true, true)), None, "its cache may be full");
        let off = (0..100).find_map(|_| policy.add(Surprise::None, false, true));
        assert_eq!((off, policy.ignores_fua()), (Some(false), false));
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
