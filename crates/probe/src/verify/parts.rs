//! Parts of a drive that are verified separately: its zones, or equal parts if it has many.

use headtime_disk::profile::GeometrySpec;

use crate::sampler::Sampler;

/// Most parts. A profile of a drive whose layout was not found may have thousands of zones, one for
/// each row of tracks.
const MOST_PARTS: usize = 64;

/// Cylinders, first and last, of one surface or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) surface: Option<u16>,
}

impl Part {
    /// Chooses a cylinder and a surface.
    pub(super) fn place(&self, sampler: &mut Sampler, surfaces: u16) -> (u32, u16) {
        let cylinder = self.first + sampler.below(u64::from(self.last - self.first) + 1) as u32;
        (cylinder, self.surface.unwrap_or_else(|| sampler.below(u64::from(surfaces)) as u16))
    }
}

/// The parts of a geometry.
pub(super) fn of(spec: &GeometrySpec) -> Vec<Part> {
    if spec.zones.len() <= MOST_PARTS {
        let part = |z: &headtime_disk::profile::ZoneSpec| Part {
            first: z.first_cylinder,
            last: z.last_cylinder,
            surface: z.surface,
        };
        return spec.zones.iter().map(part).collect();
    }
    let at = |i: u64| (u64::from(spec.cylinders) * i / MOST_PARTS as u64) as u32;
    let part = |i| Part { first: at(i), last: at(i + 1).max(at(i) + 1) - 1, surface: None };
    (0..MOST_PARTS as u64).map(part).collect()
}
