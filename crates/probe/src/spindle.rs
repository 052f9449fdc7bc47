//! The rotation period, and the angle of any instant.
//!
//! One sector is the reference: angles are in revolutions since its last passing, and each answer
//! to a read of it dates a passing. Between two such answers lie whole revolutions. The period is
//! the longest time of which all differences are multiples: its halves and thirds fit as well, and
//! twice it only if every number of revolutions happened to be even.
//!
//! Real spindles wander by parts in a million (Wong 2019), so that within seconds an angle is off
//! by microseconds. The reference is read again every few seconds, and a line through the last
//! answers gives the platter's current position.

use std::collections::VecDeque;

use headtime_disk::{Dur, Time};

use crate::error::ProbeError;
use crate::fit::fit;
use crate::sampler::Sampler;

/// Range of disk periods: 17,600 to 3,500 rpm.
const MIN_PERIOD_NS: f64 = 3.4e6;
const MAX_PERIOD_NS: f64 = 17.2e6;
/// Reads of the reference for the first period. All of them are an even number of revolutions apart
/// with a probability of 2^-15.
const FIRST_READS: usize = 16;
/// Attempts before the device counts as not rotating: one late answer per attempt is tolerated, two
/// are not, and a device may be slow at first.
const ATTEMPTS: usize = 4;
/// Tolerance, in revolutions.
const TOLERANCE: f64 = 0.04;
/// Interval between reads of the reference; the first intervals are shorter, each twice the one
/// before, because a period from a few seconds may be off by a revolution later.
const READ_INTERVAL: Dur = Dur::from_ms(4_000);
const FIRST_AFTER: Dur = Dur::from_ms(250);
/// Number of latest answers that are kept.
const KEPT_ANSWERS: usize = 24;
/// Most consecutive failed reads of the reference.
const MAX_FAILED_READS: u64 = 4;
/// Answers further from the line, in revolutions, are rejected.
const MAX_OFF_TURNS: f64 = 0.03;

/// The standard deviation of a normal distribution over its median distance from the middle.
pub(crate) const NORMAL: f64 = 1.48;

/// The rotation of a drive.
#[derive(Clone, Debug)]
pub struct Spindle {
    lbn: u64,
    /// Nanoseconds per revolution, and the instant of a passing, both by the line.
    period: f64,
    at: Time,
    offset: f64,
    /// Answers: time, and revolutions after the first.
    answers: VecDeque<(Time, f64)>,
    /// The line when it was first good: nanoseconds, and revolutions since the first answer.
    first: Option<(f64, f64)>,
    turns: f64,
    doubted: u32,
    /// Current interval between reads of the reference.
    often: Dur,
}

impl Spindle {
    /// Finds the period.
    ///
    /// # Errors
    /// As [`Sampler::run`]; or nothing rotates.
    pub fn find(sampler: &mut Sampler) -> Result<Spindle, ProbeError> {
        sampler.stage("rotation");
        let mut lbn = sampler.below(sampler.sectors());
        let mut found = None;
        for _ in 0..ATTEMPTS {
            let times = passings(sampler, &mut lbn)?;
            if let Some(period) = period_of(&times) {
                found = Some((period, times));
                break;
            }
        }
        let Some((period, times)) = found else {
            return Err(ProbeError::NoDisk {
                what: "the times between reads of one sector",
                expected: "multiples of one turn of 3.4 to 17.2 ms".into(),
                found: format!("none in {ATTEMPTS} times {FIRST_READS} reads"),
            });
        };
        let first = times[0];
        let mut spindle = Spindle {
            lbn,
            period,
            at: first,
            offset: 0.0,
            answers: VecDeque::with_capacity(KEPT_ANSWERS),
            first: None,
            turns: 0.0,
            doubted: 0,
            often: FIRST_AFTER,
        };
        for at in times {
            spindle.observe(at);
        }
        Ok(spindle)
    }

    /// The period.
    pub fn period(&self) -> Dur {
        Dur(self.period.round() as u64)
    }

    /// The period in nanoseconds, with its fractional part.
    pub fn period_ns(&self) -> f64 {
        self.period
    }

