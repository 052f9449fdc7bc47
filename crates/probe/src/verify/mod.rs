//! How well a profile predicts its drive.
//!
//! Three checks, each of which finds what the others miss:
//!
//! * [`random`]: reads anywhere, predicted by the scheduler's own predictor. They show the period,
//!   the overheads, the bus and long seeks; a wrong surface of a track hardly shows, because most
//!   of these seeks take longer than any head switch.
//! * [`moves`]: pairs of tracks of each class of moves, with a read that the profile says is just
//!   caught, and one that it says is just missed. They show a wrong layout.
//! * [`angles`]: sectors all over each part of the drive. They show a wrong skew or zone start.
//!
//! A profile is good only if it passes all of them.

mod angles;
mod moves;
mod parts;
mod random;

use std::fmt;

use headtime_disk::profile::{Late, Profile};
use headtime_disk::{Model, ModelError};

use crate::error::ProbeError;
use crate::pairs::Pairs;
use crate::sampler::Sampler;
use crate::spindle::Spindle;

/// Default number of random reads.
pub const READS: usize = 2_000;

/// A class of moves or angles that is checked separately. Cylinders are those of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// To the next track in the order of sectors, and back.
    NextTrack,
    /// To the next group of tracks on another surface; on head-first drives to the next cylinder.
    Crossing,
    /// To the next zone.
    ZoneEnd,
    /// A few cylinders away on any surface.
    Near,
    /// 2 to 20 tracks away in the order of sectors.
    Few,
    /// 21 to 2,000 tracks away.
    Hundreds,
    /// Between any two tracks.
    Anywhere,
    /// To any nearby track, from a track of these cylinders (first, last) and, on drives with zones
    /// of each surface, of this surface.
    Within(u32, u32, Option<u16>),
    /// Angles of sectors of these cylinders.
    Angles(u32, u32, Option<u16>),
}

/// The result of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// The class.
    pub class: Class,
    /// Pairs of tracks, or sectors, that were compared.
    pub asked: u32,
    /// Pairs that did not move as predicted; sectors at another angle.
    pub wrong: u32,
    /// Whether the class is as predicted.
    pub good: bool,
}

/// The fault of a profile, if any.
#[derive(Clone, Debug, PartialEq)]
pub enum LookAt {
    /// No fault.
    Nothing,
    /// Long reads deviate, short ones do not: bus rate, or sectors per track.
    LongReads,
    /// Sectors of this part of the drive lie elsewhere than predicted: geometry or skew. First and
    /// end LBN.
    Region(u64, u64),
    /// Seeks of this range of cylinders take longer than predicted, so that revolutions are missed.
    SlowSeeks(u32, u32),
    /// Seeks of this range of cylinders take less than predicted.
    QuickSeeks(u32, u32),
    /// All answers deviate: wrong rotation period, or other users of the drive.
    Everything,
    /// Random reads are as predicted, but this class is not: most often a wrong layout.
    Class(Class),
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Random reads compared.
    pub reads: usize,
    /// Reads left out: unreadable, or directly after one, when the head's position is unknown.
    pub left_out: usize,
    /// Share within 50 us.
    pub within_50us: f64,
    /// Share within 150 us.
    pub within_150us: f64,
    /// Share within 150 us of a revolution later than predicted.
    pub turn_late: f64,
    /// Share within 150 us of a revolution earlier.
    pub turn_early: f64,
    /// Reads that came whole revolutions later.
    pub late: Late,
    /// Errors (answer less prediction) in us at 1, 5, 25, 50, 75, 95 and 99%.
    pub quantiles_us: [f64; 7],
    /// The classes of moves and angles; empty if random reads fail already.
    pub classes: Vec<Checked>,
    /// At least 95% of random reads lie within 150 us, and every class is as predicted.
    pub good: bool,
    /// The location of the fault, if there is one.
    pub look_at: LookAt,
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VerifyError {
    /// The drive failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The profile makes no valid model.
    #[error("the profile: {0}")]
    Model(#[from] ModelError),
    /// Too few reads could be compared.
    #[error(
        "{reads} of {asked} reads could be compared: expected most, found a drive that answers from its cache or not \
         at all"
    )]
    TooFew {
        /// Reads compared.
        reads: usize,
        /// Reads requested.
        asked: usize,
    },
    /// The profile is another drive's.
    #[error("the profile has {profile} sectors of {profile_bytes} bytes, the drive {drive} of {drive_bytes}")]
    Size {
        /// Sectors by the profile.
        profile: u64,
        /// Sector size by the profile.
        profile_bytes: u32,
        /// Sectors of the drive.
        drive: u64,
        /// Sector size of the drive.
        drive_bytes: u32,
    },
}

