//! The block map of a reorganised export on the disk.
//!
//! The map is in the reserve, beside the data that it is about, so that it cannot be lost without
//! it. There are two copies, at the beginning and at the end of the reserve, each with a sequence
//! number and a checksum. The newer one counts. They are written one after the other, so whatever
//! happens during a write, one copy is whole. Requests that depend on the new map wait until both
//! have it: if one is damaged later, the other says the same.
//!
//! The copies and the slots begin at whole [`BLOCK_BYTES`]: on many disks a smaller write rewrites
//! a block of this size, and a power failure may damage all of it. The first slot begins at the
//! same offset in a block as the export, so that a request within such blocks is within them in a
//! slot.
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 8 | `HTLAYOUT` |
//! | 8 to 12 | version, 1 |
//! | 12 to 16 | units in slots |
//! | 16 to 24 | sequence number |
//! | 24 to 64 | first sector and sectors of the export, the same of the reserve, sectors of a unit |
//! | 64 to 72 | xxh3 of bytes 0 to 64 and of all from byte 72 on |
//! | 72 and on | a unit (8 bytes) and its slot (4 bytes), for each unit in a slot |
//!
//! Numbers are unsigned and little-endian. The rest of the last sector is zero.

use bytes::Bytes;
use headtime_sched::TaskRange;
use headtime_sched::layout::{BlockMap, MapError, Place};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"HTLAYOUT";
const VERSION: u32 = 1;
/// Bytes before the checksum, and before the first unit.
const CHECKED: usize = 64;
const HEAD: usize = CHECKED + 8;
/// Bytes of a unit and its slot.
const ENTRY: usize = 12;

/// Bytes of a unit at least, so that a request has few pieces, and at most, so that a move is
/// short.
pub const UNIT_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 20;
/// Bytes of a unit unless the configuration says otherwise.
pub const USUAL_UNIT_BYTES: u64 = 128 << 10;

/// Bytes of a physical sector, at most.
pub const BLOCK_BYTES: u64 = 4096;

/// Units and their slots.
type Moved = Vec<(u64, u32)>;

/// What is reorganised, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The sectors of the export, as its clients count them. If the reserve begins within them,
    /// those from there on are behind it.
    pub part: TaskRange,
    /// The reserve: a copy of the map, the slots, the other copy.
    pub reserve: TaskRange,
    /// Sectors of a unit.
    pub unit: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

/// Why a map cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The export, the reserve and the unit fit no map.
    #[error(transparent)]
    Map(#[from] MapError),
    /// There is no map.
    #[error(
        "expected a block map at sector {at} or {other}, found none: 'headtime serve --new-map EXPORT' writes one, \
         once, for an export of which no unit was ever moved (those that were would be lost)"
    )]
    None {
        /// The first sector of a copy.
        at: u64,
        /// That of the other.
        other: u64,
    },
    /// There is a map where a new one was to be written.
    #[error("expected no block map at sector {at} for --new-map, found one: start without this flag")]
    There {
        /// The first sector of the copy.
        at: u64,
    },
    /// The map is that of another part of the disk.
    #[error("sector {at}: expected the block map of {expected}, found that of {found}")]
    Area {
        /// The first sector of the copy.
        at: u64,
        /// What is configured.
        expected: String,
        /// What the map is about.
        found: String,
    },
    /// A map of a later version of this program.
    #[error("sector {at}: expected version {VERSION} of a block map, found {found}")]
    Version {
        /// The first sector of the copy.
        at: u64,
        /// Its version.
        found: u32,
    },
    /// The disk could not be read or written.
    #[error("sector {at}: the block map: {why}")]
    Device {
        /// The first sector of the copy.
        at: u64,
        /// The cause.
        why: &'static str,
    },
}

impl Area {
    /// Returns the sectors of a block.
    fn block(&self) -> u64 {
        (BLOCK_BYTES / u64::from(self.sector_bytes)).max(1)
    }

    /// Returns the sectors of a copy of the map, with room for as many units as fit the reserve.
    fn copy_sectors(&self) -> u64 {
        let slots = self.reserve.count / self.unit.max(1);
        let sectors = (HEAD as u64 + slots * ENTRY as u64).div_ceil(u64::from(self.sector_bytes));
        sectors.next_multiple_of(self.block())
    }

    /// Returns the sectors of copy 0 or 1.
    pub fn copy(&self, number: usize) -> TaskRange {
        let count = self.copy_sectors();
        let lbn = match number {
            0 => self.reserve.lbn,
            _ => (self.reserve.lbn + self.reserve.count).saturating_sub(count),
        };
        TaskRange { lbn, count }
    }

