//! `disksim-ascii`: `arrival_ms device lbn sectors flags`, separated by spaces.
//!
//! DiskSim's default trace format (DiskSim 4.0 reference manual, section on input workloads):
//! arrival in milliseconds from the start, device number, first block, blocks of 512 bytes, flags
//! in hexadecimal, bit 0 of which means read. The other flags (synchronous, time-critical) are not
//! used.

use std::collections::VecDeque;

use headtime_disk::{Kind, Time};

use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, range};

const SHAPE: &str = "5 columns: arrival_ms device lbn sectors flags (bit 0: read)";

pub(super) struct DisksimAscii;

impl LineFormat for DisksimAscii {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_space(line);
        c.exactly(5, SHAPE)?;
        let arrival = c.scaled(0, 6, "an arrival time in ms in column 1")?;
        let device = c.whole32(1, "a device number in column 2")?;
        let lbn = c.whole(2, "an LBN in column 3")?;
        let count = c.whole(3, "a count of sectors in column 4")?;
        let place = range(lbn, count)?;
        let flags = hex(c.get(4))
            .ok_or_else(|| Bad::new("flags in hexadecimal in column 5 (bit 0: read), such as 0 or 1", c.get(4)))?;
        let kind = if flags & 1 == 1 { Kind::Read } else { Kind::Write };
        out.push_back(Record::new(number, kind, place).at(Time(arrival)).on(device));
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

/// Parses up to eight hexadecimal digits, with or without `0x`.
fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    digits.iter().try_fold(0u32, |n, &b| Some(n << 4 | char::from(b).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::DisksimAscii;

    #[test]
    fn arrivals_are_exact_nanoseconds_and_bit_0_is_read() {
        let r = read(F, "0.000000 0 1000 8 1\n  12.345678   1  2000   16  0\n13 1 5 1 b\n").unwrap();
        assert_eq!(
            r.iter().map(|r| (r.arrival, r.device, r.lbn, r.count, r.kind)).collect::<Vec<_>>(),
            [
                (Some(Time(0)), 0, 1000, 8, Kind::Read),
                (Some(Time(12_345_678)), 1, 2000, 16, Kind::Write),
                (Some(Time(13_000_000)), 1, 5, 1, Kind::Read),
            ]
        );
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let e = error(F, "0.0 0 1000 8 1\n1.0 0 20\n");
        assert!(e.starts_with("t:2: expected 5 columns: arrival_ms device lbn sectors flags"), "{e}");
        for (line, what) in [
            ("x 0 1000 8 1", "an arrival time"),
            ("-5 0 1000 8 1", "an arrival time"),
            ("0 sda 1000 8 1", "a device number"),
            ("0 0 1000.5 8 1", "an LBN"),
            ("0 0 1000 0 1", "0 sectors"),
            ("0 0 1000 8 R", "flags"),
        ] {
            assert!(error(F, line).contains(what), "{line}");
        }
    }
}
