//! How far a profile that was found is from the truth, beside what [`headtime_disk::compare`] asks for.
//!
//! Tracks are compared in the order of their sectors, whatever surface they are on. A seek over so many cylinders of the probe is held against what the true
//! arm takes between the two tracks that the probe has so far apart: where zones end in cylinders without data, which nobody
//! sees, the probe has some fewer than the drive.

use std::collections::BTreeMap;

use headtime_disk::command::Kind;
use headtime_disk::geometry::{Geometry, Track};
use headtime_disk::profile::Profile;

use crate::characterised::Found;

/// Tracks of both, in the order of their sectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tracks {
    /// Tracks of the true drive that hold data.
    pub tracks: u64,
    /// Tracks that begin where none of the other's does, of both.
    pub elsewhere: u64,
    /// Of those that begin alike, the ones with another number of sectors, spares and slips included.
    pub other_sectors: u64,
    /// Of these, the ones that were found as long as their data.
    pub as_long_as_data: u64,
    /// The largest difference of a skew within a zone, sectors: of each zone, surface and kind of step the median of its tracks, for a
    /// slipped sector shifts single ones (as `compare` does).
    pub skew: f64,
    /// What that is, and of how many steps.
    pub skew_of: (&'static str, usize),
    /// The same from one zone to the next, for which there is no rule.
    pub zone_skew: f64,
    /// Steps from a track to the next within a zone, and those that are off by more than half a sector.
    pub steps: (u64, u64),
}

/// How a track follows the one before: within a cylinder, to the next cylinder of a surface, both, or from zone to zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Head,
    Arm,
    Both,
    Zone,
}

/// Walks through both.
pub(crate) fn tracks(truth: &Profile, found: &Found) -> Tracks {
    let (ga, gb) = (&found.models.truth.geometry, &found.models.found.geometry);
    let zone = |t: &Track| {
        let here = |z: &headtime_disk::profile::ZoneSpec| {
            (z.first_cylinder..=z.last_cylinder).contains(&t.cylinder) && z.surface.is_none_or(|s| s == t.surface)
        };
        truth.geometry.zones.iter().position(here)
    };
    let mut w = Tracks::default();
    let mut skews: BTreeMap<(Step, Option<usize>, u16), Vec<f64>> = BTreeMap::new();
    let (mut at_a, mut at_b) = (ga.track_of(0), gb.track_of(0));
    // The last track, where both have it.
    let mut before: Option<Track> = None;
    while let Some(lbn) = [&at_a, &at_b].into_iter().flatten().map(|t| t.first_lbn).min() {
        let a = at_a.filter(|t| t.first_lbn == lbn);
        let b = at_b.filter(|t| t.first_lbn == lbn);
        w.tracks += u64::from(a.is_some());
        match (&a, &b) {
            (Some(a), Some(b)) => {
                w.other_sectors += u64::from(a.spt != b.spt);
                w.as_long_as_data += u64::from(a.spt != b.spt && b.spt == a.lbns);
                if let Some(last) = before
                    && let Some(apart) = skew(ga, gb, last.first_lbn, a)
                {
                    let step = match (zone(&last) == zone(a), last.cylinder == a.cylinder, last.surface == a.surface) {
                        (false, _, _) => Step::Zone,
                        (true, true, _) => Step::Head,
                        (true, false, true) => Step::Arm,
                        (true, false, false) => Step::Both,
                    };
                    skews.entry((step, zone(a), a.surface)).or_default().push(apart);
                }
                before = Some(*a);
            }
            _ => {
                w.elsewhere += 1;
                before = None;
            }
        }
        let next = |g: &Geometry, t: Option<Track>| t.and_then(|t| g.track_of(t.first_lbn + u64::from(t.lbns)));
        at_a = if a.is_some() { next(ga, a) } else { at_a };
        at_b = if b.is_some() { next(gb, b) } else { at_b };
    }
    for ((step, _, _), mut all) in skews {
        if step == Step::Zone {
            w.zone_skew = all.iter().fold(w.zone_skew, |most, s| most.max(s.abs()));
            continue;
        }
        w.steps.0 += all.len() as u64;
        w.steps.1 += all.iter().filter(|s| s.abs() > 0.5).count() as u64;
        all.sort_unstable_by(f64::total_cmp);
        let median = all[all.len() / 2].abs();
        if median >= w.skew {
            let what = match step {
                Step::Head => "to another head",
                Step::Arm => "to the next cylinder",
                _ => "to another head and cylinder",
            };
            (w.skew, w.skew_of) = (median, (what, all.len()));
        }
    }
    w
}

