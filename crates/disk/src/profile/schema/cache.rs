//! `[electronics.cache]`: keys of the drive's cache.

use super::forms::{DELAY, Described, Flag, Form, Units, Whole};
use super::{Key, Presence, Reader, Schema, Written, key};
use crate::profile::fault::ProfileError;
use crate::profile::text::text;
use crate::profile::{CacheSpec, Prefetch};

const SEGMENTS: Whole = Whole(0, 100_000);
const BLOCKS: Whole = Whole(0, 1 << 24);
/// A share in 1/1000.
const SHARE: Units = Units { places: 3, min: 0, max: 1000 };

/// `[electronics.cache]`.
pub(super) static CACHE: Schema<CacheSpec> = Schema {
    title: "[electronics.cache]",
    // The order of files that exist; a new key comes behind these.
    written_first: &[
        "segments",
        "segment_sectors",
        "prefetch",
        "prefetch_sectors",
        "read_watermark",
        "write_watermark",
        "minimum_prefetch_sectors",
        "dirty_segments",
        "write_segments",
        "write_burst_sectors",
    ],
    blank: CacheSpec::default,
    keys: &[
        key! {
            CacheSpec, segments, "segments", Required, SEGMENTS,
            "number of segments; 0: no cache"
        },
        key! { CacheSpec, segment_sectors, "segment_sectors", Required, BLOCKS, "sectors of each" },
        Key {
            name: "prefetch",
            presence: Presence::Kept,
            form: || KINDS.map(|kind| format!("`\"{kind}\"`")).join(", "),
            default: "",
            doc: "what is read ahead: nothing; `\"track-ahead\"`: to the end of the track, and one more track when the \
                  stream came from the track before; the others: `prefetch_sectors` sectors, not past the end of the \
                  track, not past the end of the cylinder, or exactly that number",
            read: prefetch,
            write: |c| Some(Written::Value(text(kind(c.prefetch).0))),
        },
        Key {
            name: "prefetch_sectors",
            presence: Presence::Kept,
            form: || BLOCKS.words(),
            default: "",
            doc: "see above; required for these kinds, an error for the others",
            // Read with the kind.
            read: |_, _| Ok(()),
            write: |c| Some(Written::Value(kind(c.prefetch).1?.to_string())),
        },
        key! {
            CacheSpec, minimum_prefetch_sectors, "minimum_prefetch_sectors", Kept, BLOCKS,
            "number of sectors that are read ahead before another command may stop it (kept, not simulated)"
        },
        key! {
            CacheSpec, prefetch_on_idle_hit, "prefetch_on_idle_hit", Kept, Flag,
            "a hit starts the read-ahead again if it does not run"
        },
        key! {
            CacheSpec, stop_in_sector, "stop_in_sector", Kept, Flag,
            "a prefetch that must stop does so at once, not at the end of its sector"
        },
        key! {
            CacheSpec, prefetch_only_sequential, "prefetch_only_sequential", Kept, Flag,
            "the drive reads ahead only after a read that begins where the one before it ended"
        },
        key! {
            CacheSpec, same_track_prefetch_delays, "same_track_prefetch_delays", Kept, Flag,
            "two reads in a row on one track make the drive read the rest of the track first; \
             commands that wait in its queue wait for it"
        },
        key! {
            CacheSpec, keep_delivered, "keep_delivered", Kept, Flag,
            "data just delivered may be hit again"
        },
        key! {
            CacheSpec, read_watermark_permille, "read_watermark", Kept, SHARE,
            "share of a segment, or of the request (`watermark_by_request`), that must be in the buffer \
                before data flows to the host"
        },
        key! {
            CacheSpec, write_watermark_permille, "write_watermark", Kept, SHARE,
            "share of the segment that must be free before more data of a write is accepted (kept, not simulated)"
        },
        key! {
            CacheSpec, watermark_by_request, "watermark_by_request", Kept, Flag,
            "the watermark is a share of the request if the request is smaller than the segment"
        },
        key! {
            CacheSpec, write_back, "write_back", Kept, Flag,
            "writes complete when their data is in the cache"
        },
        key! {
            CacheSpec, dirty_segments, "dirty_segments", Kept, SEGMENTS,
            "number of writes that may wait in the cache"
        },
        key! {
            CacheSpec, dirty_sectors, "dirty_sectors", Kept, BLOCKS,
            "number of sectors that may wait in the cache, except that a longer write may wait alone; 0: any number"
        },
        key! {
            CacheSpec, destage_delay, "destage_delay_ms", Kept, DELAY,
            "time without a command after which the drive writes them back"
        },
        key! {
            CacheSpec, destage_above_permille, "destage_above", Kept, SHARE,
            "share of `dirty_sectors` in the cache above which it does so without that delay"
        },
        key! {
            CacheSpec, read_hits_on_written, "read_hits_on_written", Kept, Flag,
            "written data may be hit by reads"
        },
        key! {
            CacheSpec, writes_update_segments, "writes_update_segments", Kept, Flag,
            "a write puts its data into the segment that holds all of its blocks, and the rest of that \
                segment stays; only for drives that write through and whose reads may hit written data. \
                Otherwise a write empties each segment that holds any of its blocks"
        },
        key! {
            CacheSpec, combine_sequential_writes, "combine_sequential_writes", Kept, Flag,
            "a write that begins where the write in progress ends is joined to it"
        },
        key! {
            CacheSpec, write_burst_sectors, "write_burst_sectors", Kept, Whole(0, 10_000),
            "a write's sectors count as buffered only when at least this number of them has arrived, or all \
                (half as many again for writes of 45 sectors and more)"
        },
        key! {
            CacheSpec, almost_hits, "almost_hits", Kept, Flag,
            "a read that begins where the prefetch is about to read is a hit (kept, not simulated)"
        },
        key! {
            CacheSpec, separate_write_segment, "separate_write_segment", Kept, Flag,
            "writes have a segment of their own (kept, not simulated)"
        },
        key! {
            CacheSpec, write_segments, "write_segments", Kept, SEGMENTS,
            "segments that may hold writes (kept, not simulated)"
        },
    ],
};