    /// The mean period over the whole measurement, in nanoseconds: from the first line to the last,
    /// because a single answer may be late.
    pub fn mean_period_ns(&self) -> f64 {
        match (self.first, self.line()) {
            (Some((then, before)), (now, turns)) if turns > before => (now - then) / (turns - before),
            _ => self.period,
        }
    }

    /// Seconds over which [`Spindle::mean_period_ns`] was measured.
    pub fn span_s(&self) -> f64 {
        self.first.map_or(0.0, |(then, _)| (self.line().0 - then) / 1e9)
    }

    /// The line's instant of the last answer's full revolution, and its number.
    fn line(&self) -> (f64, f64) {
        (self.at.0 as f64 + self.offset, self.turns_of_last())
    }

    /// Deviation of single answers from the line, ns: the standard deviation of a normal
    /// distribution with the same median.
    pub fn noise_ns(&self) -> f64 {
        let mut off: Vec<f64> = self
            .answers
            .iter()
            .map(|(t, k)| {
                let expected = self.offset + self.period * (k - self.turns_of_last());
                (t.0 as f64 - self.at.0 as f64 - expected).abs()
            })
            .collect();
        off.sort_unstable_by(f64::total_cmp);
        off.get(off.len() / 2).map_or(0.0, |m| NORMAL * m)
    }

    /// The reference sector of angles.
    pub fn reference(&self) -> u64 {
        self.lbn
    }

    /// The angle of an instant, in revolutions since the reference sector passed: from 0 to 1.
    pub fn angle_at(&self, t: Time) -> f64 {
        fraction(self.turns_at(t))
    }

    /// Revolutions since some passing of the reference; may be negative.
    fn turns_at(&self, t: Time) -> f64 {
        let ns = t.0 as f64 - self.at.0 as f64;
        (ns - self.offset) / self.period
    }

    /// Reads the reference again if that is due. Must be called between measurements.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn keep(&mut self, sampler: &mut Sampler) -> Result<(), ProbeError> {
        if sampler.resumed_at().is_some_and(|t| self.at < t) {
            return self.find_again(sampler);
        }
        let last = self.answers.back().map_or(Time::ZERO, |a| a.0);
        if sampler.now().saturating_since(last) < self.often {
            return Ok(());
        }
        self.often = Dur(2 * self.often.0).min(READ_INTERVAL);
        for _ in 0..MAX_FAILED_READS {
            if let Some(answer) = sampler.media(self.lbn, 1)? {
                self.observe(answer.done);
                return Ok(());
            }
        }
        Err(ProbeError::Unreadable { lbn: self.lbn, more: MAX_FAILED_READS - 1 })
    }

    /// After a pause: the period is unchanged, the platter's position unknown.
    fn find_again(&mut self, sampler: &mut Sampler) -> Result<(), ProbeError> {
        for _ in 0..MAX_FAILED_READS {
            if let Some(answer) = sampler.media(self.lbn, 1)? {
                self.answers.clear();
                (self.at, self.offset, self.turns) = (answer.done, 0.0, 0.0);
                (self.first, self.doubted, self.often) = (None, 0, FIRST_AFTER);
                self.observe(answer.done);
                return Ok(());
            }
        }
        Err(ProbeError::Unreadable { lbn: self.lbn, more: MAX_FAILED_READS - 1 })
    }

    /// Adds a passing of the reference, completed at `at`.
    fn observe(&mut self, at: Time) {
        let turns = self.turns_at(at);
        let whole = turns.round();
        if (turns - whole).abs() > MAX_OFF_TURNS && self.answers.len() >= 4 {
            self.doubted += 1;
            // Ten in a row: the line is wrong.
            if self.doubted < 10 {
                return;
            }
            // Restart the count of revolutions.
            (self.answers, self.first, self.often) = (VecDeque::with_capacity(KEPT_ANSWERS), None, FIRST_AFTER);
        }
        self.doubted = 0;
        self.turns = whole + self.turns_of_last();
        if self.answers.len() == KEPT_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((at, self.turns));
        self.fit();
        if self.answers.len() == FIRST_READS && self.first.is_none() {
            self.first = Some(self.line());
        }
    }

    /// Revolutions, counted from the first answer, at the anchor of the line.
    fn turns_of_last(&self) -> f64 {
        self.answers.back().map_or(0.0, |a| a.1)
    }

    /// Fits a line through the last answers by least squares, anchored at the last: t = at +
    /// offset + period n.
    fn fit(&mut self) {
        let (at, last) = *self.answers.back().expect("one was just told");
        let points: Vec<([f64; 3], f64)> =
            self.answers.iter().map(|(t, k)| ([1.0, k - last, 0.0], t.0 as f64 - at.0 as f64)).collect();
        let [offset, period, _] = fit(&points).values;
        // A single answer does not determine the period.
        self.period = if points.len() > 1 { period } else { self.period };
        (self.at, self.offset) = (at, offset);
    }

    /// The angle of a sector's end relative to the reference's, in revolutions from 0 to 1; `None`
    /// if unreadable.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn angle(&mut self, sampler: &mut Sampler, lbn: u64) -> Result<Option<f64>, ProbeError> {
        self.keep(sampler)?;
        let mut answer = sampler.apart(lbn, 1)?;
        if sampler.resumed_at().is_some_and(|t| self.at < t) {
            // A pause began during the read.
            self.find_again(sampler)?;
            answer = sampler.apart(lbn, 1)?;
        }
        Ok(answer.map(|answer| self.angle_at(answer.done)))
    }
}

