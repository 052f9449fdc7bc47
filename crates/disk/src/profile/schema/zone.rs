//! An entry of `zones`: keys of a zone.

use super::forms::{Described, Flag, Form, Maybe, Whole};
use super::{CYLINDERS, Key, Presence, Reader, SECTORS, Schema, Written, key};
use crate::profile::fault::ProfileError;
use crate::profile::table::Item;
use crate::profile::{SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec, skew};

/// A zone, and whether the drive's cylinders are followed head by head.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) spec: ZoneSpec,
    pub(super) head_first: bool,
}

impl Zone {
    fn blank() -> Zone {
        let spec = ZoneSpec {
            first_cylinder: 0,
            last_cylinder: 0,
            surface: None,
            sectors_per_track: Vec::new(),
            offset: None,
            track_skew: Skew::ZERO,
            cylinder_skew: Skew::ZERO,
            reserved_sectors: 0,
            sparing: Sparing::NONE,
            slips: Vec::new(),
            defects: Vec::new(),
        };
        Zone { spec, head_first: false }
    }

    /// Returns the sectors per track, if all tracks have as many.
    fn spt(&self) -> Option<u32> {
        match self.spec.sectors_per_track.as_slice() {
            [spt] => Some(*spt),
            _ => None,
        }
    }

    /// Formats the slips that `item` formats.
    fn slips(&self, item: impl Fn(&Slip) -> Option<String>) -> Option<Written> {
        Written::list(self.spec.slips.iter().filter_map(item).collect())
    }
}

const INDEX: Whole = Whole(0, SECTORS);
const SPT: Whole = Whole(1, 100_000);

/// A key whose value is a skew.
macro_rules! skew {
    ($field:ident, $name:literal, $doc:literal) => {
        Key {
            name: $name,
            presence: Presence::Required,
            form: || "skew".into(),
            default: "",
            doc: $doc,
            read: |reader, zone| {
                if let Some(item) = reader.find($name, Presence::Required)? {
                    zone.spec.$field = angle(&item, zone.spt())?;
                }
                Ok(())
            },
            write: |zone| Some(Written::Value(skew::write(zone.spec.$field, zone.spt()))),
        }
    };
}

