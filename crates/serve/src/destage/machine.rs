//! The cache's state machine ([`headtime_sched::write_cache`]) with real data, for requests of NBD
//! clients and for calls and events of a control session.

use bytes::{Bytes, BytesMut};
use headtime_sched::TaskRange;
use headtime_sched::write_cache::{self, Traffic};

use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Data, Foreground, Register};
use crate::device::Fault;
use crate::engine::messages::Submission;

/// The machine's types for real clients.
#[derive(Clone, Copy, Debug)]
pub struct Real;

impl Traffic for Real {
    type Data = Bytes;
    /// The request itself, without its data.
    type Ticket = Submission;
    type Fault = Fault;

    fn len(data: &Bytes) -> u64 {
        data.len() as u64
    }
    fn part(data: &Bytes, bytes: std::ops::Range<usize>) -> Bytes {
        data.slice(bytes)
    }
    fn copy(data: &Bytes, bytes: std::ops::Range<usize>) -> Bytes {
        Bytes::copy_from_slice(&data[bytes])
    }
    fn join(parts: &[&Bytes]) -> Bytes {
        let mut all = BytesMut::with_capacity(parts.iter().map(|p| p.len()).sum());
        parts.iter().for_each(|p| all.extend_from_slice(p));
        all.freeze()
    }
}

/// The state machine with real data.
pub type Machine = write_cache::Machine<Real>;

/// Converts a client's request for the machine.
pub(crate) fn to_request(mut submission: Submission) -> write_cache::Ask<Real> {
    let data = std::mem::take(&mut submission.data);
    let Submission { kind, lbn, count, fua, owner, .. } = submission;
    write_cache::Ask { kind, lbn, count, fua, owner, data, ticket: submission }
}

/// Converts the machine's call for the control interface.
pub(crate) fn to_client_call(call: write_cache::Call<Real>) -> Call {
    let foreground = |token, kind: v1::Kind, range: TaskRange, data| {
        let fua = kind == v1::Kind::Write;
        Call::Foreground(Foreground { token, kind: kind.into(), lbn: range.lbn, count: range.count as u32, fua, data })
    };
    match call {
        write_cache::Call::Read { token, range, .. } => foreground(token, v1::Kind::Read, range, Bytes::new()),
        write_cache::Call::Write { token, range, data } => foreground(token, v1::Kind::Write, range, data),
        write_cache::Call::Flush { token } => {
            foreground(token, v1::Kind::Flush, TaskRange { lbn: 0, count: 0 }, Bytes::new())
        }
        write_cache::Call::Register { task, ranges, unit } => Call::Register(Register {
            task,
            kind: v1::Kind::Write.into(),
            ranges: ranges.iter().map(|r| v1::Range { lbn: r.lbn, count: r.count }).collect(),
            blksize: unit,
            min_pickup: unit,
            point_in_time: false,
        }),
        write_cache::Call::Data { task, lbn, data } => Call::Data(Data { task, lbn, data }),
        write_cache::Call::Free(true) => Call::Resume(v1::Empty {}),
        write_cache::Call::Free(false) => Call::Suspend(v1::Empty {}),
    }
}

/// Converts an event of the control interface for the machine; `None` if it is irrelevant.
pub(crate) fn from_client_event(event: Event) -> Option<write_cache::Event<Real>> {
    let range = |lbn, count| TaskRange { lbn, count };
    Some(match event {
        Event::Written(p) => write_cache::Event::Written { task: p.task, range: range(p.lbn, p.count) },
        Event::Superseded(p) | Event::NotTaken(p) => {
            write_cache::Event::NotWritten { task: p.task, range: range(p.lbn, p.count) }
        }
        Event::Failed(f) => write_cache::Event::Failed { task: f.task, range: range(f.lbn, f.count) },
        Event::Done(t) => write_cache::Event::Done { task: t.task },
        Event::Refused(r) => write_cache::Event::Refused { task: r.task? },
        Event::Answered(a) => {
            let fault = match a.fault() {
                v1::Fault::None => None,
                // The server ends, or its device is gone: the request is repeated in the next
                // session.
                v1::Fault::Gone => return Some(write_cache::Event::Gone),
                v1::Fault::NoSpace => Some(Fault::NoSpace),
                v1::Fault::Late => Some(Fault::Late),
                v1::Fault::Io | v1::Fault::Invalid => Some(Fault::Io),
            };
            let answer = fault.map_or(Ok(a.data), |fault| Err((fault, a.why_not)));
            write_cache::Event::Answered { token: a.token, answer }
        }
        Event::Gone(_) => write_cache::Event::Gone,
        // Data follows its task at once, so it has been sent already; the other events are for read
        // tasks.
        Event::Wanted(_)
        | Event::Opened(_)
        | Event::Registered(_)
        | Event::Delivered(_)
        | Event::Broken(_)
        | Event::Suspended(_)
        | Event::Moving(_)
        | Event::Settled(_)
        | Event::End(_) => return None,
    })
}
