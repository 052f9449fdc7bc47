//! A session of an application. Calls are queued and sent while it waits for events.

use std::collections::VecDeque;
use std::path::Path;

use headtime_sched::TaskRange;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tonic::Streaming;

use super::error::AppError;
use crate::control::client::{self, ClientError, Control, Session, in_time};
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{Export, InfoReply, Opened, SessionCall, SessionEvent};
use crate::engine::background::MAX_STAGED;

/// Bytes of write data sent to the server and not yet on the disk: less than it keeps for a
/// session, so that it refuses none.
pub(super) const MAX_SENT: u64 = MAX_STAGED / 4 * 3;

/// An open session.
#[derive(Debug)]
pub struct Link {
    calls: Sender<SessionCall>,
    events: Streaming<SessionEvent>,
    /// The server's description of the session.
    pub opened: Opened,
    waiting: VecDeque<Call>,
    /// Sectors processed and not yet acknowledged, and from how many on they are.
    taken: u64,
    batch: u64,
}

/// Connects to a server and returns what it serves.
pub async fn look(at: impl Into<Socket>) -> Result<(Control, InfoReply), AppError> {
    let at: Socket = at.into();
    let looking = async {
        let mut control = client::connect(&at).await?;
        let info = client::info(&mut control).await?;
        Ok((control, info))
    };
    in_time(&at, looking).await
}

/// Returns the answer of the server at `path`, with a time limit, unless `stop` becomes true first.
pub async fn answer<T>(
    path: &Path,
    stop: &watch::Receiver<bool>,
    asking: impl Future<Output = Result<T, AppError>>,
) -> Result<T, AppError> {
    let mut stop = stop.clone();
    tokio::select! {
        biased;
        answered = in_time(path, asking) => answered,
        _ = stop.wait_for(|&s| s) => Err(AppError::Stopped),
    }
}

/// Returns the identity of the served disk, since a job is not continued on another disk. Two disks
/// of one model differ in the identifier.
pub fn disk(info: &InfoReply) -> String {
    if info.disk_id.is_empty() { info.disk.clone() } else { format!("{} [{}]", info.disk, info.disk_id) }
}

/// Returns the export with this name.
pub fn export<'a>(info: &'a InfoReply, name: &str) -> Result<&'a Export, AppError> {
    info.exports.iter().find(|e| e.name == name).ok_or_else(|| AppError::NoExport {
        name: name.chars().take(80).collect(),
        there: info.exports.iter().map(|e| format!("{:?}", e.name)).collect::<Vec<_>>().join(", "),
    })
}

/// Returns the scope of an application, an export or the whole disk, as text and as a range.
pub fn covered(info: &InfoReply, name: Option<&str>) -> Result<(String, TaskRange), AppError> {
    Ok(match name {
        Some(name) => {
            let e = export(info, name)?;
            (format!("export {name:?}"), TaskRange { lbn: e.first, count: e.sectors })
        }
        None => ("the whole disk".into(), TaskRange { lbn: 0, count: info.sectors }),
    })
}

/// Checks that what is read is what clients have written: no unit of a reorganised export in the
/// range is elsewhere.
pub fn in_place(info: &InfoReply, range: &TaskRange) -> Result<(), AppError> {
    let elsewhere = |e: &&Export| {
        let is_elsewhere = e.moved_units.unwrap_or(0) > 0 || e.reserve_within > 0;
        is_elsewhere && range.overlaps(&TaskRange { lbn: e.first, count: e.sectors.saturating_add(e.reserve_within) })
    };
    match info.exports.iter().find(elsewhere) {
        Some(e) if e.reserve_within > 0 => Err(AppError::ReserveWithin { name: e.name.clone() }),
        Some(e) => Err(AppError::Reorganised { name: e.name.clone(), moved: e.moved_units.unwrap_or(0) }),
        None => Ok(()),
    }
}

impl Link {
    /// Creates a link over a session whose window is `window` sectors.
    pub fn new(session: Session, window: u64) -> Link {
        let opened = session.opened.clone();
        let (calls, events) = session.split();
        Link { calls, events, opened, waiting: VecDeque::new(), taken: 0, batch: window.div_ceil(4) }
    }

    /// Queues a call, which is sent while [`Link::next`] is awaited.
    pub fn say(&mut self, call: Call) {
        self.waiting.push_back(call);
    }

    /// Returns the number of queued calls.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Counts `sectors` delivered sectors as processed.
    pub fn acknowledge(&mut self, sectors: u64) {
        self.taken += sectors;
        if self.taken >= self.batch {
            self.waiting.push_back(Call::Taken(std::mem::take(&mut self.taken)));
        }
    }

    /// Returns the next event. Cancel safe.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            tokio::select! {
                biased;
                permit = self.calls.reserve(), if !self.waiting.is_empty() => match permit {
                    Ok(permit) => permit.send(SessionCall { call: self.waiting.pop_front() }),
                    // The stream has ended; its events give the reason.
                    Err(_) => self.waiting.clear(),
                },
                event = self.events.message() => match event? {
                    Some(SessionEvent { event: Some(Event::End(_)) }) | None => return Err(ClientError::Ended),
                    Some(SessionEvent { event: Some(e) }) => return Ok(e),
                    Some(SessionEvent { event: None }) => {}
                },
            }
        }
    }
}
