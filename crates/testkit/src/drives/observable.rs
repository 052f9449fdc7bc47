//! Which figures of a found profile a host could tell from the truth.
//!
//! Names do not count: where no head switch takes longer than the shortest seek, a drive of six
//! surfaces and one of a single surface complete every command at the same time. So layouts are not
//! compared by their letters, but by what follows from them: where tracks begin, at which angles
//! sectors pass, and how long the arm needs from one track to another. What differs in none of
//! these cannot be told apart by any host.

use headtime_disk::profile::Profile;
use headtime_disk::{Kind, Model, ModelError, Track, compare};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profiles::{between, rng};

/// Largest difference of a move or an overhead, us (claims P5 and P7).
pub const TIMES_US: f64 = 30.0;
/// Largest difference of an angle, us (claim P6).
pub const ANGLES_US: f64 = 10.0;
/// Pairs of tracks whose moves are compared, in each class of distances.
const MOVES: u32 = 500;

/// A figure that a host could tell from the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// Name of the figure.
    pub what: String,
    /// By how much: tracks, us, or 1 for what is or is not.
    pub by: f64,
}

/// Compares a found profile with the truth. Writes are not compared, nor what a host observes only
/// once in thousands of reads. An empty list: no host could tell them apart. The period is compared
/// with the true drive's, its constant error included.
///
/// # Errors
/// One of them makes no model.
pub fn differences(truth: &Profile, found: &Profile, seed: u64) -> Result<Vec<Differs>, ModelError> {
    let mut all = Vec::new();
    let mut truth = truth.clone();
    // A host sees the real speed, not the nominal one.
    let error = truth.noise.speed_error_ppb;
    let (n, d) = truth.mechanics.rpm;
    let billion = 1_000_000_000;
    truth.mechanics.rpm = (n * billion, d * billion.saturating_add_signed(error));
    let options = compare::Options { seed, reads_only: true, ..compare::Options::default() };
    for row in compare::compare(&truth, found, &options)?.broken() {
        let by_moves = ["layout", "skews", "zones", "seeks"].contains(&row.group);
        if !by_moves || row.what == compare::BOUNDARIES {
            all.push(Differs { what: row.what.clone(), by: row.difference.unwrap_or(f64::NAN) });
        }
    }
    let (a, b) = (Model::new(&truth)?, Model::new(found)?);
    all.extend(boundaries(&a, &b));
    let mut rng = rng(seed);
    for (name, near) in MOVE_CLASSES {
        let apart = (0..MOVES).filter_map(|_| move_apart(&a, &b, near, &mut rng)).map(f64::abs);
        let (most, count) = apart.filter(|us| *us > TIMES_US).fold((0.0f64, 0u32), |m, us| (m.0.max(us), m.1 + 1));
        if count > 0 {
            all.push(Differs { what: format!("moves {name} ({count} of {MOVES})"), by: most });
        }
    }
    Ok(all)
}

/// Classes of moves by the number of tracks in the order of sectors, fewest and most.
const MOVE_CLASSES: [(&str, Option<(u64, u64)>); 4] = [
    ("to the next track", Some((1, 1))),
    ("over a few tracks", Some((2, 20))),
    ("over hundreds of tracks", Some((21, 2_000))),
    ("anywhere", None),
];

/// Tracks that begin at other sectors.
fn boundaries(a: &Model, b: &Model) -> Option<Differs> {
    let (mut wrong, mut lbn) = (0u64, 0);
    while let Some(t) = a.geometry.track_of(lbn) {
        let f = b.geometry.track_of(lbn);
        wrong += u64::from(f.is_none_or(|f| (f.first_lbn, f.lbns) != (t.first_lbn, t.lbns)));
        lbn = t.first_lbn + u64::from(t.lbns);
    }
    (wrong > 0).then(|| Differs { what: "track boundaries".into(), by: wrong as f64 })
}

/// By how much two models differ in the time from one random track to another, us; `None` if there
/// is no such pair.
fn move_apart(a: &Model, b: &Model, near: Option<(u64, u64)>, rng: &mut Xoshiro256PlusPlus) -> Option<f64> {
    let capacity = a.geometry.capacity();
    let from = between(rng, 0, capacity - 1);
    let to = match near {
        None => between(rng, 0, capacity - 1),
        Some((fewest, most)) => {
            let track = a.geometry.track_of(from)?;
            let by = between(rng, fewest, most) * u64::from(track.lbns);
            let lbn = if between(rng, 0, 1) == 0 { from.checked_add(by)? } else { from.checked_sub(by)? };
            (lbn < capacity).then_some(lbn)?
        }
    };
    let time = |m: &Model| {
        let place = |lbn| m.geometry.track_of(lbn).map(|t: Track| (t.cylinder, t.surface));
        Some(m.mechanics.reposition(place(from)?, place(to)?, Kind::Read))
    };
    let (ta, tb) = (time(a)?, time(b)?);
    Some((tb.0 as f64 - ta.0 as f64) / 1e3)
}
