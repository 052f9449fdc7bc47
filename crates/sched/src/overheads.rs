//! Times that a drive's electronics add before, between and after media accesses.

use headtime_disk::internals::JUST_PASSED;
use headtime_disk::profile::ByLast;
use headtime_disk::{Access, Dur, Kind, Model, Place, Time};

/// Returns the time from sending a command to an idle drive until the mechanism begins to work for
/// it. `last` is the kind of the preceding command.
#[inline]
pub fn lead_in(model: &Model, last: Kind, kind: Kind) -> Dur {
    let o = &model.overheads;
    let pair = match kind {
        Kind::Write => o.write_miss,
        _ => o.read_miss,
    };
    o.per_request + by_last(last, pair)
}

/// Returns the value that applies after a command of kind `last`.
#[inline]
fn by_last(last: Kind, pair: ByLast) -> Dur {
    match last {
        Kind::Write => pair.after_write,
        _ => pair.after_read,
    }
}

/// Returns when a drive has decoded a read sent at `sent` and starts to read the part that its
/// cache lacks. `free` is when the mechanism became free, if the read had to wait for that.
pub(crate) fn asked(model: &Model, last: Kind, sent: Time, free: Option<Time>) -> Time {
    free.unwrap_or(sent + model.overheads.per_request) + by_last(last, model.overheads.read_miss)
}

/// Returns the earliest time at which a read that the cache answers, or its front, may cross the
/// bus; `free` as for [`asked`].
pub(crate) fn hit_ready(model: &Model, last: Kind, sent: Time, free: Option<Time>) -> Time {
    let o = &model.overheads;
    let arrived = sent + o.per_request;
    let ready = match free {
        // It disconnected from the bus to wait.
        Some(free) => {
            let asked = arrived + by_last(last, o.read_miss) + by_last(last, o.read_disconnect);
            asked.max(free) + o.reselect
        }
        None => arrived + by_last(last, o.read_hit),
    };
    ready + o.data_preparation + model.bus.arbitration
}

/// Returns the time between the end of one media access and the beginning of the next, when the
/// next command was queued in the drive (Reuther 2003 section 3.3.1, eq. 6).
#[inline]
pub fn between(model: &Model, last: Kind, kind: Kind) -> Dur {
    let q = &model.overheads.queued;
    match (last, kind) {
        (Kind::Write, Kind::Write) => q.write_write,
        (Kind::Write, _) => q.write_read,
        (_, Kind::Write) => q.read_write,
        (_, _) => q.read_read,
    }
}

/// Returns the time that `sectors` of a read take on the bus.
#[inline]
fn on_bus(model: &Model, sectors: u64) -> Dur {
    let sector_ps = model.bus.read_block_ps * (model.sector_bytes / 512).max(1) as u64;
    Dur((sector_ps * sectors).div_ceil(1000))
}

/// Returns the time that the data of a write of `count` sectors takes on the bus to the drive.
#[inline]
pub(crate) fn to_drive(model: &Model, count: u32) -> Dur {
    let sector_ps = model.bus.write_block_ps * u64::from((model.sector_bytes / 512).max(1));
    Dur((sector_ps * u64::from(count)).div_ceil(1000))
}

/// Returns the time from the bus being free until the completion at the host of a read of `count`
/// sectors that were waiting for it.
#[inline]
pub(crate) fn crossing(model: &Model, count: u32) -> Dur {
    on_bus(model, count as u64) + model.overheads.read_completion
}

/// Returns when a read that completed at the host at `heard` was off the bus.
#[inline]
pub(crate) fn off_bus(model: &Model, heard: Time) -> Time {
    Time(heard.0.saturating_sub(model.overheads.read_completion.0))
}

/// Returns the time from the end of an access's media transfer until its completion at the host,
/// with the bus otherwise idle.
///
/// A write only has to be reported. A read's last sectors must still cross the bus, in the order of
/// their LBNs: one of them, or more when the bus is slower than the media, when the first sector
/// passed only shortly before the last (a single sector), when the drive landed inside the request
/// and read its front last, or when a part of them must be in before any may cross.
#[inline]
pub(crate) fn tail(model: &Model, kind: Kind, place: &Place, access: &Access) -> Dur {
    let o = &model.overheads;
    if kind != Kind::Read {
        return o.reselect + o.write_completion;
    }
    let (count, rotation) = (place.count as u64, &model.mechanics.rotation);
    let sector = Dur(place.media.0 / count.max(1));
    // From the first sector's left edge to the end of the transfer. After a landing the head ends
    // somewhere inside.
    let turned = access.end.angle - place.angle;
    let one_track = place.tracks == 1 && place.media <= rotation.period() && turned > JUST_PASSED;
    let since_first = if one_track { rotation.time_for(turned) } else { place.transfer };
    let behind = match since_first + sector > place.media {
        true => 1,
        false => 1 + count - (since_first.0 + sector.0 / 2) / sector.0.max(1),
    };
    let wanted = model.cache.read_watermark(count);
    // Of its last track, where that matters.
    let on_last = (place.tracks > 1 && (wanted > 1 || on_bus(model, 1) > sector)).then(|| {
        let last = model.geometry.track_of(place.lbn + count - 1);
        last.map_or(1, |t| (place.lbn + count).saturating_sub(t.first_lbn)).clamp(1, count)
    });
    let wanted_in = match on_last {
        Some(n) if wanted > count - n => since_first.saturating_sub(Dur(sector.0 * (count - wanted))),
        _ => Dur(sector.0 * wanted),
    };
    let all = wanted_in + o.reselect + o.data_preparation + model.bus.arbitration + on_bus(model, count);
    let mut rest = all.saturating_sub(since_first).max(on_bus(model, behind));
    if let Some(n) = on_last {
        // A bus that is slower than the media has caught up by the last track, and falls behind
        // again on it.
        rest = rest.max((sector + on_bus(model, n)).saturating_sub(Dur(sector.0 * n)));
    }
    rest + o.read_completion
}

/// Returns the time from the end of the media transfer of `rest`, the part of a read that the cache
/// lacked, until the read's completion at the host, if the bus had carried everything before by
/// then. `None`: a prefetch, with which the bus keeps up.
pub(crate) fn rest_tail(model: &Model, rest: Option<&Place>) -> Dur {
    let o = &model.overheads;
    let all = rest.map_or(Dur::ZERO, |rest| {
        let sector = Dur(rest.media.0 / rest.count.max(1) as u64);
        (sector + on_bus(model, rest.count as u64)).saturating_sub(rest.transfer)
    });
    let again = if model.bus.hold_for_reads { Dur::ZERO } else { o.reselect + o.data_preparation };
    all.max(on_bus(model, 1)) + again + o.read_completion
}
