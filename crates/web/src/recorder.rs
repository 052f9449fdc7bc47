//! What happens in a run, as lines for the page: commands and requests with their places on the
//! platter, and the figures so far after each interval of virtual time.

use std::io::{self, Write};

use headtime_disk::{Command, Completion, Dur, Kind, Model, Time};
use headtime_sched::TaskEvent;
use headtime_sim::observe::Observer;
use headtime_sim::scenario::Prepared;
use headtime_sim::stats::Done;
use headtime_sim::stats::headtime::HeadTime;
use headtime_sim::stats::histogram::Histogram;
use serde::Serialize;

use crate::drive::rounded;
use crate::line;
use crate::request::Simulate;

/// Rows that are written in one line: enough that the page is not woken for each.
const ROWS_A_LINE: usize = 256;
/// Most intervals; a run of years gives no more figures than a curve can show.
const MOST_SLICES: u32 = 2_000;

/// A command that used the platter. Times are nanoseconds of virtual time, angles are turns.
#[derive(Serialize)]
struct CommandRow(
    /// Kind: 0 read, 1 write.
    u8,
    /// First block, number of blocks, and how many of them, from the first, are background work.
    u64,
    u32,
    u32,
    /// The mechanism started, the seek ended, the transfer began and ended.
    u64,
    u64,
    u64,
    u64,
    /// Of the transfer, the time in which no wanted block passed.
    u64,
    /// Cylinder, surface and angle of the first block, and the part of a turn that its track has of
    /// the range.
    u32,
    u16,
    f64,
    f64,
    /// Cylinder and angle of the end.
    u32,
    f64,
);

/// A finished request.
#[derive(Serialize)]
struct RequestRow(
    /// Number of the application, and of its class.
    u32,
    u16,
    /// Kind: 0 read, 1 write, 2 flush.
    u8,
    /// First block and number of blocks.
    u64,
    u32,
    /// It was due, dispatched, done.
    u64,
    u64,
    u64,
    /// Cylinder and angle of the first block.
    u32,
    f64,
);

#[derive(Serialize)]
struct Commands<'a> {
    commands: &'a [CommandRow],
}

#[derive(Serialize)]
struct Requests<'a> {
    requests: &'a [RequestRow],
}

#[derive(Serialize)]
struct Sliced<'a> {
    slice: Slice<'a>,
}

/// The figures from the beginning to an instant.
#[derive(Serialize)]
struct Slice<'a> {
    t: u64,
    requests: u64,
    mean_ms: Option<f64>,
    p95_ms: Option<f64>,
    /// Shares of the head time: seek, rotate, transfer, free, idle.
    head: [f64; 5],
    scanned_sectors: u64,
    /// One digit a cell, 0 (nothing of it was read) to f (all of it).
    cells: &'a str,
}

/// An observer that writes lines.
pub struct Recorder<W> {
    out: W,
    model: Model,
    most: usize,
    commands_left: usize,
    requests_left: usize,
    commands: Vec<CommandRow>,
    requests: Vec<RequestRow>,
    slice: Dur,
    next: Time,
    slices_left: u32,
    head: HeadTime,
    responses: Histogram,
    scanned: u64,
    cells: Cells,
    failed: Option<io::Error>,
}

impl<W: Write> Recorder<W> {
    /// Creates a recorder of what is wanted of a run.
    pub fn new(prepared: &Prepared, wanted: &Simulate, out: W) -> Recorder<W> {
        let model = prepared.simulation().drive().truth().clone();
        let slice = Dur(wanted.slice_ms.saturating_mul(1_000_000));
        Recorder {
            out,
            cells: Cells::new(wanted.cells, model.geometry.capacity()),
            model,
            most: ROWS_A_LINE,
            commands_left: wanted.commands,
            requests_left: wanted.commands,
            commands: Vec::new(),
            requests: Vec::new(),
            slice,
            next: if slice == Dur::ZERO { Time::NEVER } else { Time::ZERO + slice },
            slices_left: MOST_SLICES,
            head: HeadTime::default(),
            responses: Histogram::default(),
            scanned: 0,
            failed: None,
        }
    }

    /// Writes what is left, with the figures at the end of the run.
    ///
    /// # Errors
    /// Writing failed, now or before.
    pub fn finish(mut self, end: Time) -> io::Result<()> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        self.write_rows()?;
        if self.slice != Dur::ZERO {
            self.write_slice(end)?;
        }
        Ok(())
    }

    fn write_rows(&mut self) -> io::Result<()> {
        if !self.commands.is_empty() {
            line(&mut self.out, &Commands { commands: &self.commands })?;
            self.commands.clear();
        }
        if !self.requests.is_empty() {
            line(&mut self.out, &Requests { requests: &self.requests })?;
            self.requests.clear();
        }
        Ok(())
    }

    fn write_slice(&mut self, at: Time) -> io::Result<()> {
        let h = self.head.shares(at);
        let ms = |d: Option<Dur>| d.map(Dur::as_ms_f64);
        let cells = self.cells.digits();
        let slice = Slice {
            t: at.0,
            requests: self.responses.samples(),
            mean_ms: ms(self.responses.mean()),
            p95_ms: ms(self.responses.quantile(950)),
            head: [h.seek, h.rotate, h.transfer, h.free, h.idle].map(rounded),
            scanned_sectors: self.scanned,
            cells: &cells,
        };
        line(&mut self.out, &Sliced { slice })?;
        self.out.flush()
    }

    /// Notes that virtual time has come to `now`.
    fn pass(&mut self, now: Time) {
        if self.failed.is_some() {
            return;
        }
        let mut wrote = Ok(());
        if self.commands.len() >= self.most || self.requests.len() >= self.most {
            wrote = self.write_rows();
        }
        while wrote.is_ok() && now >= self.next {
            wrote = self.write_rows().and_then(|()| self.write_slice(self.next));
            self.slices_left -= 1;
            self.next = if self.slices_left == 0 { Time::NEVER } else { self.next + self.slice };
        }
        self.failed = wrote.err();
    }
}

