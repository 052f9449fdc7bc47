//! Placement: what a freeblock scheduler may do inside the drive but not outside (Lumb 2002
//! sections 3.3, 4.3 and 5.3).

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
    /// Returns the papers' rules for this placement.
    pub fn rules(self) -> Rules {
        let free = self == Placement::Firmware;
        Rules { source_track: free, dest_track: free, both_ranges: free }
    }
}
