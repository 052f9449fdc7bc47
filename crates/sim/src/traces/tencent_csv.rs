//! `tencent-csv`: `Timestamp,Offset,Size,IOType,VolumeID`.
//!
//! The cloud block storage traces of Tencent (their README; Zhang et al., ATC 2020): timestamp in
//! whole seconds since 1970, offset and size in sectors of 512 bytes, type 0 for a read and 1 for a
//! write, and the volume. Time starts at the file's first request. Requests of one second arrive at
//! once, in file order: the trace has no finer times.

use std::collections::VecDeque;

use headtime_disk::Kind;

use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, Since, range};

const SHAPE: &str = "5 columns: Timestamp,Offset,Size,IOType,VolumeID";

#[derive(Default)]
pub(super) struct TencentCsv {
    clock: Since,
    lines: u64,
}

impl LineFormat for TencentCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        c.exactly(5, SHAPE)?;
        self.lines += 1;
        if self.lines == 1 && c.get(0).eq_ignore_ascii_case(b"timestamp") {
            return Ok(Parsed::Taken);
        }
        let at = c.scaled(0, 9, "a timestamp in seconds in column 1")?;
        let lbn = c.whole(1, "an offset in sectors in column 2")?;
        let count = c.whole(2, "a size in sectors in column 3")?;
        let place = range(lbn, count)?;
        let kind = match c.get(3) {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            other => return Err(Bad::new("0 (read) or 1 (write) in column 4", other)),
        };
        let device = c.whole32(4, "a volume number in column 5")?;
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

    const F: TraceFormat = TraceFormat::TencentCsv;

    #[test]
    fn sectors_are_sectors_and_1_is_a_write() {
        let r = read(F, "1538323200,12910952,128,0,1063\n1538323202,6338688,8,1,1627\n").unwrap();
        assert_eq!(
            (r[0].arrival, r[0].lbn, r[0].count, r[0].kind, r[0].device),
            (Some(Time(0)), 12_910_952, 128, Kind::Read, 1063)
        );
        assert_eq!((r[1].arrival, r[1].kind), (Some(Time(2_000_000_000)), Kind::Write));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("1538323202,6338688,8,1", "5 columns"),
            ("1538323202,6338688,8,2,1627", "0 (read) or 1 (write)"),
            ("1538323202,6338688,0,1,1627", "0 sectors"),
            ("1538323202,,8,1,1627", "an offset in sectors"),
        ] {
            let e = error(F, &format!("1538323200,12910952,128,0,1063\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
