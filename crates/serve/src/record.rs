//! Recordings of client requests and their completions, for a replay that preserves think times.
//!
//! The engine's thread only puts events into a bounded queue and never waits. A separate thread
//! formats them and writes the file (`text`). If the queue is full or the file cannot be written,
//! recording stops with a note while the server continues; what was recorded before the queue was
//! full is a complete recording. docs/traces.md describes the file.

mod text;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headtime_disk::{Kind, Time};

use crate::engine::messages::Submission;
use crate::note::{About, Note};
use text::Text;

/// Events that may be queued for the writer: those of half a second at 65,000 requests a second,
/// more than an engine serves.
const MAX_QUEUED_EVENTS: usize = 65_536;
/// The writer's polling interval; polling avoids wake-ups by the engine.
const SLEEP: Duration = Duration::from_millis(20);
/// The time limit for writing the rest at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The header of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The profile's title.
    pub disk: String,
    /// Sectors of the disk.
    pub sectors: u64,
    /// Bytes per sector.
    pub sector_bytes: u32,
    /// Names of the exports, by number.
    pub clients: Vec<String>,
}

/// Why a recording cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The name exists already, even as a symbolic link.
    #[error("{}: expected no file of this name: a recording is always a new file", .0.display())]
    Exists(PathBuf),
    /// The operating system reports an error.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Submitted { request: u64, at: Time, client: u32, kind: Kind, fua: bool, lbn: u64, count: u32 },
    Completed { request: u64, at: Time, ok: bool },
}

/// The engine's side, which never waits.
#[derive(Debug)]
pub struct Recorder {
    /// `None` once recording has stopped.
    queue: Option<SyncSender<Event>>,
    behind: Arc<AtomicBool>,
}

/// The writer's side: a thread that writes until the engine has ended.
pub struct Recording {
    thread: JoinHandle<()>,
    note: Note,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records a request submitted to the scheduler. The number identifies it until completion.
    pub fn submitted(&mut self, request: u64, submission: &Submission, at: Time) {
        // Requests of the server itself are not recorded: a replay produces them again.
        if submission.reply.is_none() {
            return;
        }
        let Submission { kind, lbn, count, fua, owner: client, .. } = *submission;
        self.put(Event::Submitted { request, at, client, kind, fua, lbn, count });
    }

    /// Records the completion of a request.
    pub fn completed(&mut self, request: u64, submission: &Submission, ok: bool, at: Time) {
        if submission.reply.is_some() {
            self.put(Event::Completed { request, at, ok });
        }
    }

    fn put(&mut self, event: Event) {
        if let Some(queue) = &self.queue
            && let Err(e) = queue.try_send(event)
        {
            let full = matches!(e, std::sync::mpsc::TrySendError::Full(_));
            self.behind.store(full, Ordering::Release);
            // The writer still takes what is queued and then finds the end.
            self.queue = None;
        }
    }
}

impl Recording {
    /// Waits until all is written, up to a time limit, so that a hung disk does not block the
    /// shutdown. The engine must have ended.
    pub fn finish(self) {
        let by = Instant::now() + SHUTDOWN_TIMEOUT;
        while !self.thread.is_finished() {
            if Instant::now() >= by {
                return (self.note)(About::Warning, "the recording could not be written to its end".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.thread.join();
    }
}

/// A recording with a file but no thread yet. It is created while the server has no threads and its
/// privileges still allow it to write anywhere.
#[derive(Debug)]
pub struct NewRecording {
    file: Option<File>,
    path: PathBuf,
    header: Header,
    waiting: usize,
}

impl NewRecording {
    /// Creates the file, readable only by its owner. An existing name is rejected, so that no
    /// symbolic link is followed.
    pub fn create(path: &Path, header: Header) -> Result<NewRecording, RecordError> {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists(path.into()),
            _ => RecordError::Io { path: path.into(), why },
        })?;
        Ok(NewRecording { file: Some(file), path: path.into(), header, waiting: MAX_QUEUED_EVENTS })
    }

    /// Starts the writer thread.
    pub fn begin(mut self, note: Note) -> io::Result<(Recorder, Recording)> {
        let file = self.file.take().expect("a recording begins once");
        let mut text = Text::new(BufWriter::with_capacity(64 << 10, file), &self.header)?;
        text.flush()?;
        let (sender, events) = sync_channel(self.waiting);
        let behind = Arc::new(AtomicBool::new(false));
        let (name, late, last) = (self.path.display().to_string(), Arc::clone(&behind), Arc::clone(&note));
        let thread = std::thread::Builder::new().name("headtime-record".into()).spawn(move || {
            let written = write(&mut text, &events);
            // Closes the queue: the engine adds nothing more.
            drop(events);
            let ended = written.and_then(|()| text.end());
            let held = match text.requests() {
                1 => "1 request".into(),
                n => format!("{n} requests"),
            };
            match ended {
                Ok(()) if late.load(Ordering::Acquire) => {
                    let why = format!("{name} could not be written fast enough; it holds the first {held}");
                    note(About::Warning, format!("recording stopped: {why}"));
                }
                Ok(()) => note(About::Server, format!("{name} holds {held}")),
                Err(e) => {
                    let why = format!("{name}: {e}; the file is cut and cannot be replayed");
                    note(About::Warning, format!("recording stopped: {why}"));
                }
            }
        })?;
        Ok((Recorder { queue: Some(sender), behind }, Recording { thread, note: last }))
    }
}

impl Drop for NewRecording {
    /// Removes the empty recording of a server that did not start.
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes until the engine's side is dropped.
fn write(text: &mut Text<impl Write>, events: &Receiver<Event>) -> io::Result<()> {
    loop {
        match events.try_recv() {
            Ok(event) => text.event(&event)?,
            Err(TryRecvError::Empty) => {
                text.flush()?;
                std::thread::sleep(SLEEP);
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
