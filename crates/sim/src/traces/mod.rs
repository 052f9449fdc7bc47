//! Recorded workloads: one module per format, one record type, one streaming reader.
//!
//! A [`Reader`] reads a text file line by line in constant memory and yields [`Record`]s. Invalid
//! input is an error with file and line, and with what was expected and found. Blank lines and
//! lines that begin with `#` are skipped in every format of text. A file may be compressed with
//! gzip or zstd. Time starts at a file's first request, whatever the format's clock, and ends
//! [`LONGEST_TRACE_DAYS`] later: later requests are refused. A last line without a line end is read
//! if it is complete.

mod alibaba_csv;
mod blkparse;
mod compressed;
mod disksim_ascii;
mod disksim_validate;
mod fio_iolog;
mod mqsim;
mod msr_csv;
mod plain_csv;
mod reader;
mod record;
mod recording;
mod spc;
mod systor_csv;
mod tencent_csv;
pub mod text;
mod thesios_csv;
mod vscsi;

use std::collections::VecDeque;

pub use compressed::Input;
pub use reader::{LONGEST_TRACE_DAYS, Reader, open, open_text};
pub use record::{Gap, Record};
use record::{Names, Since, byte_range, range};
pub use recording::{RECORDING, Recorded, Recording};
use text::Bad;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{file}: {source}")]
    Io {
        /// File.
        file: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A line is invalid.
    #[error("{file}:{line}: expected {expected}, found {found}")]
    Line {
        /// File.
        file: String,
        /// Line, from 1.
        line: u64,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The file contains no request.
    #[error("{file}: expected {expected}, found no request in {lines} lines")]
    Empty {
        /// File.
        file: String,
        /// Form of a line.
        expected: String,
        /// Lines read.
        lines: u64,
    },
    /// The requested device does not occur.
    #[error("{file}: device {device} does not occur in it; it has {known}")]
    NoSuchDevice {
        /// File.
        file: String,
        /// The requested device.
        device: u32,
        /// The devices that occur.
        known: String,
    },
    /// Unknown format.
    #[error("unknown trace format \"{name}\"; known: {known}")]
    UnknownFormat {
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
}

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `R|W word lbn sectors response_us gap_us` (DiskSim's validation traces).
    DisksimValidate,
    /// `arrival_ms device lbn sectors flags` (DiskSim's ASCII format; bit 0 of the flags: read).
    DisksimAscii,
    /// `ns device sector sectors type` (MQSim; type 1: read).
    Mqsim,
    /// Text output of blkparse with its default format.
    Blkparse,
    /// `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime` (MSR Cambridge).
    MsrCsv,
    /// fio's iolog, versions 2 and 3.
    FioIolog,
    /// `Timestamp,Response,IOType,LUN,Offset,Size` (SYSTOR '17).
    SystorCsv,
    /// `Timestamp,Offset,Size,IOType,VolumeID` (Tencent CBS).
    TencentCsv,
    /// `device_id,opcode,offset,length,timestamp` (Alibaba's block traces).
    AlibabaCsv,
    /// Google's traces of single disks, by Thesios: columns by a heading.
    ThesiosCsv,
    /// `ASU,LBA,Size,Opcode,Timestamp` (SPC; UMass Financial and WebSearch).
    Spc,
    /// Binary records of VMware's vSCSI layer (CloudPhysics).
    Vscsi,
    /// `time_ms,op,lbn,sectors`, with or without that heading.
    PlainCsv,
}

impl TraceFormat {
    /// All formats with their names.
    pub const ALL: [(&'static str, TraceFormat); 13] = [
        ("disksim-validate", TraceFormat::DisksimValidate),
        ("disksim-ascii", TraceFormat::DisksimAscii),
        ("mqsim", TraceFormat::Mqsim),
        ("blkparse", TraceFormat::Blkparse),
        ("msr-csv", TraceFormat::MsrCsv),
        ("fio-iolog", TraceFormat::FioIolog),
        ("systor-csv", TraceFormat::SystorCsv),
        ("tencent-csv", TraceFormat::TencentCsv),
        ("alibaba-csv", TraceFormat::AlibabaCsv),
        ("thesios-csv", TraceFormat::ThesiosCsv),
        ("spc", TraceFormat::Spc),
        ("vscsi", TraceFormat::Vscsi),
        ("plain-csv", TraceFormat::PlainCsv),
    ];

    /// Returns a format by name; the error lists the known names. `csv` is short for `plain-csv`.
    pub fn from_name(name: &str) -> Result<TraceFormat, TraceError> {
        let wanted = if name == "csv" { "plain-csv" } else { name };
        Self::ALL
            .iter()
            .find(|(n, _)| *n == wanted)
            .map(|(_, f)| *f)
            .ok_or_else(|| TraceError::UnknownFormat { name: name.to_owned(), known: Self::known() })
    }

    /// Returns the names of all formats, with that of recordings, which are read as a whole
    /// ([`Recording`]).
    pub fn known() -> String {
        format!("{}, {RECORDING}", Self::ALL.map(|(n, _)| n).join(", "))
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, f)| *f == self).map_or("", |(n, _)| n)
    }

    /// Returns whether its places are those of a volume larger than any drive, and are folded onto
    /// the drive.
    pub fn is_folded(self) -> bool {
        self == TraceFormat::ThesiosCsv
    }

    fn parser(self, options: &ReadOptions) -> Box<dyn LineFormat> {
        match self {
            TraceFormat::DisksimValidate => Box::new(disksim_validate::DisksimValidate::new(options.gap)),
            TraceFormat::DisksimAscii => Box::new(disksim_ascii::DisksimAscii),
            TraceFormat::Mqsim => Box::new(mqsim::Mqsim),
            TraceFormat::Blkparse => Box::new(blkparse::Blkparse::default()),
            TraceFormat::MsrCsv => Box::new(msr_csv::MsrCsv::default()),
            TraceFormat::FioIolog => Box::new(fio_iolog::FioIolog::default()),
            TraceFormat::SystorCsv => Box::new(systor_csv::SystorCsv::default()),
            TraceFormat::TencentCsv => Box::new(tencent_csv::TencentCsv::default()),
            TraceFormat::AlibabaCsv => Box::new(alibaba_csv::AlibabaCsv::default()),
            TraceFormat::ThesiosCsv => Box::new(thesios_csv::ThesiosCsv::default()),
            TraceFormat::Spc => Box::new(spc::Spc::default()),
            TraceFormat::Vscsi => Box::new(vscsi::Vscsi::default()),
            TraceFormat::PlainCsv => Box::new(plain_csv::PlainCsv::default()),
        }
    }
}

/// On which side of its request the gap of a `disksim-validate` line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapSide {
    /// Before it: from the previous completion to this arrival.
    Before,
    /// After it, as DiskSim reads its own traces.
    #[default]
    After,
}

