//! Comparison of rotation, seeks and electronics.

use super::{Options, Row};
use crate::model::Model;
use crate::profile::{Overheads, Prefetch, Profile};
use crate::seek::SeekCurve;
use crate::time::Dur;

/// Tolerance of the period in parts per million (claim P1).
const PERIOD_PPM: f64 = 10.0;
/// Tolerance of times in microseconds (claims P5 and P7).
const TIMES_US: f64 = 30.0;

fn us(d: Dur) -> f64 {
    d.0 as f64 / 1e3
}

/// Compares two durations in us, with the tolerance for times.
fn span(what: impl Into<String>, a: Dur, b: Dur) -> Row {
    let said = |d: Dur| format!("{:.1} us", us(d));
    Row::plain("electronics", what, said(a), said(b)).apart(us(b) - us(a), "us").within(TIMES_US)
}

/// Compares the periods.
pub(super) fn rotation(a: &Profile, b: &Profile) -> Vec<Row> {
    let rpm = |p: &Profile| p.mechanics.rpm.0 as f64 / p.mechanics.rpm.1 as f64;
    let (ra, rb) = (rpm(a), rpm(b));
    let said = |rpm: f64| format!("{:.6} ms", 60e3 / rpm);
    vec![Row::plain("period", "period", said(ra), said(rb)).apart((ra / rb - 1.0) * 1e6, "ppm").within(PERIOD_PPM)]
}

/// Returns the largest difference of two curves at these distances, with the distance; `None` when
/// there are none.
fn largest(a: &SeekCurve, b: &SeekCurve, at: impl Iterator<Item = u32>) -> Option<(f64, u32, u32)> {
    let mut most: Option<(f64, u32, u32)> = None;
    for d in at {
        let apart = us(b.time(d)) - us(a.time(d));
        let count = most.map_or(0, |m| m.2) + 1;
        let (worst, where_) = most.filter(|m| m.0.abs() >= apart.abs()).map_or((apart, d), |m| (m.0, m.1));
        most = Some((worst, where_, count));
    }
    most
}

fn curve_rows(what: &str, ta: (&[(u32, Dur)], &SeekCurve), tb: (&[(u32, Dur)], &SeekCurve), end: u32) -> Vec<Row> {
    let points = |t: &[(u32, Dur)]| format!("{} points", t.len());
    let within = |t: &[(u32, Dur)]| -> Vec<u32> { t.iter().map(|p| p.0).filter(|&d| d <= end).collect() };
    let (da, db) = (within(ta.0), within(tb.0));
    let row = |of: &str, at: &mut dyn Iterator<Item = u32>| {
        let row = Row::plain("seeks", format!("{what}, {of}"), points(ta.0), points(tb.0));
        match largest(ta.1, tb.1, at) {
            Some((most, d, n)) => {
                let time = |c: &SeekCurve| c.time(d).as_ms_f64();
                let place = format!("over {d} cylinders: {:.3} and {:.3} ms; {n} distances", time(ta.1), time(tb.1));
                row.apart(most, "us").at(place)
            }
            None => row.at("there are none"),
        }
    };
    let shared = row("distances that both have", &mut db.iter().copied().filter(|d| da.binary_search(d).is_ok()));
    // Tables without a common distance are compared only by the next row.
    let shared = if shared.difference.is_some() { shared.within(TIMES_US) } else { shared };
    vec![
        shared,
        row("distances of the second, the first interpolated", &mut db.iter().copied()).within(TIMES_US),
        row("distances of the first, the second interpolated", &mut da.iter().copied()),
    ]
}

/// Compares seek tables and other head movements.
pub(super) fn seeks(a: &Profile, ma: &Model, b: &Profile, mb: &Model, options: &Options) -> Vec<Row> {
    let (sa, sb) = (&a.mechanics, &b.mechanics);
    let end = ma.geometry.cylinders().min(mb.geometry.cylinders()).saturating_sub(1);
    let (ca, cb) = (&ma.mechanics, &mb.mechanics);
    let mut rows = curve_rows("seek", (&sa.seek, &ca.seek), (&sb.seek, &cb.seek), end);
    let group = |mut r: Row| {
        r.group = "seeks";
        r
    };
    rows.push(group(span("head switch", sa.head_switch, sb.head_switch)));
    match (&sa.write_seek, &sb.write_seek, &ca.write_seek, &cb.write_seek) {
        (Some(ta), Some(tb), Some(wa), Some(wb)) => {
            let writes = curve_rows("seek before a write", (ta, wa), (tb, wb), end);
            rows.extend(writes.into_iter().map(|r| r.unless(options.reads_only)));
        }
        _ => {
            // One has a separate table, the other adds a settling time: compare the resulting
            // times.
            let time = |m: &Model, d: u32| match &m.mechanics.write_seek {
                Some(w) => w.time(d),
                None => m.mechanics.seek.time(d).saturating_add_signed(m.mechanics.write_settle_ns),
            };
            let settle = |m: &Model, d: u32| us(time(m, d)) - us(m.mechanics.seek.time(d));
            let most = [1, end / 3, end].into_iter().map(|d| (settle(mb, d) - settle(ma, d), d));
            let (most, d) = most.max_by(|x, y| x.0.abs().total_cmp(&y.0.abs())).expect("three distances");
            let said = |m: &Model| format!("{:.1} us", settle(m, d));
            let row = Row::plain("seeks", "a write's seek beyond a read's", said(ma), said(mb))
                .apart(most, "us")
                .within(TIMES_US)
                .at(format!("over {d} cylinders"));
            rows.push(row.unless(options.reads_only));
        }
    }
    let (ra, rb) = (a.noise.settle_retry_turns, b.noise.settle_retry_turns);
    rows.push(Row::plain("seeks", "extra turns to settle at most (n)", ra, rb).same(&ra, &rb));
    let yes = |on: bool| if on { "yes" } else { "no" };
    let (za, zb) = (sa.read_on_arrival, sb.read_on_arrival);
    rows.push(Row::plain("seeks", "a read begins with whatever comes first", yes(za), yes(zb)));
    rows
}

