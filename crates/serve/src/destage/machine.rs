//! The cache's state machine ([`headtime_sched::write_cache`]) with real data, answered to NBD clients, over a control
//! session.

use bytes::{Bytes, BytesMut};
use headtime_sched::tasks::Range;
use headtime_sched::write_cache::{self, Counts, Limits, Traffic};

use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Data, Foreground, Register};
use crate::device::Fault;
use crate::engine::telling::Ask;

/// Real data, for clients of ours.
#[derive(Clone, Copy, Debug)]
pub struct Real;

impl Traffic for Real {
    type Data = Bytes;
    /// The request itself, without its data.
    type Ticket = Ask;
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

/// The whole of it.
#[derive(Debug)]
pub struct Machine(write_cache::Machine<Real>);

impl Machine {
    /// An empty cache for a disk with sectors of `sector_bytes`. `fills`: the server has FILL.
    pub fn new(sector_bytes: u32, limits: Limits, fills: bool) -> Machine {
        Machine(write_cache::Machine::new(sector_bytes, limits, fills))
    }

    /// The same where blocks are written as soon as there is a gap for them.
    #[must_use]
    pub fn eager(self) -> Machine {
        Machine(self.0.eager())
    }

    /// The same where no request may have more bytes than that.
    #[must_use]
    pub fn with_requests_up_to(self, bytes: u64) -> Machine {
        Machine(self.0.with_requests_up_to(bytes))
    }

    /// A request of a client.
    pub fn ask(&mut self, mut ask: Ask) {
        let data = std::mem::take(&mut ask.data);
        let Ask { kind, lbn, count, fua, owner, .. } = ask;
        self.0.ask(write_cache::Ask { kind, lbn, count, fua, owner, data, ticket: ask });
        self.answer();
    }

    /// There is a session upstream, which knows nothing.
    pub fn connected(&mut self) {
        self.0.connected();
        self.answer();
    }

    /// The session upstream has ended. Everything waits for the next.
    pub fn disconnected(&mut self) {
        self.0.disconnected();
    }

    /// Whether upstream's device has gone, so that another session is to be tried after a while.
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    /// Upstream says something.
    pub fn event(&mut self, event: Event) {
        if let Some(event) = heard(event) {
            self.0.event(event);
            self.answer();
        }
    }

    /// Time passes: to be called once each [`write_cache::policy::TICK`].
    pub fn tick(&mut self) {
        self.0.tick();
    }

    /// Tries again to write what could not be written. To be called less often than [`Machine::tick`].
    pub fn retry(&mut self) {
        self.0.retry();
    }

    /// Without FILL upstream: the disk is idle, and a block may be written.
    pub fn use_idle_time(&mut self) {
        self.0.use_idle_time();
    }

    /// From now on everything is written out as soon as possible.
    pub fn drain(&mut self) {
        self.0.drain();
        self.answer();
    }

    /// Whether nothing is left to do.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// Whether everything is written and was flushed after that.
    pub fn is_flushed(&self) -> bool {
        self.0.is_flushed()
    }

    /// Bytes that are not on the disk, and those of them that cannot be written.
    pub fn left(&self) -> (u64, u64) {
        self.0.left()
    }

    /// Whether something is to be said upstream.
    pub fn has_calls(&self) -> bool {
        self.0.has_calls()
    }

    /// What is to be said upstream next.
    pub fn next_call(&mut self) -> Option<Call> {
        self.0.next_call().map(said)
    }

    /// What is to be said to the operator.
    pub fn notes(&mut self) -> Vec<String> {
        self.0.notes()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    fn answer(&mut self) {
        while let Some((ask, answer)) = self.0.next_answer() {
            ask.answer(answer);
        }
    }
}

/// A call of the machine's as the control interface has it.
fn said(call: write_cache::Call<Real>) -> Call {
    let foreground = |token, kind: v1::Kind, range: Range, data| {
        let fua = kind == v1::Kind::Write;
        Call::Foreground(Foreground { token, kind: kind.into(), lbn: range.lbn, count: range.count as u32, fua, data })
    };
    match call {
        write_cache::Call::Read { token, range, .. } => foreground(token, v1::Kind::Read, range, Bytes::new()),
        write_cache::Call::Write { token, range, data } => foreground(token, v1::Kind::Write, range, data),
        write_cache::Call::Flush { token } => {
            foreground(token, v1::Kind::Flush, Range { lbn: 0, count: 0 }, Bytes::new())
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

/// An event of the control interface as the machine hears it; `None` when it does not matter.
fn heard(event: Event) -> Option<write_cache::Event<Real>> {
    let range = |lbn, count| Range { lbn, count };
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
                // The server ends, or its device has gone: the request is made anew in the next session.
                v1::Fault::Gone => return Some(write_cache::Event::Gone),
                v1::Fault::NoSpace => Some(Fault::NoSpace),
                v1::Fault::Late => Some(Fault::Late),
                v1::Fault::Io | v1::Fault::Invalid => Some(Fault::Io),
            };
            let answer = fault.map_or(Ok(a.data), |fault| Err((fault, a.why_not)));
            write_cache::Event::Answered { token: a.token, answer }
        }
        Event::Gone(_) => write_cache::Event::Gone,
        // Data follows its task at once, so it is on its way already when it is wanted; the rest is for reading tasks.
        Event::Wanted(_)
        | Event::Opened(_)
        | Event::Registered(_)
        | Event::Delivered(_)
        | Event::Broken(_)
        | Event::Suspended(_)
        | Event::End(_) => return None,
    })
}
