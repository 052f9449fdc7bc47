//! `[electronics]` and `[rig]`: keys of the bus, the overheads and the queue.

use super::cache::CACHE;
use super::forms::{DELAY, Described, Flag, Form, Inline, MICROS, Maybe, Name, Units, Whole};
use super::{Key, Presence, Reader, Schema, Written, key};
use crate::profile::fault::ProfileError;
use crate::profile::places::Places;
use crate::profile::table::Item;
use crate::profile::{
    BusSpec, ByLast, Electronics, ExtraDisconnect, FirmwareOrder, Overheads, QueueSpec, QueuedOverheads,
};

/// `[electronics]` and `[rig]`.
pub(in super::super) static ELECTRONICS: Schema<Electronics> = Schema {
    title: "[electronics]",
    written_first: &[],
    blank: Electronics::neutral,
    keys: &[
        Key {
            name: "bus",
            presence: Presence::Required,
            form: || "table".into(),
            default: "",
            doc: "the bus to the host",
            read: |reader, e| part(reader, "bus", Presence::Required, &BUS, &mut e.bus),
            write: |_| None,
        },
        Key {
            name: "overheads",
            presence: Presence::Optional,
            form: || "table".into(),
            default: "",
            doc: "times that commands take beside seek, latency and transfer",
            read: |reader, e| part(reader, "overheads", Presence::Optional, &OVERHEADS, &mut e.overheads),
            write: |_| None,
        },
        Key {
            name: "cache",
            presence: Presence::Required,
            form: || "table".into(),
            default: "",
            doc: "the drive's cache",
            read: |reader, e| part(reader, "cache", Presence::Required, &CACHE, &mut e.cache),
            write: |_| None,
        },
        Key {
            name: "queue",
            presence: Presence::Optional,
            form: || "table".into(),
            default: "",
            doc: "the drive's queue of commands",
            read: |reader, e| part(reader, "queue", Presence::Optional, &QUEUE, &mut e.queue),
            write: |_| None,
        },
    ],
};

