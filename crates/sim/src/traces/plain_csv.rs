//! `plain-csv`: `time_ms,op,lbn,sectors`, with or without that heading.
//!
//! With a heading the columns may be in any order, and these are accepted as well: `device`,
//! `owner`, `response_ms`, `fua` (0 or 1). Without one they are the four named, in that order. `op`
//! is R or W, read or write, or F or flush (its lbn and sectors are ignored); times are
//! milliseconds from any origin; sectors have 512 bytes.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Time};

use super::record::NOWHERE;
use super::text::{Bad, Columns};
use super::{LineFormat, Parsed, Record, range};

const SHAPE: &str = "4 columns: time_ms,op,lbn,sectors (or a heading that names the columns)";
const NAMES: [&str; 8] = ["time_ms", "op", "lbn", "sectors", "device", "owner", "response_ms", "fua"];

/// Index of each named column; `usize::MAX` if it is missing.
pub(super) struct PlainCsv {
    at: [usize; NAMES.len()],
    columns: usize,
    lines: u64,
}

impl Default for PlainCsv {
    fn default() -> PlainCsv {
        let mut at = [usize::MAX; NAMES.len()];
        for (i, a) in at.iter_mut().take(4).enumerate() {
            *a = i;
        }
        PlainCsv { at, columns: 4, lines: 0 }
    }
}

impl PlainCsv {
    fn heading(&mut self, c: &Columns) -> Result<(), Bad> {
        self.at = [usize::MAX; NAMES.len()];
        self.columns = c.count();
        for i in 0..c.count() {
            let name = c.get(i);
            let Some(k) = NAMES.iter().position(|n| name.eq_ignore_ascii_case(n.as_bytes())) else {
                return Err(Bad::new(format!("columns named among {}", NAMES.join(", ")), name));
            };
            if self.at[k] != usize::MAX {
                return Err(Bad::new("each column once", name));
            }
            self.at[k] = i;
        }
        match (0..4).find(|&k| self.at[k] == usize::MAX) {
            Some(k) => Err(Bad::new(format!("a column {} in the heading", NAMES[k]), c.line())),
            None => Ok(()),
        }
    }
}

impl LineFormat for PlainCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        self.lines += 1;
        if self.lines == 1 && (0..c.count()).any(|i| NAMES.iter().any(|n| c.get(i).eq_ignore_ascii_case(n.as_bytes())))
        {
            self.heading(&c)?;
            return Ok(Parsed::Taken);
        }
        if c.count() != self.columns {
            let shape = if self.columns == 4 {
                SHAPE.to_owned()
            } else {
                format!("{} columns as in the heading", self.columns)
            };
            return Err(Bad::new(shape, line));
        }
        let at = c.scaled(self.at[0], 6, "a time in ms in column time_ms")?;
        let kind = match c.get(self.at[1]) {
            b"R" | b"r" | b"read" | b"Read" | b"READ" => Kind::Read,
            b"W" | b"w" | b"write" | b"Write" | b"WRITE" => Kind::Write,
            b"F" | b"f" | b"flush" | b"Flush" | b"FLUSH" => Kind::Flush,
            other => {
                return Err(Bad::new("R, W, F, read, write or flush in column op", other));
            }
        };
        let place = if kind == Kind::Flush {
            NOWHERE
        } else {
            range(
                c.whole(self.at[2], "a sector number in column lbn")?,
                c.whole(self.at[3], "a count of sectors in column sectors")?,
            )?
        };
        let given = |k: usize| self.at[k] != usize::MAX && !c.get(self.at[k]).is_empty();
        let device = if given(4) { c.whole32(self.at[4], "a number in column device")? } else { 0 };
        let owner = if given(5) { c.whole32(self.at[5], "a number in column owner")? } else { device };
        let response =
            if given(6) { Some(Dur(c.scaled(self.at[6], 6, "a time in ms in column response_ms")?)) } else { None };
        let fua = if given(7) {
            match c.get(self.at[7]) {
                b"0" => false,
                b"1" => true,
                other => return Err(Bad::new("0 or 1 in column fua", other)),
            }
        } else {
            false
        };
        let record = Record::new(number, kind, place).at(Time(at)).on(device).by(owner).answered(response);
        out.push_back(Record { fua, ..record });
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

    const F: TraceFormat = TraceFormat::PlainCsv;

    #[test]
    fn it_reads_with_and_without_a_heading() {
        let body = "0,R,8,8\n1.5,write,16,1\n2,F,,\n";
        let bare = read(F, body).unwrap();
        let headed = read(F, &format!("time_ms,op,lbn,sectors\n{body}")).unwrap();
        assert_eq!(bare.len(), 3);
        for (a, b) in bare.iter().zip(&headed) {
            assert_eq!(Record { line: 0, ..*a }, Record { line: 0, ..*b });
        }
        assert_eq!(
            (bare[1].arrival, bare[1].kind, bare[1].lbn, bare[1].count),
            (Some(Time(1_500_000)), Kind::Write, 16, 1)
        );
        assert_eq!((bare[2].kind, bare[2].count), (Kind::Flush, 0));
    }

    #[test]
    fn a_heading_may_reorder_and_add_columns() {
        let r = read(F, "op,sectors,lbn,time_ms,owner,fua,response_ms\nw,2,100,7,3,1,0.25\nr,2,100,8,,,\n").unwrap();
        assert_eq!((r[0].lbn, r[0].count, r[0].owner, r[0].fua, r[0].response), (100, 2, 3, true, Some(Dur(250_000))));
        assert_eq!((r[1].owner, r[1].fua, r[1].response), (0, false, None));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (text, what) in [
            ("time_ms,op,lbn\n", "a column sectors"),
            ("time_ms,op,lbn,blocks\n", "columns named among"),
            ("time_ms,op,lbn,lbn\n", "each column once"),
            ("0,R,8\n", "4 columns"),
            ("0,X,8,8\n", "R, W, F"),
            ("0,R,8,0\n", "0 sectors"),
            ("later,R,8,8\n", "a time in ms"),
            ("0,R,8,eight\n", "a count of sectors"),
        ] {
            let e = error(F, text);
            assert!(e.starts_with("t:1: ") && e.contains(what), "{text}: {e}");
        }
        let e = error(F, "time_ms,op,lbn,sectors,device\n0,R,8,8\n");
        assert!(e.starts_with("t:2: expected 5 columns"), "{e}");
    }
}
