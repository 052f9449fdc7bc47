//! Track boundaries and sectors per track.
//!
//! Along a track each sector ends 1/n of a revolution after the one before. At its end the head
//! moves to the next track, and the angle jumps by the skew, about a tenth of a revolution: between
//! a sector that fits the track's rate and one that does not there is a boundary, which bisection
//! finds (Wong 2019; Lumb, Schindler and Ganger 2002, section 4.2).

use crate::error::ProbeError;
use crate::sampler::Sampler;
use crate::spindle::{Spindle, apart, fraction};

/// Tolerance of equal angles, ns. One answer is good to about 20 us, the line through the
/// reference's to less; skews are 6% of a revolution and more, 240 us at the least.
const SAME_ANGLE_NS: f64 = 45_000.0;
/// The same in standard deviations of an answer, for noisy answers.
const DEVIATIONS: f64 = 5.0;
/// Upper bound of the tolerance in revolutions: skews are larger.
const MAX_TOLERANCE_TURNS: f64 = 0.04;
/// Fewest sectors of a track: two samples this far apart are on one track or have one boundary
/// between them.
const MIN_TRACK_SECTORS: u64 = 32;
/// Most sectors of a track.
const MAX_TRACK_SECTORS: u64 = 16_384;
/// Most additional answers to one question.
const MAX_ADDITIONAL_ANSWERS: u64 = 6;
/// Most attempts at one step.
const TRIES: u32 = 24;

/// Measures angles of sectors.
pub struct Tracer<'s, 'a> {
    /// Reads from the drive.
    pub sampler: &'s mut Sampler<'a>,
    /// Tracks the platter's position.
    pub spindle: &'s mut Spindle,
}

/// A track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Track {
    /// First sector.
    pub first: u64,
    /// Number of sectors with an LBN.
    pub sectors: u32,
}

/// Error: a measurement fits no disk.
fn unclear(what: &'static str, lbn: u64, found: impl Into<String>) -> ProbeError {
    ProbeError::NoDisk {
        what,
        expected: format!(
            "tracks of {MIN_TRACK_SECTORS} to {MAX_TRACK_SECTORS} sectors with a skew between them, at sector {lbn}"
        ),
        found: found.into(),
    }
}

impl Tracer<'_, '_> {
    /// Returns the tolerance of equal angles, in revolutions.
    pub fn same(&self) -> f64 {
        let turn = self.spindle.period_ns();
        (SAME_ANGLE_NS.max(DEVIATIONS * self.spindle.noise_ns()) / turn)
            .min(MAX_TOLERANCE_TURNS.max(SAME_ANGLE_NS / turn))
    }

    /// Returns whether single answers may exceed the tolerance by noise.
    pub(crate) fn is_noisy(&self) -> bool {
        DEVIATIONS * self.spindle.noise_ns() > SAME_ANGLE_NS
    }