/// The keys to write of a table of `[electronics]`.
type Part = fn(&Electronics) -> Vec<(&'static str, Written)>;

/// The tables of `[electronics]`, for the writer.
pub(in super::super) const ELECTRONICS_TABLES: [(&str, Part); 4] = [
    ("bus", |e| BUS.written(&e.bus)),
    ("overheads", |e| OVERHEADS.written(&e.overheads)),
    ("cache", |e| CACHE.written(&e.cache)),
    ("queue", |e| QUEUE.written(&e.queue)),
];

impl Schema<Electronics> {
    /// Reads a table on top of `base`; keys may be missing.
    pub(in super::super) fn read_over(
        &'static self,
        base: &Electronics,
        item: &Item<'_>,
        partial: bool,
        places: &mut Places,
    ) -> Result<Electronics, ProfileError> {
        let mut electronics = base.clone();
        let path = format!("{}.", item.label);
        self.read_into(&mut electronics, &item.table(self)?, &path, partial, places)?;
        Ok(electronics)
    }
}

/// Reads a table of `[electronics]` on top of `spec`.
fn part<T>(
    reader: &mut Reader<'_, '_>,
    name: &str,
    presence: Presence,
    schema: &'static Schema<T>,
    spec: &mut T,
) -> Result<(), ProfileError> {
    let Some(item) = reader.find(name, presence)? else { return Ok(()) };
    let path = format!("{}{name}.", reader.path);
    schema.read_into(spec, &item.table(schema)?, &path, reader.partial, reader.places)
}

/// A time of the bus in picoseconds, at most 1 s for a block.
const BLOCK: Units = Units { places: 3, min: 0, max: 1_000_000_000_000 };

/// `[electronics.bus]`.
pub(super) static BUS: Schema<BusSpec> = Schema {
    title: "[electronics.bus]",
    written_first: &[],
    blank: BusSpec::default,
    keys: &[
        key! {
            BusSpec, read_block_ps, "read_block_ns", Required, BLOCK,
            "time of the transfer of 512 bytes to the host: 6400 for 80 MB/s"
        },
        key! {
            BusSpec, write_block_ps, "write_block_ns", Required, BLOCK,
            "time of the transfer of 512 bytes to the drive"
        },
        key! {
            BusSpec, hold_for_reads, "hold_for_reads", Kept, Flag,
            "once data of a read flows, the bus is kept until the end of the read, even while there is no \
                data to transfer"
        },
        key! {
            BusSpec, hold_for_writes, "hold_for_writes", Kept, Flag,
            "the same for writes (kept, not simulated)"
        },
        key! {
            BusSpec, never_disconnect, "never_disconnect", Kept, Flag,
            "the bus is kept for the whole command"
        },
        key! { BusSpec, arbitration, "arbitration_us", Kept, MICROS, "each time the bus is taken" },
    ],
};

const EXTRA: Maybe<Inline<ExtraDisconnect>> = Maybe(Inline(&EXTRA_DISCONNECT));

/// `[electronics.overheads]`.
pub(super) static OVERHEADS: Schema<Overheads> = Schema {
    title: "[electronics.overheads]",
    // Everything is written, zeros too: what a rig omits is taken from the drive's usual
    // electronics. The order is that of files that exist.
    written_first: &["read_hit_us", "read_miss_us", "write_hit_us", "write_miss_us", "read_disconnect_us"],
    blank: Overheads::default,
    keys: &[
        key! { Overheads, per_request, "per_request_us", Kept, MICROS, "on arrival of any command" },
        key! {
            Overheads, read_hit, "read_hit_us", Kept, Pair,
            "before a read that the cache can answer"
        },
        key! {
            Overheads, read_miss, "read_miss_us", Kept, Pair,
            "before a read that needs the media"
        },
        key! {
            Overheads, write_hit, "write_hit_us", Kept, Pair,
            "before a write that completes in the cache"
        },
        key! {
            Overheads, write_miss, "write_miss_us", Kept, Pair,
            "before a write that completes on the media"
        },
        key! {
            Overheads, read_completion, "read_completion_us", Kept, MICROS,
            "after a read's last sector"
        },
        key! {
            Overheads, write_completion, "write_completion_us", Kept, MICROS,
            "after a write's last sector"
        },
        key! {
            Overheads, data_preparation, "data_preparation_us", Kept, MICROS,
            "before data flows"
        },
        key! {
            Overheads, reselect, "reselect_us", Kept, MICROS,
            "getting the bus back for the first time in a command"
        },
        key! {
            Overheads, other_reselect, "other_reselect_us", Kept, MICROS,
            "getting it back again (kept, not simulated)"
        },
        key! {
            Overheads, read_disconnect, "read_disconnect_us", Kept, Pair,
            "letting go of the bus in a read"
        },
        key! {
            Overheads, write_disconnect, "write_disconnect_us", Kept, MICROS,
            "letting go of the bus in a write"
        },
        key! {
            Overheads, minimum_seek, "minimum_seek_us", Kept, MICROS,
            "shortest time that the move before a write may take"
        },
        Key {
            name: "extra_disconnect_us",
            presence: Presence::Optional,
            form: || EXTRA.words(),
            default: "",
            doc: "a drive that lets go of the bus twice in a write (DiskSim's `Extradisc` times; kept, not simulated)",
            // No value can say that there is none, so a rig without the key has none.
            read: |reader, o| {
                let item = reader.find("extra_disconnect_us", Presence::Optional)?;
                o.extra_disconnect = item.map_or(Ok(None), |item| EXTRA.read(&item))?;
                Ok(())
            },
            write: |o| EXTRA.write(&o.extra_disconnect),
        },
        key! {
            Overheads, queued, "queued_us", Kept, Inline(&QUEUED),
            "between two commands of which the second was already waiting in the drive"
        },
    ],
};

/// A pair of overheads, by the kind of the last command.
pub(super) static BY_LAST: Schema<ByLast> = Schema {
    title: "a pair of overheads",
    written_first: &[],
    blank: ByLast::default,
    keys: &[
        key! {
            ByLast, after_read, "after_read", Required, MICROS,
            "when the drive's previous command was a read"
        },
        key! { ByLast, after_write, "after_write", Required, MICROS, "when it was a write" },
    ],
};

/// Overheads by the kind of the last command: one number for both, or a table.
pub(super) struct Pair;

impl Form<ByLast> for Pair {
    fn read(&self, item: &Item<'_>) -> Result<ByLast, ProfileError> {
        if item.is_table() {
            return Inline(&BY_LAST).read(item);
        }
        let both = MICROS.read(item)?;
        Ok(ByLast { after_read: both, after_write: both })
    }

    fn write(&self, value: &ByLast) -> Option<Written> {
        match value.after_read == value.after_write {
            true => MICROS.write(&value.after_read),
            false => Inline(&BY_LAST).write(value),
        }
    }
}

impl Described for Pair {
    fn words(&self) -> String {
        "pair".into()
    }
}

/// `extra_disconnect_us`.
pub(super) static EXTRA_DISCONNECT: Schema<ExtraDisconnect> = Schema {
    title: "extra_disconnect_us",
    written_first: &[],
    blank: ExtraDisconnect::default,
    keys: &[
        key! { ExtraDisconnect, command, "command", Kept, MICROS, "before the first time" },
        key! { ExtraDisconnect, disconnect, "disconnect", Kept, MICROS, "the first time" },
        key! { ExtraDisconnect, between, "between", Kept, MICROS, "between the two" },
        key! { ExtraDisconnect, second, "second", Kept, MICROS, "the second time" },
        key! {
            ExtraDisconnect, seek_delta, "seek_delta", Kept, MICROS,
            "subtracted from what the seek has of the interval"
        },
    ],
};

/// `queued_us`.
pub(super) static QUEUED: Schema<QueuedOverheads> = Schema {
    title: "queued_us",
    written_first: &[],
    blank: QueuedOverheads::default,
    keys: &[
        key! { QueuedOverheads, read_read, "read_read", Kept, MICROS, "a read, then a read" },
        key! { QueuedOverheads, read_write, "read_write", Kept, MICROS, "a read, then a write" },
        key! { QueuedOverheads, write_read, "write_read", Kept, MICROS, "a write, then a read" },
        key! { QueuedOverheads, write_write, "write_write", Kept, MICROS, "a write, then a write" },
    ],
};

const ORDERS: Name<FirmwareOrder> =
    Name { of: "order", names: &[("fcfs", FirmwareOrder::Fcfs), ("sptf", FirmwareOrder::Sptf)] };

/// `[electronics.queue]`.
pub(super) static QUEUE: Schema<QueueSpec> = Schema {
    title: "[electronics.queue]",
    written_first: &[],
    blank: QueueSpec::default,
    keys: &[
        key! { QueueSpec, depth, "depth", Kept, Whole(1, 256), "commands that may be outstanding" },
        key! {
            QueueSpec, order, "order", Kept, ORDERS,
            "which command is served next: in order of arrival, or with the shortest positioning \
             time"
        },
        key! {
            QueueSpec, oldest_after, "oldest_after_ms", Kept, DELAY,
            "with `sptf`: a command that has waited for longer is served next. The default has no source"
        },
    ],
};
