//! Which surface comes when, and in which direction its tracks are followed: the rules behind the
//! letters of a layout.

use super::{HeadOrder, Layout};

impl HeadOrder {
    /// Whether the surfaces of a cylinder are followed from the last to the first, in a zone that
    /// begins at `first_cylinder`.
    pub fn is_turned(self, first_cylinder: u32, cylinder: u32) -> bool {
        match self {
            HeadOrder::Forward => false,
            HeadOrder::AlternatingInZone => (cylinder - first_cylinder) % 2 == 1,
            HeadOrder::AlternatingOnDisk => cylinder % 2 == 1,
        }
    }
}

impl Layout {
    /// The surface that a seek-first drive visits as number `visit` (from 0) of a group, and
    /// whether it follows the tracks there inside out. A head-first drive has one cylinder a group,
    /// and this is as if none alternated.
    pub fn leg(self, surfaces: u16, group: u32, visit: u16) -> (u16, bool) {
        match self {
            Layout::HeadFirst(_) => (visit, false),
            Layout::SeekFirst { tracks_alternate, surfaces_alternate, .. } => {
                let turned = surfaces_alternate && group % 2 == 1;
                (if turned { surfaces - 1 - visit } else { visit }, tracks_alternate && visit % 2 == 1)
            }
        }
    }
}
