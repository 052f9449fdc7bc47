//! Findings as text, with their method and confidence.

use headtime_disk::profile::Prefetch;

use crate::habits::{Habits, Seen};
use crate::layout::Order;
use crate::map::Span;
use crate::overheads::ReadOverheads;
use crate::sampler::Sampler;
use crate::seeks::Seeks;
use crate::settling::Lost;
use crate::spindle::Spindle;
use crate::verify::Verdict;
use crate::watch::Finding;
use crate::writes::Writes;

/// Classes that a finding names if more are not as predicted.
const NAMED_CLASSES: usize = 8;

/// Collects findings and notifies the watcher.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub Vec<Finding>);

impl Findings {
    fn record(&mut self, sampler: &mut Sampler, what: &'static str, value: String, how: &str, sure: String) {
        let finding = Finding { what, value, how: how.into(), sure };
        sampler.found(&finding);
        self.0.push(finding);
    }

    pub(crate) fn tracks(&mut self, sampler: &mut Sampler, spans: &[Span], slipped: usize) {
        let tracks: u64 = spans.iter().map(|s| s.times * s.runs.iter().map(|r| r.tracks).sum::<u64>()).sum();
        let rows = || spans.iter().flat_map(|s| s.runs.iter().filter(|r| r.tracks > 1 || s.times > 1));
        let per_track = || rows().map(|r| r.sectors);
        let (most, fewest) = (per_track().max().unwrap_or(0), per_track().min().unwrap_or(0));
        let value = format!("{tracks} tracks of {most} to {fewest} sectors, {slipped} with bad ones");
        self.record(sampler, "tracks", value, "angles of sectors", "each boundary between two answers".into());
    }

    pub(crate) fn layout(&mut self, sampler: &mut Sampler, order: Option<Order>, sure: String) {
        let value = match order {
            None => "not known: tracks are in the order of their sectors".into(),
            Some(Order::Heads { surfaces, .. }) => format!("surfaces: {surfaces}; heads first"),
            Some(Order::Groups(g)) => format!("surfaces: {}; groups of {} tracks", g.surfaces, g.tracks),
        };
        self.record(sampler, "layout", value, "which tracks are reached sooner than by a head switch", sure);
    }

    pub(crate) fn seeks(&mut self, sampler: &mut Sampler, seeks: &Seeks) {
        if let [first, .., last] | [first @ last] = &seeks.points[..] {
            let point = |p: &crate::seeks::SeekPoint| format!("{:.3} ms over {}", p.time.as_ms_f64(), p.distance);
            let value = format!("{}, {} cylinders", point(first), point(last));
            let lost = format!("{} distances measured, {} not", seeks.points.len(), seeks.lost.len());
            self.record(sampler, "seeks", value, "which reads come a turn late", lost);
        }
        if let Some(h) = &seeks.head_switch {
            let (value, sure) = (format!("{:.3} ms", h.time.as_ms_f64()), format!("to {} us", h.error.0 / 1_000));
            self.record(sampler, "head switch", value, "as seeks", sure);
        }
    }

    pub(crate) fn overheads(&mut self, sampler: &mut Sampler, o: &ReadOverheads) {
        let (before, behind) = (o.read_miss.time.0 / 1_000, o.read_completion.time.0 / 1_000);
        let value = format!("{before} us before a read, {behind} us behind it");
        let sure = format!("to {} us", o.read_miss.error.0 / 1_000);
        self.record(sampler, "overheads", value, "reads on one track, and hits", sure);
    }

    pub(crate) fn habits(&mut self, sampler: &mut Sampler, habits: &Habits) {
        let value = match &habits.cache {
            None => "no cache".to_string(),
            Some(c) => {
                let ahead = match c.prefetch {
                    Prefetch::None => "nothing".into(),
                    Prefetch::TrackAhead => "a track".into(),
                    Prefetch::ToTrackEnd(n) => format!("{n} sectors, to the track's end at most"),
                    Prefetch::ToCylinderEnd(n) => format!("{n} sectors, to the cylinder's end at most"),
                    Prefetch::Sectors(n) => format!("{n} sectors"),
                };
                format!("segments: {}; reads ahead: {ahead}", c.segments)
            }
        };
        self.record(sampler, "cache", value, "which answers the platter does not explain", "by majority".into());
        let said = |seen: &Seen| format!("{} ({} of {})", if seen.holds() { "yes" } else { "no" }, seen.yes, seen.of);
        for (what, seen) in [
            ("reads a track to its end before it goes on", &habits.same_track_delays),
            ("reorders two commands", &habits.reorders_two),
            ("reorders commands that wait", &habits.reorders_waiting),
        ] {
            let sure = if seen.is_sure() { "sure" } else { "not sure" };
            self.record(sampler, what, said(seen), "which of two answers comes first", sure.into());
        }
    }