/// Times at which a sector passed, [`FIRST_READS`] of them without a pause in between; `lbn` is
/// replaced if it is unreadable.
fn passings(sampler: &mut Sampler, lbn: &mut u64) -> Result<Vec<Time>, ProbeError> {
    let mut times: Vec<Time> = Vec::new();
    while times.len() < FIRST_READS {
        let answer = sampler.media(*lbn, 1)?;
        if sampler.resumed_at().is_some_and(|t| times.last().is_some_and(|last| *last < t)) {
            // The times before and after a pause are not whole revolutions apart.
            times.clear();
        }
        match answer {
            Some(answer) => times.push(answer.done),
            None => {
                times.clear();
                *lbn = sampler.below(sampler.sectors());
            }
        }
        for _ in 0..1 + sampler.forgets() {
            let elsewhere = sampler.below(sampler.sectors());
            sampler.read(elsewhere, 1)?;
        }
    }
    Ok(times)
}

/// The fractional part, from 0 to 1.
pub fn fraction(turns: f64) -> f64 {
    let f = turns - turns.floor();
    if f >= 1.0 { 0.0 } else { f }
}

/// The shortest way from one angle to another, in revolutions from -0.5 to 0.5.
pub fn apart(from: f64, to: f64) -> f64 {
    let d = to - from;
    d - d.round()
}

/// The longest period of which all differences are multiples.
fn period_of(times: &[Time]) -> Option<f64> {
    let since: Vec<f64> = times.iter().map(|t| t.saturating_since(times[0]).0 as f64).collect();
    let span = *since.last()?;
    // Deviation of the answers from multiples of a period, in revolutions, without the worst.
    let off = |period: f64| {
        let mut all: Vec<f64> = since.iter().map(|s| apart(0.0, s / period).abs()).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() - 2]
    };
    let mut period = MAX_PERIOD_NS;
    while period > MIN_PERIOD_NS {
        if off(period) < TOLERANCE {
            return Some(refined(&since, period));
        }
        // Over the whole span that is half the tolerance of a revolution.
        period -= period * period * TOLERANCE / (2.0 * span);
    }
    None
}

/// Fits the period through the origin, from one that gives every number of revolutions.
fn refined(since: &[f64], mut period: f64) -> f64 {
    for _ in 0..4 {
        let (mut xy, mut xx) = (0.0, 0.0);
        for s in since {
            let n = (s / period).round();
            if apart(0.0, s / period).abs() < 2.0 * TOLERANCE {
                (xy, xx) = (xy + n * s, xx + n * n);
            }
        }
        if xx > 0.0 {
            period = xy / xx;
        }
    }
    period
}
