//! `vscsi`: binary records of VMware's vSCSI layer.
//!
//! The traces of CloudPhysics (Waldspurger et al., FAST 2015) in either version of their format, as
//! in the readers of libCacheSim: numbers are little-endian. Version 1, 32 bytes: serial number,
//! bytes and number of segments (32 bits each), SCSI command and version (16 bits each), block and
//! time (64 bits each). Version 2, 40 bytes: command, version, serial number, bytes, segments,
//! block, time, response time. Blocks have 512 bytes; times are microseconds. Commands that neither
//! read nor write are skipped.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind};

use super::text::Bad;
use super::{LineFormat, Parsed, Record, Since, Unit, range};

const SHAPE: &str = "binary records of version 1 (32 bytes) or 2 (40 bytes)";
const V1: usize = 32;
const V2: usize = 40;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Version {
    /// Not known until the first record is read.
    #[default]
    Unknown,
    One,
    Two,
}

#[derive(Default)]
pub(super) struct Vscsi {
    clock: Since,
    version: Version,
    /// The beginning of the first record of version 2.
    begun: Vec<u8>,
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}

/// Returns whether a SCSI command reads or writes.
fn kind(command: u16) -> Option<Kind> {
    match command {
        // READ and WRITE of 6, 10, 12 and 16 bytes.
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Kind::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Kind::Write),
        _ => None,
    }
}

impl Vscsi {
    fn find_version(&mut self, record: &[u8]) -> Result<(), Bad> {
        // The version is the upper byte; its place differs.
        self.version = match (u16_at(record, 14) >> 8, u16_at(record, 2) >> 8) {
            (1, _) => Version::One,
            (_, 2) => Version::Two,
            (a, b) => {
                return Err(Bad {
                    expected: SHAPE.into(),
                    found: format!("version {a} as in version 1 and {b} as in version 2"),
                });
            }
        };
        Ok(())
    }
}

impl LineFormat for Vscsi {
    fn unit(&self) -> Unit {
        Unit::Bytes(match self.version {
            Version::Unknown | Version::One => V1,
            Version::Two if self.begun.is_empty() => V2,
            Version::Two => V2 - V1,
        })
    }

    fn line(&mut self, bytes: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        if bytes.len() < self.unit_bytes() {
            return Err(Bad { expected: SHAPE.into(), found: format!("{} bytes at the end", bytes.len()) });
        }
        if self.version == Version::Unknown {
            self.find_version(bytes)?;
            if self.version == Version::Two {
                self.begun = bytes.to_vec();
                return Ok(Parsed::Taken);
            }
        }
        let whole: Vec<u8>;
        let record = if self.begun.is_empty() {
            bytes
        } else {
            whole = [&std::mem::take(&mut self.begun)[..], bytes].concat();
            &whole[..]
        };
        let (command, version, length, lbn, at, response) = match self.version {
            Version::Two => {
                let (lbn, at) = (u64_at(record, 16), u64_at(record, 24));
                (u16_at(record, 0), u16_at(record, 2), u32_at(record, 8), lbn, at, Some(u64_at(record, 32)))
            }
            _ => {
                let (lbn, at) = (u64_at(record, 16), u64_at(record, 24));
                (u16_at(record, 12), u16_at(record, 14), u32_at(record, 4), lbn, at, None)
            }
        };
        let expected = if self.version == Version::Two { 2 } else { 1 };
        if version >> 8 != expected {
            let (e, f) = (expected, version >> 8);
            return Err(Bad { expected: format!("a record of version {e}").into(), found: format!("version {f}") });
        }
        let Some(kind) = kind(command) else { return Ok(Parsed::Skipped) };
        let place = range(lbn, u64::from(length).div_ceil(512))?;
        let response = response.map(|us| Dur(us.saturating_mul(1_000)));
        out.push_back(Record::new(number, kind, place).at(self.clock.first(at, 1_000)).answered(response));
        Ok(Parsed::Taken)
    }

    fn finish(&mut self, _out: &mut VecDeque<Record>) {
        self.begun.clear();
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

impl Vscsi {
    fn unit_bytes(&self) -> usize {
        match self.unit() {
            Unit::Bytes(n) => n,
            Unit::Line => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::{ReadOptions, Reader, TraceError, TraceFormat};
    use headtime_disk::Time;

    fn v1(command: u16, bytes: u32, lbn: u64, at: u64) -> Vec<u8> {
        let mut r = [7u32.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat();
        r.extend(command.to_le_bytes());
        r.extend(0x0100u16.to_le_bytes());
        r.extend(lbn.to_le_bytes());
        r.extend(at.to_le_bytes());
        r
    }

    fn v2(command: u16, bytes: u32, lbn: u64, at: u64, response: u64) -> Vec<u8> {
        let mut r = [command.to_le_bytes(), 0x0200u16.to_le_bytes()].concat();
        r.extend([7u32.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat());
        [lbn, at, response].iter().for_each(|n| r.extend(n.to_le_bytes()));
        r
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
        Reader::new(bytes, "t".into(), TraceFormat::Vscsi, ReadOptions::default()).read_all()
    }

    #[test]
    fn both_versions_are_read() {
        // A block whose bytes are a line's end and a comment's beginning.
        let one = [v1(0x28, 4096, 0x0a23, 1_000), v1(0x35, 0, 0, 1_500), v1(0x8a, 512, 9, 2_000)].concat();
        let r = read(&one).unwrap();
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].lbn, r[0].count, r[0].kind, r[0].arrival), (0x0a23, 8, Kind::Read, Some(Time::ZERO)));
        assert_eq!((r[1].kind, r[1].arrival, r[1].response), (Kind::Write, Some(Time(1_000_000)), None));
        let two = [v2(0x2a, 1024, 5, 10, 3), v2(0x28, 4096, 6, 20, 4), v2(0x28, 4096, 7, 30, 5)].concat();
        let r = read(&two).unwrap();
        assert_eq!(r.iter().map(|r| (r.lbn, r.count)).collect::<Vec<_>>(), [(5, 2), (6, 8), (7, 8)]);
        assert_eq!((r[0].kind, r[2].response), (Kind::Write, Some(Dur(5_000))));
    }

    #[test]
    fn damaged_files_name_the_record() {
        let two = [v2(0x2a, 1024, 5, 10, 3), v2(0x28, 4096, 6, 20, 4)].concat();
        for (bytes, expected) in [
            (&two[..60], "t:3: expected binary records"),
            (&two[..20], "t:1: expected binary records"),
            (&[v2(0x2a, 512, 5, 10, 3), v1(0x2a, 512, 5, 10), vec![0; 8]].concat(), "a record of version 2"),
            (&v1(0x28, 0, 5, 10), "0 sectors"),
            (b"R Hit 1 2 3 4 and more than 32 bytes of text", "t:1: expected binary records"),
        ] {
            let e = read(bytes).unwrap_err().to_string();
            assert!(e.contains(expected), "{e}");
        }
    }
}
