//! Timed reads that come from the media.
//!
//! A drive's cache answers what it has, and its answers say nothing of the platter. They come much
//! sooner than any media access can, which is how they are recognised; and a cache that holds so
//! many reads forgets one after so many others. The sampler finds both figures first
//! ([`Sampler::find_cache`]) and then asks again, behind as many others as it takes, for what came
//! too soon.

use headtime_disk::command::Outcome;
use headtime_disk::time::{Dur, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{Answer, Ask, Device, DeviceError};
use crate::findings::Finding;

/// Why a probe ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The device cannot go on.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Whoever watches asked for it.
    #[error("stopped")]
    Stopped,
    /// The time that it was given is over.
    #[error("the budget of {minutes} minutes is used up in: {stage}")]
    Budget {
        /// The budget.
        minutes: u64,
        /// What was being measured.
        stage: &'static str,
    },
    /// Something does not look like a disk that turns.
    #[error("{what}: expected {expected}, found {found}")]
    NoDisk {
        /// What was measured.
        what: &'static str,
        /// What a rotating disk would show.
        expected: String,
        /// What was seen.
        found: String,
    },
    /// Too much of it cannot be read.
    #[error("sectors {lbn} and {more} more could not be read: expected a drive that reads, found one that fails")]
    Unreadable {
        /// The first.
        lbn: u64,
        /// How many others.
        more: u64,
    },
}

/// Somebody who watches.
pub trait Watch {
    /// So much of a stage is done, as a share; `false`: stop.
    fn progress(&mut self, stage: &'static str, share: f64) -> bool;

    /// This was found just now, with how sure it is: whoever watches can keep it when the rest is
    /// never measured.
    fn found(&mut self, _finding: &Finding) {}
}

/// Nobody watches.
#[derive(Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _: &'static str, _: f64) -> bool {
        true
    }
}

/// What was met on the way and is not in the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surprises {
    /// Commands sent.
    pub commands: u64,
    /// Answers that came from the cache where the media was asked for.
    pub from_cache: u64,
    /// Sectors that could not be read, the first hundred.
    pub unreadable: Vec<u64>,
    /// How many there were.
    pub unreadable_count: u64,
    /// Answers that took longer than a second: recalibrations, or somebody else's use of the drive.
    pub slow: u64,
}

/// Answers that take longer than this are no positioning.
const SLOW: Dur = Dur::from_ms(1_000);
/// Caches hold at most so many reads.
const MOST_SEGMENTS: u32 = 4_096;
/// So many sectors that cannot be read, and the drive is not worth a profile.
const MOST_UNREADABLE: u64 = 1_000;

/// Sectors this far apart are on different tracks, and one is not read ahead behind the other.
const TRACK: u64 = 8_192;

/// Answers of the cache from which it follows whether there is one; and what one usually takes, to
/// a fifth of what they scatter by.
const FIRST_HITS: usize = 9;
const HITS: usize = 33;

/// A sector that the cache answers.
#[derive(Clone, Copy, Debug)]
struct Cached {
    /// So many behind the one that was read.
    behind: u64,
    /// With a read elsewhere in between: some drives do not know of a sector that is on its way.
    later: bool,
}

/// In the order in which they are tried.
const CACHED: [Cached; 3] =
    [Cached { behind: 0, later: false }, Cached { behind: 1, later: false }, Cached { behind: 1, later: true }];

/// Times reads.
pub struct Sampler<'a> {
    device: &'a mut dyn Device,
    watch: &'a mut dyn Watch,
    rng: Xoshiro256PlusPlus,
    /// An answer that takes no longer came from the cache; zero: there is none.
    quick: Dur,
    /// So many other reads, and one is forgotten.
    forgets: u32,
    /// What the cache answers.
    cached: Option<Cached>,
    until: Option<Time>,
    minutes: u64,
    /// When the last answer came.
    latest: Time,
    stage: &'static str,
    share: f64,
    surprises: Surprises,
    /// What was asked for last.
    last: Option<u64>,
}

