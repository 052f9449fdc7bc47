//! `fio-iolog`: output of fio's `--write_iolog`, versions 2 and 3.
//!
//! The first line is `fio version 2 iolog` or `fio version 3 iolog` (fio's documentation, "Trace
//! file format").
//!
//! * version 2: `filename action` for add, open, close; `filename action offset length` for wait,
//!   read, write, sync, datasync, trim. There are no times: each request follows the completion of
//!   the previous one, after the microseconds of the `wait`s in between (given in the offset
//!   column).
//! * version 3: the same preceded by a timestamp in microseconds from the start of the log, and
//!   without wait.
//!
//! Offsets and lengths are bytes. Files are devices in order of appearance. A sync is a flush; a
//! trim is skipped.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Time};

use super::record::NOWHERE;
use super::text::{Bad, Columns};
use super::{Gap, LineFormat, Names, Parsed, Record, byte_range};

const HEADING: &str = "the line \"fio version 2 iolog\" or \"fio version 3 iolog\"";
const SHAPE_2: &str = "filename action, or filename action offset length";
const SHAPE_3: &str = "timestamp_us filename action, or timestamp_us filename action offset length";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Unknown,
    Two,
    Three,
}

#[derive(Default)]
pub(super) struct FioIolog {
    version: Version,
    files: Names,
    waited: Dur,
}

impl LineFormat for FioIolog {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let (arrival, from) = match self.version {
            Version::Unknown => {
                self.version = match line.trim_ascii() {
                    b"fio version 2 iolog" => Version::Two,
                    b"fio version 3 iolog" => Version::Three,
                    _ => return Err(Bad::new(HEADING, line)),
                };
                return Ok(Parsed::Taken);
            }
            Version::Two => (None, 0),
            Version::Three => {
                let us = Columns::by_space(line).whole(0, "a timestamp in us in column 1")?;
                (Some(Time(us.saturating_mul(1_000))), 1)
            }
        };
        let c = Columns::by_space(line);
        let file = c.get(from);
        let action = c.get(from + 1);
        match action {
            b"add" | b"open" | b"close" | b"unlink" if c.count() == from + 2 => {
                self.files.number(file);
                return Ok(Parsed::Taken);
            }
            _ if c.count() != from + 4 => return Err(Bad::new(self.shape(), line)),
            _ => {}
        }
        let offset = c.whole(from + 2, "an offset in bytes after the action")?;
        let length = c.whole(from + 3, "a length in bytes after the offset")?;
        let kind = match action {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"sync" | b"datasync" | b"sync_file_range" => Kind::Flush,
            b"trim" => return Ok(Parsed::Skipped),
            b"wait" if self.version == Version::Two => {
                self.waited += Dur(offset.saturating_mul(1_000));
                return Ok(Parsed::Taken);
            }
            b"wait" => return Err(Bad::new("no wait in version 3", line)),
            other => {
                return Err(Bad::new("add, open, close, wait, read, write, sync, datasync or trim", other));
            }
        };
        let place = if kind == Kind::Flush { NOWHERE } else { byte_range(offset, length)? };
        let gap = match self.version {
            Version::Two => Some(Gap::Before(std::mem::take(&mut self.waited))),
            _ => None,
        };
        let device = self.files.number(file);
        out.push_back(Record { arrival, gap, ..Record::new(number, kind, place).on(device) });
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        match self.version {
            Version::Unknown => HEADING,
            Version::Two => SHAPE_2,
            Version::Three => SHAPE_3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::FioIolog;

    #[test]
    fn version_2_has_gaps_from_its_waits() {
        let r = read(
            F,
            "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 4096 8192\n/dev/sda wait 1500 0\n\
             /dev/sda wait 500 0\n/dev/sdb write 0 512\n/dev/sdb sync 0 0\n/dev/sda trim 0 512\n/dev/sda close\n",
        )
        .unwrap();
        assert_eq!(
            r.iter().map(|r| (r.arrival, r.gap, r.kind, r.device, r.lbn, r.count)).collect::<Vec<_>>(),
            [
                (None, Some(Gap::Before(Dur(0))), Kind::Read, 0, 8, 16),
                (None, Some(Gap::Before(Dur(2_000_000))), Kind::Write, 1, 0, 1),
                (None, Some(Gap::Before(Dur(0))), Kind::Flush, 1, 0, 0),
            ]
        );
    }

    #[test]
    fn version_3_has_times() {
        let r = read(
            F,
            "fio version 3 iolog\n2 Nvme1n1 add\n872 Nvme1n1 open\n878 Nvme1n1 write 0 16384\n888 Nvme1n1 read 512 \
             512\n10001677 Nvme1n1 close\n",
        )
        .unwrap();
        assert_eq!(
            r.iter().map(|r| (r.arrival, r.gap, r.kind, r.lbn, r.count)).collect::<Vec<_>>(),
            [(Some(Time(0)), None, Kind::Write, 0, 32), (Some(Time(10_000)), None, Kind::Read, 1, 1),]
        );
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        assert!(error(F, "fio version 1 iolog\n").starts_with("t:1: expected the line"));
        for (line, what) in [
            ("/f read 0", "filename action"),
            ("/f read 0 4096 1", "filename action"),
            ("/f erase 0 4096", "add, open, close"),
            ("/f read 100 4096", "not a multiple of 512"),
            ("/f read 0 0", "0 sectors"),
            ("/f read x 512", "an offset in bytes"),
        ] {
            let e = error(F, &format!("fio version 2 iolog\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
        assert!(error(F, "fio version 3 iolog\n/f read 0 512\n").contains("a timestamp in us"));
        assert!(error(F, "fio version 3 iolog\n5 /f wait 100 0\n").contains("no wait"));
    }
}
