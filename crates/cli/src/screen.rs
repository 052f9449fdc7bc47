//! Output to stdout and stderr.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::failure::Failure;

/// Writes a text to stdout. A closed pipe is not an error; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::Pipe),
        Err(e) => Err(Failure::Input(format!("cannot write the output: {e}"))),
    }
}

/// Writes one JSON document to stdout.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
    print(&(text + "\n"))
}

/// Prints a note that is not part of the result, one line on stderr ([`crate::log`]).
pub fn note(text: &str) {
    tracing::info!("{text}");
}

/// Prints a warning.
pub fn warn(text: &str) {
    tracing::warn!("{text}");
}

/// Writes to stderr only if that does not block: the program ends whether or not its output is
/// read, and even if the terminal is closed.
pub fn last_words(text: &str) {
    // Not through the library, whose lock another thread may hold while it waits for the reader.
    let err = io::stderr();
    let mut room = [PollFd::new(&err, PollFlags::OUT)];
    let polled = rustix::event::poll(&mut room, Some(&Timespec::default()));
    // A writable pipe has room for 4 KiB.
    if polled.is_ok() && room[0].revents().contains(PollFlags::OUT) {
        let _ = rustix::io::write(&err, text.as_bytes());
    }
}

/// A progress bar on stderr, invisible if stderr is not a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// Creates a bar of `steps` steps.
    pub fn new(steps: u64, what: &str) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent}% {elapsed}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        bar.set_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }

    /// Creates a bar with a caller-supplied message ([`Bar::say`]) instead of an estimate.
    pub fn with_message(steps: u64, what: &str) -> Bar {
        let bar = Bar::new(steps, "");
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {percent}% {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.0.set_style(style);
        bar.0.set_prefix(what.to_string());
        bar
    }

    /// Sets the message.
    pub fn say(&self, how: &str) {
        self.0.set_message(how.to_string());
    }

    /// Prints a line above the bar, or alone if there is no bar.
    pub fn note(&self, text: &str) {
        self.0.suspend(|| note(text));
    }

    /// Sets the number of steps.
    pub fn spread(&self, steps: u64) {
        self.0.set_length(steps);
    }

    /// Sets the number of completed steps.
    pub fn reach(&self, step: u64) {
        self.0.set_position(step);
    }

    /// Adds completed steps.
    pub fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Formats text in columns, two spaces apart; the columns listed in `right` are right-aligned.
pub fn columns(rows: &[Vec<String>], right: &[usize]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
    let width: Vec<usize> =
        (0..count).map(|i| rows.iter().map(|r| cell(r, i).chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = (0..count)
            .map(|i| {
                let (c, w) = (cell(row, i), width[i]);
                if right.contains(&i) { format!("{c:>w$}") } else { format!("{c:<w$}") }
            })
            .collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let rows = vec![vec!["a".to_string(), "10".to_string()], vec!["long".to_string(), "5".to_string()]];
        assert_eq!(columns(&rows, &[1]), "a     10\nlong   5\n");
    }
}
