//! The streaming reader: passes a file's lines to a format's parser, and returns records, and
//! errors with file and line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use headtime_disk::{Dur, Time};

use super::compressed::{self, Input};
use super::text::Bad;
use super::{Gap, LineFormat, Parsed, ReadOptions, Record, TraceError, TraceFormat, TraceReader, Unit};

/// Maximum length of a line; a longer one is not text.
const LONGEST_LINE: u64 = 64 * 1024;
/// Maximum length of a trace in days: no record is further from the first request. Published traces
/// cover weeks; a larger figure has another unit or is corrupt, and simulating virtual time up to
/// it would take hours.
pub const LONGEST_TRACE_DAYS: u64 = 400;
pub(super) const LONGEST_TRACE: Dur = Dur::from_secs(LONGEST_TRACE_DAYS * 86_400);
/// Devices recorded for the message that one does not occur.
const DEVICES_KEPT: usize = 64;

/// A streaming reader of any format.
pub struct Reader<R> {
    input: R,
    file: String,
    number: u64,
    buffer: Vec<u8>,
    format: Box<dyn LineFormat>,
    out: VecDeque<Record>,
    device: Option<u32>,
    devices: Vec<u32>,
    requests: u64,
    delivered: u64,
    skipped: u64,
    over: bool,
    /// The first request's arrival by the trace's clock.
    began: Option<Time>,
    /// Sum of responses and gaps, where there are no arrival times.
    elapsed: Dur,
}

/// Opens a file, which may be compressed with gzip or zstd.
pub fn open(path: &Path, format: TraceFormat, options: ReadOptions) -> Result<Reader<Input>, TraceError> {
    let file = path.display().to_string();
    match open_file(path).and_then(compressed::open) {
        Ok(input) => Ok(Reader::new(input, file, format, options)),
        Err(source) => Err(TraceError::Io { file, source }),
    }
}

/// Opens a file of text, which may be compressed, for reading by lines.
pub fn open_text(path: &Path) -> std::io::Result<std::io::Lines<Input>> {
    Ok(open_file(path).and_then(compressed::open)?.lines())
}

