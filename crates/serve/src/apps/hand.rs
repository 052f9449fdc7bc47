//! `headtime task`: reads or writes given ranges.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use bytes::Bytes;
use headtime_sched::TaskRange;
use serde::Serialize;
use tokio::sync::watch;

use super::error::AppError;
use super::image::Image;
use super::job::Sink;
use super::link::{Link, MAX_SENT, answer, look};
use super::progress::Notes;
use super::units::Units;
use crate::control::client::Session;
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Data, Foreground, Kind, Register, TaskRef};

/// A write of up to this number of bytes is sent completely in advance; a larger one is sent as
/// data is requested.
const SENT_AHEAD: u64 = 32 << 20;

/// A read of ranges: into a file, one range after the other, or discarded.
#[derive(Debug)]
pub struct Reading {
    /// The output file.
    pub out: Option<Image>,
    /// The units, which give each one's offset in the file.
    pub units: Units,
    /// Bytes per sector.
    pub sector_bytes: u64,
}

impl Sink for Reading {
    fn unit(&mut self, _: u64, range: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        match &self.out {
            Some(out) => out.put(self.units.offset(range.lbn) * self.sector_bytes, data),
            None => Ok(()),
        }
    }

    fn damaged(&mut self, index: u64, range: TaskRange, data: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        self.unit(index, range, data, &mut Notes::default())
    }
}

/// A write of ranges.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The server's socket.
    pub control: Socket,
    /// The session's priority.
    pub priority: u32,
    /// The ranges.
    pub ranges: Vec<TaskRange>,
    /// Sectors per unit; `None` for the default.
    pub unit: Option<u32>,
    /// The file with the data, one range after the other.
    pub input: PathBuf,
    /// Whether to write at once, as foreground work.
    pub promote: bool,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Bytes that are on the disk.
    pub written_bytes: u64,
    /// Bytes not written because another client wrote newer data there.
    pub superseded_bytes: u64,
    /// Bytes that could not be written.
    pub failed_bytes: u64,
    /// Whether all ranges were handled.
    pub complete: bool,
}

/// Writes in gaps. The write does not outlive its session: between sessions other clients may write
/// newer data, which old data must never overwrite. Returns what was written until then.
pub async fn write(
    w: &Writing,
    watch: &mut (dyn FnMut(u64, u64) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Written, AppError> {
    let (mut control, info) = answer(&w.control, &stop, look(&w.control)).await?;
    if !info.fills {
        return Err(AppError::NoFill);
    }
    let sector = u64::from(info.sector_bytes);
    let wanted = w.ranges.iter().map(|r| r.count).fold(0, u64::saturating_add);
    let unit = w.unit.unwrap_or_else(|| super::units::usual_unit(wanted, info.sector_bytes));
    let units = Units::new(w.ranges.clone(), unit, info.sectors, info.sector_bytes)?;
    let failed = |why| AppError::file(&w.input, why);
    // Checked before opening, which would wait on a pipe without a writer.
    if !std::fs::metadata(&w.input).map_err(failed)?.is_file() {
        return Err(AppError::NoPlainFile(w.input.clone()));
    }
    let file = File::open(&w.input).map_err(failed)?;
    let (total, found) = (units.sectors() * sector, file.metadata().map_err(failed)?.len());
    if found != total {
        return Err(AppError::Length { path: w.input.clone(), expected: total, found });
    }
    let mut link = Link::new(Session::open(&mut control, &info, "task write", w.priority, 1).await?, 1);
    // Data that is present when it is first requested avoids a refusal, after which a gap is not
    // searched at once.
    link.say(Call::Suspend(v1::Empty {}));
    link.say(Call::Register(Register {
        task: 1,
        kind: Kind::Write.into(),
        ranges: units.ranges().iter().map(|r| v1::Range { lbn: r.lbn, count: r.count }).collect(),
        blksize: unit,
        min_pickup: unit,
        point_in_time: false,
    }));
    let mut writer = Writer { file, units, sector, sent: BTreeMap::new(), at_server: 0, path: w.input.clone() };
    if total <= SENT_AHEAD {
        for index in 0..writer.units.len() {
            writer.send(index, &mut link)?;
        }
    }
    link.say(Call::Resume(v1::Empty {}));
    if w.promote {
        link.say(Call::Promote(TaskRef { task: 1 }));
    }
    let mut done = Written::default();
    loop {
        let event = tokio::select! {
            biased;
            () = async { let _ = stop.wait_for(|&s| s).await; } => return Ok(done),
            event = link.next() => event?,
        };
        match event {
            Event::Wanted(p) => writer.wanted(p.lbn, p.count, &mut link)?,
            Event::Written(p) => done.written_bytes += writer.over(p.lbn, p.count),
            Event::Superseded(p) => done.superseded_bytes += writer.over(p.lbn, p.count),
            Event::Failed(f) => done.failed_bytes += writer.over(f.lbn, f.count),
            Event::NotTaken(p) => _ = writer.over(p.lbn, p.count),
            // All is written; a flush makes it durable.
            Event::Done(_) => {
                link.say(Call::Foreground(Foreground { kind: Kind::Flush.into(), ..Foreground::default() }))
            }
            Event::Answered(a) if a.fault() == v1::Fault::None => {
                done.complete = true;
                return Ok(done);
            }
            Event::Answered(a) => return Err(AppError::Refused(format!("the flush failed: {}", a.why_not))),
            Event::Refused(r) => return Err(AppError::Refused(r.why)),
            Event::Gone(_) => return Err(AppError::Gone),
            Event::Opened(_)
            | Event::Registered(_)
            | Event::Delivered(_)
            | Event::Suspended(_)
            | Event::End(_)
            | Event::Moving(_)
            | Event::Settled(_)
            | Event::Broken(_) => {}
        }
        watch(done.written_bytes + done.superseded_bytes + done.failed_bytes, total);
    }
}

struct Writer {
    file: File,
    path: PathBuf,
    units: Units,
    sector: u64,
    /// Units whose data is at the server, with their sizes in bytes.
    sent: BTreeMap<u64, u64>,
    at_server: u64,
}

impl Writer {
    fn send(&mut self, index: u64, link: &mut Link) -> Result<(), AppError> {
        let range = self.units.range(index);
        let bytes = range.count * self.sector;
        if self.sent.contains_key(&index) || self.at_server + bytes > MAX_SENT {
            return Ok(());
        }
        let mut data = vec![0; bytes as usize];
        let offset = self.units.offset(range.lbn) * self.sector;
        self.file.read_exact_at(&mut data, offset).map_err(|e| AppError::file(&self.path, e))?;
        link.say(Call::Data(Data { task: 1, lbn: range.lbn, data: Bytes::from(data) }));
        self.sent.insert(index, bytes);
        self.at_server += bytes;
        Ok(())
    }

    /// Returns the units that contain these sectors.
    fn holding(&self, lbn: u64, count: u64) -> std::ops::Range<u64> {
        let (first, last) = (self.units.holding(lbn), self.units.holding(lbn + count.max(1) - 1));
        first.unwrap_or(0)..last.map_or(0, |l| l + 1)
    }

    fn wanted(&mut self, lbn: u64, count: u64, link: &mut Link) -> Result<(), AppError> {
        self.holding(lbn, count).try_for_each(|index| self.send(index, link))
    }

    /// Notes that data of these sectors has left the server; returns its size in bytes.
    fn over(&mut self, lbn: u64, count: u64) -> u64 {
        for index in self.holding(lbn, count) {
            self.at_server -= self.sent.remove(&index).unwrap_or(0);
        }
        count * self.sector
    }
}
