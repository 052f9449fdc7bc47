//! Placement: what a freeblock scheduler may do inside the drive that it may not do outside (Lumb
//! 2002 sections 3.3, 4.3 and 5.3).

/// Where the scheduler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Outside the drive: it predicts, two commands are outstanding, and a second read on one track
    /// can make the drive read that track to its end.
    Host,
    /// Inside the drive: it knows the truth and sees single sectors pass.
    Firmware,
    /// Inside the drive, but without commands of their own on a foreground request's track: what
    /// Lumb 2002 figure 10 calls "simulation no track".
    FirmwareNoTrack,
}

/// What legs the papers' algorithms may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Commands of their own on the track the head comes from.
    pub source_track: bool,
    /// Commands of their own on the destination's track (merging with the destination is always
    /// allowed).
    pub dest_track: bool,
    /// Both stretches where a track's end divides the sectors that pass in a gap, as two commands;
    /// else the larger.
    pub both_ranges: bool,
}

impl Placement {
    /// The rules of the papers for this placement.
    pub fn rules(self) -> Rules {
        let free = self == Placement::Firmware;
        Rules { source_track: free, dest_track: free, both_ranges: free }
    }
}
