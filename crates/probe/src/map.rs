//! The map of all tracks of a drive, from a few thousand angles.
//!
//! Equal tracks follow each other with one skew; a *run* is a maximal sequence of them. Runs follow
//! each other in a repeating pattern: the surfaces of a cylinder and then the next cylinder, or a
//! group of tracks on each surface in turn, with that surface's number of sectors each. A pattern
//! seen twice is extrapolated: it predicts the angle of any sector of its millionth repetition, one
//! sample verifies that, and only on a mismatch bisection finds the change. So a drive of a million
//! tracks needs some thousand samples, not some million.

use crate::error::ProbeError;
use crate::patterns::pattern;
use crate::runs::{Run, turns};
use crate::spindle::{apart, fraction};
use crate::tracks::Tracer;

mod line;

use line::{Line, Places, along};

/// A repeated pattern of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The runs of the first repetition.
    pub runs: Vec<Run>,
    /// Number of repetitions.
    pub times: u64,
    /// Angle from the start of one repetition to the next, in revolutions from 0 to 1.
    pub advance: f64,
}

impl Span {
    pub(crate) fn once(run: Run) -> Span {
        Span { runs: vec![run], times: 1, advance: 0.0 }
    }

    /// The first sector.
    pub fn first(&self) -> u64 {
        self.runs[0].first
    }

    /// Sectors of one repetition.
    pub fn sectors(&self) -> u64 {
        self.runs.last().map_or(0, |r| r.end() - self.first())
    }

    /// One past its last sector.
    pub fn end(&self) -> u64 {
        self.first() + self.times * self.sectors()
    }
}

/// More single tracks that differ from the next, and more than there are others, form no rows.
const MOST_SINGLE: u64 = 2_000;
/// Fewest repetitions of a pattern that contains single tracks.
const MIN_REPETITIONS: u64 = 24;

/// Builds the map.
pub struct Mapper<'m, 's, 'a> {
    tracer: &'m mut Tracer<'s, 'a>,
    /// Runs that are not in a pattern yet.
    loose: Vec<Run>,
    spans: Vec<Span>,
}

