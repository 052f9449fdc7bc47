//! Recordings of `headtime serve --record`: requests with the completions that they waited for.
//!
//! A recording is read as a whole before it is replayed: the checksums between its lines detect
//! altered or reordered lines, and only the last line shows that it is not truncated.

use std::io::{BufRead, BufReader};
use std::path::Path;

use headtime_disk::{Dur, Kind, Time};
use xxhash_rust::xxh3::Xxh3;

use super::reader::{LONGEST_TRACE, open_file};
use super::text::{Bad, Columns, quote};
use super::{LONGEST_TRACE_DAYS, TraceError};

/// Name of the format in `--trace-format`.
pub const RECORDING: &str = "recording";

/// The first line, with the format's version.
const FIRST: &str = "headtime recording 1";
/// Maximum length of a line; export names have at most 4,096 bytes.
const LONGEST_LINE: u64 = 16 * 1024;
/// Maximum number of requests in a recording, which is held in memory.
const MOST_REQUESTS: usize = 10_000_000;
/// Maximum number of clients, the same as a server's number of exports.
const MOST_CLIENTS: usize = 1_024;

const SUBMISSION: &str = "R|W|V US CLIENT SECTOR SECTORS, F US CLIENT, or C|E US REQUEST";

/// A complete recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file, for messages.
    pub file: String,
    /// Title of the recorded disk.
    pub disk: String,
    /// Its number of sectors.
    pub sectors: u64,
    /// Bytes per sector.
    pub sector_bytes: u32,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// In order of submission.
    pub requests: Vec<Recorded>,
}

/// A recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its client: an index into [`Recording::clients`].
    pub client: u32,
    /// Read, write or flush.
    pub kind: Kind,
    /// Whether it is a write with FUA.
    pub fua: bool,
    /// First sector in the disk's sectors; zero for a flush.
    pub lbn: u64,
    /// Number of sectors; zero for a flush.
    pub count: u32,
    /// Submission time, from the recording's first event.
    pub submitted: Time,
    /// Completion time; `None` if the recording ended before.
    pub done: Option<Time>,
    /// The same client's last completed request at its submission, which the client may have waited
    /// for.
    pub after: Option<u32>,
}

impl Recording {
    /// Reads a recording from a file.
    pub fn open(path: &Path) -> Result<Recording, TraceError> {
        let file = path.display().to_string();
        match open_file(path) {
            Ok(f) => Recording::read(BufReader::with_capacity(256 * 1024, f), file),
            Err(source) => Err(TraceError::Io { file, source }),
        }
    }

    /// Reads a recording from any input; `file` is for messages.
    pub fn read(input: impl BufRead, file: String) -> Result<Recording, TraceError> {
        let mut lines = Lines { input, file, number: 0, line: Vec::new(), check: Xxh3::new(), checked: 0 };
        let (disk, sectors, sector_bytes) = lines.header()?;
        let recording = Recording {
            file: lines.file.clone(),
            disk,
            sectors,
            sector_bytes,
            clients: Vec::new(),
            requests: Vec::new(),
        };
        let mut body = Body { recording, now: Time::ZERO, last_done: Vec::new() };
        while lines.next("end REQUESTS as the last line")? {
            let bad = match lines.line.first() {
                Some(b'K') => lines.checked().err(),
                Some(b'c') => body.client(&lines.line).err(),
                Some(b'e') => {
                    body.end(&lines.line).map_err(|bad| lines.bad(bad))?;
                    return lines.nothing_more().map(|()| body.recording);
                }
                _ => body.event(&lines.line).err(),
            };
            if let Some(bad) = bad {
                return Err(lines.bad(bad));
            }
        }
        unreachable!("the end of the file is an error")
    }

    /// Checks that the recorded disk had this size.
    pub fn fits(&self, sectors: u64, sector_bytes: u32) -> Result<(), TraceError> {
        if (self.sectors, self.sector_bytes) == (sectors, sector_bytes) {
            return Ok(());
        }
        Err(TraceError::Line {
            file: self.file.clone(),
            line: 3,
            expected: format!("a recording of a disk of {sectors} sectors of {sector_bytes} bytes"),
            found: format!("{} of {} bytes ({})", self.sectors, self.sector_bytes, quote(self.disk.as_bytes())),
        })
    }

