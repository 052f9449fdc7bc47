//! `[geometry]`: keys of the layout of the sectors.

use super::forms::{Described, Form, Whole};
use super::zone::{self, ZONE, Zone, address};
use super::{CYLINDERS, Key, Presence, Reader, SECTORS, Schema, Written, key};
use crate::profile::check::unused_cylinders;
use crate::profile::fault::ProfileError;
use crate::profile::text::{text, wrapped};
use crate::profile::{GeometrySpec, HeadOrder, Layout};

/// `[geometry]`.
pub(in super::super) static GEOMETRY: Schema<GeometrySpec> = Schema {
    title: "[geometry]",
    // Zones are long: everything else comes before them.
    written_first: &["surfaces", "cylinders", "layout", "group_tracks", "unused_cylinders", "remaps"],
    blank: || GeometrySpec {
        surfaces: 0,
        cylinders: 0,
        layout: Layout::HeadFirst(HeadOrder::Forward),
        zones: Vec::new(),
        remaps: Vec::new(),
    },
    keys: &[
        key! { GeometrySpec, surfaces, "surfaces", Required, Whole(1, 256), "data surfaces" },
        key! {
            GeometrySpec, cylinders, "cylinders", Required, Whole(1, CYLINDERS),
            "cylinders: tracks of one surface"
        },
        Key {
            name: "layout",
            presence: Presence::Required,
            form: || LAYOUTS.map(|name| format!("`\"{name}\"`")).join(", "),
            default: "",
            doc: "the order in which tracks follow each other, below",
            read: layout,
            write: |g| Some(Written::Value(text(layout_name(g.layout)))),
        },
        Key {
            name: "group_tracks",
            presence: Presence::Optional,
            form: || GROUP.words(),
            default: "",
            doc: "width of a group of tracks: required by the seek-first layouts, an error for the others",
            // Read with the layout.
            read: |reader, _| reader.find("group_tracks", Presence::Optional).map(|_| ()),
            write: |g| match g.layout {
                Layout::SeekFirst { group_tracks, .. } => Some(Written::Value(group_tracks.to_string())),
                Layout::HeadFirst(_) => None,
            },
        },
        Key {
            name: "unused_cylinders",
            presence: Presence::Optional,
            form: || "list of `[first, last]`".into(),
            default: "",
            doc: "cylinders that belong to no zone. Every range of such cylinders must be listed, so that an \
                unintended hole between zones is found",
            read: |reader, _| {
                for item in reader.items("unused_cylinders")? {
                    let [first, last] = item.tuple("a list of the first and the last unused cylinder")?;
                    let first = first.int(0, CYLINDERS)? as u32;
                    reader.places.unused.push((first, last.int(first.into(), CYLINDERS)? as u32));
                }
                Ok(())
            },
            write: |g| Written::list(unused_cylinders(g).iter().map(|(a, b)| format!("[{a}, {b}]")).collect()),
        },
        Key {
            name: "zones",
            presence: Presence::Required,
            form: || "list of tables".into(),
            default: "",
            doc: "list of zones, outside in",
            read: |reader, g| {
                let head_first = matches!(g.layout, Layout::HeadFirst(_));
                let Some(list) = reader.find("zones", Presence::Required)? else { return Ok(()) };
                for item in list.list()? {
                    g.zones.push(zone::read(reader, &item, head_first)?);
                }
                Ok(())
            },
            write: |g| Some(Written::Value(zones(g))),
        },
        Key {
            name: "remaps",
            presence: Presence::Optional,
            form: || "list of `[lbn, cylinder, surface, sector]`".into(),
            default: "",
            doc: "blocks whose sector lies elsewhere. The place must be a spare",
            read: |reader, g| {
                for item in reader.items("remaps")? {
                    let [lbn, c, h, s] = item.tuple("a list of LBN, cylinder, surface and sector")?;
                    g.remaps.push((lbn.int(0, SECTORS)? as u64, address(&c, &h, &s)?));
                    reader.places.remaps.push(item.at);
                }
                Ok(())
            },
            write: |g| {
                let remaps = g.remaps.iter();
                let item = |(lbn, to): &(u64, crate::profile::SectorAddress)| {
                    format!("[{lbn}, {}, {}, {}]", to.cylinder, to.surface, to.sector)
                };
                Written::list(remaps.map(item).collect())
            },
        },
    ],
};

const GROUP: Whole = Whole(1, CYLINDERS);
const LAYOUTS: [&str; 7] = ["F", "A", "A-disk", "FF", "FA", "AF", "AA"];

fn layout(reader: &mut Reader<'_, '_>, spec: &mut GeometrySpec) -> Result<(), ProfileError> {
    let item = reader.table.need("layout")?;
    let seek_first = |tracks_alternate, surfaces_alternate| -> Result<Layout, ProfileError> {
        let group_tracks = GROUP.read(&reader.table.need("group_tracks")?)?;
        Ok(Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate })
    };
    spec.layout = match item.text()? {
        "F" => Layout::HeadFirst(HeadOrder::Forward),
        "A" => Layout::HeadFirst(HeadOrder::AlternatingInZone),
        "A-disk" => Layout::HeadFirst(HeadOrder::AlternatingOnDisk),
        "FF" => seek_first(false, false)?,
        "FA" => seek_first(false, true)?,
        "AF" => seek_first(true, false)?,
        "AA" => seek_first(true, true)?,
        _ => return item.unknown("layout", &LAYOUTS.join(", ")),
    };
    match (spec.layout, reader.table.get("group_tracks")) {
        (Layout::HeadFirst(_), Some(item)) => {
            Err(ProfileError::impossible(&item.at, "group_tracks goes with the layouts FF, FA, AF and AA only"))
        }
        _ => Ok(()),
    }
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::HeadFirst(HeadOrder::Forward) => "F",
        Layout::HeadFirst(HeadOrder::AlternatingInZone) => "A",
        Layout::HeadFirst(HeadOrder::AlternatingOnDisk) => "A-disk",
        Layout::SeekFirst { tracks_alternate, surfaces_alternate, .. } => {
            match (tracks_alternate, surfaces_alternate) {
                (false, false) => "FF",
                (false, true) => "FA",
                (true, false) => "AF",
                (true, true) => "AA",
            }
        }
    }
}

/// Formats the zones, one a line.
fn zones(g: &GeometrySpec) -> String {
    let head_first = matches!(g.layout, Layout::HeadFirst(_));
    let mut out = String::from("[\n");
    for spec in &g.zones {
        let keys = ZONE.written(&Zone { spec: spec.clone(), head_first });
        let keys = keys.into_iter().map(|(name, value)| match value {
            Written::Value(value) => format!("{name} = {value}"),
            Written::List(items) => format!("{name} = {}", wrapped(&items)),
        });
        out += &format!("    {{ {} }},\n", keys.collect::<Vec<_>>().join(", "));
    }
    out + "]"
}
