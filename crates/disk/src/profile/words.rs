//! Descriptions of places on a drive, for messages.

use std::fmt;

use super::{SectorAddress, Slip};

impl fmt::Display for SectorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cylinder {}, surface {}, sector {}", self.cylinder, self.surface, self.sector)
    }
}

impl fmt::Display for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slip::Index(i) => write!(f, "sector {i} of the zone"),
            Slip::TrackIndex(i) => write!(f, "track {i} of the zone"),
            Slip::Sector(at) => write!(f, "{at}"),
            Slip::Track { cylinder, surface } => write!(f, "the track of cylinder {cylinder}, surface {surface}"),
        }
    }
}
