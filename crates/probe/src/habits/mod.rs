//! A drive's autonomous behaviour: what its cache holds, how far it reads ahead, how it orders
//! commands.
//!
//! Each property is a yes-no question, tested about ten times at different places. On noisy drives
//! some of the answers are wrong, so each result comes with its count of "yes" among all answers
//! ([`Seen`]).
//!
//! A cache hit is recognised by its time, which is independent of the platter's position.

use headtime_disk::{Dur, Geometry, Kind, Outcome, Track};

mod cache;

pub use cache::CacheHabits;

use crate::device::{Answer, Ask};
use crate::error::ProbeError;
use crate::pairs::{Apart, Pairs, When};
use crate::sampler::Sampler;
use crate::seeks::Seeks;
use crate::spindle::Spindle;

/// How often something was seen, among the opportunities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of "yes" answers.
    pub yes: u32,
    /// Number of answers.
    pub of: u32,
}

impl Seen {
    pub(crate) fn observe(&mut self, yes: bool) {
        (self.yes, self.of) = (self.yes + u32::from(yes), self.of + 1);
    }

    /// Returns whether most answers were "yes".
    pub fn holds(&self) -> bool {
        2 * self.yes > self.of
    }

    /// Returns whether nine of ten answers agree and there are enough of them.
    pub fn is_sure(&self) -> bool {
        let same = self.yes.max(self.of - self.yes);
        self.of >= TRIES / 2 && 10 * same >= 9 * self.of
    }
}

/// The observed behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Habits {
    /// The cache; `None`: it never answered.
    pub cache: Option<CacheHabits>,
    /// After two reads on one track the drive reads the rest of the track before pending commands
    /// (Lumb et al. 2002, section 4.3). No answers at queue depth 1.
    pub same_track_delays: Seen,
    /// Sectors that passed under the head before a read's sector are in the cache afterwards.
    pub keep_passing: Seen,
    /// A read of a whole track begins with the first sector that arrives.
    pub read_on_arrival: Seen,
    /// Of two commands sent to an idle drive, the second completes first if it can be reached
    /// sooner.
    pub reorders_two: Seen,
    /// The same for two pending commands. No answers at a queue depth below three.
    pub reorders_waiting: Seen,
}

/// Answers per question.
const TRIES: u32 = 12;
/// Answers per step of a search: the odd number that reduces an error rate of 2 in a hundred to one
/// in a thousand.
const VOTES: u32 = 3;
/// Revolutions until read-ahead has finished: a track, one more, and the moves between.
const REST_TURNS: f64 = 4.0;

/// Observes the behaviour of a drive with known geometry and seeks.
///
/// # Errors
/// As [`Sampler::run`]; or the geometry is not this drive's.
pub fn measure(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    geometry: &Geometry,
    seeks: &Seeks,
) -> Result<Habits, ProbeError> {
    sampler.stage("habits");
    let pairs = Pairs::new(sampler, spindle, geometry)?;
    let mut q = Questions { sampler, spindle, pairs, seeks };
    let cache = q.cache()?;
    q.sampler.share(0.5);
    Ok(Habits {
        cache,
        same_track_delays: q.same_track_delays()?,
        keep_passing: if cache.is_some() { q.keep_passing()? } else { Seen::default() },
        read_on_arrival: q.read_on_arrival()?,
        reorders_two: q.reorders(false)?,
        reorders_waiting: q.reorders(true)?,
    })
}

/// A drive under questioning.
struct Questions<'q, 's, 'g> {
    sampler: &'q mut Sampler<'s>,
    spindle: &'q mut Spindle,
    pairs: Pairs<'g>,
    seeks: &'q Seeks,
}