impl<'m, 's, 'a> Mapper<'m, 's, 'a> {
    /// Creates a mapper.
    pub fn new(tracer: &'m mut Tracer<'s, 'a>) -> Mapper<'m, 's, 'a> {
        Mapper { tracer, loose: Vec::new(), spans: Vec::new() }
    }

    /// Maps the whole drive from sector 0 on.
    ///
    /// # Errors
    /// As [`crate::sampler::Sampler::run`]; or it does not look like a disk.
    pub fn map(mut self) -> Result<Vec<Span>, ProbeError> {
        self.tracer.sampler.stage("tracks and zones");
        let end = self.tracer.sectors();
        let mut at = 0;
        let (mut singles, mut tracks) = (0u64, 0u64);
        while at < end {
            self.tracer.sampler.share(at as f64 / end as f64);
            let run = self.run(at)?;
            at = run.end();
            (singles, tracks) = (singles + u64::from(run.tracks == 1), tracks + run.tracks);
            if singles > MOST_SINGLE && 2 * singles > tracks {
                return Err(ProbeError::NoDisk {
                    what: "tracks",
                    expected: "rows of neighbours with as many sectors".into(),
                    found: format!(
                        "{singles} of {tracks} unlike the next, up to sector {at}: to map each takes too long"
                    ),
                });
            }
            self.add(run);
            if let Some(n) = pattern(&self.loose, self.tracer.same()) {
                let (loose, spans) = (self.loose.clone(), self.spans.len());
                let before = loose.len() - 2 * n - 1;
                let is_short = loose[before..].iter().any(|r| r.tracks == 1);
                let next = self.repeat(n)?;
                // The runs in front of it have become spans of their own.
                let times = self.spans.get(spans + before).map_or(0, |s| s.times);
                if next >= at && (!is_short || times >= MIN_REPETITIONS) {
                    at = next;
                    continue;
                }
                // A defect on each of some cylinders is no pattern, nor is one that fails within
                // the repetitions that established it.
                self.spans.truncate(spans);
                self.loose = loose;
            }
        }
        self.spans.extend(self.loose.drain(..).map(Span::once));
        Ok(self.spans)
    }

    /// Adds a run, and joins it with its predecessor if it continues it. That may then join with
    /// the one before: a single track with a wrong angle split them.
    fn add(&mut self, run: Run) {
        let same = self.tracer.same();
        let mut run = run;
        while let Some(mut last) = self.loose.pop() {
            if !last.takes(&run, same, self.tracer.is_noisy()) {
                self.loose.push(last);
                break;
            }
            run = last;
        }
        self.loose.push(run);
    }

    /// Measures the run that begins at a track's first sector.
    fn run(&mut self, first: u64) -> Result<Run, ProbeError> {
        let end = self.tracer.sectors();
        let (angle, found) = self.track_at(first)?;
        let Some((sectors, gap)) = found else {
            // The rest of the drive is less than a track.
            let n = u32::try_from(end - first).unwrap_or(u32::MAX);
            return Ok(Run {
                first,
                tracks: 1,
                sectors: n,
                skew: 0.0,
                angle: fraction(angle - 1.0 / f64::from(n.max(1))),
                gap: 0.0,
            });
        };
        let n = u64::from(sectors);
        let angle = fraction(angle - 1.0 / f64::from(sectors));
        let gap = match gap {
            Some(gap) => gap,
            None => self.gap(angle, first + n - 1)?,
        };
        let run = Run { first, tracks: 1, sectors, skew: 0.0, angle, gap };
        let most = (end - first) / n;
        if most < 2 {
            return Ok(run);
        }
        let places = Places { first, step: n, track: sectors, gap, most };
        let second = fraction(self.tracer.steady(places.last_of(1))? + gap - run.angle);
        let mut line = Line { angle: run.angle, step: second };
        let mut good = self.follow(&mut line, places)?;
        // With slightly longer tracks the first lies on the line too, but continues behind its end.
        while good > 1 && good + 1 < most && self.continues(&line, good, &places)? {
            good -= 1;
        }
        // A track on the line by chance is not there a second time, and has distorted the line.
        while good > 1 && !self.begins(&line, good, &places)? && !self.begins(&line, good, &places)? {
            good -= 1;
            let off = self.tracer.off(places.last_of(good), line.at(good) - gap)?;
            if off.abs() <= 2.0 * self.tracer.same() {
                line.step = fraction(line.step + off / good as f64);
            }
        }
        // One track's step is the skew, or the way to something else; with longer tracks, the
        // expected first sector of the third is on the second.
        let alike = most == 2 || good > 1 && self.begins(&line, 2, &places)?;
        if !alike {
            return Ok(run);
        }
        self.refine(&mut line, good, &places)?;
        Ok(Run { tracks: good + 1, skew: line.step, angle: line.angle, ..run })
    }

    /// Measures the gap after the last sector of a track that begins at an angle.
    fn gap(&mut self, angle: f64, last: u64) -> Result<f64, ProbeError> {
        let little = self.tracer.same() / if self.tracer.is_noisy() { 1.0 } else { 2.0 };
        let gap = apart(self.tracer.steady(last)?, angle);
        if gap.abs() <= little {
            return Ok(0.0);
        }
        // A late answer is not late by as much again.
        let again = apart(self.tracer.steady(last)?, angle);
        Ok(if apart(gap, again).abs() <= little { fraction(gap) } else { 0.0 })
    }

    /// The angle at which the first sector of a track ends, and its number of sectors with the gap
    /// after them: those of an earlier track if they fit. `None`: there is no whole track.
    fn track_at(&mut self, first: u64) -> Result<(f64, Option<Ends>), ProbeError> {
        let end = self.tracer.sectors();
        let mut known: Vec<(u32, f64)> = self.loose.iter().rev().map(|r| (r.sectors, r.gap)).collect();
        known.extend(self.spans.last().iter().flat_map(|s| s.runs.iter().map(|r| (r.sectors, r.gap))));
        // A single track may be the one in which a zone ends.
        let whole = self.loose.iter().rev().find(|r| r.tracks > 1).map(|r| r.sectors);
        let hint = whole.or(known.first().map(|k| k.0)).map(|n| 1.0 / f64::from(n));
        // Usually the successor of the previous surface's track comes next.
        let mut tried: Vec<u32> = Vec::new();
        let begin = self.tracer.steady(first)?;
        let same = self.tracer.same();
        let expected = self.expected().and_then(|n| known.iter().find(|k| k.0 == n).copied());
        for (n, gap) in expected.into_iter().chain(known) {
            if tried.contains(&n) || tried.len() == 6 || first + u64::from(n) >= end {
                continue;
            }
            tried.push(n);
            // The track keeps its rate up to its end, and ends there. In descending order, so that
            // read-ahead gives no answer.
            let rate = 1.0 / f64::from(n);
            let behind = self.tracer.steady(first + u64::from(n))?;
            let last = self.tracer.steady(first + u64::from(n) - 1)?;
            let ends = apart(last + along(n, gap), behind).abs() > same;
            if ends && apart(fraction(begin - rate - gap), last).abs() <= same {
                return Ok((begin, Some((n, Some(gap)))));
            }
        }
        Ok((begin, self.tracer.track(first, true, hint)?.map(|t| (t.sectors, None))))
    }

    /// Sectors of the next tracks if the most recent pattern repeats.
    fn expected(&self) -> Option<u32> {
        let last = self.loose.last()?.sectors;
        let before = self.loose.iter().rev().skip(1).map(|r| r.sectors);
        let patterns =
            self.spans.last().iter().flat_map(|s| s.runs.iter().rev().map(|r| r.sectors)).collect::<Vec<_>>();
        let all: Vec<u32> = before.chain(patterns).collect();
        let at = all.iter().position(|&n| n == last)?;
        at.checked_sub(1).map(|i| all[i])
    }

    /// Extends the repeating last `n` loose runs as far as they repeat, and returns the start of
    /// what follows.
    fn repeat(&mut self, n: usize) -> Result<u64, ProbeError> {
        let end = self.tracer.sectors();
        let begin = self.loose.len() - 2 * n - 1;
        let runs: Vec<Run> = self.loose[begin..begin + n].to_vec();
        let again = self.loose[begin + n];
        self.spans.extend(self.loose.drain(..begin).map(Span::once));
        self.loose.clear();
        let mut span = Span { advance: fraction(again.angle - runs[0].angle), runs, times: 2 };
        let unit = span.sectors();
        let most = (end - span.first()) / unit;
        let Run { sectors: track, gap, .. } = span.runs[0];
        let places = Places { first: span.first(), step: unit, track, gap, most };
        let mut line = Line { angle: span.runs[0].angle, step: span.advance };
        let mut good = self.follow(&mut line, places)?;
        // The last repetition may be shorter: if the next row resembles it, the start is as
        // expected all the same.
        while good > 2 && !self.is_whole(&span, good - 1, line.step)? {
            good -= 1;
        }
        self.refine(&mut line, good, &places)?;
        let advance = line.step;
        // All of its runs were off by as much as the first.
        let off = apart(span.runs[0].angle, line.angle);
        span.runs.iter_mut().for_each(|r| r.angle = fraction(r.angle + off));
        // Repetition `good` begins as expected, but may not be complete.
        (span.advance, span.times) = (advance, good);
        let last = span.end();
        let shifted = turns(advance, good);
        let unit_first = span.first();
        let runs = span.runs.clone();
        self.spans.push(span);
        for run in &runs {
            let run = Run { first: run.first - unit_first + last, angle: fraction(run.angle + shifted), ..*run };
            let whole = self.as_far_as_it_goes(&run)?;
            if whole < run.tracks {
                if whole > 0 {
                    self.loose.push(Run { tracks: whole, ..run });
                }
                return Ok(run.first + whole * u64::from(run.sectors));
            }
            self.loose.push(run);
        }
        // It was complete after all: what follows is something else.
        let whole: Vec<Run> = self.loose.drain(..).collect();
        let span = self.spans.last_mut().expect("it was just put there");
        span.times += 1;
        Ok(whole.last().map_or(last, Run::end))
    }

    /// Returns whether all runs of a repetition are as long as in the first one.
    fn is_whole(&mut self, span: &Span, time: u64, advance: f64) -> Result<bool, ProbeError> {
        for run in &span.runs {
            let (first, angle) = (run.first + time * span.sectors(), fraction(run.angle + turns(advance, time)));
            if self.as_far_as_it_goes(&Run { first, angle, ..*run })? < run.tracks {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns how many tracks of a run are at their predicted angles.
    fn as_far_as_it_goes(&mut self, run: &Run) -> Result<u64, ProbeError> {
        let n = u64::from(run.sectors);
        let rate = 1.0 / f64::from(run.sectors);
        let mut one = |j: u64| -> Result<bool, ProbeError> {
            let lbn = run.first + j * n + n - 1;
            if lbn >= self.tracer.sectors() {
                return Ok(false);
            }
            let expected = fraction(run.begins(j) + rate * n as f64 - run.gap);
            Ok(self.tracer.off(lbn, expected)?.abs() <= self.tracer.same())
        };
        // After a change one track in a hundred is at its predicted angle by chance; two that are a
        // few apart hardly ever.
        let mut fits = |j: u64| -> Result<bool, ProbeError> { Ok(one(j)? && (j < 4 || one(j - 4)?)) };
        if fits(run.tracks - 1)? && fits(run.tracks / 2)? {
            return Ok(run.tracks);
        }
        if !fits(0)? {
            return Ok(0);
        }
        let (mut good, mut bad) = (0, run.tracks - 1);
        while bad - good > 1 {
            let j = good + (bad - good) / 2;
            if fits(j)? { good = j } else { bad = j }
        }
        Ok(good + 1)
    }
}

/// Sectors of a track, and the gap after them if known.
type Ends = (u32, Option<f64>);
