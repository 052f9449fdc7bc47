//! The text of a recording: a header, a line for each submission and each completion, and checksums
//! of the preceding text.

use std::io::{self, Write};

use headtime_disk::{Kind, Time};
use xxhash_rust::xxh3::Xxh3;

use super::{Event, Header};

/// Lines between two checksums.
const LINES_PER_CHECKSUM: u32 = 256;

/// A recording that is being written.
pub(super) struct Text<W> {
    out: W,
    /// The checksum of all preceding bytes.
    check: Xxh3,
    line: Vec<u8>,
    /// Lines since the last checksum.
    lines: u32,
    /// The time of the previous line, in microseconds since the first event.
    last_us: u64,
    began: Option<Time>,
    requests: u64,
    /// The recording's number of each request in flight, by the engine's number.
    numbers: Vec<u64>,
}

impl<W: Write> Text<W> {
    /// Writes the header.
    pub(crate) fn new(out: W, header: &Header) -> io::Result<Text<W>> {
        let mut text = Text {
            out,
            check: Xxh3::new(),
            line: Vec::with_capacity(128),
            lines: 0,
            last_us: 0,
            began: None,
            requests: 0,
            numbers: Vec::new(),
        };
        text.put(format_args!("headtime recording 1"))?;
        text.put(format_args!("disk {}", plain(&header.disk)))?;
        text.put(format_args!("sectors {} of {}", header.sectors, header.sector_bytes))?;
        for (number, name) in header.clients.iter().enumerate() {
            text.put(format_args!("client {number} {}", plain(name)))?;
        }
        text.checked()?;
        Ok(text)
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Flushes the output to the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.line.clear();
        self.line.write_fmt(line)?;
        self.line.push(b'\n');
        self.check.update(&self.line);
        self.out.write_all(&self.line)
    }

    fn checked(&mut self) -> io::Result<()> {
        self.lines = 0;
        let check = self.check.digest();
        self.put(format_args!("K {check:016x}"))
    }

    /// Returns the microseconds since the previous line. Rounding errors do not accumulate.
    fn since(&mut self, at: Time) -> u64 {
        let began = *self.began.get_or_insert(at);
        let now = (at.saturating_since(began).0 / 1_000).max(self.last_us);
        now - std::mem::replace(&mut self.last_us, now)
    }

    /// Writes one event.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        match *event {
            Event::Submitted { request, at, client, kind, fua, lbn, count } => {
                let (us, slot) = (self.since(at), request as usize);
                if self.numbers.len() <= slot {
                    self.numbers.resize(slot + 1, 0);
                }
                self.numbers[slot] = self.requests;
                self.requests += 1;
                match kind {
                    Kind::Flush => self.put(format_args!("F {us} {client}"))?,
                    Kind::Read => self.put(format_args!("R {us} {client} {lbn} {count}"))?,
                    Kind::Write if fua => self.put(format_args!("V {us} {client} {lbn} {count}"))?,
                    Kind::Write => self.put(format_args!("W {us} {client} {lbn} {count}"))?,
                }
            }
            Event::Completed { request, at, ok } => {
                let (us, number) = (self.since(at), self.numbers[request as usize]);
                match ok {
                    true => self.put(format_args!("C {us} {number}"))?,
                    false => self.put(format_args!("E {us} {number}"))?,
                }
            }
        }
        self.lines += 1;
        if self.lines == LINES_PER_CHECKSUM { self.checked() } else { Ok(()) }
    }

    /// Writes the last lines. A recording without them counts as truncated.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if self.lines > 0 {
            self.checked()?;
        }
        let requests = self.requests;
        self.put(format_args!("end {requests}"))?;
        self.out.flush()
    }
}

/// Replaces control characters, so that the text stays on one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