    pub(crate) fn rotation(&mut self, sampler: &mut Sampler, spindle: &Spindle) {
        let value = format!("{:.6} ms", spindle.mean_period_ns() / 1e6);
        let span = format!("over {:.0} s", spindle.span_s());
        self.record(sampler, "period", value, "times between reads of one sector", span);
        let value = format!("answers are {:.0} us off, the usual one", spindle.noise_ns() / 1e3);
        self.record(
            sampler,
            "noise",
            value,
            "the same reads, about the line through them",
            "the last two dozen".into(),
        );
    }

    pub(crate) fn writes(&mut self, sampler: &mut Sampler, writes: &Writes) {
        let value = match &writes.through {
            None => "answered before they are on the media: the write cache is on".to_string(),
            Some(w) => match w.settle_ns {
                Some(ns) => format!("settling {} us", ns / 1_000),
                None => "through to the media; settling does not show".into(),
            },
        };
        self.record(sampler, "writes", value, "which writes come a turn late", "by borders".into());
    }

    pub(crate) fn shingles(&mut self, sampler: &mut Sampler, moved: &Seen) {
        let where_to = match moved.holds() {
            true => "written sectors are put elsewhere: this profile says nothing of reads that follow writes",
            false => "none",
        };
        let value = format!("{where_to} ({} of {} moved)", moved.yes, moved.of);
        let sure = if moved.is_sure() { "sure" } else { "not sure" };
        self.record(sampler, "signs of shingled recording", value, "angles before and after a write", sure.into());
    }

    /// `None`: no search was made.
    pub(crate) fn settling(&mut self, sampler: &mut Sampler, lost: Option<&Lost>) {
        let how = "requests from edge to edge";
        let Some(lost) = lost else {
            let value = "not looked for (rare: --thorough, hours)".into();
            return self.record(sampler, "settling", value, how, "-".into());
        };
        let value = format!("{} of {} requests came up to {} turns late", lost.retries, lost.requests, lost.turns);
        self.record(sampler, "settling", value, how, lost.unseen());
        let value = match lost.recalibrations {
            Some((every, takes)) => format!("every {:.0} s, {:.0} ms", every.as_secs_f64(), takes.as_ms_f64()),
            None => "none".into(),
        };
        self.record(sampler, "recalibrations", value, how, "what comes regularly".into());
    }

    pub(crate) fn verdict(&mut self, sampler: &mut Sampler, v: &Verdict) {
        let (tight, loose) = (100.0 * v.within_50us, 100.0 * v.within_150us);
        let value = format!("{tight:.1}% of {} random reads within 50 us, {loose:.1}% within 150", v.reads);
        let sure = if v.good { "good".into() } else { format!("not good enough; look at: {}", v.look_at) };
        self.record(sampler, "verified", value, "reads predicted with this profile", sure);
        let asked: u32 = v.classes.iter().map(|c| c.asked).sum();
        let failed: Vec<String> = v.classes.iter().filter(|c| !c.good).map(|c| c.to_string()).collect();
        let value = format!("{} of {} classes as predicted", v.classes.len() - failed.len(), v.classes.len());
        let sure = match &failed[..] {
            [] if v.classes.is_empty() => "not compared: random reads are not as predicted".into(),
            [] => format!("{asked} moves and sectors"),
            some if some.len() <= NAMED_CLASSES => format!("not {}", some.join(", ")),
            some => {
                format!("not {}, and {} others", some[..NAMED_CLASSES].join(", "), some.len() - NAMED_CLASSES)
            }
        };
        self.record(sampler, "moves and angles", value, "reads aimed to be just caught or just missed", sure);
    }
}
