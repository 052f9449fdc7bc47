//! Placement: what a freeblock scheduler may do inside the drive but not outside (Lumb 2002
//! sections 3.3, 4.3 and 5.3).

use std::fmt;
use std::str::FromStr;

use crate::names::NameError;

/// Location of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Outside the drive: it predicts, two commands are outstanding, and a second read on one track
    /// can make the drive read that track to its end.
    Host,
    /// Inside the drive: it knows the exact state and sees single sectors pass.
    Firmware,
    /// Inside the drive, but without background commands on a foreground request's track:
    /// "simulation no track" in Lumb 2002 figure 10.
    FirmwareNoTrack,
}

/// The legs that the papers' algorithms may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Background commands on the source track.
    pub source_track: bool,
    /// Background commands on the destination's track (merging with the destination is always
    /// allowed).
    pub dest_track: bool,
    /// Where a track's end divides the sectors that pass in a gap, both ranges, as two commands;
    /// else the larger.
    pub both_ranges: bool,
}

impl Placement {
    /// All placements.
    pub const ALL: [Placement; 3] = [Placement::Host, Placement::Firmware, Placement::FirmwareNoTrack];
    /// Their names.
    pub const NAMES: [&'static str; Placement::ALL.len()] = ["host", "firmware", "firmware-no-track"];

    /// Returns the papers' rules for this placement.
    pub fn rules(self) -> Rules {
        let free = self == Placement::Firmware;
        Rules { source_track: free, dest_track: free, both_ranges: free }
    }
}

impl FromStr for Placement {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Placement, NameError> {
        let found = Placement::ALL.into_iter().zip(Placement::NAMES).find(|p| p.1 == name);
        found.map(|p| p.0).ok_or_else(|| NameError::unknown("placement", name, &Placement::NAMES))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(Placement::NAMES[*self as usize])
    }
}
