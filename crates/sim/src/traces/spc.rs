//! `spc`: `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! The trace format of the Storage Performance Council (SPC Trace File Format Specification 1.0.1,
//! 2002), of the Financial and WebSearch traces of the UMass repository among others: the number of
//! the storage unit, the first block (of 512 bytes), bytes, R or W in any case, seconds with
//! decimals since the trace began. Further columns may follow and are not used. Sizes that are not
//! whole sectors are rounded up: the specification asks for no more than bytes.

use std::collections::VecDeque;

use headtime_disk::Kind;

use super::text::{Bad, Columns, quote};
use super::{LineFormat, Parsed, Record, Since, range};

const SHAPE: &str = "5 columns or more: ASU,LBA,Size,Opcode,Timestamp";

#[derive(Default)]
pub(super) struct Spc {
    clock: Since,
}

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        if c.count() < 5 {
            return Err(Bad { expected: SHAPE.into(), found: format!("{} columns in {}", c.count(), quote(line)) });
        }
        let device = c.whole32(0, "the number of a storage unit in column 1")?;
        let lbn = c.whole(1, "a block in column 2")?;
        let size = c.whole(2, "a size in bytes in column 3")?;
        let kind = match c.get(3) {
            b"R" | b"r" => Kind::Read,
            b"W" | b"w" => Kind::Write,
            other => return Err(Bad::new("R or W in column 4", other)),
        };
        let at = c.scaled(4, 9, "a time in seconds in column 5")?;
        let place = range(lbn, size.div_ceil(512))?;
        out.push_back(Record::new(number, kind, place).at(self.clock.first(at, 1)).on(device));
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};
    use headtime_disk::Time;

    const F: TraceFormat = TraceFormat::Spc;

    #[test]
    fn sizes_are_bytes_and_blocks_are_sectors() {
        let r = read(F, "0,20941264,8192,W,0.551706\n1, 8, 1000, r, 1.551706, spare\n").unwrap();
        assert_eq!((r[0].lbn, r[0].count, r[0].kind, r[0].device), (20_941_264, 16, Kind::Write, 0));
        assert_eq!((r[1].arrival, r[1].count, r[1].kind, r[1].owner), (Some(Time(1_000_000_000)), 2, Kind::Read, 1));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("0,8,512,W", "5 columns or more"),
            ("0,8,512,D,1", "R or W"),
            ("0,8,0,W,1", "0 sectors"),
            ("0,8,512,W,-1", "a time in seconds in column 5"),
            ("-1,8,512,W,1", "the number of a storage unit"),
        ] {
            let e = error(F, &format!("0,20941264,8192,W,0.551706\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