/// Options of reading a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Only requests to this device.
    pub device: Option<u32>,
    /// Meaning of the gap column of `disksim-validate`.
    pub gap: GapSide,
}

/// A source of recorded requests, in the trace's order.
pub trait TraceReader {
    /// The next record; `None` at the end.
    fn next_record(&mut self) -> Result<Option<Record>, TraceError>;
    /// Returns the file's name for messages.
    fn file(&self) -> &str;
    /// Returns the number of valid lines without a request that can be replayed (discards, unknown
    /// types).
    fn skipped(&self) -> u64;
}

/// Result of parsing a line.
enum Parsed {
    /// Records were appended, or the line is kept for later.
    Taken,
    /// Valid, but cannot be replayed.
    Skipped,
    /// The trace ends here, and a summary follows.
    End,
}

/// What a parser reads at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A line.
    Line,
    /// This number of bytes, fewer only at the end of the file.
    Bytes(usize),
}

/// A format's parser: lines in, records out. A line may give zero, one or several records.
trait LineFormat {
    /// Returns what it reads next.
    fn unit(&self) -> Unit {
        Unit::Line
    }
    /// Parses a line without its line end; never blank, never a comment.
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad>;
    /// Ends the file: records that were held back are appended.
    fn finish(&mut self, _out: &mut VecDeque<Record>) {}
    /// Returns the form of a line, for messages.
    fn shape(&self) -> &'static str;
}

#[cfg(test)]
pub(crate) mod tests {
    use headtime_disk::Time;

    use super::*;

    /// Reads a whole trace from text.
    pub(crate) fn read(format: TraceFormat, text: &str) -> Result<Vec<Record>, TraceError> {
        Reader::new(text.as_bytes(), "t".to_owned(), format, ReadOptions::default()).read_all()
    }

    /// Returns the error message that reading `text` must give.
    pub(crate) fn error(format: TraceFormat, text: &str) -> String {
        read(format, text).unwrap_err().to_string()
    }

    #[test]
    fn unknown_formats_list_the_known_ones() {
        let e = TraceFormat::from_name("pcap").unwrap_err().to_string();
        for (name, format) in TraceFormat::ALL {
            assert!(e.contains(name), "{e}");
            assert_eq!(TraceFormat::from_name(name).unwrap(), format);
            assert_eq!(format.name(), name);
        }
    }

    #[test]
    fn foreign_input_is_an_error_with_its_line_in_every_format() {
        for (name, format) in TraceFormat::ALL {
            for foreign in ["<html>\n<body>\n", "{\"a\": 1}\n", "one two three\n", "\u{0}\u{1}\u{2}\n"] {
                let e = error(format, foreign);
                assert!(e.starts_with("t:1: expected "), "{name}: {e}");
                assert!(e.contains(", found "), "{name}: {e}");
            }
        }
    }

    #[test]
    fn an_empty_file_is_an_error_that_says_what_was_expected() {
        // Binary records have no comments.
        for (name, format) in TraceFormat::ALL.into_iter().filter(|(_, format)| *format != TraceFormat::Vscsi) {
            let e = error(format, "\n# nothing\n");
            assert!(e.contains("expected") && e.contains("no request in 2 lines"), "{name}: {e}");
        }
    }

