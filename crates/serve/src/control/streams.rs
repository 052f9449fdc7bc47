//! Streams over the control interface: the admission test, opening and closing, and conversion to
//! messages.

use headtime_disk::{Command, Dur, Kind};
use headtime_sched::Overdue;
use headtime_sched::streams::{Kinds, Nearest, OpenStreamError, Quality, Stream, StreamStatus};
use tonic::Status;

use super::v1;
use crate::net::exports::Exports;
use crate::streams::{Live, Promised, StreamError};

/// Reads the stream that a client asks for.
pub fn read(asked: &v1::Stream, sector_bytes: u32) -> Result<Stream, Status> {
    let wrong = |why: String| Status::invalid_argument(format!("stream: {why}"));
    if asked.bytes == 0 || !asked.bytes.is_multiple_of(sector_bytes) {
        return Err(wrong(format!("bytes: expected whole sectors of {sector_bytes} bytes, found {}", asked.bytes)));
    }
    let quality = Quality::from_ppm(asked.quality_ppm).map_err(|e| wrong(e.to_string()))?;
    let sectors = asked.bytes / sector_bytes;
    let kinds = match asked.kinds() {
        v1::Kinds::Any => Kinds::Any,
        v1::Kinds::Reads => Kinds::Reads,
        v1::Kinds::Writes => Kinds::Writes,
    };
    let stream = Stream::new(asked.requests, Dur(asked.period_ns), quality, sectors);
    stream.and_then(|s| s.only(kinds).blocked_by(asked.blocked_by)).map_err(|e| wrong(e.to_string()))
}

/// Converts request kinds to a message.
pub fn kinds(kinds: Kinds) -> v1::Kinds {
    match kinds {
        Kinds::Any => v1::Kinds::Any,
        Kinds::Reads => v1::Kinds::Reads,
        Kinds::Writes => v1::Kinds::Writes,
    }
}

/// Converts a stream to a message.
pub fn message(stream: &Stream, sector_bytes: u32) -> v1::Stream {
    v1::Stream {
        requests: stream.requests,
        period_ns: stream.period.0,
        quality_ppm: stream.quality.ppm(),
        bytes: stream.sectors.saturating_mul(sector_bytes),
        kinds: kinds(stream.kinds).into(),
        blocked_by: stream.blocked_by,
    }
}

/// Converts the counters of a stream; `exports` lists the names of owners by number.
pub fn counts(s: &StreamStatus, exports: &[String], sector_bytes: u32) -> v1::StreamCounts {
    v1::StreamCounts {
        export: exports.get(s.owner as usize).cloned().unwrap_or_default(),
        stream: Some(message(&s.stream, sector_bytes)),
        reservation_ns: s.reservation.map(|r| r.0),
        closing: s.closing,
        asked: s.tally.asked,
        in_time: s.tally.in_time,
        late: s.tally.late,
        deferred: s.tally.deferred,
        given_up: s.tally.given_up,
    }
}

/// Converts a command that exceeded its worst-case service time.
pub fn overdue(o: &Overdue) -> v1::Overdue {
    let Command { kind, lbn, count, .. } = o.command;
    let kind = match kind {
        Kind::Read => v1::Kind::Read,
        Kind::Write => v1::Kind::Write,
        Kind::Flush => v1::Kind::Flush,
    };
    v1::Overdue { kind: kind.into(), lbn, count, took_ns: o.took.0, worst_ns: o.worst.0 }
}

fn reply(live: &Live, exports: &Exports, stream: Option<&Stream>, promised: &Promised) -> v1::StreamReply {
    let name = |at: u32| exports.specs.get(at as usize).map(|s| s.name.clone());
    let reserved = promised
        .reservations
        .iter()
        .map(|&(export, r)| v1::Reserved { export: export.and_then(name), reservation_ns: r.map(|r| r.0) });
    let load = promised.load;
    v1::StreamReply {
        admitted: stream.is_some(),
        reserved: reserved.filter(|r| stream.is_some() || r.export.is_some()).collect(),
        worst_ppm: load.worst_ppm,
        expected_ppm: load.expected_ppm,
        left_ppm: promised.forecast.best_effort_ppm,
        best_effort_per_1000_s: promised.forecast.per_1000_s,
        worst_ns: stream.and_then(|s| live.disk().service_of(s).ok()).map_or(0, |s| s.worst.0),
        bounds: live.bounds().to_vec(),
        ..v1::StreamReply::default()
    }
}

