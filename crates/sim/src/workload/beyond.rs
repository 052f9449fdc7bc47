//! The place on the drive of a recorded request whose volume is larger or smaller than the drive.

/// Extents that stay together when a volume is spread, in 512-byte sectors (1 MiB).
const EXTENT: u64 = 2048;

/// Where requests of a trace are placed on a drive of another size. Sectors have 512 bytes here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// At their own place. Requests beyond the drive are refused and counted; the first lines are
    /// recorded.
    #[default]
    Refuse,
    /// At their own place; the first one beyond the drive is an error.
    Stop,
    /// At their place modulo the drive's capacity. A request that would cross the drive's end is
    /// moved before it.
    Wrap,
    /// The volume, of this many sectors, is spread over the whole drive, or shrunk to it, in
    /// extents of 1 MiB: extent k of v is at extent k d / v of the drive's d. Requests beyond the
    /// volume are refused. What crosses an extent's end goes on behind it.
    Spread(u64),
}

impl Beyond {
    /// Forms of a setting.
    pub const FORMS: [&str; 3] = ["refuse", "wrap", "spread:SIZE"];

    /// Spreads a volume of this many bytes; `None` if it has less than an extent.
    pub fn spread(bytes: u64) -> Option<Beyond> {
        Some(Beyond::Spread(bytes / 512)).filter(|_| bytes / 512 >= EXTENT)
    }

    /// Returns the first sector of a request on a drive of `capacity` sectors; `None` if it has no
    /// place there.
    pub(super) fn place(self, lbn: u64, count: u32, capacity: u64) -> Option<u64> {
        let last = capacity.checked_sub(u64::from(count))?;
        match self {
            Beyond::Refuse | Beyond::Stop => (lbn <= last).then_some(lbn),
            Beyond::Wrap => Some((lbn % capacity.max(1)).min(last)),
            Beyond::Spread(sectors) => {
                let (extents, drive) = (sectors.div_ceil(EXTENT), capacity / EXTENT);
                if drive == 0 || lbn.checked_add(u64::from(count))? > sectors {
                    return None;
                }
                let extent = u128::from(lbn / EXTENT) * u128::from(drive) / u128::from(extents);
                // Below `drive`, which is 64 bits wide.
                Some((extent as u64 * EXTENT + lbn % EXTENT).min(last))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spread_volume_reaches_the_ends_of_the_drive_and_keeps_what_is_together() {
        let spread = Beyond::Spread(100 * EXTENT);
        let drive = 1000 * EXTENT;
        assert_eq!(spread.place(0, 8, drive), Some(0));
        assert_eq!(spread.place(99 * EXTENT, 8, drive), Some(990 * EXTENT));
        assert_eq!(spread.place(5 * EXTENT + 16, 8, drive), Some(50 * EXTENT + 16));
        assert_eq!(spread.place(100 * EXTENT, 8, drive), None, "beyond the volume");
        // Shrunk: several extents share a place.
        assert_eq!(spread.place(99 * EXTENT, 8, 10 * EXTENT), Some(9 * EXTENT));
    }

    proptest! {
        /// Whatever is placed is on the drive, and what is on it already stays unless it is spread.
        #[test]
        fn what_is_placed_is_on_the_drive(
            lbn in 0u64..1 << 54,
            count in 1u32..,
            capacity in 0u64..1 << 40,
            size in 2048u64..1 << 54,
        ) {
            for beyond in [Beyond::Refuse, Beyond::Wrap, Beyond::Spread(size)] {
                match beyond.place(lbn, count, capacity) {
                    Some(at) => {
                        prop_assert!(at + u64::from(count) <= capacity);
                        prop_assert!(at == lbn || lbn + u64::from(count) > capacity || beyond == Beyond::Spread(size));
                    }
                    None => prop_assert!(u64::from(count) > capacity || beyond != Beyond::Wrap),
                }
            }
        }
    }
}
