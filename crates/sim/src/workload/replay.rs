//! Replay of a recorded trace: open (at its arrival times) or closed (each request after the
//! previous one).

use headtime_disk::{Dur, Kind, Time};

use super::beyond::Beyond;
use super::{Ask, Target, Workload, WorkloadError};
use crate::traces::{Gap, Record, TraceReader};

/// When recorded requests are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Open if the trace has arrival times, closed if it has only gaps.
    #[default]
    Auto,
    /// At the recorded arrival times, regardless of the disk. If the trace has only gaps, at the
    /// sums of measured responses and gaps.
    Open,
    /// One at a time: at the completion of the previous request plus the recorded gap. If the trace
    /// has only arrival times, the gap is the interarrival time minus the measured response, if
    /// there is one.
    Closed,
}

/// Number of refused requests whose lines are recorded.
const LINES_KEPT: usize = 10;

/// Requests refused because they exceed the disk's capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Their number.
    pub count: u64,
    /// Lines of the first ten.
    pub lines: Vec<u64>,
}

/// A trace as a workload.
pub struct Replay<T> {
    reader: T,
    mode: Mode,
    beyond: Beyond,
    /// 512-byte sectors per drive sector.
    per_sector: u64,
    /// In 512-byte sectors.
    capacity: u64,
    next: Option<Record>,
    failed: Option<WorkloadError>,
    due: Option<Time>,
    last_due: Time,
    /// The record returned last, and its arrival by the trace's clock.
    previous: Option<(Record, Time)>,
    outstanding: bool,
    completed: Time,
    refusals: Refusals,
    first_refused: Option<WorkloadError>,
    delivered: u64,
}

impl<T: TraceReader> Replay<T> {
    /// Replays `reader` on `target`. Reads the first record, so an invalid file fails here.
    pub fn new(reader: T, target: &Target, mode: Mode, beyond: Beyond) -> Result<Replay<T>, WorkloadError> {
        let per_sector = u64::from(target.sector_bytes / 512).max(1);
        let mut replay = Replay {
            reader,
            mode,
            beyond,
            per_sector,
            capacity: target.capacity * per_sector,
            next: None,
            failed: None,
            due: None,
            last_due: Time::ZERO,
            previous: None,
            outstanding: false,
            completed: Time::ZERO,
            refusals: Refusals::default(),
            first_refused: None,
            delivered: 0,
        };
        replay.next = replay.read()?;
        if let (Mode::Auto, Some(first)) = (replay.mode, &replay.next) {
            replay.mode = if first.arrival.is_some() { Mode::Open } else { Mode::Closed };
        }
        replay.schedule();
        Ok(replay)
    }

    /// Returns the next record within the disk's capacity.
    fn read(&mut self) -> Result<Option<Record>, WorkloadError> {
        loop {
            let Some(record) = self.reader.next_record()? else {
                // A trace without any valid request was made for another disk.
                return match self.first_refused.take() {
                    Some(e) if self.delivered == 0 => Err(e),
                    _ => Ok(None),
                };
            };
            if let Some(lbn) = self.beyond.place(record.lbn, record.count, self.capacity) {
                self.delivered += 1;
                return Ok(Some(Record { lbn, ..record }));
            }
            let error = || WorkloadError::BeyondCapacity {
                file: self.reader.file().to_owned(),
                line: record.line,
                lbn: record.lbn,
                count: record.count,
                capacity: self.capacity,
            };
            if self.beyond == Beyond::Stop {
                return Err(error());
            }
            if self.refusals.count == 0 {
                self.first_refused = Some(error());
            }
            self.refusals.count += 1;
            if self.refusals.lines.len() < LINES_KEPT {
                self.refusals.lines.push(record.line);
            }
        }
    }

    /// Returns the arrival of `record` by the trace's clock.
    fn recorded_arrival(&self, record: &Record) -> Time {
        if let Some(at) = record.arrival {
            return at;
        }
        match &self.previous {
            Some((before, at)) => *at + before.response.unwrap_or(Dur::ZERO) + self.pause(record, before, *at),
            None => match record.gap {
                Some(Gap::Before(gap)) => Time::ZERO + gap,
                _ => Time::ZERO,
            },
        }
    }

