//! Errors of a characterised profile beyond those of [`headtime_disk::compare`].
//!
//! A seek over a number of the probe's cylinders is compared with the true time between the two
//! tracks that are so far apart for the probe: zones may end in invisible cylinders without data,
//! so the probe has fewer cylinders than the drive.

use headtime_disk::profile::Profile;
use headtime_disk::{Geometry, Kind};

use crate::common::characterised_drive::Found;

/// Returns whether the track of a sector was found with its true start and length.
pub(crate) fn is_track_right(found: &Found, lbn: u64) -> bool {
    let of = |g: &Geometry| g.track_of(lbn).map(|t| (t.first_lbn, t.lbns));
    of(&found.models.truth.geometry) == of(&found.models.found.geometry)
}

/// Places at which a true seek is looked up for one distance.
const PLACES: u32 = 401;

/// One distance of the found table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeekError {
    /// Cylinders as the probe counts them.
    pub distance: u32,
    /// The found time, us.
    pub found: f64,
    /// The true time, us: the median over places.
    pub truth: f64,
    /// Range of nine tenths of the places, us.
    pub middle: (f64, f64),
}

impl SeekError {
    /// Found less true, us.
    pub(crate) fn off(&self) -> f64 {
        self.found - self.truth
    }
}

/// The found seek table, each distance with the true time between tracks that are so far apart for
/// the probe.
pub(crate) fn seeks(found: &Found) -> Vec<SeekError> {
    let (truth, g) = (&found.models.truth, &found.models.found.geometry);
    let of = |cylinder: u32, surface: u16| {
        let track = g.track(cylinder, surface).filter(|t| t.lbns > 0)?;
        let at = truth.geometry.locate(track.first_lbn)?;
        Some((at.cylinder, at.surface))
    };
    let one = |&(distance, time): &(u32, headtime_disk::Dur)| {
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
        Some(SeekError { distance, found: time.0 as f64 / 1e3, truth, middle })
    };
    found.profile.mechanics.seek.iter().filter_map(one).collect()
}

/// Describes the probe's cylinders.
pub(crate) fn cylinders(truth: &Profile, found: &Found) -> String {
    let (g, f) = (&truth.geometry, &found.profile.geometry);
    if g.surfaces != f.surfaces {
        return "tracks in the order of their sectors".into();
    }
    match f.cylinders.abs_diff(g.cylinders) {
        0 => "cylinders".into(),
        // The probe counts a cylinder that is not full more than once.
        _ => "cylinders of the probe, of which there are some more or fewer than the drive's".into(),
    }
}