impl Questions<'_, '_, '_> {
    /// Chooses a track that holds data in nearly each sector, with the next one in LBN order.
    fn track(&mut self) -> Option<(Track, Track)> {
        let g = self.pairs.geometry();
        (0..200).find_map(|_| {
            let t = g.track_of(self.sampler.below(g.capacity()))?;
            let next = g.track_of(t.first_lbn + u64::from(t.lbns))?;
            let is_full = |t: &Track| t.lbns >= 32 && 8 * t.lbns >= 7 * t.spt;
            (is_full(&t) && is_full(&next)).then_some((t, next))
        })
    }

    /// Reads one sector, at once or later, and returns whether it was a cache hit. `None`:
    /// unreadable.
    fn is_cached(&mut self, lbn: u64, later: Dur) -> Result<Option<bool>, ProbeError> {
        let ask = Ask { not_before: self.sampler.now() + later, ..Ask::read(lbn, 1) };
        let answer = self.sampler.run(&[ask], 1)?[0];
        let read = answer.outcome == Outcome::Ok;
        Ok(read.then(|| self.pairs.is_cached(self.spindle, lbn, &answer)))
    }

    /// A wait until read-ahead has finished, plus a random part of a revolution: after a constant
    /// wait the same sector would always pass at the same time, and if that equals a hit's time,
    /// hits and media reads would be indistinguishable.
    fn rest(&mut self) -> Dur {
        let turn = self.spindle.period_ns();
        Dur((REST_TURNS * turn) as u64 + self.sampler.below(turn as u64))
    }

    /// Asks a question several times and returns the majority.
    fn vote(&mut self, mut ask: impl FnMut(&mut Self) -> Result<Option<bool>, ProbeError>) -> Result<bool, ProbeError> {
        let mut seen = Seen::default();
        for _ in 0..4 * VOTES {
            self.spindle.keep(self.sampler)?;
            if let Some(yes) = ask(self)? {
                seen.observe(yes);
            }
            if seen.of == VOTES {
                break;
            }
        }
        Ok(seen.holds())
    }

    /// Bisects for the greatest number with the answer yes, between `low` (yes) and `high` (no).
    fn last_yes(
        &mut self,
        (mut low, mut high): (u64, u64),
        mut ask: impl FnMut(&mut Self, u64) -> Result<Option<bool>, ProbeError>,
    ) -> Result<u64, ProbeError> {
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.vote(|q| ask(q, middle))? { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Chooses a pair of tracks a given number of cylinders apart, with the seek time between them.
    fn pair(&mut self) -> Option<(Track, Track, f64)> {
        let point = self.seeks.points.iter().rfind(|p| p.distance <= NEAR_CYLINDERS)?;
        let how = Apart { cylinders: point.distance, other_surface: false };
        let (a, b) = self.pairs.tracks(self.sampler, how)?;
        let is_full = |t: &Track| t.lbns >= 32 && 8 * t.lbns >= 7 * t.spt;
        (is_full(&a) && is_full(&b)).then_some((a, b, point.time.0 as f64))
    }

    fn same_track_delays(&mut self) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        if self.sampler.depth() < 2 {
            return Ok(seen);
        }
        for _ in 0..4 * TRIES {
            self.spindle.keep(self.sampler)?;
            let Some((a, b, seek)) = self.pair() else { continue };
            // The second lies in front of the first, so it was not read ahead.
            let one = a.first_lbn + u64::from(a.lbns / 4);
            let two = a.first_lbn + u64::from(a.lbns / 16);
            let turn = self.spindle.period_ns();
            let Some(end) = self.pairs.completion_angle(two) else { continue };
            let Some(lbn) = self.pairs.sector_at(&b, end + seek / turn + CATCH_TURNS) else { continue };
            if self.sampler.read(one, 1)?.is_none() {
                continue;
            }
            let answers = self.sampler.run(&[Ask::read(two, 1), Ask::read(lbn, 1)], 2)?;
            let fine = answers.iter().all(|x| x.outcome == Outcome::Ok);
            if !fine || answers[0].done > answers[1].done || self.pairs.is_cached(self.spindle, two, &answers[0]) {
                continue;
            }
            let took = answers[1].done.since(answers[0].done).0 as f64;
            seen.observe(took > seek + (CATCH_TURNS + 0.5) * turn);
            if seen.of == TRIES {
                break;
            }
        }
        Ok(seen)
    }

    fn keep_passing(&mut self) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        for _ in 0..4 * TRIES {
            let Some((a, b, seek)) = self.pair() else { continue };
            // The head arrives at least a fifth of a revolution before the sector.
            let aim = seek + self.seeks.command.0 as f64 + 0.3 * self.spindle.period_ns();
            let Some(aimed) = self.pairs.behind(self.sampler, self.spindle, (&a, &b), When::AtOnce, aim)? else {
                continue;
            };
            let before = PASSED_SECTORS + u64::from(b.spt / 64);
            if !aimed.is_media || aimed.shot.turns != 0 || aimed.lbn < b.first_lbn + before {
                continue;
            }
            if let Some(hit) = self.is_cached(aimed.lbn - before, Dur::ZERO)? {
                seen.observe(hit);
            }
            if seen.of == TRIES {
                break;
            }
        }
        Ok(seen)
    }

    fn read_on_arrival(&mut self) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        for _ in 0..4 * TRIES {
            self.spindle.keep(self.sampler)?;
            let Some((a, b, seek)) = self.pair() else { continue };
            let Some(answer) = self.sampler.read(a.first_lbn, 1)? else { continue };
            if self.sampler.is_quick(&answer) {
                self.sampler.forget_all()?;
                continue;
            }
            // A quarter of the track has passed when the head arrives.
            let (turn, needs) = (self.spindle.period_ns(), seek + self.seeks.command.0 as f64);
            let Some(completion) = self.pairs.completion_angle(b.first_lbn) else { continue };
            let comes = completion - (needs / turn - 0.25);
            let wait = crate::spindle::fraction(comes - self.spindle.angle_at(self.sampler.now())) * turn;
            let not_before = self.sampler.now() + Dur(wait as u64);
            let answer = self.sampler.run(&[Ask { not_before, ..Ask::read(b.first_lbn, b.lbns) }], 1)?[0];
            if answer.outcome != Outcome::Ok {
                continue;
            }
            let took = answer.done.saturating_since(answer.sent).0 as f64;
            // Read on arrival: one revolution. Otherwise three quarters of one until the front
            // comes, and one.
            match (took - needs) / turn {
                x if (0.9..1.35).contains(&x) => seen.observe(true),
                x if (1.35..2.2).contains(&x) => seen.observe(false),
                _ => {}
            }
            if seen.of == TRIES {
                break;
            }
        }
        Ok(seen)
    }

    /// Tests whether a near command overtakes a far one sent before it, both to an idle drive or
    /// both pending behind a third.
    fn reorders(&mut self, behind_another: bool) -> Result<Seen, ProbeError> {
        let mut seen = Seen::default();
        let needs = if behind_another { 3 } else { 2 };
        if self.sampler.depth() < needs {
            return Ok(seen);
        }
        let far = self.pairs.geometry().cylinders() / 2;
        for _ in 0..4 * TRIES {
            self.spindle.keep(self.sampler)?;
            let Some((a, b)) = self.pairs.tracks(self.sampler, Apart { cylinders: far, other_surface: false }) else {
                break;
            };
            let (here, near, away) =
                (a.first_lbn, a.first_lbn + u64::from(a.lbns) - 2, b.first_lbn + u64::from(b.lbns / 2));
            let asks = [Ask::read(here, 1), Ask::read(away, 1), Ask::read(near, 1)];
            let answers: Vec<Answer> = if behind_another {
                // The first would complete before the others are decoded; another command keeps the
                // drive busy.
                let elsewhere = self.sampler.below(self.sampler.sectors());
                self.sampler.read(elsewhere, 1)?;
                self.sampler.run(&asks, 3)?
            } else {
                let first = self.sampler.run(&asks[..1], 1)?;
                let both = self.sampler.run(&asks[1..], 2)?;
                first.into_iter().chain(both).collect()
            };
            if answers.iter().any(|x| x.outcome != Outcome::Ok)
                || self.pairs.is_cached(self.spindle, near, &answers[2])
                || (behind_another && answers[0].done > answers[1].done.min(answers[2].done))
            {
                continue;
            }
            seen.observe(answers[2].done < answers[1].done);
            if seen.of == TRIES {
                break;
            }
        }
        Ok(seen)
    }
}

