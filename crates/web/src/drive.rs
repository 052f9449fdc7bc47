//! A drive as it is drawn: its tracks, where its blocks are, how long its arm takes.

use headtime_disk::{Geometry, Kind, Model, profile};
use serde::Serialize;

/// Tracks, and distances of the arm, of which figures are given.
const SAMPLES: u32 = 96;

/// What is drawn of a drive.
#[derive(Serialize)]
pub struct Described {
    name: String,
    title: String,
    year: Option<u16>,
    /// How the profile was derived, when it was not measured.
    synthesised: Option<String>,
    capacity_sectors: u64,
    sector_bytes: u32,
    surfaces: u16,
    cylinders: u32,
    rpm: f64,
    period_ns: u64,
    queue_depth: u32,
    /// Cylinder and number of sectors of tracks, from the outside to the inside.
    tracks: Vec<(u32, u32)>,
    /// First blocks of tracks, with their cylinder and their angle in turns.
    places: Vec<(u64, u32, f64)>,
    /// Distance in cylinders, and the time of a read's move over it in nanoseconds.
    seek: Vec<(u32, u64)>,
}

/// Describes a built-in drive.
///
/// # Errors
/// There is none of that name.
pub fn describe(name: &str) -> Result<Described, String> {
    let profile = profile::builtin(name).map_err(|e| e.to_string())?;
    let model = Model::new(&profile).map_err(|e| format!("disk {name}: {e}"))?;
    let (geometry, mechanics) = (&model.geometry, &model.mechanics);
    let cylinders = geometry.cylinders();
    let furthest = cylinders.saturating_sub(1);
    let sample = |i: u32| u32::try_from(u64::from(furthest) * u64::from(i) / u64::from(SAMPLES - 1)).unwrap_or(0);
    let distances = {
        // Short moves differ most, so distances grow by a constant factor.
        let factor = f64::from(furthest.max(2)).powf(1.0 / f64::from(SAMPLES - 1));
        let mut all: Vec<u32> = (0..SAMPLES).map(|i| factor.powf(f64::from(i)).round() as u32).collect();
        all.retain(|d| *d >= 1 && *d <= furthest);
        all.dedup();
        all
    };
    Ok(Described {
        capacity_sectors: geometry.capacity(),
        sector_bytes: model.sector_bytes,
        surfaces: geometry.surfaces(),
        cylinders,
        rpm: profile.mechanics.rpm.0 as f64 / profile.mechanics.rpm.1 as f64,
        period_ns: mechanics.rotation.period().0,
        queue_depth: profile.electronics.queue.depth,
        tracks: (0..SAMPLES).filter_map(|i| track(geometry, sample(i))).collect(),
        places: (0..u64::from(SAMPLES)).filter_map(|i| place(geometry, i)).collect(),
        seek: distances.into_iter().map(|d| (d, mechanics.reposition((0, 0), (d, 0), Kind::Read).0)).collect(),
        name: profile.name,
        title: profile.title,
        year: profile.year,
        synthesised: profile.synthesised,
    })
}

/// Returns a cylinder and the number of sectors of its first track with data.
fn track(geometry: &Geometry, cylinder: u32) -> Option<(u32, u32)> {
    let track = (0..geometry.surfaces()).find_map(|surface| geometry.track(cylinder, surface))?;
    Some((cylinder, track.spt))
}

/// Returns where the block after `i` parts of the capacity is.
fn place(geometry: &Geometry, i: u64) -> Option<(u64, u32, f64)> {
    let lbn = u128::from(geometry.capacity() - 1) * u128::from(i) / u128::from(SAMPLES - 1);
    let at = geometry.locate(u64::try_from(lbn).ok()?)?;
    Some((lbn as u64, at.cylinder, rounded(at.angle.turns())))
}

/// A share of a revolution, to a millionth.
pub fn rounded(turns: f64) -> f64 {
    (turns * 1e6).round() / 1e6
}