    /// Returns whether the reserve is within the export.
    pub fn is_within(&self) -> bool {
        self.part.lbn < self.reserve.lbn && self.reserve.lbn < self.part.lbn.saturating_add(self.part.count)
    }

    /// Returns the sectors of the disk from the export's first to its last, with the reserve if it
    /// is between them.
    pub fn span(&self) -> TaskRange {
        let within = if self.is_within() { self.reserve.count } else { 0 };
        TaskRange { count: self.part.count.saturating_add(within), ..self.part }
    }

    /// Returns the map without any move.
    ///
    /// # Errors
    /// [`LayoutError::Map`]: there is no room for a slot, the reserve overlaps the export, or is
    /// within it and does not begin between two units.
    pub fn map(&self) -> Result<BlockMap, LayoutError> {
        let first = self.reserve.lbn.saturating_add(self.copy_sectors());
        // To the offset in a block at which the export begins.
        let shift = (self.part.lbn % self.block() + self.block() - first % self.block()) % self.block();
        let slots = TaskRange {
            lbn: first.saturating_add(shift),
            count: self.reserve.count.saturating_sub(2 * self.copy_sectors() + shift),
        };
        if slots.count < self.unit {
            return Err(MapError::Reserve { unit: self.unit, found: slots.count }.into());
        }
        match self.is_within() {
            true => Ok(BlockMap::around(self.part, self.reserve, slots, self.unit)?),
            false if self.part.overlaps(&self.reserve) => Err(MapError::Overlap.into()),
            false => Ok(BlockMap::new(self.part, slots, self.unit)?),
        }
    }

    fn fields(&self) -> [u64; 5] {
        [self.part.lbn, self.part.count, self.reserve.lbn, self.reserve.count, self.unit]
    }

