//! Sessions of the control interface: the events of each until it ends, and a session that reads
//! all of an export, as a scrub does.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{self, Kind, Register, SessionCall, SessionEvent, TaskRef};
use headtime_serve::internals::control::service::Service;
use headtime_serve::internals::control::session;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tonic::Status;

use super::shadow::{SECTOR, Shadow};
use super::{Done, Standing};

/// The pause between two tasks.
const PAUSE: u64 = 300_000;
/// The time without an event after which a task is promoted.
pub const PROMOTE_AFTER: Duration = Duration::from_secs(600);
/// The time limit for an event after that.
const EVENT_TIMEOUT: Duration = Duration::from_secs(3_000);

/// A session.
pub struct Session {
    calls: Sender<SessionCall>,
    events: Receiver<Result<SessionEvent, Status>>,
    standing: Standing,
    /// The task that was promoted for lack of events.
    promoted: Option<u64>,
    name: &'static str,
}

impl Session {
    /// Opens a session with a window of `window` sectors and room for `calls` queued calls.
    pub async fn open(
        service: &Service,
        name: &'static str,
        window: u64,
        calls: usize,
        standing: &Standing,
    ) -> Session {
        let (calls, heard) = channel(calls);
        let (out, events) = channel(16);
        tokio::spawn(session::run(service.clone(), heard, out));
        let session = Session { calls, events, standing: standing.clone(), promoted: None, name };
        session.say(Call::Open(v1::Open { name: name.into(), priority: 100, window })).await;
        session
    }

    /// Sends a call; returns whether the session still exists.
    pub async fn say(&self, call: Call) -> bool {
        self.calls.send(SessionCall { call: Some(call) }).await.is_ok()
    }

    /// Returns the next event, which must exist unless the server ends or its device has gone.
    pub async fn hear(&mut self) -> Option<Event> {
        let event = match self.events.recv().await {
            Some(Ok(event)) => event.event,
            other => {
                assert!(self.standing.may_end(), "the session ended without a reason for it: {other:?}");
                None
            }
        };
        event.filter(|e| !matches!(e, Event::End(_) | Event::Gone(_)))
    }

    /// Returns the next event while a task is in progress, which must have an event eventually.
    pub async fn hear_of(&mut self, task: u64) -> Option<Event> {
        loop {
            let promoted = self.promoted == Some(task);
            match timeout(if promoted { EVENT_TIMEOUT } else { PROMOTE_AFTER }, self.hear()).await {
                Ok(event) => return event,
                Err(_) if self.standing.may_end() => {}
                Err(_) if promoted => panic!("{}: nothing is heard of task {task}, which was promoted", self.name),
                Err(_) => {
                    self.promoted = Some(task);
                    self.say(Call::Promote(TaskRef { task })).await;
                }
            }
        }
    }
}

/// Reads everything repeatedly while the server exists.
pub async fn read_all(
    service: Service,
    first: u64,
    shadow: Rc<RefCell<Shadow>>,
    done: Rc<RefCell<Done>>,
    standing: Standing,
) {
    let mut session = Session::open(&service, "scrub", 64, 16, &standing).await;
    for task in 0.. {
        // Most of the time is left to the other clients.
        tokio::time::sleep(Duration::from_millis(PAUSE)).await;
        let sectors = shadow.borrow().len();
        let kind = Kind::Read.into();
        let ranges = vec![v1::Range { lbn: first, count: sectors as u64 }];
        let point_in_time = task % 2 == 1;
        let register = Register { task, kind, ranges, blksize: 8, min_pickup: 8, point_in_time };
        let mut reading: Vec<_> = (0..sectors / 8).map(|n| Some(shadow.borrow_mut().read(n * 8..n * 8 + 8))).collect();
        if !session.say(Call::Register(register)).await {
            return;
        }
        let mut registered = false;
        loop {
            match session.hear_of(task).await {
                Some(Event::Delivered(d)) => {
                    let from = (d.lbn - first) as usize;
                    let count = d.data.len() / SECTOR;
                    for (n, data) in d.data.chunks(8 * SECTOR).enumerate() {
                        let read = reading[from / 8 + n].take().expect("a block is delivered once");
                        shadow.borrow_mut().have_read(read, Some(data));
                    }
                    done.borrow_mut().delivered += count as u64;
                    if !session.say(Call::Taken(count as u64)).await {
                        return;
                    }
                }
                Some(Event::Registered(_)) => {
                    registered = true;
                    if point_in_time {
                        reading.iter_mut().flatten().for_each(|r| shadow.borrow_mut().fix(r));
                    }
                }
                Some(Event::Refused(r)) if !registered && r.task == Some(task) => {
                    assert!(point_in_time, "a task was refused: {}", r.why);
                    // Other tasks of this kind use up the limit.
                    reading.drain(..).flatten().for_each(|r| shadow.borrow_mut().have_read(r, None));
                    break;
                }
                Some(Event::Failed(f)) => {
                    assert!(standing.may_fail(), "sectors failed without a reason: {f:?}");
                    let from = (f.lbn - first) as usize;
                    let blocks = from / 8..(from + f.count as usize).div_ceil(8);
                    for read in reading[blocks].iter_mut().filter_map(Option::take) {
                        shadow.borrow_mut().have_read(read, None);
                    }
                }
                Some(Event::Done(t)) if t.task == task => {
                    assert!(reading.iter().all(Option::is_none), "task {task} is done, and blocks of it never came");
                    break;
                }
                Some(Event::Broken(_)) | None => {
                    reading.iter_mut().filter_map(Option::take).for_each(|r| shadow.borrow_mut().have_read(r, None));
                    return;
                }
                Some(_) => {}
            }
        }
    }
}