/// By how many sectors the skew from one track to another differs, by the angle of their first sectors.
fn skew(ga: &Geometry, gb: &Geometry, from: u64, to: &Track) -> Option<f64> {
    if ga.is_remapped(from) || ga.is_remapped(to.first_lbn) {
        return None;
    }
    let of = |g: &Geometry| Some(g.locate(to.first_lbn)?.angle - g.locate(from)?.angle);
    let apart = (of(gb)? - of(ga)?).turns();
    Some((apart - apart.round()) * f64::from(to.spt))
}

/// Whether the track of a sector was found with its true beginning and length.
pub(crate) fn is_track_right(found: &Found, lbn: u64) -> bool {
    let of = |g: &Geometry| g.track_of(lbn).map(|t| (t.first_lbn, t.lbns));
    of(&found.models.truth.geometry) == of(&found.models.found.geometry)
}

/// Places at which a true seek is looked up for one distance.
const PLACES: u32 = 401;

/// One distance of the found table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeekApart {
    /// Cylinders as the probe counts them.
    pub distance: u32,
    /// What was found, us.
    pub found: f64,
    /// The true time, us: the median over places.
    pub truth: f64,
    /// The least and greatest of nine tenths of the places, us.
    pub middle: (f64, f64),
}

impl SeekApart {
    /// Found less true, us.
    pub(crate) fn off(&self) -> f64 {
        self.found - self.truth
    }
}

/// The found seek table, each distance beside the true time between tracks that are so far apart as the probe counts.
pub(crate) fn seeks(found: &Found) -> Vec<SeekApart> {
    let (truth, g) = (&found.models.truth, &found.models.found.geometry);
    let of = |cylinder: u32, surface: u16| {
        let track = g.track(cylinder, surface).filter(|t| t.lbns > 0)?;
        let at = truth.geometry.locate(track.first_lbn)?;
        Some((at.cylinder, at.surface))
    };
    let one = |&(distance, time): &(u32, headtime_disk::time::Dur)| {
        let room = g.cylinders().checked_sub(distance)?.checked_sub(1)?;
        let mut times: Vec<f64> = (0..PLACES)
            .filter_map(|i| {
                let cylinder = (u64::from(room) * u64::from(i) / u64::from(PLACES - 1)) as u32;
                let surface = (i % u32::from(g.surfaces())) as u16;
                let (from, to) = (of(cylinder, surface)?, of(cylinder + distance, surface)?);
                Some(truth.mechanics.reposition(from, to, Kind::Read).0 as f64 / 1e3)
            })
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        let n = times.len();
        let truth = *times.get(n / 2)?;
        let middle = (times[n / 20], times[n - 1 - n / 20]);
        Some(SeekApart { distance, found: time.0 as f64 / 1e3, truth, middle })
    };
    found.profile.mechanics.seek.iter().filter_map(one).collect()
}

/// What the probe's cylinders are, in words.
pub(crate) fn cylinders(truth: &Profile, found: &Found) -> String {
    let (g, f) = (&truth.geometry, &found.profile.geometry);
    if g.surfaces != f.surfaces {
        return "tracks in the order of their sectors".into();
    }
    match f.cylinders.abs_diff(g.cylinders) {
        0 => "cylinders".into(),
        // Cylinders that are not full are more than one to the probe.
        _ => "cylinders of the probe, of which there are some more or fewer than the drive's".into(),
    }
}