    /// Returns a copy of the map: these units are in these slots.
    pub fn encode(&self, moved: &[(u64, u32)], sequence: u64) -> Bytes {
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(moved.len() as u32).to_le_bytes());
        head.extend_from_slice(&sequence.to_le_bytes());
        self.fields().iter().for_each(|field| head.extend_from_slice(&field.to_le_bytes()));
        let entries: Vec<u8> =
            moved.iter().flat_map(|(unit, slot)| unit.to_le_bytes().into_iter().chain(slot.to_le_bytes())).collect();
        let check = xxh3_64(&[&head[..], &entries[..]].concat());
        let mut all = head;
        all.extend_from_slice(&check.to_le_bytes());
        all.extend_from_slice(&entries);
        all.resize(all.len().next_multiple_of(self.sector_bytes as usize), 0);
        all.into()
    }

    /// Reads a copy of the map; returns its sequence number and the units in slots. `None`: it is
    /// damaged, or none.
    ///
    /// # Errors
    /// It is whole, and of another version or another part of the disk.
    pub fn decode(&self, number: usize, data: &[u8]) -> Result<Option<(u64, Moved)>, LayoutError> {
        let at = self.copy(number).lbn;
        let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"));
        if data.len() < HEAD || &data[..8] != MAGIC {
            return Ok(None);
        }
        let end = (half(12) as usize).checked_mul(ENTRY).map(|bytes| HEAD + bytes);
        let Some(entries) = end.and_then(|end| data.get(HEAD..end)) else { return Ok(None) };
        if xxh3_64(&[&data[..CHECKED], entries].concat()) != word(CHECKED) {
            return Ok(None);
        }
        if half(8) != VERSION {
            return Err(LayoutError::Version { at, found: half(8) });
        }
        let found = [24, 32, 40, 48, 56].map(word);
        if found != self.fields() {
            let said = |[first, sectors, reserve, reserved, unit]: [u64; 5]| {
                format!("sectors {first}+{sectors} in units of {unit} with the reserve {reserve}+{reserved}")
            };
            return Err(LayoutError::Area { at, expected: said(self.fields()), found: said(found) });
        }
        let entry = |e: &[u8]| {
            let (unit, slot) = e.split_at(8);
            (
                u64::from_le_bytes(unit.try_into().expect("eight bytes")),
                u32::from_le_bytes(slot.try_into().expect("four bytes")),
            )
        };
        Ok(Some((word(16), entries.chunks_exact(ENTRY).map(entry).collect())))
    }

    /// Returns the map that two copies describe, and its sequence number. An empty copy is one that
    /// could not be read.
    ///
    /// # Errors
    /// Both copies are damaged, or one is not of this part of the disk.
    pub fn read(&self, copies: [&[u8]; 2]) -> Result<(BlockMap, u64), LayoutError> {
        let mut map = self.map()?;
        let found = [self.decode(0, copies[0])?, self.decode(1, copies[1])?];
        let newer = found.into_iter().flatten().max_by_key(|(sequence, _)| *sequence);
        let (sequence, moved) = newer.ok_or(LayoutError::None { at: self.copy(0).lbn, other: self.copy(1).lbn })?;
        for (unit, slot) in moved {
            map.set(unit, Place::Slot(slot))?;
        }
        Ok((map, sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Area {
        Area {
            part: TaskRange { lbn: 0, count: 100_000 },
            reserve: TaskRange { lbn: 200_000, count: 10_000 },
            unit: 128,
            sector_bytes: 512,
        }
    }

    fn moved(map: &BlockMap) -> Vec<(u64, u32)> {
        map.moved().collect()
    }

    #[test]
    fn the_newer_whole_copy_counts() {
        let area = area();
        let (one, two) = (area.encode(&[(3, 0)], 7), area.encode(&[(3, 0), (500, 70)], 8));
        assert_eq!(one.len(), 512);
        for copies in [[&one[..], &two[..]], [&two[..], &one[..]]] {
            let (map, sequence) = area.read(copies).unwrap();
            assert_eq!((moved(&map), sequence), (vec![(3, 0), (500, 70)], 8));
        }
        // Every damage to one leaves the other.
        for byte in 0..two.len() {
            let mut damaged = two.to_vec();
            damaged[byte] ^= 0x40;
            let (map, sequence) = area.read([&one, &damaged]).unwrap();
            let is_padding = byte >= HEAD + 2 * ENTRY;
            assert_eq!(sequence, if is_padding { 8 } else { 7 }, "byte {byte}");
            assert_eq!(moved(&map).len(), if is_padding { 2 } else { 1 });
        }
        for end in 0..HEAD + 2 * ENTRY {
            assert_eq!(area.read([&one, &two[..end]]).unwrap().1, 7);
        }
    }

    #[test]
    fn without_a_map_nothing_is_assumed() {
        let none = |copies| area().read(copies).map(|_| ()).unwrap_err();
        let expected = LayoutError::None { at: 200_000, other: 209_992 };
        let (zeros, other) = ([0; 4096], [0xa5; 4096]);
        for copies in [[&zeros[..], &zeros], [&other, &zeros], [&[], &other], [&[], &[]]] {
            assert_eq!(none(copies), expected);
        }
    }

    #[test]
    fn copies_and_slots_share_no_block_and_slots_are_aligned_as_the_export() {
        for (first, count) in [(0, 10_000), (3, 10_000), (7, 3_000_000), (8, 4_096)] {
            let part = TaskRange { lbn: first, count: 100_000 };
            let area = Area { part, reserve: TaskRange { lbn: 200_000, count }, ..area() };
            let (slots, one, two) = (area.map().unwrap().reserve(), area.copy(0), area.copy(1));
            assert!(one.lbn % 8 == 0 && two.lbn % 8 == 0 && slots.lbn % 8 == first % 8);
            assert!(one.end() <= slots.lbn && slots.end() <= two.lbn && two.end() == area.reserve.end());
        }
    }

    #[test]
    fn a_map_of_something_else_is_refused() {
        let whole = area().encode(&[(3, 0)], 7);
        for other in [
            Area { unit: 256, ..area() },
            Area { part: TaskRange { lbn: 0, count: 99_999 }, ..area() },
            Area { reserve: TaskRange { lbn: 200_000, count: 20_000 }, ..area() },
        ] {
            assert!(matches!(other.read([&whole, &[]]), Err(LayoutError::Area { .. })));
        }
        // Two units in one slot, or a slot that is not there: whole, and impossible.
        for moved in [&[(3, 0), (4, 0)][..], &[(3, 5_000)], &[(50_000, 1)]] {
            let impossible = area().encode(moved, 1);
            assert!(matches!(area().read([&impossible, &[]]), Err(LayoutError::Map(_))));
        }
    }

    #[test]
    fn all_slots_fit_a_copy() {
        for count in [400, 1_000, 10_000, 3_000_000] {
            let area = Area { reserve: TaskRange { lbn: 200_000, count }, ..area() };
            let map = area.map().unwrap();
            let all: Vec<(u64, u32)> = (0..map.slots()).map(|slot| (u64::from(slot), slot)).collect();
            assert!(area.encode(&all, 1).len() as u64 <= area.copy(0).count * 512);
            assert!(map.reserve().lbn >= area.copy(0).end() && map.reserve().end() <= area.copy(1).lbn);
        }
    }
}
