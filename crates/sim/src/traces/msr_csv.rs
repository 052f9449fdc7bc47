//! `msr-csv`: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! The block traces of MSR Cambridge (their README; Narayanan et al., FAST 2008): timestamp and
//! response time are Windows filetime, in units of 100 ns; type is `Read` or `Write`; offset and
//! size are bytes. Time starts at the file's first request. The owner is the host, numbered in
//! order of appearance.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind};

use super::text::{Bad, Columns};
use super::{LineFormat, Names, Parsed, Record, Since, byte_range};

const SHAPE: &str = "7 columns: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

#[derive(Default)]
pub(super) struct MsrCsv {
    clock: Since,
    hosts: Names,
    lines: u64,
}

impl LineFormat for MsrCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        c.exactly(7, SHAPE)?;
        self.lines += 1;
        if self.lines == 1 && c.get(0).eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Taken);
        }
        let at = c.whole(0, "a timestamp in units of 100 ns in column 1")?;
        let device = c.whole32(2, "a disk number in column 3")?;
        let kind = match c.get(3) {
            t if t.eq_ignore_ascii_case(b"read") => Kind::Read,
            t if t.eq_ignore_ascii_case(b"write") => Kind::Write,
            other => return Err(Bad::new("Read or Write in column 4", other)),
        };
        let offset = c.whole(4, "an offset in bytes in column 5")?;
        let size = c.whole(5, "a size in bytes in column 6")?;
        let place = byte_range(offset, size)?;
        let response = c.whole(6, "a response time in units of 100 ns in column 7")?;
        let record = Record::new(number, kind, place).at(self.clock.first(at, 100)).on(device);
        let response = Dur(response.saturating_mul(100));
        out.push_back(record.by(self.hosts.number(c.get(1))).answered(Some(response)));
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

    const F: TraceFormat = TraceFormat::MsrCsv;

    #[test]
    fn time_begins_with_the_first_request() {
        let r = read(
            F,
            "128166372003061629,hm,0,Read,383496192,32768,413\n\
             128166372016382155,hm,1,Write,2822144,4096,31406\n",
        )
        .unwrap();
        assert_eq!(r[0].arrival, Some(Time(0)));
        assert_eq!(r[1].arrival, Some(Time(1_332_052_600)));
        assert_eq!((r[0].lbn, r[0].count, r[0].kind, r[0].response), (749_016, 64, Kind::Read, Some(Dur(41_300))));
        assert_eq!((r[1].device, r[1].owner, r[1].kind), (1, 0, Kind::Write));
    }

    #[test]
    fn a_heading_is_passed_over_once() {
        let heading = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
        let line = "5,hm,0,Read,0,512,1\n";
        assert_eq!(read(F, &format!("{heading}{line}")).unwrap().len(), 1);
        assert!(error(F, &format!("{line}{heading}")).starts_with("t:2: expected a timestamp"));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let good = "5,hm,0,Read,0,512,1\n";
        for (line, what) in [
            ("6,hm,0,Read,512", "7 columns"),
            ("6,hm,0,Trim,512,512,1", "Read or Write"),
            ("6,hm,0,Read,100,512,1", "not a multiple of 512"),
            ("6,hm,0,Read,512,700,1", "not a multiple of 512"),
            ("6,hm,0,Read,512,0,1", "0 sectors"),
            ("6,hm,0,Read,512,512,", "a response time"),
        ] {
            let e = error(F, &format!("{good}{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