    /// Returns the time from its first event to its last.
    pub fn length(&self) -> Dur {
        let ends = self.requests.iter().map(|r| r.done.unwrap_or(r.submitted));
        ends.max().unwrap_or(Time::ZERO).since(Time::ZERO)
    }
}

/// The lines of a file, with the checksum of all previous lines.
struct Lines<R> {
    input: R,
    file: String,
    number: u64,
    /// Current line without its end.
    line: Vec<u8>,
    /// Checksum of all bytes before this line.
    check: Xxh3,
    /// Line of the last checksum.
    checked: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line. The end of the file is an error with what was expected, and so is a
    /// line without a line end.
    fn next(&mut self, expected: &'static str) -> Result<bool, TraceError> {
        if self.number > 0 {
            self.check.update(&self.line);
            self.check.update(b"\n");
        }
        self.line.clear();
        let io = |source| TraceError::Io { file: self.file.clone(), source };
        let read = std::io::Read::take(&mut self.input, LONGEST_LINE).read_until(b'\n', &mut self.line).map_err(io)?;
        self.number += 1;
        let cut = |found: &str| Bad { expected: expected.into(), found: found.into() };
        if read == 0 {
            return Err(self.bad(cut("the file's end: it is cut, or the server was killed")));
        }
        if self.line.pop() != Some(b'\n') {
            let long = format!("{LONGEST_LINE} bytes without a line end");
            let found = if read as u64 == LONGEST_LINE { long } else { "a line without its end: it is cut".into() };
            return Err(self.bad(cut(&found)));
        }
        Ok(true)
    }

    fn bad(&self, bad: Bad) -> TraceError {
        let (file, line) = (self.file.clone(), self.number);
        TraceError::Line { file, line, expected: bad.expected.into_owned(), found: bad.found }
    }

    /// Reads the disk's title, number of sectors and bytes per sector.
    fn header(&mut self) -> Result<(String, u64, u32), TraceError> {
        self.next(FIRST)?;
        if self.line != FIRST.as_bytes() {
            let version = self.line.strip_prefix(b"headtime recording ");
            let expected = version.map_or(FIRST.into(), |_| format!("{FIRST}: this program reads no other version"));
            return Err(self.bad(Bad::new(expected, &self.line)));
        }
        self.next("disk TITLE")?;
        let title = self.line.strip_prefix(b"disk ").map(|t| String::from_utf8_lossy(t).into_owned());
        let disk = title.ok_or_else(|| self.bad(Bad::new("disk TITLE", &self.line)))?;
        let shape = "sectors N of BYTES, 512 or 4096";
        self.next(shape)?;
        let c = Columns::by_space(&self.line);
        let given = (c.get(0), c.get(2), c.count()) == (b"sectors", b"of", 4);
        let sectors = c.whole(1, shape).ok().filter(|n| given && (1..u64::MAX / 8192).contains(n));
        let bytes = c.whole(3, shape).ok().filter(|b| [512, 4096].contains(b));
        let both = sectors.zip(bytes).ok_or_else(|| self.bad(Bad::new(shape, &self.line)))?;
        Ok((disk, both.0, both.1 as u32))
    }

    /// Checks a line with the checksum of all previous lines.
    fn checked(&mut self) -> Result<(), Bad> {
        let digest = self.check.digest();
        if self.line != format!("K {digest:016x}").as_bytes() {
            let lines = format!("lines {} to {}", self.checked + 1, self.number - 1);
            let found = format!("{}: one of {lines} was altered, lost or moved", quote(&self.line));
            return Err(Bad { expected: format!("K {digest:016x}, the check of the lines before").into(), found });
        }
        self.checked = self.number;
        Ok(())
    }

    /// Checks the end of the file, and that a checksum preceded the last line.
    fn nothing_more(&mut self) -> Result<(), TraceError> {
        if self.checked + 1 != self.number {
            let expected = "K CHECK before the last line";
            return Err(self.bad(Bad::new(expected, &self.line)));
        }
        self.line.clear();
        let io = |source| TraceError::Io { file: self.file.clone(), source };
        let read = std::io::Read::take(&mut self.input, 64).read_until(b'\n', &mut self.line).map_err(io)?;
        self.number += 1;
        match read {
            0 => Ok(()),
            _ => Err(self.bad(Bad::new("the file's end", &self.line))),
        }
    }
}