    /// Returns the deviation of a sector's end from an angle, in revolutions. With noisy answers, a
    /// large deviation is measured again.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn off(&mut self, lbn: u64, expected: f64) -> Result<f64, ProbeError> {
        let off = apart(expected, self.angle(lbn)?);
        if off.abs() <= self.same() || !self.is_noisy() {
            return Ok(off);
        }
        self.agreed(off, |tracer, _| Ok(apart(expected, tracer.angle(lbn)?)))
    }

    /// Returns the angle at which a sector ends, as a reference for others: with noisy answers, the
    /// median of some.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn steady(&mut self, lbn: u64) -> Result<f64, ProbeError> {
        let first = self.angle(lbn)?;
        if !self.is_noisy() {
            return Ok(first);
        }
        Ok(fraction(first + self.agreed(0.0, |tracer, _| Ok(apart(first, tracer.angle(lbn)?)))?))
    }

    /// The median of three answers, or of seven if those three disagree: with two late ones among
    /// three the median is late. `again` gets the number of the additional answer, from 1.
    fn agreed(
        &mut self,
        first: f64,
        mut again: impl FnMut(&mut Self, u64) -> Result<f64, ProbeError>,
    ) -> Result<f64, ProbeError> {
        let mut all = vec![first, again(self, 1)?, again(self, 2)?];
        all.sort_unstable_by(f64::total_cmp);
        if all[2] - all[0] > self.same() {
            for n in 3..=MAX_ADDITIONAL_ANSWERS {
                all.push(again(self, n)?);
            }
            all.sort_unstable_by(f64::total_cmp);
        }
        Ok(all[all.len() / 2])
    }

    /// Capacity in sectors.
    pub fn sectors(&self) -> u64 {
        self.sampler.sectors()
    }

    /// Returns the angle at which a sector ends, in revolutions from 0 to 1. An unreadable sector
    /// is replaced by the next readable one, some sectors further on the track.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn angle(&mut self, lbn: u64) -> Result<f64, ProbeError> {
        for next in 0..8 {
            let lbn = (lbn + next).min(self.sectors() - 1);
            if let Some(angle) = self.spindle.angle(self.sampler, lbn)? {
                return Ok(angle);
            }
        }
        Err(ProbeError::Unreadable { lbn, more: 7 })
    }

    /// The angle at which a sector ends among others that end `rate` revolutions apart: with noisy
    /// answers the median of some, of this sector and of those in front of it, which are not read
    /// ahead.
    fn among(&mut self, lbn: u64, rate: f64) -> Result<f64, ProbeError> {
        let first = self.angle(lbn)?;
        if !self.is_noisy() {
            return Ok(first);
        }
        let before = |tracer: &mut Self, n: u64| {
            let n = n.min(lbn);
            Ok(apart(first, tracer.angle(lbn - n)? + rate * n as f64))
        };
        Ok(fraction(first + self.agreed(0.0, before)?))
    }

    /// Finds the first track boundary after `from`, and revolutions per sector in front of it;
    /// `hint`: rough revolutions per sector, if known. `None` at the end of the drive.
    ///
    /// # Errors
    /// As [`Sampler::run`]; or nothing here looks like a track.
    pub fn next_boundary(&mut self, from: u64, hint: Option<f64>) -> Result<Option<(u64, f64)>, ProbeError> {
        let (mut from, mut hint) = (from, hint);
        let mut doubted = 0;
        for _ in 0..TRIES {
            match self.boundary_behind(from, hint)? {
                // Even a tenth of a track did not fit: the hint is wrong, or the boundary is near.
                Behind::Near(_) if hint.is_some() => hint = None,
                // One answer in some thousand is wrong, and each decides a bisection step. At a
                // zone's end the jump may be too small to be seen between two sectors.
                Behind::At(b, rate) if doubted == 2 || self.is_boundary(b, rate)? => return Ok(Some((b, rate))),
                Behind::At(..) => doubted += 1,
                Behind::Near(next) => from = next,
                Behind::End => return Ok(None),
            }
        }
        Err(unclear("boundaries of tracks", from, "angles that fit none"))
    }

    fn boundary_behind(&mut self, from: u64, hint: Option<f64>) -> Result<Behind, ProbeError> {
        let last = self.sectors() - 1;
        let begin = self.steady(from)?;
        // Range of the search, and the position up to which the track surely continues: some
        // samples for an answer are from sectors in front of it.
        let (mut reached, mut good, mut rate) = (0u64, 0u64, hint);
        let mut far = match hint {
            Some(rate) => ((0.1 / rate) as u64).max(MIN_TRACK_SECTORS / 4),
            None => MIN_TRACK_SECTORS / 4,
        };
        loop {
            if from + far > last {
                if from + reached == last {
                    return Ok(Behind::End);
                }
                far = last - from;
            }
            match rate {
                None => {
                    let turned = fraction(self.steady(from + far)? - begin);
                    // Eight sectors are no more than a quarter of a revolution. With a boundary
                    // among them, twice as many would not fit.
                    if turned > 0.3 || turned * (MAX_TRACK_SECTORS as f64) < far as f64 {
                        return Ok(Behind::Near(from + far));
                    }
                    (rate, reached, good) = (Some(turned / far as f64), far, far);
                }
                Some(r) => {
                    let expected = fraction(begin + r * far as f64);
                    let mut off = apart(expected, self.among(from + far, r)?);
                    if self.is_noisy() && off.abs() > self.same() {
                        off = apart(expected, self.among(from + far, r)?);
                    }
                    if off.abs() > self.same() {
                        break;
                    }
                    (reached, good) =
                        (far, if self.is_noisy() { far.saturating_sub(MAX_ADDITIONAL_ANSWERS) } else { far });
                    // Whole revolutions follow from the rate so far.
                    rate = Some((r * far as f64 + off) / far as f64);
                }
            }
            let r = rate.expect("it was just found");
            // A track is one revolution; anything further is on the next. If a zone ends in the
            // middle of a track, the next may begin at the very angle of the end, and both look
            // like one.
            let turn = (1.0 / r) as u64 + 2;
            if r * far as f64 > 2.1 {
                return Err(unclear("the angle of a sector two turns behind another", from, "the same track"));
            }
            // The error of a rate is that of two answers, and grows with the distance.
            let next = if self.is_noisy() { far + far / 2 + 1 } else { 2 * far };
            far = if far >= turn { far + turn / 32 + 1 } else { next.min(turn) };
        }
        let rate = rate.expect("two samples fit");
        if reached == 0 || (hint.is_none() && reached < MIN_TRACK_SECTORS / 2) {
            return Ok(Behind::Near(from + far));
        }
        let (mut low, mut high) = (good, far);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.off(from + middle, fraction(begin + rate * middle as f64))?.abs() <= self.same() {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(Behind::At(from + high, rate))
    }

    /// Finds the first whole track at or after `from`; `at_boundary`: `from` is a boundary. `None`:
    /// there is none before the end of the drive.
    ///
    /// # Errors
    /// As [`Tracer::next_boundary`].
    pub fn track(&mut self, from: u64, at_boundary: bool, hint: Option<f64>) -> Result<Option<Track>, ProbeError> {
        let (first, hint) = match at_boundary {
            true => (from, hint),
            false => match self.next_boundary(from, hint)? {
                Some((b, rate)) => (b, Some(rate)),
                None => return Ok(None),
            },
        };
        let Some((second, rate)) = self.next_boundary(first, hint)? else { return Ok(None) };
        let mut sectors = second - first;
        if rate * sectors as f64 > 1.03
            && let Some((third, _)) = self.next_boundary(second, None)?
        {
            // Two that look like one: the second is as long as the one after it.
            sectors = sectors.saturating_sub(third - second).max(1);
        }
        Ok(Some(Track { first, sectors: sectors.min(MAX_TRACK_SECTORS) as u32 }))
    }

    /// Returns whether a track ends in front of `lbn`, at `rate` revolutions per sector.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn is_boundary(&mut self, lbn: u64, rate: f64) -> Result<bool, ProbeError> {
        // In descending order, so that read-ahead gives no answer.
        let behind = self.steady(lbn)?;
        let before = self.steady(lbn - 1)?;
        Ok(apart(fraction(before + rate), behind).abs() > self.same())
    }
}

enum Behind {
    /// A boundary, and the rate in front of it.
    At(u64, f64),
    /// A boundary is too near for a rate: retry from here.
    Near(u64),
    /// The drive ends first.
    End,
}
