//! Control of a drive's faults over a unix socket: one JSON object a line for a call, and one for
//! its answer.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::calls::{Answer, Call, Calls};
use crate::engine::inbox::Outbox;
use crate::engine::messages::EngineMessage;
use crate::net::Stream;
use crate::net::address::{Address, ListenError};

/// Most connections at a time; others wait.
const MAX_CONNECTIONS: usize = 16;
/// The longest call, bytes.
const LONGEST_CALL: u64 = 64 << 10;
/// The longest answer, bytes: all faults that a drive can have.
const LONGEST_ANSWER: u64 = 4 << 20;
/// A connection without a call for this time ends.
const IDLE: Duration = Duration::from_secs(60);
/// An answer takes no longer, except when the kernel does not finish writing to the drive's file.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why faults cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The socket cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The thread cannot be started.
    #[error("a thread: {0}")]
    Thread(io::Error),
}

/// The control of a running drive; it ends when this is dropped.
#[derive(Debug)]
pub struct Control {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens on a unix socket, which only the owner and the group may open.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn start(socket: &Path, calls: Calls, engine: Outbox<EngineMessage>) -> Result<Control, ControlError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ControlError::Thread)?;
        let listening = runtime.block_on(Address::Unix(socket.into()).listen())?;
        let (end, mut ends) = watch::channel(false);
        let serve = async move {
            let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
            loop {
                let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
                match listening.accept().await {
                    Ok(stream) => {
                        let (calls, engine) = (calls.clone(), engine.clone());
                        tokio::spawn(async move {
                            // A client that goes away in the middle of a call is no error.
                            let _ = converse(stream, &calls, &engine).await;
                            drop(place);
                        });
                    }
                    // Too many open files, for example.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve => {}
                    _ = ends.wait_for(|end| *end) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("headtime-faults".into()).spawn(run);
        Ok(Control { end, thread: Some(thread.map_err(ControlError::Thread)?) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.end.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn converse(stream: Box<dyn Stream>, calls: &Calls, engine: &Outbox<EngineMessage>) -> io::Result<()> {
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read);
    loop {
        let mut line = String::new();
        let mut limited = (&mut read).take(LONGEST_CALL);
        match timeout(IDLE, limited.read_line(&mut line)).await {
            Ok(Ok(1..)) if line.ends_with('\n') => {}
            _ => return Ok(()),
        }
        let answer = match serde_json::from_str(&line) {
            Ok(call) => answered(call, calls, engine).await,
            Err(e) => Answer::Refused(format!("expected a call, found something else: {e}")),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        timeout(IDLE, write.write_all(text.as_bytes())).await??;
    }
}

async fn answered(call: Call, calls: &Calls, engine: &Outbox<EngineMessage>) -> Answer {
    let Some(answer) = calls.send(call) else { return Answer::Refused("too many calls wait".into()) };
    // Any message wakes the engine up.
    let waited = timeout(PATIENCE, async {
        engine.snapshot().await.ok()?;
        answer.await.ok()
    });
    match waited.await {
        Ok(Some(answer)) => answer,
        Ok(None) => Answer::Refused("the drive has ended".into()),
        Err(_) => Answer::Refused("the drive does not answer".into()),
    }
}

/// Calls a running drive.
///
/// # Errors
/// Nobody listens there, or the answer is not one.
pub fn call(socket: &Path, call: &Call) -> io::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asking = async {
        let mut stream = UnixStream::connect(socket).await?;
        let text = serde_json::to_string(call)? + "\n";
        stream.write_all(text.as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(stream).take(LONGEST_ANSWER).read_line(&mut line).await?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    };
    runtime.block_on(async { timeout(2 * PATIENCE, asking).await? })
}
