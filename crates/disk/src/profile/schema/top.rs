//! The top level of a profile file.

use std::collections::BTreeMap;

use super::electronics::ELECTRONICS;
use super::forms::{Described, Form, Maybe, Narrowed, Text, Whole};
use super::geometry::GEOMETRY;
use super::mechanics::MECHANICS;
use super::noise::NOISE;
use super::{FORMAT, Key, Presence, Reader, SECTORS, Schema, Written, key, known, service};
use crate::profile::table::Item;
use crate::profile::{Electronics, Known, NoiseSpec, Profile};

/// A table of the top level. It is written in a section of its own.
macro_rules! table {
    ($name:literal, $presence:ident, $form:literal, $doc:literal, $read:expr) => {
        Key {
            name: $name,
            presence: Presence::$presence,
            form: || $form.into(),
            default: "",
            doc: $doc,
            read: |reader, profile| match reader.find($name, Presence::$presence)? {
                Some(item) => $read(reader, item, profile),
                None => Ok(()),
            },
            write: |_| None,
        }
    };
}

const BYTES: Narrowed<Whole> = Narrowed(Whole(0, 1 << 20), "512 or 4096");

/// The file's top level.
pub(in super::super) static TOP: Schema<Profile> = Schema {
    title: "the top level",
    written_first: &[],
    blank,
    keys: &[
        Key {
            name: "format",
            presence: Presence::Required,
            form: || FORMAT.to_string(),
            default: "",
            doc: "version of this format",
            read: |reader, _| {
                let format = reader.table.need("format")?;
                match format.int(0, i64::MAX)? {
                    FORMAT => Ok(()),
                    _ => format.refuse("1, the only version there is,"),
                }
            },
            write: |_| Some(Written::Value(FORMAT.to_string())),
        },
        key! {
            Profile, name, "name", Required, Text,
            "short name as typed on a command line: lower-case letters, digits, `-`, `_`, `.`"
        },
        key! { Profile, title, "title", Required, Text, "the drive's full name" },
        key! { Profile, year, "year", Optional, Maybe(Whole(1956, 2100)), "year of introduction" },
        key! {
            Profile, synthesised, "synthesised", Optional, Maybe(Text),
            "how the profile was built from published figures, if the drive was not measured; left \
             out for measured drives"
        },
        key! {
            Profile, sector_bytes, "sector_bytes", Kept, BYTES,
            "bytes a sector holds"
        },
        key! {
            Profile, stated_sectors, "sectors", Optional, Maybe(Whole(1, SECTORS)),
            "number of usable sectors as the maker or the drive states it; must be the sum over the zones"
        },
        table!(
            "sources",
            Required,
            "table of texts",
            "where figures come from. Keys are `geometry`, `mechanics`, `electronics`, `noise`, `rig`, \
             `service_times`, or a path below one of them such as `\"electronics.cache\"`",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                for (key, value, at) in item.texts()? {
                    reader.places.keyed.insert(format!("sources.{key}"), at);
                    profile.sources.insert(key, value);
                }
                Ok(())
            }
        ),
        table!(
            "geometry",
            Required,
            "table",
            "the layout of the sectors",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.geometry = GEOMETRY.read(&item.table(&GEOMETRY)?, "geometry.", reader.places)?;
                Ok(())
            }
        ),
        table!(
            "mechanics",
            Required,
            "table",
            "arm and platter",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.mechanics = MECHANICS.read(&item.table(&MECHANICS)?, "mechanics.", reader.places)?;
                Ok(())
            }
        ),
        table!(
            "electronics",
            Required,
            "table",
            "bus, overheads, cache and queue",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.electronics = ELECTRONICS.read_over(&Electronics::neutral(), &item, false, reader.places)?;
                Ok(())
            }
        ),
        table!(
            "noise",
            Optional,
            "table",
            "randomness of the drive",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.noise = NOISE.read(&item.table(&NOISE)?, "noise.", reader.places)?;
                Ok(())
            }
        ),
        Key {
            name: "known",
            presence: Presence::Optional,
            form: || "table".into(),
            default: "",
            doc: "what is known of the figures of a worst case",
            // Statements that are missing follow from other tables.
            read: |reader, profile| {
                profile.known = known::read(reader.table, reader.places)?;
                Ok(())
            },
            write: |_| None,
        },
        table!(
            "rig",
            Optional,
            "table",
            "electronics of the rig in which the drive's trace was measured",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.rig = Some(ELECTRONICS.read_over(&profile.electronics, &item, true, reader.places)?);
                Ok(())
            }
        ),
        table!(
            "service_times",
            Optional,
            "list of tables",
            "measured service times",
            |reader: &mut Reader<'_, '_>, item: Item<'_>, profile: &mut Profile| {
                profile.service_times = service::read(&item, reader.places)?;
                Ok(())
            }
        ),
    ],
};

fn blank() -> Profile {
    Profile {
        name: String::new(),
        title: String::new(),
        year: None,
        synthesised: None,
        sources: BTreeMap::new(),
        sector_bytes: 512,
        stated_sectors: None,
        geometry: (GEOMETRY.blank)(),
        mechanics: (MECHANICS.blank)(),
        electronics: Electronics::neutral(),
        noise: NoiseSpec::default(),
        known: Known::default(),
        rig: None,
        service_times: Vec::new(),
    }
}