/// Predicts `reads` random reads of a sector to 8 KiB and compares them with the answers; then, if
/// they are as predicted, moves and angles of each class.
///
/// # Errors
/// As [`Sampler::run`]; the profile is invalid, or another drive's; or too few reads could be
/// compared.
pub fn verify(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    profile: &Profile,
    reads: usize,
) -> Result<Verdict, VerifyError> {
    let mut verdict = random::verify(sampler, profile, reads)?;
    if verdict.good {
        verdict.classes = classes(sampler, spindle, profile)?;
        if let Some(failed) = verdict.classes.iter().find(|c| !c.good) {
            (verdict.good, verdict.look_at) = (false, LookAt::Class(failed.class));
        }
    }
    Ok(verdict)
}

/// Checks moves and angles. Angles come first: a read at another angle than predicted is aimed at
/// another slack.
fn classes(sampler: &mut Sampler, spindle: &mut Spindle, profile: &Profile) -> Result<Vec<Checked>, VerifyError> {
    let model = Model::new(profile)?;
    let parts = parts::of(&profile.geometry);
    sampler.stage("verification of angles");
    let pairs = Pairs::new(sampler, spindle, &model.geometry)?;
    let mut all = angles::check(sampler, spindle, &pairs, &parts)?;
    sampler.stage("verification of moves");
    all.extend(moves::check(sampler, spindle, &model, &pairs, (profile, &parts))?);
    Ok(all)
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |f: &mut fmt::Formatter<'_>, what: &str, (from, to): (u32, u32), surface: &Option<u16>| {
            write!(f, "{what} cylinders {from} to {to}")?;
            surface.map_or(Ok(()), |s| write!(f, " of surface {s}"))
        };
        match self {
            Class::NextTrack => f.write_str("moves to the next track"),
            Class::Crossing => f.write_str("moves to the next group or cylinder"),
            Class::ZoneEnd => f.write_str("moves to the next zone"),
            Class::Near => f.write_str("moves over a few cylinders"),
            Class::Few => f.write_str("moves over a few tracks"),
            Class::Hundreds => f.write_str("moves over hundreds of tracks"),
            Class::Anywhere => f.write_str("moves anywhere"),
            Class::Within(from, to, surface) => part(f, "moves from", (*from, *to), surface),
            Class::Angles(from, to, surface) => part(f, "angles in", (*from, *to), surface),
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} of {})", self.class, self.wrong, self.asked)
    }
}

impl fmt::Display for LookAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookAt::Nothing => f.write_str("nothing"),
            LookAt::LongReads => f.write_str("the bus rate and sectors per track: long reads deviate"),
            LookAt::Region(from, end) => write!(f, "where the sectors {from} to {end} lie"),
            LookAt::SlowSeeks(from, to) => write!(f, "seeks over {from} to {to} cylinders: they take longer"),
            LookAt::QuickSeeks(from, to) => write!(f, "seeks over {from} to {to} cylinders: they take less"),
            LookAt::Everything => f.write_str("the period, or other users of the drive: all answers deviate"),
            LookAt::Class(class) => class.fmt(f),
        }
    }
}