impl<W: Write> Observer for Recorder<W> {
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        self.pass(completion.at);
        let Some(m) = completion.media else { return };
        self.head.record_with(&m, free, command.count);
        if self.commands_left == 0 || command.kind == Kind::Flush {
            return;
        }
        let place = self.model.place(command.lbn, command.count, command.kind);
        let run = self.model.geometry.run_at(command.lbn, command.count);
        let (Some(place), Some(run)) = (place, run) else { return };
        self.commands_left -= 1;
        self.commands.push(CommandRow(
            kind(command.kind),
            command.lbn,
            command.count,
            free,
            m.start.0,
            m.seek_end.0,
            m.transfer_start.0,
            m.end.0,
            m.turned.0,
            place.cylinder,
            place.surface,
            rounded(place.angle.turns()),
            rounded(f64::from(run.span) / f64::from(run.start.spt)),
            place.end_cylinder,
            rounded(place.end_angle.turns()),
        ));
    }

    fn background(&mut self, event: &TaskEvent, now: Time) {
        self.pass(now);
        if let TaskEvent::Delivered { range, .. } = event {
            self.scanned += range.count;
            self.cells.add(range.lbn, range.count);
        }
    }

    fn finished(&mut self, done: &Done) {
        self.pass(done.done);
        self.responses.record(done.response());
        if self.requests_left == 0 {
            return;
        }
        self.requests_left -= 1;
        let at = self.model.geometry.locate(done.lbn);
        self.requests.push(RequestRow(
            done.owner,
            done.class,
            kind(done.kind),
            done.lbn,
            done.count,
            done.due.0,
            done.dispatched.0,
            done.done.0,
            at.map_or(0, |p| p.cylinder),
            at.map_or(0.0, |p| rounded(p.angle.turns())),
        ));
    }

    fn stops(&self) -> bool {
        self.failed.is_some()
    }
}

fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Flush => 2,
    }
}

/// How much of each equal part of the drive was read.
struct Cells {
    read: Vec<u64>,
    capacity: u64,
}

impl Cells {
    fn new(count: usize, capacity: u64) -> Cells {
        Cells { read: vec![0; count.min(usize::try_from(capacity).unwrap_or(usize::MAX))], capacity }
    }

    /// Returns the first block of a cell.
    fn start(&self, cell: usize) -> u64 {
        (u128::from(self.capacity) * cell as u128 / self.read.len() as u128) as u64
    }

    fn add(&mut self, lbn: u64, count: u64) {
        let n = self.read.len();
        if n == 0 || lbn >= self.capacity {
            return;
        }
        let end = lbn.saturating_add(count).min(self.capacity);
        let mut at = lbn;
        // The division may give the cell before the one that begins at `lbn`.
        let mut cell = (u128::from(lbn) * n as u128 / u128::from(self.capacity)) as usize;
        while cell + 1 < n && self.start(cell + 1) <= at {
            cell += 1;
        }
        while at < end {
            let until = if cell + 1 < n { self.start(cell + 1).min(end) } else { end };
            self.read[cell] += until - at;
            at = until;
            cell += 1;
        }
    }

    fn digits(&self) -> String {
        let level = |(cell, read): (usize, &u64)| {
            let size = if cell + 1 < self.read.len() { self.start(cell + 1) } else { self.capacity } - self.start(cell);
            match *read {
                0 => 0,
                read if read >= size => 15,
                read => ((read * 15 / size.max(1)) as u32).clamp(1, 14),
            }
        };
        self.read.iter().enumerate().map(level).filter_map(|n| char::from_digit(n, 16)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Cells;

    #[test]
    fn a_range_is_divided_among_the_cells_that_it_touches() {
        let mut cells = Cells::new(4, 10);
        // Cells begin at 0, 2, 5 and 7.
        cells.add(1, 5);
        assert_eq!(cells.read, [1, 3, 1, 0]);
        assert_eq!(cells.digits(), "7f70");
        cells.add(5, 5);
        cells.add(9, 100);
        assert_eq!(cells.read[3], 4);
        assert!(cells.digits().ends_with("ff"));
    }

    #[test]
    fn there_are_no_more_cells_than_blocks() {
        let mut cells = Cells::new(100, 3);
        cells.add(0, 3);
        assert_eq!(cells.digits(), "fff");
        assert_eq!(Cells::new(0, 3).digits(), "");
    }
}
