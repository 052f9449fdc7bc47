//! Timed reads that come from the media.
//!
//! Cache hits say nothing about the platter. They are recognised because they are much faster than
//! any media access; and a cache of a given number of segments evicts a read after that number of
//! others. The sampler measures both figures first ([`Sampler::find_cache`]), and repeats each hit
//! after enough other reads.

use headtime_disk::{Dur, Outcome, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{Answer, Ask, Device, DeviceError};
use crate::error::ProbeError;
use crate::watch::{Finding, Watch};

/// Unexpected events that are not in the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surprises {
    /// Commands sent.
    pub commands: u64,
    /// Cache hits of reads meant for the media.
    pub from_cache: u64,
    /// Unreadable sectors, the first hundred.
    pub unreadable: Vec<u64>,
    /// Number of unreadable sectors.
    pub unreadable_count: u64,
    /// Answers that took longer than a second: recalibrations, or use of the drive by other
    /// programs.
    pub slow: u64,
}

/// Upper bound of positioning times.
const MAX_POSITIONING: Dur = Dur::from_ms(1_000);
/// Upper bound of a cache's segments.
const MOST_SEGMENTS: u32 = 4_096;
/// Number of unreadable sectors that ends the probe.
const MOST_UNREADABLE: u64 = 1_000;

/// Sectors this far apart are on different tracks, and one is not read ahead after the other.
const TRACK: u64 = 8_192;

/// Hits that decide whether there is a cache; and hits for the usual time of one, to a fifth of
/// their scatter.
const FIRST_HITS: usize = 9;
const HITS: usize = 33;

/// A sector expected to be a hit.
#[derive(Clone, Copy, Debug)]
struct Cached {
    /// Distance after the sector that was read.
    behind: u64,
    /// With a read elsewhere in between: some drives do not recognise a sector in transfer.
    later: bool,
}

/// In the order of the tests.
const CACHED: [Cached; 3] =
    [Cached { behind: 0, later: false }, Cached { behind: 1, later: false }, Cached { behind: 1, later: true }];

/// Times reads.
pub struct Sampler<'a> {
    device: &'a mut dyn Device,
    watch: &'a mut dyn Watch,
    rng: Xoshiro256PlusPlus,
    /// Upper bound of a hit's time; zero: there is no cache.
    quick: Dur,
    /// Number of other reads after which one is evicted.
    forgets: u32,
    /// The kind of sector that hits.
    cached: Option<Cached>,
    until: Option<Time>,
    minutes: u64,
    /// Time of the last answer.
    latest: Time,
    stage: &'static str,
    share: f64,
    surprises: Surprises,
    /// The last request.
    last: Option<u64>,
}

impl<'a> Sampler<'a> {
    /// Creates a sampler. Random requests follow from `seed`.
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

    /// Sets a time limit, counted from the first command that goes to the drive itself.
    pub fn limit(&mut self, minutes: u64) {
        (self.minutes, self.until) = (minutes, None);
    }

    /// Capacity in sectors.
    pub fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    /// Sector size in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    /// The drive's queue depth.
    pub fn depth(&self) -> u32 {
        self.device.depth()
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.device.now()
    }

    /// Time from which answers are this run's ([`Device::resumed_at`]).
    pub fn resumed_at(&self) -> Option<Time> {
        self.device.resumed_at()
    }

    /// Unexpected events so far.
    pub fn surprises(&self) -> &Surprises {
        &self.surprises
    }

    /// Number of other reads after which one is evicted; 0: no hit ever occurred.
    pub fn forgets(&self) -> u32 {
        self.forgets
    }

    /// Answers within this time are hits.
    pub fn quick(&self) -> Dur {
        self.quick
    }

    /// Begins a stage.
    pub fn stage(&mut self, name: &'static str) {
        (self.stage, self.share) = (name, 0.0);
    }

    /// Sets the completed share of the stage.
    pub fn share(&mut self, share: f64) {
        self.share = share.clamp(0.0, 1.0);
    }

    /// Reports a finding to the watcher.
    pub fn found(&mut self, finding: &Finding) {
        self.watch.found(finding);
    }

    /// Returns a uniform random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Runs any commands.
    ///
    /// # Errors
    /// The device failed, the time limit expired, or the watcher requested the stop.
    pub fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, ProbeError> {
        if !self.watch.progress(self.stage, self.share) {
            return Err(ProbeError::Stopped);
        }
        // By the answers' times, without an additional clock reading.
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
                Outcome::Ok => {
                    self.surprises.slow += u64::from(answer.done.saturating_since(answer.sent) > MAX_POSITIONING)
                }
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

    /// Reads once, from the cache or the media; `None` if unreadable.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn read(&mut self, lbn: u64, count: u32) -> Result<Option<Answer>, ProbeError> {
        let answer = self.run(&[Ask::read(lbn, count)], 1)?[0];
        Ok((answer.outcome == Outcome::Ok).then_some(answer))
    }

    /// Returns whether an answer was too fast for the media.
    pub fn is_quick(&self, answer: &Answer) -> bool {
        answer.done.saturating_since(answer.sent) <= self.quick
    }

    /// Reads once from the media; `None` if unreadable.
    ///
    /// # Errors
    /// As [`Sampler::run`]; or the cache never evicts the sector.
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

    /// Reads once from the media, with no read of the same track directly before: after two in a
    /// row some drives read the track to its end first (Lumb 2002 section 4.3), and the second
    /// answer would show that end.
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

    /// Reads elsewhere until the cache has evicted everything.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn forget_all(&mut self) -> Result<(), ProbeError> {
        self.forget(self.forgets)
    }

    /// Reads the given number of random sectors.
    fn forget(&mut self, reads: u32) -> Result<(), ProbeError> {
        for _ in 0..reads {
            let lbn = self.below(self.sectors());
            self.read(lbn, 1)?;
        }
        Ok(())
    }

    /// Measures the time of a cache hit, and the number of reads that the cache holds.
    ///
    /// A sector is read twice in a row: without a cache the second read takes a revolution; with
    /// one, next to nothing. A cache that drops delivered sectors still has its read-ahead: then
    /// the next sector is used, if need be a little later. Then the sector is read again after 1,
    /// 2, 4 ... others.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn find_cache(&mut self) -> Result<(), ProbeError> {
        self.stage("cache");
        (self.quick, self.forgets, self.cached) = (Dur::ZERO, 0, None);
        for cached in CACHED {
            let median = self.soonest(cached, FIRST_HITS)?;
            // Shorter than any disk's revolution.
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

    /// Returns the usual duration of a hit of one sector; `None`: there is no cache, or no hits
    /// occur at present.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn usual_hit(&mut self) -> Result<Option<Dur>, ProbeError> {
        let Some(cached) = self.cached else { return Ok(None) };
        Ok(Some(self.soonest(cached, HITS)?).filter(|median| *median <= self.quick))
    }

    /// The median duration of the second of two reads.
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
