//! The connection to the server, in a thread of its own, so that a stalled server delays neither
//! keys nor drawing.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use headtime_serve::control::client::{ClientError, Control, connect, info};
use headtime_serve::control::v1::{ChangeRequest, InfoReply, Snapshot, StatisticsRequest};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Reconnection interval.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// How long a server may stay silent beyond an interval before its connection counts as lost.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most updates pending for display.
const MAX_PENDING_UPDATES: usize = 4;

/// Updates from the server.
#[derive(Debug)]
pub enum Update {
    /// Connected, for the first time or again.
    Info(InfoReply),
    /// The server's counters.
    Snapshot(Box<Snapshot>),
    /// The connection was lost, and why. Reconnection is attempted.
    Lost(String),
    /// A change was rejected, and why.
    Refused(String),
}

/// A connection that delivers updates and sends changes of sessions.
#[derive(Debug)]
pub struct Feed {
    /// The updates.
    pub updates: Receiver<Update>,
    changes: UnboundedSender<ChangeRequest>,
}

impl Feed {
    /// Connects; fails if no server is running now. Later losses are followed by reconnection.
    pub fn start(path: &Path, every: Duration) -> Result<Feed, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
        let first = runtime.block_on(connected(path)).map_err(|e| format!("no server to look at: {e}"))?;
        let (out, updates) = sync_channel(MAX_PENDING_UPDATES);
        let (changes, asked) = unbounded_channel();
        let path = path.to_owned();
        let thread = std::thread::Builder::new().name("headtime-feed".into());
        let thread = thread.spawn(move || runtime.block_on(run(path, every, first, out, asked)));
        thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(Feed { updates, changes })
    }

    /// Requests a change; a rejection arrives as an update.
    pub fn change(&self, change: ChangeRequest) {
        let _ = self.changes.send(change);
    }
}

/// Returns a connection that has answered a first call.
async fn connected(path: &Path) -> Result<(Control, InfoReply), ClientError> {
    let answered = tokio::time::timeout(SILENCE_TIMEOUT, async {
        let mut control = connect(path).await?;
        let info = info(&mut control).await?;
        Ok((control, info))
    });
    let silent = |_| ClientError::Connect { path: path.into(), why: "it does not answer".into() };
    answered.await.map_err(silent)?
}

/// Runs until the receiver of updates is dropped.
async fn run(
    path: PathBuf,
    every: Duration,
    first: (Control, InfoReply),
    out: SyncSender<Update>,
    mut asked: UnboundedReceiver<ChangeRequest>,
) {
    let mut next = Some(first);
    loop {
        if let Some((control, info)) = next.take() {
            if out.send(Update::Info(info)).is_err() {
                return;
            }
            let Some(why) = watch(control, every, &out, &mut asked).await else { return };
            if out.send(Update::Lost(why)).is_err() {
                return;
            }
        }
        tokio::time::sleep(RECONNECT_INTERVAL).await;
        next = connected(&path).await.ok();
        // Changes for a lost server are not kept for the next one, whose sessions differ.
        while asked.try_recv().is_ok() {
            let _ = out.try_send(Update::Refused("the server is gone".into()));
        }
        if asked.is_closed() {
            return;
        }
    }
}

/// Forwards the updates of one connection until it ends, and returns why; `None` if the receiver is
/// dropped.
async fn watch(
    mut control: Control,
    every: Duration,
    out: &SyncSender<Update>,
    asked: &mut UnboundedReceiver<ChangeRequest>,
) -> Option<String> {
    let every_ms = every.as_millis().try_into().unwrap_or(u32::MAX);
    let mut snapshots = match control.statistics(StatisticsRequest { every_ms }).await {
        Ok(reply) => reply.into_inner(),
        Err(status) => return Some(ClientError::from(status).to_string()),
    };
    loop {
        tokio::select! {
            snapshot = tokio::time::timeout(every + SILENCE_TIMEOUT, snapshots.message()) => {
                let update = match snapshot {
                    Ok(Ok(Some(snapshot))) => Update::Snapshot(Box::new(snapshot)),
                    Ok(Ok(None)) => return Some("it ended".into()),
                    Ok(Err(status)) => return Some(ClientError::from(status).to_string()),
                    Err(_) => return Some("it does not answer".into()),
                };
                out.send(update).ok()?;
            }
            change = asked.recv() => {
                let refused = tokio::time::timeout(SILENCE_TIMEOUT, control.change(change?)).await;
                let why = match refused {
                    Ok(Ok(_)) => continue,
                    Ok(Err(status)) => ClientError::from(status).to_string(),
                    Err(_) => "no answer".into(),
                };
                out.send(Update::Refused(why)).ok()?;
            }
        }
    }
}
