//! `blkparse`: the text output of `blkparse` in its default format.
//!
//! Event lines are `major,minor cpu sequence seconds pid action rwbs [sector + count] [process]`
//! (blkparse(1), section "output description"). A request is taken when it was queued (action `Q`),
//! because that is when an application submitted it; merges and splits by the kernel come later. A
//! filtered trace without `Q` is taken when requests were issued to the driver (`D`); this is
//! decided on the first 1,000 `D` events.
//!
//! Discards and commands without data direction are skipped; a flush without data becomes a flush.
//! Messages (`m`) and all other actions are ignored. The summary at the end (`CPU0 (8,0):`, `Total
//! (8,0):`) ends the trace.

use std::collections::VecDeque;

use headtime_disk::{Kind, Time};

use super::record::NOWHERE;
use super::text::{Bad, Columns, scaled, whole};
use super::{LineFormat, Parsed, Record, range};

const SHAPE: &str = "a blkparse event: major,minor cpu sequence seconds pid action rwbs sector + count [process]";

/// Number of `D` events without a preceding `Q` after which the trace is taken to have no `Q`.
const WAIT_FOR_QUEUED: usize = 1_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Taken {
    #[default]
    Undecided,
    Queued,
    Issued,
}

/// State of the parser: which events it takes, and those held back until that is known.
#[derive(Default)]
pub(super) struct Blkparse {
    taken: Taken,
    held: VecDeque<Record>,
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_space(line);
        let Some(device) = device(c.get(0)) else {
            return if c.get(1).first() == Some(&b'(') && (c.get(0).starts_with(b"CPU") || c.get(0) == b"Total") {
                Ok(Parsed::End)
            } else if line.starts_with(b"Input file ") {
                Ok(Parsed::Taken)
            } else {
                Err(Bad::new(SHAPE, line))
            };
        };
        if c.count() < 6 {
            return Err(Bad::new(SHAPE, line));
        }
        c.whole(1, "a processor number in column 2")?;
        let at = scaled(c.get(3), 9).ok_or_else(|| Bad::new("a time in seconds in column 4", c.get(3)))?;
        let pid = c.whole32(4, "a process id in column 5")?;
        let issued = match c.get(5) {
            b"Q" => false,
            b"D" => true,
            action if action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic) => {
                return Ok(Parsed::Taken);
            }
            other => return Err(Bad::new("an action such as Q or D in column 6", other)),
        };
        if issued && self.taken == Taken::Queued || !issued && self.taken == Taken::Issued {
            return Ok(Parsed::Taken);
        }
        // The process in brackets ends the line; without the closing bracket the line is truncated.
        if !line.trim_ascii_end().ends_with(b"]") {
            return Err(Bad::new("the process in brackets at the line's end", line));
        }
        let Some((kind, fua)) = operation(c.get(6))? else {
            return Ok(Parsed::Skipped);
        };
        let ranged = c.get(8) == b"+";
        let (kind, place) = if ranged {
            let lbn = c.whole(7, "a sector number in column 8")?;
            let count = c.whole(9, "a count of sectors in column 10")?;
            if count == 0 && kind == Kind::Flush {
                (kind, NOWHERE)
            } else {
                // A flush flag on a request with data flushes the cache first; the data determines
                // the kind.
                (if kind == Kind::Flush { Kind::Write } else { kind }, range(lbn, count)?)
            }
        } else if c.get(7).starts_with(b"[") && c.get(6).contains(&b'F') {
            (Kind::Flush, NOWHERE)
        } else if c.get(7).starts_with(b"[") {
            // A request without data and without a flush cannot be replayed.
            return Ok(Parsed::Skipped);
        } else {
            return Err(Bad::new("sector + count from column 8 on", line));
        };
        let fua = fua && kind == Kind::Write;
        let record = Record { fua, ..Record::new(number, kind, place).at(Time(at)).on(device).by(pid) };
        self.take(record, issued, out);
        Ok(Parsed::Taken)
    }

    fn finish(&mut self, out: &mut VecDeque<Record>) {
        if self.taken == Taken::Undecided {
            out.append(&mut self.held);
        }
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

impl Blkparse {
    fn take(&mut self, record: Record, issued: bool, out: &mut VecDeque<Record>) {
        match (self.taken, issued) {
            (Taken::Undecided, true) => {
                self.held.push_back(record);
                if self.held.len() >= WAIT_FOR_QUEUED {
                    self.taken = Taken::Issued;
                    out.append(&mut self.held);
                }
            }
            (Taken::Undecided, false) => {
                // Requests issued before the first queued event were queued before the trace began.
                self.taken = Taken::Queued;
                self.held = VecDeque::new();
                out.push_back(record);
            }
            _ => out.push_back(record),
        }
    }
}

/// Parses `major,minor` to one number: minor in the low 20 bits, as the kernel packs it.
fn device(text: &[u8]) -> Option<u32> {
    let comma = text.iter().position(|&b| b == b',')?;
    let major = whole(&text[..comma])?;
    let minor = whole(&text[comma + 1..])?;
    (major < 1 << 12 && minor < 1 << 20).then_some((major as u32) << 20 | minor as u32)
}

/// Parses the RWBS column: a leading `F` requests a flush first; then `R`, `W`, `D` (discard), `N`
/// (none) or others; a trailing `F` requests FUA. `None`: cannot be replayed.
fn operation(rwbs: &[u8]) -> Result<Option<(Kind, bool)>, Bad> {
    if rwbs.is_empty() || !rwbs.iter().all(u8::is_ascii_uppercase) {
        return Err(Bad::new("an RWBS column such as R, WS or FWFS in column 7", rwbs));
    }
    let rest = rwbs.strip_prefix(b"F").unwrap_or(rwbs);
    let fua = rest.iter().skip(1).any(|&b| b == b'F');
    Ok(match rest.first() {
        Some(b'R') => Some((Kind::Read, false)),
        Some(b'W') => Some((Kind::Write, fua)),
        None | Some(b'F' | b'S') => Some((Kind::Flush, false)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::Blkparse;

    const SAMPLE: &str = "\
  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   R 223490 + 8 [kjournald]
  8,0    3        0     0.000002100     0  m   N cfq697 alloced
  8,0    3        3     0.000002197   697  I   R 223490 + 8 [kjournald]
  8,0    3        4     0.000010000   697  D   R 223490 + 8 [kjournald]
  8,0    1        5     0.009507758   702  Q  WS 223500 + 56 [my program]
  8,0    1        6     0.009600000   702  Q FWFS 300 + 8 [jbd2/sda1-8]
  8,0    1        7     0.009700000   702  Q FWS [jbd2/sda1-8]
  8,0    1        8     0.009800000   702  Q   D 1000 + 2048 [fstrim]
  8,0    1        9     0.010000000   697  C   R 223490 + 8 [0]
CPU0 (8,0):
 Reads Queued:           1,        4KiB  Writes Queued:           2,       32KiB
";

    #[test]
    fn queued_events_are_taken_and_the_summary_ends_the_trace() {
        let r = read(F, SAMPLE).unwrap();
        assert_eq!(
            r.iter().map(|r| (r.arrival.unwrap().0, r.kind, r.fua, r.lbn, r.count, r.owner)).collect::<Vec<_>>(),
            [
                (0, Kind::Read, false, 223_490, 8, 697),
                (9_507_758, Kind::Write, false, 223_500, 56, 702),
                (9_600_000, Kind::Write, true, 300, 8, 702),
                (9_700_000, Kind::Flush, false, 0, 0, 702),
            ]
        );
        assert_eq!(r[0].device, 8 << 20);
    }

    #[test]
    fn issued_events_are_taken_where_nothing_was_queued() {
        let only: String = SAMPLE.lines().filter(|l| !l.contains(" Q ")).map(|l| format!("{l}\n")).collect();
        let r = read(F, &only).unwrap();
        assert_eq!(r.len(), 1);
        assert_eq!((r[0].arrival, r[0].line), (Some(Time(0)), 4));
    }

    #[test]
    fn issues_before_the_first_queued_event_are_dropped() {
        let text = "  8,0 0 1 0.1 1 D R 8 + 8 [a]\n  8,0 0 2 0.2 1 Q R 16 + 8 [a]\n  8,0 0 3 0.3 1 D R 16 + 8 [a]\n";
        let r = read(F, text).unwrap();
        assert_eq!((r.len(), r[0].lbn, r[0].line), (1, 16, 2));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let good = "  8,0 0 2 0.2 1 Q R 16 + 8 [a]\n";
        for (line, what) in [
            ("  8,0 0 2 0.2 1 Q R 16 + 8 [kjourn", "brackets"),
            ("  8,0 0 2 0.2 1 Q R 16 +", "brackets"),
            ("  8,0 0 2", "a blkparse event"),
            ("  8,0 0 2 zero 1 Q R 16 + 8 [a]", "a time in seconds"),
            ("  8,0 0 2 0.2 1 Q r 16 + 8 [a]", "RWBS"),
            ("  8,0 0 2 0.2 1 Q R x + 8 [a]", "a sector number"),
            ("  8,0 0 2 0.2 1 Q R 16 + 0 [a]", "0 sectors"),
            ("  8,0 0 2 0.2 1 QUEUE R 16 + 8 [a]", "an action"),
            ("sda 0 2 0.2 1 Q R 16 + 8 [a]", "a blkparse event"),
        ] {
            let e = error(F, &format!("{good}{line}"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