/// Longest seek of these tests, in cylinders, if the table has one.
const NEAR_CYLINDERS: u32 = 200;
/// In revolutions: ample time for a drive to catch a sector, whatever overhead lies between two
/// commands.
const CATCH_TURNS: f64 = 0.15;
/// Distance in front of the read sector, in sectors; a fraction of a long track.
const PASSED_SECTORS: u64 = 8;

/// Tests whether writes are acknowledged before they are on the media. They overwrite `region`
/// (first and end LBN).
///
/// # Errors
/// As [`Sampler::run`].
pub fn write_cache(sampler: &mut Sampler, region: (u64, u64)) -> Result<Seen, ProbeError> {
    sampler.stage("write cache");
    let mut seen = Seen::default();
    let end = region.1.min(sampler.sectors());
    let Some(room) = end.checked_sub(region.0).filter(|r| *r > 0) else { return Ok(seen) };
    for _ in 0..TRIES {
        // After an idle time, earlier writes are on the media.
        let lbn = region.0 + sampler.below(room);
        let not_before = sampler.now() + IDLE;
        let answer = sampler.run(&[Ask { kind: Kind::Write, not_before, ..Ask::read(lbn, 1) }], 1)?[0];
        if answer.outcome == Outcome::Ok {
            seen.observe(answer.done.saturating_since(answer.sent) < WRITE_THROUGH_MIN);
        }
    }
    Ok(seen)
}

/// Time after which any single write is on the media.
const IDLE: Dur = Dur::from_ms(50);
/// Few write-through completions come within this time by chance; most take half a revolution and a
/// seek.
const WRITE_THROUGH_MIN: Dur = Dur::from_ms(1);