    /// Returns the time from the completion of `before` to the arrival of `record`.
    fn pause(&self, record: &Record, before: &Record, before_at: Time) -> Dur {
        match (record.gap, before.gap, record.arrival) {
            (Some(Gap::Before(gap)), _, _) | (_, Some(Gap::After(gap)), _) => gap,
            (_, _, Some(at)) => at.saturating_since(before_at).saturating_sub(before.response.unwrap_or(Dur::ZERO)),
            _ => Dur::ZERO,
        }
    }

    /// Determines when the next record is due, if known yet.
    fn schedule(&mut self) {
        let Some(record) = &self.next else {
            self.due = None;
            return;
        };
        let due = match (self.mode, &self.previous) {
            (Mode::Closed, _) if self.outstanding => None,
            (Mode::Closed, Some((before, at))) => Some(self.completed + self.pause(record, before, *at)),
            (Mode::Closed, None) => Some(match record.gap {
                Some(Gap::Before(gap)) => Time::ZERO + gap,
                _ => Time::ZERO,
            }),
            _ => Some(self.recorded_arrival(record)),
        };
        // Recorded clocks may go back; virtual time does not.
        self.due = due.map(|d| d.max(self.last_due));
    }
}

impl<T: TraceReader> Workload for Replay<T> {
    fn next_due(&self) -> Option<Time> {
        if self.failed.is_some() {
            // Makes the caller take a request, which returns the error.
            return Some(self.last_due);
        }
        self.due
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        if let Some(e) = self.failed.take() {
            self.next = None;
            self.due = None;
            return Err(e);
        }
        let (Some(record), Some(due)) = (self.next.take(), self.due.take()) else {
            panic!("a request was taken while none was due");
        };
        let arrived = self.recorded_arrival(&record);
        self.previous = Some((record, arrived));
        self.last_due = due;
        self.outstanding = true;
        match self.read() {
            Ok(next) => self.next = next,
            Err(e) => self.failed = Some(e),
        }
        self.schedule();
        let (lbn, count) = if record.kind == Kind::Flush {
            (0, 0)
        } else {
            // On a drive with 4096-byte sectors: all sectors touched.
            let first = record.lbn / self.per_sector;
            let end = (record.lbn + u64::from(record.count)).div_ceil(self.per_sector);
            (first, (end - first) as u32)
        };
        Ok(Ask { due, kind: record.kind, lbn, count, fua: record.fua, sync: true, owner: record.owner, class: 0 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        self.outstanding = false;
        self.completed = now;
        if self.mode == Mode::Closed {
            self.schedule();
        }
    }

    fn endless(&self) -> bool {
        false
    }

    fn refusals(&self) -> Option<&Refusals> {
        Some(&self.refusals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::{ReadOptions, Reader, TraceFormat};

    fn target(capacity: u64, sector_bytes: u32) -> Target {
        Target { capacity, sector_bytes, geometry: None }
    }

    fn replay<'a>(
        format: TraceFormat,
        text: &'a str,
        t: &Target,
        mode: Mode,
        beyond: Beyond,
    ) -> Result<Replay<Reader<&'a [u8]>>, WorkloadError> {
        let reader = Reader::new(text.as_bytes(), "t".to_owned(), format, ReadOptions::default());
        Replay::new(reader, t, mode, beyond)
    }

    const VALIDATE: &str = "R Hit 0 8 1000 500\nW Hit 8 8 2000 700\nR Hit 16 8 3000 900\n";
    const PLAIN: &str = "1,R,0,8\n4,R,8,8\n3.5,W,16,8\n";

    #[test]
    fn closed_replay_adds_the_gap_to_the_models_completion() {
        let mut r =
            replay(TraceFormat::DisksimValidate, VALIDATE, &target(100, 512), Mode::Auto, Beyond::Stop).unwrap();
        assert_eq!(r.take().unwrap().due, Time::ZERO);
        assert_eq!(r.next_due(), None);
        r.finished(0, Time(9_000_000));
        assert_eq!(r.take().unwrap().due, Time(9_500_000));
        assert_eq!(r.next_due(), None);
        r.finished(0, Time(10_000_000));
        assert_eq!(r.next_due(), Some(Time(10_700_000)));
        r.take().unwrap();
        r.finished(0, Time(11_000_000));
        assert_eq!(r.next_due(), None);
    }

    #[test]
    fn open_replay_of_gaps_uses_the_measured_responses() {
        let mut r =
            replay(TraceFormat::DisksimValidate, VALIDATE, &target(100, 512), Mode::Open, Beyond::Stop).unwrap();
        let due: Vec<u64> = (0..3).map(|_| r.take().unwrap().due.0).collect();
        assert_eq!(due, [0, 1_500_000, 4_200_000]);
        assert_eq!(r.next_due(), None);
    }

    #[test]
    fn open_replay_follows_the_arrivals_and_never_goes_back() {
        let mut r = replay(TraceFormat::PlainCsv, PLAIN, &target(100, 512), Mode::Auto, Beyond::Stop).unwrap();
        let due: Vec<u64> = (0..3).map(|_| r.take().unwrap().due.0).collect();
        assert_eq!(due, [0, 3_000_000, 3_000_000]);
    }

    #[test]
    fn closed_replay_of_arrivals_keeps_the_pauses() {
        let mut r = replay(
            TraceFormat::PlainCsv,
            "time_ms,op,lbn,sectors,response_ms\n1,R,0,8,2\n4,R,8,8,1\n",
            &target(100, 512),
            Mode::Closed,
            Beyond::Stop,
        )
        .unwrap();
        assert_eq!(r.take().unwrap().due, Time::ZERO);
        r.finished(0, Time(10_000_000));
        assert_eq!(r.next_due(), Some(Time(11_000_000)));
    }

    #[test]
    fn requests_beyond_the_capacity_are_refused_with_their_line() {
        let mut r = replay(
            TraceFormat::PlainCsv,
            "0,R,0,8\n1,R,96,8\n2,R,92,8\n3,R,18014398509481000,8\n",
            &target(100, 512),
            Mode::Auto,
            Beyond::Refuse,
        )
        .unwrap();
        assert_eq!(r.take().unwrap().lbn, 0);
        assert_eq!(r.take().unwrap().lbn, 92);
        assert_eq!(r.next_due(), None);
        let refused = r.refusals().unwrap();
        assert_eq!((refused.count, &refused.lines[..]), (2, &[2, 4][..]));

        let mut r =
            replay(TraceFormat::PlainCsv, "0,R,0,8\n1,R,96,8\n", &target(100, 512), Mode::Auto, Beyond::Stop).unwrap();
        r.take().unwrap();
        let e = r.take().unwrap_err().to_string();
        assert_eq!(e, "t:2: expected sectors below 100 (512 bytes each), found 96 to 96+8");
        assert_eq!(r.next_due(), None);
    }

    #[test]
    fn a_trace_of_which_nothing_fits_is_an_error() {
        let e = replay(TraceFormat::PlainCsv, "0,R,200,8\n1,R,96,8\n", &target(100, 512), Mode::Auto, Beyond::Refuse)
            .err()
            .unwrap()
            .to_string();
        assert!(e.starts_with("t:1: expected sectors below 100"), "{e}");
    }

    #[test]
    fn large_sectors_are_covered_wholly() {
        let mut r = replay(
            TraceFormat::PlainCsv,
            "0,R,7,2\n0,R,8,8\n0,W,15,1\n0,R,792,8\n",
            &target(100, 4096),
            Mode::Auto,
            Beyond::Stop,
        )
        .unwrap();
        let got: Vec<_> = (0..4)
            .map(|_| {
                let a = r.take().unwrap();
                (a.lbn, a.count)
            })
            .collect();
        assert_eq!(got, [(0, 2), (1, 1), (1, 1), (99, 1)]);
    }

    #[test]
    fn a_damaged_line_comes_out_as_an_error_when_it_is_reached() {
        let mut r =
            replay(TraceFormat::PlainCsv, "0,R,0,8\n1,R\n", &target(100, 512), Mode::Auto, Beyond::Stop).unwrap();
        assert!(r.take().is_ok());
        assert!(r.next_due().is_some());
        assert!(r.take().unwrap_err().to_string().starts_with("t:2: "));
    }
}