/// A command's overheads as a host observes them: it cannot distinguish overheads before and after
/// the media access, so their split is not compared.
struct Seen {
    read_media: Dur,
    read_cache: Dur,
    write_media: Dur,
    write_cache: Dur,
}

fn seen(o: &Overheads, m: &Model) -> Seen {
    let sector = |ps: u64| Dur((ps * u64::from(m.sector_bytes / 512).max(1)).div_ceil(1000));
    let (out, into) = (sector(m.bus.read_block_ps), sector(m.bus.write_block_ps));
    let data = o.data_preparation + m.bus.arbitration;
    Seen {
        read_media: o.per_request + o.read_miss.after_read + o.reselect + data + out + o.read_completion,
        read_cache: o.per_request + o.read_hit.after_read + data + out + o.read_completion,
        write_media: o.per_request + o.write_miss.after_read + o.reselect + o.write_completion,
        write_cache: o.per_request + o.write_hit.after_read + data + into + o.write_completion,
    }
}

/// Compares overheads, cache and queue.
pub(super) fn electronics(a: &Profile, ma: &Model, b: &Profile, mb: &Model, options: &Options) -> Vec<Row> {
    let (oa, ob) = (&ma.overheads, &mb.overheads);
    let (va, vb) = (seen(oa, ma), seen(ob, mb));
    let (qa, qb) = (&oa.queued, &ob.queued);
    let no_writes = options.reads_only;
    // Where both take one command at a time, there is no overhead between two.
    let no_queue = a.electronics.queue.depth.max(b.electronics.queue.depth) < 2;
    let (ca, cb) = (&a.electronics.cache, &b.electronics.cache);
    let yes = |on: bool| if on { "yes" } else { "no" };
    let plain = |what: &str, a: String, b: String| Row::plain("electronics", what, a, b);
    let text = |n: u32| n.to_string();
    vec![
        span("overhead of a read of one sector from the media", va.read_media, vb.read_media),
        span("a read of one sector from the cache", va.read_cache, vb.read_cache),
        span("between two queued reads", qa.read_read, qb.read_read).unless(no_queue),
        span("overhead of a write to the media", va.write_media, vb.write_media).unless(no_writes),
        // If neither has a write-back cache, no host can observe this time.
        span("a write of one sector to the cache", va.write_cache, vb.write_cache)
            .unless(no_writes || !(ca.write_back || cb.write_back)),
        span("between a queued read and a write", qa.read_write, qb.read_write).unless(no_writes || no_queue),
        span("between a queued write and a read", qa.write_read, qb.write_read).unless(no_writes || no_queue),
        span("between two queued writes", qa.write_write, qb.write_write).unless(no_writes || no_queue),
        plain("cache segments", text(ca.segments), text(cb.segments)).same(&ca.segments, &cb.segments),
        plain("sectors a segment", text(ca.segment_sectors), text(cb.segment_sectors)),
        plain("reads ahead", prefetch(ca.prefetch), prefetch(cb.prefetch)),
        plain(
            "two reads on a track delay a queued one",
            yes(ca.same_track_prefetch_delays).into(),
            yes(cb.same_track_prefetch_delays).into(),
        )
        .same(&ca.same_track_prefetch_delays, &cb.same_track_prefetch_delays),
        plain("commands in the queue", text(a.electronics.queue.depth), text(b.electronics.queue.depth)),
    ]
}

fn prefetch(p: Prefetch) -> String {
    match p {
        Prefetch::None => "not at all".into(),
        Prefetch::ToTrackEnd(n) => format!("{n} sectors, to the track's end"),
        Prefetch::ToCylinderEnd(n) => format!("{n} sectors, to the cylinder's end"),
        Prefetch::Sectors(n) => format!("{n} sectors"),
        Prefetch::TrackAhead => "a track ahead".into(),
    }
}
