//! A session of an application: what it says never waits, and is sent while it listens.

use std::collections::VecDeque;
use std::path::Path;

use headtime_sched::tasks::Range;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tonic::Streaming;

use super::error::AppError;
use crate::control::client::{self, ClientError, Control, Session, in_time};
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{Export, InfoReply, Opened, SessionCall, SessionEvent};

/// An open session.
#[derive(Debug)]
pub struct Link {
    calls: Sender<SessionCall>,
    events: Streaming<SessionEvent>,
    /// What the server said of it.
    pub opened: Opened,
    waiting: VecDeque<Call>,
    /// Sectors that were taken and not yet acknowledged, and from how many on they are.
    taken: u64,
    batch: u64,
}

/// What is served there.
pub async fn look(at: impl Into<Socket>) -> Result<(Control, InfoReply), AppError> {
    let at: Socket = at.into();
    let looking = async {
        let mut control = client::connect(&at).await?;
        let info = client::info(&mut control).await?;
        Ok((control, info))
    };
    in_time(&at, looking).await
}

/// What the server at `path` answers, which it must do in time, unless `stop` is set first.
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

/// Which disk is served: what was begun on one is not gone on with on another. Two of one model
/// differ in the number.
pub fn disk(info: &InfoReply) -> String {
    if info.disk_id.is_empty() { info.disk.clone() } else { format!("{} [{}]", info.disk, info.disk_id) }
}

/// The export of this name.
pub fn export<'a>(info: &'a InfoReply, name: &str) -> Result<&'a Export, AppError> {
    info.exports.iter().find(|e| e.name == name).ok_or_else(|| AppError::NoExport {
        name: name.chars().take(80).collect(),
        there: info.exports.iter().map(|e| format!("{:?}", e.name)).collect::<Vec<_>>().join(", "),
    })
}

/// What an application covers: an export, or the whole disk; in words, and as ranges.
pub fn covered(info: &InfoReply, name: Option<&str>) -> Result<(String, Range), AppError> {
    Ok(match name {
        Some(name) => {
            let e = export(info, name)?;
            (format!("export {name:?}"), Range { lbn: e.first, count: e.sectors })
        }
        None => ("the whole disk".into(), Range { lbn: 0, count: info.sectors }),
    })
}

impl Link {
    /// Over a session whose window is `window` sectors.
    pub fn new(session: Session, window: u64) -> Link {
        let opened = session.opened.clone();
        let (calls, events) = session.split();
        Link { calls, events, opened, waiting: VecDeque::new(), taken: 0, batch: window.div_ceil(4) }
    }

    /// Says something, as soon as the server listens and [`Link::next`] is waited for.
    pub fn say(&mut self, call: Call) {
        self.waiting.push_back(call);
    }

    /// How much waits to be said.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// `sectors` delivered sectors were processed.
    pub fn took(&mut self, sectors: u64) {
        self.taken += sectors;
        if self.taken >= self.batch {
            self.waiting.push_back(Call::Taken(std::mem::take(&mut self.taken)));
        }
    }

    /// The next event. Nothing is lost when it is not waited for to the end.
    pub async fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            tokio::select! {
                biased;
                permit = self.calls.reserve(), if !self.waiting.is_empty() => match permit {
                    Ok(permit) => permit.send(SessionCall { call: self.waiting.pop_front() }),
                    // The stream has ended; the events will say why.
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