const KINDS: [&str; 5] = ["none", "track-ahead", "to-track-end", "to-cylinder-end", "sectors"];

/// Returns the name of a kind of prefetch and its number of sectors.
fn kind(prefetch: Prefetch) -> (&'static str, Option<u32>) {
    match prefetch {
        Prefetch::None => (KINDS[0], None),
        Prefetch::TrackAhead => (KINDS[1], None),
        Prefetch::ToTrackEnd(n) => (KINDS[2], Some(n)),
        Prefetch::ToCylinderEnd(n) => (KINDS[3], Some(n)),
        Prefetch::Sectors(n) => (KINDS[4], Some(n)),
    }
}

fn prefetch(reader: &mut Reader<'_, '_>, spec: &mut CacheSpec) -> Result<(), ProfileError> {
    if let Some(item) = reader.find("prefetch", Presence::Kept)? {
        let ahead = || -> Result<u32, ProfileError> { BLOCKS.read(&reader.table.need("prefetch_sectors")?) };
        spec.prefetch = match item.text()? {
            "none" => Prefetch::None,
            "track-ahead" => Prefetch::TrackAhead,
            "to-track-end" => Prefetch::ToTrackEnd(ahead()?),
            "to-cylinder-end" => Prefetch::ToCylinderEnd(ahead()?),
            "sectors" => Prefetch::Sectors(ahead()?),
            _ => return item.unknown("prefetch", &KINDS.join(", ")),
        };
    }
    match (spec.prefetch, reader.table.get("prefetch_sectors")) {
        (Prefetch::None | Prefetch::TrackAhead, Some(item)) => {
            Err(ProfileError::impossible(&item.at, "prefetch_sectors has no meaning with this kind of prefetch"))
        }
        _ => Ok(()),
    }
}