/// Builds the reply to a stream that is rejected, which is not an error of the client.
fn refused(why_not: String, nearest: Nearest) -> v1::StreamReply {
    let Nearest { requests, quality, period } = nearest;
    v1::StreamReply {
        why_not,
        nearest_requests: requests,
        nearest_quality_ppm: quality.map(Quality::ppm),
        nearest_period_ns: period.map(|t| t.0),
        ..v1::StreamReply::default()
    }
}

/// Converts the result of a stream call to a reply or an error status.
fn said(
    live: &Live,
    exports: &Exports,
    name: Option<&str>,
    stream: Option<&Stream>,
    done: Result<Promised, StreamError>,
) -> Result<v1::StreamReply, Status> {
    match done {
        Ok(promised) => Ok(reply(live, exports, stream, &promised)),
        Err(StreamError::Refused { why, nearest }) => Ok(refused(why, nearest)),
        Err(StreamError::NotKnown(why)) => {
            Ok(v1::StreamReply { why_not: why.to_string(), ..v1::StreamReply::default() })
        }
        Err(StreamError::Ended) => Err(Status::unavailable(StreamError::Ended.to_string())),
        Err(why @ StreamError::Restless) => Err(Status::aborted(why.to_string())),
        Err(why @ StreamError::Large { .. }) => Err(Status::invalid_argument(why.to_string())),
        Err(why) => Err(odd(name, &why)),
    }
}

/// Returns the status for an export that cannot be a stream.
fn odd(name: Option<&str>, why: &StreamError) -> Status {
    let of = match (name, why) {
        (Some(name), StreamError::Cached | StreamError::Exists | StreamError::NotEnded) => {
            format!("export \"{}\", ", name.escape_debug())
        }
        _ => String::new(),
    };
    Status::failed_precondition(format!("{of}{why}"))
}

/// Runs blocking work, the admission test and waiting for the engine, off the async threads.
async fn apart<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(what).await;
    done.map_err(|_| Status::internal("working out a stream failed"))
}

/// Returns the streams of a server, if it has any.
fn live(live: Option<&Live>) -> Result<Live, Status> {
    live.cloned().ok_or_else(|| Status::failed_precondition(OpenStreamError::NoStreams.to_string()))
}

/// Returns the number of the named export.
fn export(exports: &Exports, name: &str) -> Result<u32, Status> {
    exports.number(name).ok_or_else(|| Status::not_found(format!("no export is called \"{}\"", name.escape_debug())))
}

/// Tests whether a stream would be admitted, without opening it.
pub async fn ask(at: Option<&Live>, exports: &Exports, asked: v1::StreamRequest) -> Result<v1::StreamReply, Status> {
    let live = live(at)?;
    if let Some(name) = asked.export.as_deref() {
        let number = export(exports, name)?;
        live.may_stream(number).map_err(|why| odd(Some(name), &why))?;
    }
    let stream = asked.stream.map(|s| read(&s, exports.sector_bytes)).transpose()?;
    let asking = live.clone();
    let done = apart(move || asking.ask(stream)).await?;
    said(&live, exports, None, stream.as_ref(), done)
}

/// Opens a stream on an export.
pub async fn open(at: Option<&Live>, exports: &Exports, asked: v1::StreamRequest) -> Result<v1::StreamReply, Status> {
    let live = live(at)?;
    let name = asked.export.ok_or_else(|| Status::invalid_argument("export: expected a name, found none"))?;
    let number = export(exports, &name)?;
    let asked = asked.stream.ok_or_else(|| Status::invalid_argument("stream: expected one, found none"))?;
    let stream = read(&asked, exports.sector_bytes)?;
    let opening = live.clone();
    let done = apart(move || opening.open(number, stream)).await?;
    said(&live, exports, Some(&name), Some(&stream), done)
}

/// Closes a stream: its export is best effort again.
pub async fn close(at: Option<&Live>, exports: &Exports, name: &str) -> Result<(), Status> {
    let live = live(at)?;
    let number = export(exports, name)?;
    match apart(move || live.close(number)).await? {
        Ok(()) => Ok(()),
        Err(StreamError::Ended) => Err(Status::unavailable(StreamError::Ended.to_string())),
        Err(why) => Err(Status::failed_precondition(why.to_string())),
    }
}