/// Opens a file that is not a directory: a directory could be opened but not read.
pub(super) fn open_file(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, "expected a file, found a directory")),
        false => Ok(file),
    }
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader of any input; `file` is for messages.
    pub fn new(input: R, file: String, format: TraceFormat, options: ReadOptions) -> Reader<R> {
        Reader {
            input,
            file,
            number: 0,
            buffer: Vec::with_capacity(256),
            format: format.parser(&options),
            out: VecDeque::with_capacity(4),
            device: options.device,
            devices: Vec::new(),
            requests: 0,
            delivered: 0,
            skipped: 0,
            over: false,
            began: None,
            elapsed: Dur::ZERO,
        }
    }

    /// Returns all records of a file; for tests and short traces.
    pub fn read_all(mut self) -> Result<Vec<Record>, TraceError> {
        let mut all = Vec::new();
        while let Some(r) = self.next_record()? {
            all.push(r);
        }
        Ok(all)
    }

    fn bad(&self, bad: Bad) -> TraceError {
        TraceError::Line {
            file: self.file.clone(),
            line: self.number,
            expected: bad.expected.into_owned(),
            found: bad.found,
        }
    }

    /// Reads one line into the buffer, without its end; false at the end of the file.
    fn fill(&mut self) -> Result<bool, TraceError> {
        self.buffer.clear();
        if let Unit::Bytes(n) = self.format.unit() {
            let read = (&mut self.input)
                .take(n as u64)
                .read_to_end(&mut self.buffer)
                .map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
            self.number += 1;
            return Ok(read > 0);
        }
        let read = (&mut self.input)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.number == 1 && self.buffer.starts_with(&[0x1f, 0x8b]) {
            return Err(self.bad(Bad { expected: self.format.shape().into(), found: "gzip-compressed data".into() }));
        }
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if read as u64 == LONGEST_LINE {
            return Err(self.bad(Bad {
                expected: self.format.shape().into(),
                found: format!("{LONGEST_LINE} bytes without a line end"),
            }));
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(true)
    }

    /// Reads until a record is ready or the file ends.
    fn advance(&mut self) -> Result<(), TraceError> {
        while self.out.is_empty() && !self.over {
            let unit = self.format.unit();
            if !self.fill()? {
                self.format.finish(&mut self.out);
                self.over = true;
                break;
            }
            let line = self.buffer.trim_ascii_start();
            if unit == Unit::Line && (line.is_empty() || line[0] == b'#') {
                continue;
            }
            match self.format.line(&self.buffer, self.number, &mut self.out) {
                Ok(Parsed::Taken) => {}
                Ok(Parsed::Skipped) => self.skipped += 1,
                Ok(Parsed::End) => {
                    self.format.finish(&mut self.out);
                    self.over = true;
                }
                Err(bad) => return Err(self.bad(bad)),
            }
        }
        Ok(())
    }

    /// Converts a record's arrival to time from the first request, and checks all its times against
    /// the maximum length of a trace.
    fn on_the_clock(&mut self, record: Record) -> Result<Record, TraceError> {
        let response = record.response.unwrap_or(Dur::ZERO);
        if response > LONGEST_TRACE {
            return Err(self.too_long(&record, "a response time of at most", response, ""));
        }
        if let Some(at) = record.arrival {
            let began = *self.began.get_or_insert(at);
            // Clocks may go back slightly; an arrival long before the first request is corrupt as
            // well.
            let (off, side) = if at >= began { (at.since(began), "after") } else { (began.since(at), "before") };
            if off > LONGEST_TRACE {
                return Err(self.too_long(&record, "an arrival within", off, side));
            }
            return Ok(Record { arrival: Some(Time(at.0.saturating_sub(began.0))), ..record });
        }
        let gap = match record.gap {
            Some(Gap::Before(gap) | Gap::After(gap)) => gap,
            None => Dur::ZERO,
        };
        if gap > LONGEST_TRACE {
            return Err(self.too_long(&record, "a gap of at most", gap, ""));
        }
        self.elapsed += gap + response;
        if self.elapsed > LONGEST_TRACE {
            return Err(self.too_long(&record, "responses and gaps that add up to at most", self.elapsed, ""));
        }
        Ok(record)
    }

    fn too_long(&self, record: &Record, expected: &str, found: Dur, side: &str) -> TraceError {
        let of = if side.is_empty() { "" } else { " of the first request" };
        let than = if side.is_empty() { String::new() } else { format!(" {side} it") };
        TraceError::Line {
            file: self.file.clone(),
            line: record.line,
            expected: format!("{expected} {LONGEST_TRACE_DAYS} days{of}"),
            found: format!("{:.1} days{than}", found.as_secs_f64() / 86_400.0),
        }
    }

    /// Ends the trace, which is an error if it contained no request.
    fn end(&self) -> Result<Option<Record>, TraceError> {
        if self.requests == 0 && self.skipped == 0 {
            return Err(TraceError::Empty {
                file: self.file.clone(),
                expected: self.format.shape().to_owned(),
                lines: self.number,
            });
        }
        match self.device {
            Some(device) if self.delivered == 0 => {
                let mut known: Vec<String> = self.devices.iter().map(u32::to_string).collect();
                if self.devices.len() == DEVICES_KEPT {
                    known.push("more".to_owned());
                }
                Err(TraceError::NoSuchDevice { file: self.file.clone(), device, known: known.join(", ") })
            }
            _ => Ok(None),
        }
    }
}

impl<R: BufRead> TraceReader for Reader<R> {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            self.advance()?;
            let Some(record) = self.out.pop_front() else {
                return self.end();
            };
            let record = self.on_the_clock(record)?;
            self.requests += 1;
            if let Some(device) = self.device
                && record.device != device
            {
                // Only recorded until the requested device occurs.
                if self.delivered == 0
                    && self.devices.len() < DEVICES_KEPT
                    && let Err(at) = self.devices.binary_search(&record.device)
                {
                    self.devices.insert(at, record.device);
                }
                continue;
            }
            self.delivered += 1;
            return Ok(Some(record));
        }
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}
