//! Pictures of a drive's seek curve, zones and angles.

use headtime_disk::profile::Profile;
use headtime_disk::{Geometry, Track};
use headtime_plot::{Axis, Series, Style, XyChart};

/// Number of tracks whose angles are shown, from the drive's first on.
const TRACKS: usize = 200;
/// Most cylinders at which sectors per track are looked up.
const PLACES: u32 = 600;
/// Most series of one picture; further surfaces are similar.
const SURFACES: u16 = 4;

/// Returns the pictures of a profile: file name, title and SVG. None if the profile makes no valid
/// drive.
pub fn of(profile: &Profile) -> Vec<(&'static str, &'static str, String)> {
    let Ok(geometry) = Geometry::new(&profile.geometry) else { return Vec::new() };
    vec![
        ("seeks.svg", "Seek times", seeks(profile).to_svg()),
        ("zones.svg", "Sectors per track", zones(profile, &geometry).to_svg()),
        ("angles.svg", "Where tracks begin", angles(profile, &geometry).to_svg()),
    ]
}

fn seeks(profile: &Profile) -> XyChart {
    let points =
        profile.mechanics.seek.iter().map(|&(distance, time)| (f64::from(distance), time.as_ms_f64())).collect();
    let longest = profile.mechanics.seek.last().map_or(1, |s| s.0);
    let switch = profile.mechanics.head_switch.as_ms_f64();
    let mut series = vec![Series { name: "seek".into(), style: Style::Marked, points }];
    if profile.geometry.surfaces > 1 {
        let points = vec![(1.0, switch), (f64::from(longest), switch)];
        series.push(Series { name: "head switch".into(), style: Style::Line, points });
    }
    XyChart {
        title: format!("Seek times, {}", profile.title),
        subtitle: String::new(),
        x: Axis::log("cylinders"),
        y: Axis::from_zero("ms"),
        series,
    }
}

fn zones(profile: &Profile, geometry: &Geometry) -> XyChart {
    let step = (geometry.cylinders() / PLACES).max(1) as usize;
    let of = |surface: u16| {
        let at = |cylinder: u32| geometry.track(cylinder, surface).filter(|t| t.lbns > 0);
        let points = (0..geometry.cylinders()).step_by(step).filter_map(at);
        let points = points.map(|t| (f64::from(t.cylinder), f64::from(t.spt))).collect();
        Series { name: format!("surface {surface}"), style: Style::Step, points }
    };
    let mut series: Vec<Series> = (0..geometry.surfaces().min(SURFACES)).map(of).collect();
    // Equal surfaces share one series.
    if series.iter().all(|s| s.points.iter().zip(&series[0].points).all(|(a, b)| a.1 == b.1)) {
        series.truncate(1);
        series[0].name = "all surfaces".into();
    }
    XyChart {
        title: format!("Sectors per track, {}", profile.title),
        subtitle: String::new(),
        x: Axis::linear("cylinder"),
        y: Axis::from_zero("sectors"),
        series,
    }
}

/// The drive's first tracks, in LBN order.
fn first(geometry: &Geometry) -> Vec<Track> {
    let next = |t: &Track| geometry.track_of(t.first_lbn + u64::from(t.lbns));
    std::iter::successors(geometry.track_of(0), next).take(TRACKS).collect()
}

fn angles(profile: &Profile, geometry: &Geometry) -> XyChart {
    let points = first(geometry).iter().enumerate().map(|(i, t)| (i as f64, t.angle.turns())).collect();
    XyChart {
        title: format!("Where tracks begin, {}", profile.title),
        subtitle: "the skew from each track to the next, over the first tracks in the order of their sectors".into(),
        x: Axis::linear("track"),
        y: Axis::range("turns", 0.0, 1.0),
        series: vec![Series { name: "first sector".into(), style: Style::Marked, points }],
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    #[test]
    fn every_drive_has_three_pictures_of_its_own() {
        for name in ["atlas10k", "hitachi-7k1000c"] {
            let profile = builtin(name).unwrap();
            let pictures = of(&profile);
            assert_eq!(pictures.len(), 3);
            assert!(pictures.iter().all(|p| p.2.starts_with("<svg") && p.2.contains(&profile.title)), "{name}");
            let geometry = Geometry::new(&profile.geometry).unwrap();
            // Surfaces that differ have separate series.
            assert_eq!(zones(&profile, &geometry).series.len(), if name == "atlas10k" { 1 } else { 4 });
            assert_eq!(first(&geometry).len(), TRACKS);
        }
    }
}