impl<'a> Sampler<'a> {
    /// For a device that somebody watches. What is asked for at random follows from `seed`.
    pub fn new(device: &'a mut dyn Device, watch: &'a mut dyn Watch, seed: u64) -> Sampler<'a> {
        Sampler {
            device,
            watch,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            quick: Dur::ZERO,
            forgets: 0,
            cached: None,
            until: None,
            minutes: 0,
            latest: Time::ZERO,
            stage: "",
            share: 0.0,
            surprises: Surprises::default(),
            last: None,
        }
    }

    /// For so long at most, from the first command on that the drive itself is asked for.
    pub fn limit(&mut self, minutes: u64) {
        (self.minutes, self.until) = (minutes, None);
    }

    /// Sectors of the drive.
    pub fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    /// Commands that the drive takes at once.
    pub fn depth(&self) -> u32 {
        self.device.depth()
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.device.now()
    }

    /// From when on answers are this run's ([`Device::resumed_at`]).
    pub fn resumed_at(&self) -> Option<Time> {
        self.device.resumed_at()
    }

    /// What was met so far.
    pub fn surprises(&self) -> &Surprises {
        &self.surprises
    }

    /// How many other reads make the cache forget one; 0: nothing was ever answered by it.
    pub fn forgets(&self) -> u32 {
        self.forgets
    }

    /// An answer within this came from the cache.
    pub fn quick(&self) -> Dur {
        self.quick
    }

    /// A new stage begins.
    pub fn stage(&mut self, name: &'static str) {
        (self.stage, self.share) = (name, 0.0);
    }

    /// So much of the stage is done.
    pub fn share(&mut self, share: f64) {
        self.share = share.clamp(0.0, 1.0);
    }

    /// Tells who watches what was found, and how sure it is.
    pub fn found(&mut self, finding: &Finding) {
        self.watch.found(finding);
    }

    /// Sectors at random, each as likely.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Any commands.
    ///
    /// # Errors
    /// The device is gone, the time is over, or who watches has had enough.
    pub fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, ProbeError> {
        if !self.watch.progress(self.stage, self.share) {
            return Err(ProbeError::Stopped);
        }
        // By the answers' times: nobody looks at the clock for it.
        if self.until.is_some_and(|t| self.latest >= t) {
            return Err(ProbeError::Budget { minutes: self.minutes, stage: self.stage });
        }
        let is_past = self.device.is_past();
        let answers = self.device.run(asks, outstanding)?;
        if let (Some(first), false, None) = (answers.first(), self.minutes == 0 || is_past, self.until) {
            self.until = Some(first.sent + Dur::from_secs(60 * self.minutes));
        }
        self.latest = answers.iter().map(|a| a.done).max().unwrap_or(self.latest);
        assert!(answers.len() == asks.len(), "{} answers to {} commands", answers.len(), asks.len());
        self.surprises.commands += asks.len() as u64;
        self.last = asks.last().map(|a| a.lbn);
        for (ask, answer) in asks.iter().zip(&answers) {
            match answer.outcome {
                Outcome::Ok => self.surprises.slow += u64::from(answer.done.saturating_since(answer.sent) > SLOW),
                Outcome::MediaError { lbn } => self.cannot_read(lbn)?,
                Outcome::Dead => return Err(DeviceError(format!("the drive is dead at sector {}", ask.lbn)).into()),
            }
        }
        Ok(answers)
    }

    fn cannot_read(&mut self, lbn: u64) -> Result<(), ProbeError> {
        let s = &mut self.surprises;
        s.unreadable_count += 1;
        if s.unreadable.len() < 100 {
            s.unreadable.push(lbn);
        }
        match s.unreadable_count > MOST_UNREADABLE {
            true => Err(ProbeError::Unreadable { lbn: s.unreadable[0], more: s.unreadable_count - 1 }),
            false => Ok(()),
        }
    }

    /// One read, from wherever it comes; `None` when it cannot be read.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn read(&mut self, lbn: u64, count: u32) -> Result<Option<Answer>, ProbeError> {
        let answer = self.run(&[Ask::read(lbn, count)], 1)?[0];
        Ok((answer.outcome == Outcome::Ok).then_some(answer))
    }

    /// Whether an answer came too soon to have come from the media.
    pub fn is_quick(&self, answer: &Answer) -> bool {
        answer.done.saturating_since(answer.sent) <= self.quick
    }

    /// One read from the media; `None` when it cannot be read.
    ///
    /// # Errors
    /// As [`Sampler::run`]; or the cache never forgets.
    pub fn media(&mut self, lbn: u64, count: u32) -> Result<Option<Answer>, ProbeError> {
        for again in 0..4 {
            let Some(answer) = self.read(lbn, count)? else { return Ok(None) };
            if !self.is_quick(&answer) {
                return Ok(Some(answer));
            }
            self.surprises.from_cache += 1;
            self.forget(self.forgets << again)?;
        }
        Err(ProbeError::NoDisk {
            what: "a sector read behind many others",
            expected: "an answer from the media".into(),
            found: "one from a cache each time".into(),
        })
    }

    /// One read from the media that no read of the same track came before: two in a row make some
    /// drives read the track to its end before they do anything else (Lumb 2002 section 4.3), and
    /// the second answer tells where that is.
    ///
    /// # Errors
    /// As [`Sampler::media`].
    pub fn apart(&mut self, lbn: u64, count: u32) -> Result<Option<Answer>, ProbeError> {
        if self.last.is_some_and(|last| last.abs_diff(lbn) < TRACK) {
            // Near enough for a short seek, and far enough for another track.
            let all = self.sectors();
            let near = (all / 128).max(1);
            let from = (lbn + all / 64 + self.below(near)) % all;
            self.read(from, 1)?;
        }
        self.media(lbn, count)
    }

    /// Reads elsewhere until the cache has forgotten what it held.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn forget_all(&mut self) -> Result<(), ProbeError> {
        self.forget(self.forgets)
    }

    /// Reads so many sectors somewhere.
    fn forget(&mut self, reads: u32) -> Result<(), ProbeError> {
        for _ in 0..reads {
            let lbn = self.below(self.sectors());
            self.read(lbn, 1)?;
        }
        Ok(())
    }

    /// Finds out how soon the cache answers, and how many reads it holds.
    ///
    /// A sector is read twice in a row: without a cache, the second answer takes a turn; with one,
    /// next to nothing. A cache that does not keep what it has delivered still has what it read
    /// ahead: there it is the sector behind, if need be a little later. Then it is read again
    /// behind 1, 2, 4 ... others.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn find_cache(&mut self) -> Result<(), ProbeError> {
        self.stage("cache");
        (self.quick, self.forgets, self.cached) = (Dur::ZERO, 0, None);
        for cached in CACHED {
            let median = self.soonest(cached, FIRST_HITS)?;
            // No disk turns in so little.
            if median < Dur::from_ms(2) {
                self.cached = Some(cached);
                self.quick = Dur(median.0 + median.0 / 2) + Dur::from_us(20);
                break;
            }
        }
        let Some(Cached { behind, .. }) = self.cached else { return Ok(()) };
        self.forgets = 1;
        while self.forgets < MOST_SEGMENTS {
            let mut held = 0;
            for _ in 0..3 {
                let lbn = self.below(self.sectors() - 1);
                self.read(lbn, 1)?;
                self.forget(self.forgets)?;
                held += u32::from(self.read(lbn + behind, 1)?.is_some_and(|a| self.is_quick(&a)));
            }
            if held == 0 {
                return Ok(());
            }
            self.forgets *= 2;
        }
        Err(ProbeError::NoDisk {
            what: "a sector read again behind thousands of others",
            expected: "an answer from the media".into(),
            found: format!("one within {} us: no rotating disk, or one behind a large cache", self.quick.0 / 1000),
        })
    }

    /// How long an answer of the cache to a read of one sector usually takes; `None`: there is no
    /// cache, or it answers none just now.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn usual_hit(&mut self) -> Result<Option<Dur>, ProbeError> {
        let Some(cached) = self.cached else { return Ok(None) };
        Ok(Some(self.soonest(cached, HITS)?).filter(|median| *median <= self.quick))
    }

    /// How long the second of two reads takes: the median of some.
    fn soonest(&mut self, cached: Cached, pairs: usize) -> Result<Dur, ProbeError> {
        let mut times = Vec::new();
        for _ in 0..pairs {
            let lbn = self.below(self.sectors() - 1);
            let first = self.read(lbn, 1)?;
            if cached.later {
                self.forget(1)?;
            }
            let second = self.read(lbn + cached.behind, 1)?;
            if let (Some(_), Some(second)) = (first, second) {
                times.push(second.done.saturating_since(second.sent));
            }
        }
        times.sort_unstable();
        match times.get(times.len() / 2) {
            Some(&median) => Ok(median),
            None => Err(ProbeError::Unreadable { lbn: self.surprises.unreadable[0], more: 8 }),
        }
    }
}
