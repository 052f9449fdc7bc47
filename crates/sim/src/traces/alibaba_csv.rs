//! `alibaba-csv`: `device_id,opcode,offset,length,timestamp`.
//!
//! The block traces of Alibaba's cloud of January 2020 (README of their repository; Li et al.,
//! IISWC 2020): the number of the virtual disk, R or W, offset and length in bytes, and the time
//! of arrival in microseconds since 1970. Time starts at the file's first request.

use std::collections::VecDeque;

use headtime_disk::Kind;

use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, Since, byte_range};

const SHAPE: &str = "5 columns: device_id,opcode,offset,length,timestamp";

#[derive(Default)]
pub(super) struct AlibabaCsv {
    clock: Since,
    lines: u64,
}

impl LineFormat for AlibabaCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        c.exactly(5, SHAPE)?;
        self.lines += 1;
        if self.lines == 1 && c.get(0).eq_ignore_ascii_case(b"device_id") {
            return Ok(Parsed::Taken);
        }
        let device = c.whole32(0, "the number of a virtual disk in column 1")?;
        let kind = match c.get(1) {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            other => return Err(Bad::new("R or W in column 2", other)),
        };
        let offset = c.whole(2, "an offset in bytes in column 3")?;
        let length = c.whole(3, "a length in bytes in column 4")?;
        let place = byte_range(offset, length)?;
        let at = c.whole(4, "a time in microseconds in column 5")?;
        out.push_back(Record::new(number, kind, place).at(self.clock.first(at, 1_000)).on(device));
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

    const F: TraceFormat = TraceFormat::AlibabaCsv;

    #[test]
    fn offsets_are_bytes_and_times_microseconds() {
        let r = read(F, "0,R,126703644672,4096,1577808000000626\n419,W,8192,512,1577808000001626\n").unwrap();
        assert_eq!((r[0].lbn, r[0].count, r[0].kind, r[0].device), (247_468_056, 8, Kind::Read, 0));
        assert_eq!((r[1].arrival, r[1].lbn, r[1].kind, r[1].owner), (Some(Time(1_000_000)), 16, Kind::Write, 419));
        assert_eq!(read(F, "device_id,opcode,offset,length,timestamp\n1,R,0,512,5\n").unwrap().len(), 1);
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("1,R,0,512", "5 columns"),
            ("1,X,0,512,9", "R or W"),
            ("1,R,100,512,9", "an offset of whole sectors"),
            ("1,R,0,0,9", "0 sectors"),
            ("x,R,0,512,9", "the number of a virtual disk"),
        ] {
            let e = error(F, &format!("0,R,126703644672,4096,1577808000000626\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
