//! `mqsim`: `ns device sector sectors type`, separated by spaces.
//!
//! The trace format of the MQSim simulator (its README, section on trace-based workloads): arrival
//! in nanoseconds, device number, first sector of 512 bytes, sectors, and 1 for a read, 0 for a
//! write.

use std::collections::VecDeque;

use headtime_disk::{Kind, Time};

use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, range};

const SHAPE: &str = "5 columns: ns device sector sectors type (1: read, 0: write)";

pub(super) struct Mqsim;

impl LineFormat for Mqsim {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_space(line);
        c.exactly(5, SHAPE)?;
        let arrival = c.whole(0, "an arrival time in whole ns in column 1")?;
        let device = c.whole32(1, "a device number in column 2")?;
        let lbn = c.whole(2, "a sector number in column 3")?;
        let count = c.whole(3, "a count of sectors in column 4")?;
        let place = range(lbn, count)?;
        let kind = match c.get(4) {
            b"1" => Kind::Read,
            b"0" => Kind::Write,
            other => return Err(Bad::new("1 (read) or 0 (write) in column 5", other)),
        };
        out.push_back(Record::new(number, kind, place).at(Time(arrival)).on(device));
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

    const F: TraceFormat = TraceFormat::Mqsim;

    #[test]
    fn lines_give_arrival_device_range_and_kind() {
        let r = read(F, "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n").unwrap();
        assert_eq!((r[0].arrival, r[1].arrival), (Some(Time(0)), Some(Time(152_000))));
        assert_eq!((r[0].device, r[0].lbn, r[0].count, r[0].kind), (0, 657_728, 16, Kind::Read));
        assert_eq!((r[1].device, r[1].kind), (1, Kind::Write));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let e = error(F, "11413000 0 657728 16 1\n11565000 1 312447");
        assert!(e.starts_with("t:2: expected 5 columns"), "{e}");
        assert!(e.contains("3 columns"), "{e}");
        assert!(error(F, "1.5 0 8 8 1").contains("whole ns"));
        assert!(error(F, "1 0 8 8 2").contains("1 (read) or 0 (write)"));
        assert!(error(F, "1 0 8 0 1").contains("0 sectors"));
    }
}