/// A key whose value is a list: its form in the documentation, a reader of an item, and the writer.
macro_rules! list {
    ($name:literal, $form:literal, $doc:literal, $add:expr, $write:expr) => {
        Key {
            name: $name,
            presence: Presence::Optional,
            form: || $form.into(),
            default: "",
            doc: $doc,
            read: |reader, zone| {
                let add: fn(&Item<'_>, &mut ZoneSpec) -> Result<(), ProfileError> = $add;
                reader.items($name)?.iter().try_for_each(|item| add(item, &mut zone.spec))
            },
            write: $write,
        }
    };
}

/// An entry of `zones`.
pub(super) static ZONE: Schema<Zone> = Schema {
    title: "a zone",
    written_first: &[],
    blank: Zone::blank,
    keys: &[
        Key {
            name: "cylinders",
            presence: Presence::Required,
            form: || "`[first, last]`".into(),
            default: "",
            doc: "both included",
            read: |reader, zone| {
                let [first, last] =
                    reader.table.need("cylinders")?.tuple("a list of the first and the last cylinder")?;
                let first = first.int(0, CYLINDERS)?;
                zone.spec.first_cylinder = first as u32;
                zone.spec.last_cylinder = last.int(first, CYLINDERS)? as u32;
                Ok(())
            },
            write: |zone| Some(Written::Value(format!("[{}, {}]", zone.spec.first_cylinder, zone.spec.last_cylinder))),
        },
        key! {
            Zone, spec.surface, "surface", Optional, Maybe(Whole(0, 255)),
            "the one surface it belongs to (seek-first layouts only)",
            "all"
        },
        Key {
            name: "sectors_per_track",
            presence: Presence::Required,
            form: || SPT.words(),
            default: "",
            doc: "a number, or a list of one a surface",
            read: |reader, zone| {
                let item = reader.table.need("sectors_per_track")?;
                zone.spec.sectors_per_track = match item.is_list() {
                    true => item.list()?.iter().map(|item| SPT.read(item)).collect::<Result<Vec<u32>, _>>()?,
                    false => vec![SPT.read(&item)?],
                };
                Ok(())
            },
            write: |zone| {
                Some(Written::Value(match zone.spt() {
                    Some(spt) => spt.to_string(),
                    None => format!("{:?}", zone.spec.sectors_per_track),
                }))
            },
        },
        Key {
            name: "offset",
            presence: Presence::Optional,
            form: || "skew".into(),
            default: "0",
            doc: "angle of the zone's first physical sector. When it is left out in a seek-first layout, the angle \
                  follows from the track before",
            read: |reader, zone| {
                zone.spec.offset = match reader.find("offset", Presence::Optional)? {
                    Some(item) => Some(angle(&item, zone.spt())?),
                    None => zone.head_first.then_some(Skew::ZERO),
                };
                Ok(())
            },
            write: |zone| {
                let offset = zone.spec.offset.filter(|&o| !(zone.head_first && o == Skew::ZERO))?;
                Some(Written::Value(skew::write(offset, zone.spt())))
            },
        },
        skew! {
            track_skew, "track_skew",
            "from one track to the next: head-first, to the next surface; seek-first, to the next \
             track of the group"
        },
        skew! {
            cylinder_skew, "cylinder_skew",
            "head-first: to the next cylinder, *instead of* a track skew; seek-first: to the next \
             surface or group"
        },
        key! {
            Zone, spec.reserved_sectors, "reserved_sectors", Optional, INDEX,
            "physical sectors at the zone's front that hold no data"
        },
        key! { Zone, spec.sparing.spares, "spares", Optional, INDEX, "spare sectors in each unit" },
        key! {
            Zone, spec.sparing.unit, "spare_unit", Optional, Unit,
            "the unit that has its own spares; a number is one of cylinders (if fewer cylinders remain at the \
                zone's end, these have no spares)"
        },
        key! {
            Zone, spec.sparing.at_front, "spares_at_front", Optional, Flag,
            "spares lie at the unit's front, not its end"
        },
        Key {
            name: "slips_are_extra",
            presence: Presence::Optional,
            form: || Flag.words(),
            default: "true without spares, else false",
            doc: "slipped sectors are lost in addition to the spares, instead of using up spares",
            read: |reader, zone| {
                let sparing = &mut zone.spec.sparing;
                // Without spares, slips are lost in any case.
                sparing.slips_are_extra = reader.table.flag("slips_are_extra", sparing.spares == 0)?;
                Ok(())
            },
            write: |zone| {
                let Sparing { slips_are_extra, spares, .. } = zone.spec.sparing;
                (slips_are_extra != (spares == 0)).then(|| Written::Value(slips_are_extra.to_string()))
            },
        },
        key! {
            Zone, spec.sparing.slips_push_skew, "slips_push_skew", Optional, Flag,
            "slipped sectors of earlier units of the zone shift the angles of later units (head-first)"
        },
        list!(
            "slips",
            "list of numbers",
            "indices of skipped sectors among the zone's physical sectors in LBN order (head-first only)",
            |item, z| {
                z.slips.push(Slip::Index(INDEX.read(item)?));
                Ok(())
            },
            |zone| zone.slips(|slip| match slip {
                Slip::Index(i) => Some(i.to_string()),
                _ => None,
            })
        ),
        list!(
            "slipped_tracks",
            "list of numbers",
            "the same for whole tracks: indices among the zone's tracks (head-first only)",
            |item, z| {
                z.slips.push(Slip::TrackIndex(INDEX.read(item)?));
                Ok(())
            },
            |zone| zone.slips(|slip| match slip {
                Slip::TrackIndex(i) => Some(i.to_string()),
                _ => None,
            })
        ),
        list!(
            "slips_at",
            "list of `[cylinder, surface, sector]`",
            "sectors that are skipped",
            |item, z| {
                let [c, h, s] = item.tuple("a list of cylinder, surface and sector")?;
                z.slips.push(Slip::Sector(address(&c, &h, &s)?));
                Ok(())
            },
            |zone| zone.slips(|slip| match slip {
                Slip::Sector(a) => Some(format!("[{}, {}, {}]", a.cylinder, a.surface, a.sector)),
                _ => None,
            })
        ),
        list!(
            "slipped_tracks_at",
            "list of `[cylinder, surface]`",
            "tracks that are skipped",
            |item, z| {
                let [c, h] = item.tuple("a list of cylinder and surface")?;
                z.slips.push(Slip::Track { cylinder: c.int(0, CYLINDERS)? as u32, surface: h.int(0, 255)? as u16 });
                Ok(())
            },
            |zone| zone.slips(|slip| match slip {
                Slip::Track { cylinder, surface } => Some(format!("[{cylinder}, {surface}]")),
                _ => None,
            })
        ),
        list!(
            "defects",
            "list of `[bad, replacement]`",
            "bad sectors and their replacements, indices as in `slips`; the replacement must be a spare \
                (head-first only)",
            |item, z| {
                let [bad, spare] = item.tuple("a list of a bad sector and its replacement")?;
                z.defects.push((INDEX.read(&bad)?, INDEX.read(&spare)?));
                Ok(())
            },
            |zone| Written::list(zone.spec.defects.iter().map(|(bad, to)| format!("[{bad}, {to}]")).collect())
        ),
    ],
};

/// Reads a zone.
pub(super) fn read(reader: &mut Reader<'_, '_>, item: &Item<'_>, head_first: bool) -> Result<ZoneSpec, ProfileError> {
    let table = item.table(&ZONE)?;
    let at = table.need("cylinders")?.at;
    let mut zone = Zone { head_first, ..Zone::blank() };
    ZONE.read_into(&mut zone, &table, &format!("{}.", item.label), false, reader.places)?;
    reader.places.zones.push(at);
    Ok(zone.spec)
}

fn angle(item: &Item<'_>, spt: Option<u32>) -> Result<Skew, ProfileError> {
    let text = item.text_or_number()?;
    skew::parse(&text, spt).or_else(|form| item.refuse(form))
}

/// Reads the address of a sector.
pub(super) fn address(c: &Item<'_>, h: &Item<'_>, s: &Item<'_>) -> Result<SectorAddress, ProfileError> {
    Ok(SectorAddress {
        cylinder: c.int(0, CYLINDERS)? as u32,
        surface: h.int(0, 255)? as u16,
        sector: s.int(0, 100_000)? as u32,
    })
}

/// `"zone"`, `"track"` or a number of cylinders.
struct Unit;

impl Form<SpareUnit> for Unit {
    fn read(&self, item: &Item<'_>) -> Result<SpareUnit, ProfileError> {
        if !item.is_text() {
            return item.int(1, CYLINDERS).map(|n| SpareUnit::Cylinders(n as u32));
        }
        match item.text()? {
            "zone" => Ok(SpareUnit::Zone),
            "track" => Ok(SpareUnit::Track),
            _ => item.unknown("spare_unit", "zone, track, or a number of cylinders"),
        }
    }

    fn write(&self, unit: &SpareUnit) -> Option<Written> {
        Some(Written::Value(match unit {
            SpareUnit::Zone => "\"zone\"".into(),
            SpareUnit::Track => "\"track\"".into(),
            SpareUnit::Cylinders(n) => n.to_string(),
        }))
    }
}

impl Described for Unit {
    fn words(&self) -> String {
        format!("`\"zone\"`, `\"track\"`, or 1 to {CYLINDERS}")
    }
}
