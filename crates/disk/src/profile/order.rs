//! Order of surfaces and direction of tracks: the rules behind the letters of a layout.

use super::{HeadOrder, Layout};

impl HeadOrder {
    /// Whether a cylinder's surfaces are visited from last to first, in a zone that begins at
    /// `first_cylinder`.
    pub fn is_turned(self, first_cylinder: u32, cylinder: u32) -> bool {
        match self {
            HeadOrder::Forward => false,
            HeadOrder::AlternatingInZone => (cylinder - first_cylinder) % 2 == 1,
            HeadOrder::AlternatingOnDisk => cylinder % 2 == 1,
        }
    }
}

impl Layout {
    /// Returns the surface of the `visit`th leg (from 0) of a group in a seek-first layout, and
    /// whether its tracks run inside out. A head-first drive has one cylinder per group, without
    /// alternation.
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
