//! Random drives as makers build them, for the test of characterisation.
//!
//! [`drive`] draws a drive of any layout, sparing, size, electronics and noise from a seed;
//! [`observable`] says which figures of a found profile a host could tell from the truth.

mod choose;
mod electronics;
mod layout;
pub mod observable;

use headtime_disk::Model;
use headtime_disk::profile::{Known, Profile};

use crate::profiles::rng;
use choose::Choose;

/// A drawn drive.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The truth.
    pub profile: Profile,
    /// What it has, of the classes of a report: `"AF"`, `"uneven heads"`, `"spares per track"`.
    pub classes: Vec<&'static str>,
}

/// Draws the drive of a seed: the same on every machine. Drives that the model refuses, because
/// slips outnumber spares or a seek table falls, are drawn again.
///
/// # Panics
/// If a thousand draws are refused.
pub fn drive(seed: u64) -> Drawn {
    for attempt in 0..1_000 {
        let drawn = draw(seed.wrapping_mul(1_000).wrapping_add(attempt), seed);
        if Model::new(&drawn.profile).is_ok() {
            return drawn;
        }
    }
    panic!("seed {seed}: a thousand drives in a row that the model refuses");
}

fn draw(seed: u64, number: u64) -> Drawn {
    let mut choose = Choose(rng(seed));
    let mut classes = Vec::new();
    let sector_bytes = if choose.chance(30) { 4_096 } else { 512 };
    classes.push(if sector_bytes == 512 { "512 bytes" } else { "4096 bytes" });
    let moving = electronics::mechanics(&mut choose);
    let geometry = layout::geometry(&mut choose, &moving, sector_bytes, &mut classes);
    let mechanics = moving.spec(&mut choose, geometry.cylinders, &mut classes);
    let electronics = electronics::electronics(&mut choose, sector_bytes, &mut classes);
    let noise = electronics::noise(&mut choose, &mut classes);
    let profile = Profile {
        name: format!("drawn-{number}"),
        title: format!("a drive drawn from seed {number}"),
        year: None,
        synthesised: Some("drawn at random".into()),
        sources: Default::default(),
        sector_bytes,
        stated_sectors: None,
        geometry,
        mechanics,
        electronics,
        noise,
        known: Known::default(),
        rig: None,
        service_times: Vec::new(),
    };
    Drawn { profile, classes }
}