    #[test]
    fn compressed_input_that_was_not_opened_as_a_file_is_named() {
        let e = Reader::new(&[0x1f, 0x8b, 8, 0, 0][..], "t.gz".to_owned(), TraceFormat::MsrCsv, ReadOptions::default())
            .read_all()
            .unwrap_err()
            .to_string();
        assert!(e.contains("gzip"), "{e}");
    }

    #[test]
    fn a_line_without_end_is_not_read_into_memory() {
        let text = "1".repeat(200_000);
        let e = error(TraceFormat::Mqsim, &text);
        assert!(e.contains("65536 bytes without a line end"), "{e}");
    }

    /// A line of each format that arrives at `{t}` in the format's unit, and the number of these
    /// units per day.
    const AT: [(TraceFormat, &str, u64); 10] = [
        (TraceFormat::DisksimAscii, "{t} 0 8 8 1\n", 86_400_000),
        (TraceFormat::Mqsim, "{t} 0 8 8 1\n", 86_400_000_000_000),
        (TraceFormat::Blkparse, "8,0 0 1 {t} 1 Q R 8 + 8 [a]\n", 86_400),
        (TraceFormat::MsrCsv, "{t},hm,0,Read,0,512,1\n", 864_000_000_000),
        (TraceFormat::FioIolog, "{t} /f read 0 512\n", 86_400_000_000),
        (TraceFormat::SystorCsv, "{t},0.1,R,4,8192,4096\n", 86_400),
        (TraceFormat::TencentCsv, "{t},8,8,0,1\n", 86_400),
        (TraceFormat::AlibabaCsv, "0,R,4096,512,{t}\n", 86_400_000_000),
        (TraceFormat::Spc, "0,8,512,R,{t}\n", 86_400),
        (TraceFormat::PlainCsv, "{t},R,8,8\n", 86_400_000),
    ];

    fn arriving(format: TraceFormat, line: &str, times: &[u64]) -> String {
        let heading = if format == TraceFormat::FioIolog { "fio version 3 iolog\n" } else { "# no heading\n" };
        heading.to_owned() + &times.iter().map(|t| line.replace("{t}", &t.to_string())).collect::<String>()
    }

    #[test]
    fn time_begins_with_the_first_request_in_every_format() {
        for (format, line, day) in AT {
            // Half a day after day 20,000: a clock that started in 1970.
            let text = arriving(format, line, &[20_000 * day + day / 2, 20_001 * day]);
            let r = read(format, &text).unwrap();
            let half = Time(43_200_000_000_000);
            assert_eq!((r[0].arrival, r[1].arrival), (Some(Time::ZERO), Some(half)), "{}", format.name());
        }
    }

    #[test]
    fn an_arrival_beyond_the_longest_trace_is_refused_with_line_and_range() {
        for (format, line, day) in AT {
            let e = error(format, &arriving(format, line, &[0, 400 * day, 401 * day]));
            let wanted = "t:4: expected an arrival within 400 days of the first request, found 401.0 days after it";
            assert_eq!(e, wanted, "{}", format.name());
            let e = error(format, &arriving(format, line, &[0, u64::MAX]));
            assert!(e.starts_with("t:3: expected a"), "{}: {e}", format.name());
        }
        let e = error(TraceFormat::Mqsim, "86400000000000000 0 8 8 1\n0 0 8 8 1\n");
        assert!(e.starts_with("t:2: ") && e.ends_with("found 1000.0 days before it"), "{e}");
    }

    #[test]
    fn gaps_and_responses_beyond_the_longest_trace_are_refused_alone_and_together() {
        for (line, what) in [
            ("R Hit 1 2 3.5 99999999999999", "a gap of at most 400 days"),
            ("R Hit 1 2 99999999999999 1", "a response time of at most 400 days"),
            ("R Hit 1 2 1 34000000000000", "add up to at most 400 days"),
        ] {
            let e = error(TraceFormat::DisksimValidate, &format!("R Hit 1 2 1000000000000 3.5\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
        let e = error(
            TraceFormat::FioIolog,
            "fio version 2 iolog\n/f wait 18446744073709551615 0\n/f wait 18446744073709551615 0\n/f read 0 512\n",
        );
        assert!(e.starts_with("t:4: expected a gap of at most"), "{e}");
    }

    #[test]
    fn a_device_that_does_not_occur_lists_those_that_do() {
        let text = "0 3 8 8 1\n5 1 16 8 1\n";
        let with = |d| {
            Reader::new(
                text.as_bytes(),
                "t".to_owned(),
                TraceFormat::Mqsim,
                ReadOptions { device: Some(d), ..ReadOptions::default() },
            )
            .read_all()
        };
        assert_eq!(with(1).unwrap().len(), 1);
        let e = with(2).unwrap_err().to_string();
        assert!(e.contains("device 2") && e.contains("1, 3"), "{e}");
    }

    #[test]
    fn windows_line_ends_comments_and_a_missing_last_line_end_are_fine() {
        let text = "# a trace\r\n0 0 8 8 1\r\n\r\n7 0 16 8 0";
        let r = read(TraceFormat::Mqsim, text).unwrap();
        assert_eq!((r.len(), r[1].line), (2, 4));
    }
}
