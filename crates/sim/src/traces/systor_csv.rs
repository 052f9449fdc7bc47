//! `systor-csv`: `Timestamp,Response,IOType,LUN,Offset,Size`.
//!
//! The enterprise VDI traces of SYSTOR '17 (their README; Lee et al.): timestamp in seconds since
//! 1970 with a fraction, response in seconds, type `R` or `W` or blank, offset and size in bytes. A
//! blank type means that no response was seen, so the type is unknown: such lines are skipped, as
//! the README advises. Time starts at the file's first request.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind};

use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, Since, byte_range};

const SHAPE: &str = "6 columns: Timestamp,Response,IOType,LUN,Offset,Size";

#[derive(Default)]
pub(super) struct SystorCsv {
    clock: Since,
    lines: u64,
}

impl LineFormat for SystorCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        c.exactly(6, SHAPE)?;
        self.lines += 1;
        if self.lines == 1 && c.get(0).eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Taken);
        }
        let at = c.scaled(0, 9, "a timestamp in seconds in column 1")?;
        let kind = match c.get(2) {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            b"" => return Ok(Parsed::Skipped),
            other => return Err(Bad::new("R, W or nothing in column 3", other)),
        };
        let response = match c.get(1) {
            b"" => None,
            _ => Some(Dur(c.scaled(1, 9, "a response time in seconds in column 2")?)),
        };
        let device = c.whole32(3, "a LUN in column 4")?;
        let offset = c.whole(4, "an offset in bytes in column 5")?;
        let size = c.whole(5, "a size in bytes in column 6")?;
        let place = byte_range(offset, size)?;
        out.push_back(Record::new(number, kind, place).at(self.clock.first(at, 1)).on(device).answered(response));
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::tests::{error, read};
    use crate::traces::{ReadOptions, Reader, TraceFormat, TraceReader};
    use headtime_disk::Time;

    const F: TraceFormat = TraceFormat::SystorCsv;

    const SAMPLE: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456135200.013118000,0.000806000,R,4,8192,4096\n\
        1456135200.013200000,,,4,4096,4096\n\
        1456135200.113118000,0.001,W,0,899056122368,131072\n";

    #[test]
    fn time_begins_with_the_first_request_and_blank_types_are_skipped() {
        let mut reader = Reader::new(SAMPLE.as_bytes(), "t".into(), F, ReadOptions::default());
        let a = reader.next_record().unwrap().unwrap();
        let b = reader.next_record().unwrap().unwrap();
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.skipped(), 1);
        assert_eq!((a.arrival, a.response), (Some(Time(0)), Some(Dur(806_000))));
        assert_eq!((a.kind, a.device, a.lbn, a.count), (Kind::Read, 4, 16, 8));
        assert_eq!((b.arrival, b.kind, b.count), (Some(Time(100_000_000)), Kind::Write, 256));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("1456135200.1,0.001,W,0,8192", "6 columns"),
            ("1456135200.1,0.001,X,0,8192,512", "R, W or nothing"),
            ("1456135200.1,0.001,W,a,8192,512", "a LUN"),
            ("1456135200.1,0.001,W,0,8192,511", "not a multiple"),
            ("1456135200.1,fast,W,0,8192,512", "a response time"),
            ("yesterday,0.001,W,0,8192,512", "a timestamp"),
        ] {
            let e = error(F, &format!("{SAMPLE}{line}\n"));
            assert!(e.starts_with("t:5: ") && e.contains(what), "{line}: {e}");
        }
        assert!(read(F, SAMPLE).is_ok());
    }
}
