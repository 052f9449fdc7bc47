//! `disksim-validate`: `R|W word lbn sectors response_us gap_us`, separated by spaces.
//!
//! DiskSim's validation traces contain a real drive's responses. The word (`Hit`, `Miss`, `Doub`,
//! `Trip`) is the state of the drive's cache according to the authors of the trace; it is not used.
//! Response and gap are microseconds with up to three decimals kept.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind};

use super::text::{Bad, Columns};
use super::{Gap, GapSide, LineFormat, Parsed, Record, range};

const SHAPE: &str = "6 columns: R|W word lbn sectors response_us gap_us";

pub(super) struct DisksimValidate {
    gap: GapSide,
}

impl DisksimValidate {
    pub(super) fn new(gap: GapSide) -> DisksimValidate {
        DisksimValidate { gap }
    }
}

impl LineFormat for DisksimValidate {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_space(line);
        c.exactly(6, SHAPE)?;
        let kind = match c.get(0) {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            other => return Err(Bad::new("R or W in column 1", other)),
        };
        if !c.get(1).iter().all(u8::is_ascii_alphabetic) {
            return Err(Bad::new("a word (Hit, Miss, ...) in column 2", c.get(1)));
        }
        let lbn = c.whole(2, "an LBN in column 3")?;
        let count = c.whole(3, "a count of sectors in column 4")?;
        let place = range(lbn, count)?;
        let response = c.scaled(4, 3, "a response time in us in column 5")?;
        let gap = Dur(c.scaled(5, 3, "a gap in us in column 6")?);
        let gap = match self.gap {
            GapSide::Before => Gap::Before(gap),
            GapSide::After => Gap::After(gap),
        };
        let record = Record::new(number, kind, place).answered(Some(Dur(response)));
        out.push_back(Record { gap: Some(gap), ..record });
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
    use crate::traces::{ReadOptions, Reader, TraceFormat};

    const F: TraceFormat = TraceFormat::DisksimValidate;

    #[test]
    fn lines_give_ranges_responses_and_gaps() {
        let r = read(
            F,
            "W Hit    4583176   4    663.00000  45422.00000\nR Miss  564347     2     14095.370     13876.270\n",
        )
        .unwrap();
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].kind, r[0].lbn, r[0].count), (Kind::Write, 4_583_176, 4));
        assert_eq!(r[0].response, Some(Dur(663_000)));
        assert_eq!(r[0].gap, Some(Gap::After(Dur(45_422_000))));
        assert_eq!(r[1].response, Some(Dur(14_095_370)));
        assert_eq!(r[1].line, 2);
    }

    #[test]
    fn the_gap_can_be_read_as_lying_before_its_request() {
        let options = ReadOptions { gap: GapSide::Before, ..ReadOptions::default() };
        let r = Reader::new(&b"R Hit 1 2 3.5 4.25\n"[..], "t".into(), F, options).read_all().unwrap();
        assert_eq!(r[0].gap, Some(Gap::Before(Dur(4_250))));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let good = "R Hit 1 2 3.5 4.25\n";
        let e = error(F, &format!("{good}R Hit 1 2 3.5\n"));
        assert!(e.starts_with("t:2: expected 6 columns") && e.contains("5 columns"), "{e}");
        for (line, what) in [
            ("X Hit 1 2 3.5 4.25", "R or W"),
            ("R 5 1 2 3.5 4.25", "a word"),
            ("R Hit -1 2 3.5 4.25", "an LBN"),
            ("R Hit 1 0 3.5 4.25", "0 sectors"),
            ("R Hit 1 99999999999 3.5 4.25", "99999999999 sectors"),
            ("R Hit 18446744073709551615 1 3.5 4.25", "sector 18446"),
            ("R Hit 1 2 x 4.25", "a response time"),
            ("R Hit 1 2 3.5 -4", "a gap"),
        ] {
            let e = error(F, line);
            assert!(e.contains(what), "{line}: {e}");
        }
    }
}
