//! Log lines on stderr. In servers and background applications a thread writes them, so that a
//! stalled reader delays no client, no work and no exit.
//!
//! Lines wait in a bounded queue; lines that do not fit are dropped and counted. Lines about
//! clients are rate-limited, whatever clients do.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
#[cfg(feature = "full")]
use headtime_serve::note::{About, Note};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Queue length, lines.
const QUEUE: usize = 1024;
/// Most lines about clients per period.
const OF_CLIENTS: u32 = 20;
const PERIOD: Duration = Duration::from_secs(10);
/// Timeout for the last lines at exit.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Errors that end the program
    Error,
    /// Also warnings
    Warn,
    /// Also notes on operation, and abnormal disconnections of clients
    Info,
    /// Also connections and disconnections of clients
    Debug,
}

/// The log flag of commands that serve clients.
#[derive(Clone, Copy, Debug, Args)]
pub struct Logging {
    /// Log level on stderr: error, warn, info or debug
    #[arg(long = "log", value_name = "LEVEL", default_value = "info", value_enum, hide_possible_values = true)]
    pub level: Level,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> LevelFilter {
        match level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        }
    }
}

/// The channel to the writer thread, if it runs.
static LINES: OnceLock<Lines> = OnceLock::new();

/// A guard whose drop waits, for a bounded time, until earlier lines are written.
#[derive(Debug)]
pub struct Log(());

/// Starts logging, with direct writes until [`by_a_thread`] is called.
pub fn begin(level: Level) -> Log {
    let lines = tracing_subscriber::fmt::layer().event_format(Line).with_writer(Out::now).log_internal_errors(false);
    // Libraries log through the same interface; their lines are not for users.
    let ours = Targets::new().with_target("headtime", LevelFilter::from(level));
    // Only the first subscriber of a process takes effect.
    let _ = tracing_subscriber::registry().with(lines).with(ours).try_init();
    Log(())
}

/// Starts the writer thread, if it does not run yet. Must be called after privileges are dropped,
/// because they are per thread.
pub fn by_a_thread() {
    if LINES.get().is_some() {
        return;
    }
    match Lines::begin(io::stderr()) {
        Ok(lines) => _ = LINES.set(lines),
        Err(e) => tracing::warn!("no thread for log lines, so this program may wait for the reader of stderr: {e}"),
    }
}

/// The destination of a line.
enum Out {
    Now(io::Stderr),
    Thread(Lines),
}

impl Out {
    fn now() -> Out {
        LINES.get().cloned().map_or_else(|| Out::Now(io::stderr()), Out::Thread)
    }
}

impl Write for Out {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self {
            Out::Now(out) => out.write(line),
            Out::Thread(lines) => lines.write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(lines) = LINES.get() {
            lines.wait(LAST_LINES);
        }
    }
}

/// Returns a callback that logs a server's notes.
#[cfg(feature = "full")]
pub fn note() -> Note {
    let few = Mutex::new(RateLimit { since: Instant::now(), lines: 0, left_out: 0 });
    Arc::new(move |about, line| match about {
        About::Warning => tracing::warn!("{line}"),
        About::Server => tracing::info!("{line}"),
        About::Visits => tracing::debug!("{line}"),
        About::Client => {
            let admitted = few.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
            match admitted {
                None => {}
                Some(0) => tracing::info!("{line}"),
                Some(more) => tracing::info!("{line} ({more} lines about clients were left out before)"),
            }
        }
    })
}

/// A limit of [`OF_CLIENTS`] lines per [`PERIOD`].
#[derive(Debug)]
struct RateLimit {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl RateLimit {
    /// Returns the number of lines dropped before this one, or `None` if this one is dropped.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.since) >= PERIOD {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines == OF_CLIENTS {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The line format: `headtime: `, the kind of line if it matters, the text.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> std::fmt::Result {
        let warns = *event.metadata().level() == tracing::Level::WARN;
        write!(writer, "headtime: {}", if warns { "warning: " } else { "" })?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

#[derive(Debug)]
enum Told {
    Line(Vec<u8>),
    /// Acknowledged when all earlier lines are written.
    Reached(Sender<()>),
}

/// The channel to the writer thread.
#[derive(Clone, Debug)]
struct Lines {
    queue: SyncSender<Told>,
    left_out: Arc<AtomicU64>,
}

impl Lines {
    fn begin(out: impl Write + Send + 'static) -> io::Result<Lines> {
        let (queue, told) = sync_channel(QUEUE);
        let left_out = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&left_out);
        std::thread::Builder::new().name("headtime-log".into()).spawn(move || write(&told, &counted, out))?;
        Ok(Lines { queue, left_out })
    }

    /// Waits until all earlier lines are written, at most `most`.
    fn wait(&self, most: Duration) {
        let (until, (reached, there)) = (Instant::now() + most, channel());
        let mut told = Told::Reached(reached);
        while let Err(TrySendError::Full(again)) = self.queue.try_send(told) {
            if Instant::now() >= until {
                return;
            }
            told = again;
            std::thread::sleep(Duration::from_millis(10));
        }
        let left = until.saturating_duration_since(Instant::now());
        let (Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) = there.recv_timeout(left);
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(Told::Line(line.to_vec())).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes lines as they arrive. Write errors are ignored: there is no other place to report them.
fn write(told: &Receiver<Told>, left_out: &AtomicU64, mut out: impl Write) {
    for told in told {
        match told {
            Told::Line(line) => _ = out.write_all(&line),
            Told::Reached(reached) => _ = reached.send(()),
        }
        let left_out = left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            let _ = writeln!(out, "headtime: {left_out} lines were left out: those before were not read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stalled writer that proceeds after a message.
    struct Stuck(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(data);
            Ok(data.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_are_not_read_delay_no_thread_and_are_counted() {
        let (goes_on, waits) = channel();
        let written = Arc::new(Mutex::new(vec![]));
        let mut lines = Lines::begin(Stuck(waits, Arc::clone(&written))).unwrap();
        let began = Instant::now();
        (0..QUEUE + 101).for_each(|i| lines.write_all(format!("{i}\n").as_bytes()).unwrap());
        lines.wait(Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(5));
        drop(goes_on);
        lines.wait(Duration::from_secs(20));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        // The thread may have taken one line before the queue was full.
        assert!(text.contains("100 lines were left out") || text.contains("101 lines were left out"), "{text}");
        assert_eq!(
            text.lines().filter(|l| l.parse::<u64>().is_ok()).count() + 100,
            QUEUE + 101 - usize::from(text.contains("101 lines"))
        );
    }

    #[test]
    fn lines_about_clients_are_few_in_each_period() {
        let start = Instant::now();
        let mut few = RateLimit { since: start, lines: 0, left_out: 0 };
        let said = (0..1_000).filter(|_| few.admit(start).is_some()).count();
        assert_eq!(said, OF_CLIENTS as usize);
        assert_eq!(few.admit(start + PERIOD), Some(1_000 - u64::from(OF_CLIENTS)));
        assert_eq!(few.admit(start + PERIOD), Some(0));
    }
}