/// State of reading the lines after the header.
struct Body {
    recording: Recording,
    now: Time,
    /// Each client's last completed request.
    last_done: Vec<Option<u32>>,
}

impl Body {
    fn client(&mut self, line: &[u8]) -> Result<(), Bad> {
        let number = self.recording.clients.len();
        let start = format!("client {number} ");
        let name = line.strip_prefix(start.as_bytes()).filter(|_| number < MOST_CLIENTS);
        if !self.recording.requests.is_empty() || name.is_none() {
            return Err(Bad::new(format!("{start}NAME, before any request"), line));
        }
        self.recording.clients.extend(name.map(|n| String::from_utf8_lossy(n).into_owned()));
        self.last_done.push(None);
        Ok(())
    }

    fn event(&mut self, line: &[u8]) -> Result<(), Bad> {
        let c = Columns::by_space(line);
        let (kind, columns) = match c.get(0) {
            b"R" => (Some((Kind::Read, false)), 5),
            b"W" => (Some((Kind::Write, false)), 5),
            b"V" => (Some((Kind::Write, true)), 5),
            b"F" => (Some((Kind::Flush, false)), 3),
            b"C" | b"E" => (None, 3),
            _ => return Err(Bad::new(SUBMISSION, line)),
        };
        c.exactly(columns, SUBMISSION)?;
        let us = c.whole(1, "whole microseconds since the line before")?;
        let now = us.checked_mul(1_000).and_then(|ns| self.now.0.checked_add(ns)).map(Time);
        let Some(now) = now.filter(|t| t.since(Time::ZERO) <= LONGEST_TRACE) else {
            return Err(Bad::new(format!("times that add up to at most {LONGEST_TRACE_DAYS} days"), c.get(1)));
        };
        self.now = now;
        match kind {
            Some((kind, fua)) => self.submitted(&c, kind, fua),
            None => self.done(&c),
        }
    }

    fn submitted(&mut self, c: &Columns<'_>, kind: Kind, fua: bool) -> Result<(), Bad> {
        let clients = self.last_done.len();
        let client = c.whole(2, "a client's number")?;
        if client >= clients as u64 {
            return Err(Bad::new(format!("a client's number below {clients}, as the header has"), c.get(2)));
        }
        let (lbn, count) = match kind {
            Kind::Flush => (0, 0),
            Kind::Read | Kind::Write => (c.whole(3, "a sector")?, c.whole(4, "a number of sectors")?),
        };
        let sectors = self.recording.sectors;
        let within = lbn.checked_add(count).is_some_and(|end| end <= sectors) && count <= u64::from(u32::MAX);
        if kind != Kind::Flush && (!within || count == 0) {
            return Err(Bad::new(format!("one or more sectors below {sectors}, as the header has"), c.line()));
        }
        if self.recording.requests.len() == MOST_REQUESTS {
            return Err(Bad::new(format!("at most {MOST_REQUESTS} requests"), c.line()));
        }
        let (client, after) = (client as u32, self.last_done[client as usize]);
        let (count, submitted) = (count as u32, self.now);
        let request = Recorded { client, kind, fua, lbn, count, submitted, done: None, after };
        self.recording.requests.push(request);
        Ok(())
    }

    fn done(&mut self, c: &Columns<'_>) -> Result<(), Bad> {
        let number = c.whole(2, "a request's number")?;
        let waits = self.recording.requests.get_mut(usize::try_from(number).unwrap_or(usize::MAX));
        let Some(request) = waits.filter(|r| r.done.is_none()) else {
            return Err(Bad::new("the number of a request that was submitted before and is not done", c.get(2)));
        };
        request.done = Some(self.now);
        self.last_done[request.client as usize] = Some(number as u32);
        Ok(())
    }

    fn end(&self, line: &[u8]) -> Result<(), Bad> {
        let requests = self.recording.requests.len();
        match line == format!("end {requests}").as_bytes() {
            _ if requests == 0 => Err(Bad::new("a request at least", line)),
            true => Ok(()),
            false => Err(Bad::new(format!("end {requests}, as many requests as there are"), line)),
        }
    }
}
