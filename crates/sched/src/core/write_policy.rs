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
//! media, too. Once most of the last [`WINDOW`] writes contradict what is believed, the core changes its belief and
//! reports it ([`Stats::write_cache`]). From then on FILL pauses while the cache may hold data ([`super::handover`]).
//!
//! While the drive orders commands itself, few answers can be compared with a prediction. There a cache shows in
//! another way: it answers some writes at once, unless it is always full. So when [`SLOW`] writes in a row took
//! longer, the core orders commands itself for the next [`TRIAL`] writes. If they are as predicted, the cache is off.
//! Otherwise the drive orders them again, and the next trial needs [`RARER`] times as many slow writes.
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

/// Writes in a row that a cache did not answer at once, before the first trial. With 256 a 20 TB drive whose cache is
/// always full served 1% fewer requests in its first 40 s.
const SLOW: u32 = 1_024;
/// Writes of a trial at most. It ends when too few are left to show that there is no cache.
const TRIAL: u32 = 48;
/// By how much the trials of a drive whose cache is always full become rarer.
const RARER: u32 = 16;

/// Ends of writes that are remembered: that many streams are recognised when they take turns.
const STREAMS: usize = 16;

/// How writes were answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct WritePolicy {
    /// The latest writes that had to move the arm, the last one in the lowest bit.
    early: u32,
    as_predicted: u32,
    /// Writes in a row that took longer than a cache with room takes.
    slow: u32,
    /// That many begin a trial.
    try_after: u32,
    /// Writes that are left of a trial.
    trial: u32,
    /// Where the latest writes ended.
    ends: [u64; STREAMS],
    written: usize,
}

impl Default for WritePolicy {
    fn default() -> WritePolicy {
        WritePolicy {
            early: 0,
            as_predicted: 0,
            slow: 0,
            try_after: SLOW,
            trial: 0,
            ends: [u64::MAX; STREAMS],
            written: 0,
        }
    }
}

impl WritePolicy {
    /// Whether the core orders commands although the drive's write cache may hold data.
    pub(super) fn is_on_trial(&self) -> bool {
        self.trial > 0
    }

    /// Whether a write goes on where one of the latest ended. A stream of cached writes is answered at the rate of the
    /// media, as one without a cache is.
    fn continues(&mut self, lbn: u64, count: u32) -> bool {
        let continues = self.ends.contains(&lbn);
        self.ends[self.written % STREAMS] = lbn + u64::from(count);
        self.written += 1;
        continues
    }

    /// Counts a write that was answered after `took`, on a drive that is believed to cache it.
    fn count(&mut self, took: Dur, turn: Dur) {
        let may_show = self.trial + self.as_predicted.count_ones() > AS_PREDICTED;
        self.trial = if may_show { self.trial.saturating_sub(1) } else { 0 };
        // No arm is that quick, except by chance.
        if took < Dur(turn.0 / 4) {
            (self.slow, self.trial) = (0, 0);
            return;
        }
        self.slow += 1;
        if self.slow >= self.try_after {
            (self.early, self.as_predicted, self.slow, self.trial) = (0, 0, 0, TRIAL);
            self.try_after = self.try_after.saturating_mul(RARER);
        }
    }

    /// Adds a write; what the last ones show if that is not what is believed.
    fn add(&mut self, surprise: Surprise, believed: bool) -> Option<bool> {
        self.early = self.early << 1 | u32::from(surprise == Surprise::CacheHit);
        self.as_predicted = self.as_predicted << 1 | u32::from(surprise == Surprise::None);
        const { assert!(WINDOW == u32::BITS, "a bit for each write") };
        let wrong = match believed {
            true => self.as_predicted.count_ones() >= AS_PREDICTED,
            false => self.early.count_ones() >= EARLY,
        };
        wrong.then(|| {
            // Trials stay as rare as they have become: a drive must not be taken for one and the other in turn.
            (self.early, self.as_predicted, self.slow, self.trial) = (0, 0, 0, 0);
            !believed
        })
    }
}

impl Core {
    /// A command was answered.
    pub(super) fn note_write_policy(&mut self, sent: &Sent, outcome: Outcome, prediction: Option<&Prediction>) {
        if sent.command.kind != Kind::Write || sent.command.fua || outcome != Outcome::Ok {
            return;
        }
        if self.write_policy.continues(sent.command.lbn, sent.command.count) {
            return;
        }
        let believed = self.model.cache.write_back;
        if believed && self.handover.orders() {
            self.write_policy.count(self.now.since(sent.at), self.model.mechanics.rotation.period());
        }
        let Some(p) = prediction.filter(|p| p.seek > Dur::ZERO) else { return };
        if let Some(on) = self.write_policy.add(p.surprise, believed) {
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
        answers.enumerate().fold((believed, 0), |(now, at), (i, surprise)| match policy.add(surprise, now) {
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
    fn a_drive_that_answers_no_write_at_once_is_tried_ever_more_rarely() {
        let mut policy = WritePolicy::default();
        let mut begun = vec![];
        for i in 0..100_000 {
            let before = policy.is_on_trial();
            policy.count(Dur::from_ms(20), Dur::from_ms(8));
            if !before && policy.is_on_trial() {
                begun.push(i);
            }
        }
        assert_eq!(begun, [1_023, 1_023 + 16 * 1_024]);
        let mut policy = WritePolicy::default();
        (0..100_000).for_each(|i| policy.count(Dur::from_ms(if i % 200 == 0 { 1 } else { 20 }), Dur::from_ms(8)));
        assert!(!policy.is_on_trial() && policy.try_after == SLOW);
    }

    #[test]
    fn a_full_cache_is_still_a_cache() {
        // By accident one in four is as predicted.
        let answers = [Surprise::Other, Surprise::None, Surprise::CacheHit, Surprise::Other].into_iter().cycle();
        assert_eq!(believes(true, answers.take(1_000)), (true, 0));
    }
}
