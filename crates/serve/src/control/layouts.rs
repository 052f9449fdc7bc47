//! Reorganised exports, as the control interface sees them: who may write where, and the order in
//! which data, map and requests follow each other at the end of a move.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use headtime_disk::Kind;
use headtime_sched::layout::{BlockMap, HotUnit, Move, Place, hottest};
use headtime_sched::{SessionId, TaskRange};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::device::Fault;
use crate::engine::inbox::{Outbox, SendError};
use crate::engine::layout_call::{Begun, LayoutCall, Settling, Stored};
use crate::engine::messages::{Answer, EngineMessage, Submission};
use crate::layout::{Area, LayoutError};
use crate::net::exports::Exports;

/// The copies of a map on the disk.
#[derive(Debug, Default)]
struct OnDisk {
    /// The sequence number of the newest copy.
    sequence: u64,
    /// Units of which it is unknown whether the disk's map has them in their old or new places.
    unknown: Vec<u64>,
}

/// What became of writing a map.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// Copies that have it.
    copies: u32,
    /// Why the last of the others have not.
    fault: Option<Fault>,
}

/// A reorganised export.
#[derive(Debug)]
struct Reorganised {
    area: Area,
    on_disk: Mutex<OnDisk>,
    moved: AtomicU64,
}

/// All reorganised exports, by number.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    all: Arc<BTreeMap<u32, Reorganised>>,
    /// The engine's queue for clients' requests: writes of clients wait for what is sent over it.
    /// `None` if there are no such exports.
    engine: Option<Outbox<EngineMessage>>,
    /// The owner of the requests that read and write maps.
    owner: u32,
}

/// The end of moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The units that are in their new places.
    pub moved: Vec<u64>,
    /// The units that stay where they were: they were being overwritten, or too many had been.
    pub stayed: Vec<u64>,
}

/// An export's map and its hottest units.
#[derive(Clone, Debug)]
pub struct View {
    /// The map.
    pub map: Arc<BlockMap>,
    /// Twice as many units as there are slots, the hottest first.
    pub hot: Vec<HotUnit>,
    /// Accesses to all units.
    pub accesses: u64,
}

/// Why moves did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The export is not reorganised.
    #[error("the export is not reorganised")]
    NotReorganised,
    /// The data or the map could not be made durable.
    #[error("the block map could not be written: {0}")]
    Device(Fault),
    /// The engine has ended.
    #[error(transparent)]
    Ended(#[from] SendError),
}

/// Returns the units in slots after some moves.
fn entries(map: &BlockMap, moves: &[Move]) -> Vec<(u64, u32)> {
    let mut slots: BTreeMap<u64, u32> = map.moved().collect();
    for m in moves {
        match m.to {
            Place::Home => _ = slots.remove(&m.unit),
            Place::Slot(slot) => _ = slots.insert(m.unit, slot),
        }
    }
    slots.into_iter().collect()
}

impl Layouts {
    /// Creates the set from export numbers.
    pub fn new(areas: &[(u32, Area)], exports: &Exports, engine: Outbox<EngineMessage>) -> Layouts {
        let reorganised = |area: Area| Reorganised { area, on_disk: Mutex::default(), moved: AtomicU64::new(0) };
        let all = areas.iter().map(|&(export, area)| (export, reorganised(area))).collect();
        Layouts { all: Arc::new(all), engine: Some(engine), owner: exports.specs.len() as u32 }
    }

    fn engine(&self) -> &Outbox<EngineMessage> {
        self.engine.as_ref().expect("it was given with the exports")
    }

    /// Returns the number of an export's units that are not at home; `None` if it is not
    /// reorganised.
    pub fn moved(&self, export: u32) -> Option<u64> {
        Some(self.all.get(&export)?.moved.load(Ordering::Relaxed))
    }

    /// Returns the sectors of an export's reserve if it is within it; otherwise 0.
    pub fn reserve_within(&self, export: u32) -> u64 {
        self.all.get(&export).filter(|one| one.area.is_within()).map_or(0, |one| one.area.reserve.count)
    }

    /// Returns why the sectors of these ranges are not what clients have written: units of a
    /// reorganised export are elsewhere.
    pub fn elsewhere(&self, exports: &Exports, ranges: &[TaskRange]) -> Option<String> {
        let is = |(_, one): &(&u32, &Reorganised)| {
            let is_elsewhere = one.moved.load(Ordering::Relaxed) > 0 || one.area.is_within();
            is_elsewhere && ranges.iter().any(|r| r.overlaps(&one.area.span()))
        };
        let (&export, one) = self.all.iter().find(is)?;
        let name = &exports.specs[export as usize].name;
        Some(match one.area.is_within() {
            true => format!("the reserve of export \"{name}\" is within it"),
            false => {
                format!("units of export \"{name}\" are in its reserve ('headtime reorganise --undo' brings them home)")
            }
        })
    }

    /// Returns why a client may not write these ranges; `own`: where it may write, because it moves
    /// units there.
    pub fn forbids(&self, exports: &Exports, ranges: &[TaskRange], own: &[TaskRange]) -> Option<String> {
        let own = |r: &TaskRange| own.iter().any(|o| o.lbn <= r.lbn && r.end() <= o.end());
        let touches = |r: &TaskRange, area: &Area| r.overlaps(&area.span()) || r.overlaps(&area.reserve);
        let foreign = |(_, one): &(&u32, &Reorganised)| ranges.iter().any(|r| touches(r, &one.area) && !own(r));
        let name = &exports.specs[*self.all.iter().find(foreign)?.0 as usize].name;
        Some(format!("export \"{name}\" is reorganised: only its own clients may write there, and in its reserve"))
    }

    /// Loads all maps from the disk, before the first request of a client. `new`: the exports whose
    /// map is written for the first time.
    ///
    /// # Errors
    /// The number of the export whose map is damaged or of something else, or cannot be written.
    pub async fn load(&self, new: &[u32]) -> Result<(), (u32, LayoutError)> {
        for (&export, one) in self.all.iter() {
            let loaded = self.load_one(export, one, new.contains(&export)).await;
            loaded.map_err(|why| (export, why))?;
        }
        Ok(())
    }

    async fn load_one(&self, export: u32, one: &Reorganised, is_new: bool) -> Result<(), LayoutError> {
        let failed = |at: u64| move |fault: Fault| LayoutError::Device { at, why: fault.words() };
        let mut copies = [Bytes::new(), Bytes::new()];
        for (number, copy) in copies.iter_mut().enumerate() {
            let range = one.area.copy(number);
            match self.ask(Kind::Read, range, Bytes::new()).await {
                Ok(data) => *copy = data,
                // A power failure may leave sectors that cannot be read until they are written.
                Err(Fault::Io) => {}
                Err(fault) => return Err(failed(range.lbn)(fault)),
            }
        }
        let (map, sequence) = match (one.area.read([&copies[0], &copies[1]]), is_new) {
            (Err(LayoutError::None { .. }), true) => (one.area.map()?, 0),
            (Ok(_), true) => return Err(LayoutError::There { at: one.area.reserve.lbn }),
            (read, _) => read?,
        };
        let mut on_disk = one.on_disk.lock().await;
        on_disk.sequence = sequence;
        let moved: Vec<(u64, u32)> = map.moved().collect();
        one.moved.store(moved.len() as u64, Ordering::Relaxed);
        // Both copies are to say the same before units are overwritten.
        if let Written { copies: 0, fault } = self.store(&one.area, &mut on_disk, &moved).await {
            return Err(failed(one.area.reserve.lbn)(fault.unwrap_or(Fault::Io)));
        }
        let loaded = self.engine().call(EngineMessage::Layout(LayoutCall::Load { export, map })).await;
        loaded.map_err(|_| failed(one.area.reserve.lbn)(Fault::Gone))
    }

    /// Returns an export's map and its hottest units; `None` if it is not reorganised.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn view(&self, export: u32, engine: &Outbox<EngineMessage>) -> Result<Option<View>, SendError> {
        let (reply, answer) = oneshot::channel();
        engine.call(EngineMessage::Layout(LayoutCall::View { export, reply })).await?;
        let view = answer.await.map_err(|_| SendError::Ended)?;
        Ok(view.map(|v| {
            let most = 2 * v.map.slots() as usize;
            View { hot: hottest(v.hot, most), map: v.map, accesses: v.accesses }
        }))
    }

    /// Begins moves of a session; returns for each what is to be copied where, or why it is
    /// refused.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn begin(
        &self,
        export: u32,
        session: SessionId,
        moves: Vec<Move>,
        engine: &Outbox<EngineMessage>,
    ) -> Result<Vec<Result<Begun, String>>, SendError> {
        let (reply, answer) = oneshot::channel();
        engine.call(EngineMessage::Layout(LayoutCall::Begin { export, session, moves, reply })).await?;
        answer.await.map_err(|_| SendError::Ended)
    }

    /// Ends moves whose data was copied.
    ///
    /// # Errors
    /// The disk fails, or the engine has ended. If it is then unknown which map is on the disk,
    /// writes to these units fail until a map could be written again.
    pub async fn settle(&self, export: u32, session: SessionId, units: Vec<u64>) -> Result<Ended, MoveError> {
        let one = self.all.get(&export).ok_or(MoveError::NotReorganised)?;
        let mut on_disk = one.on_disk.lock().await;
        self.know_again(export, one, &mut on_disk, session).await?;
        // The copied data is on the medium before a map names it.
        let flushed = self.ask(Kind::Flush, TaskRange { lbn: 0, count: 0 }, Bytes::new()).await;
        let Settling { mut moves, copies, map } = self.settling(export, session, units.clone()).await?;
        let copied = match flushed {
            Ok(_) => self.copy(&copies).await,
            Err(fault) => Err(fault),
        };
        let not_copied = match copied {
            Ok(not_copied) => not_copied,
            Err(fault) => {
                self.end(export, moves.iter().map(|m| m.unit).collect(), Stored::Old).await?;
                return Err(MoveError::Device(fault));
            }
        };
        moves.retain(|m| !not_copied.contains(&m.unit));
        self.end(export, not_copied, Stored::Old).await?;
        let moving: Vec<u64> = moves.iter().map(|m| m.unit).collect();
        let new = entries(&map, &moves);
        let (stored, failed) = match moves.is_empty() {
            true => (Stored::New, None),
            false => match self.store(&one.area, &mut on_disk, &new).await {
                Written { fault: None, .. } => (Stored::New, None),
                // Nothing will be written any more.
                Written { fault: fault @ Some(Fault::Gone), .. } => (Stored::Old, fault),
                // The old map is to be the newest again: whatever else is there no longer counts.
                Written { fault, .. } => match self.store(&one.area, &mut on_disk, &entries(&map, &[])).await {
                    Written { copies: 0, .. } => (Stored::Unknown, fault),
                    Written { .. } => (Stored::Old, fault),
                },
            },
        };
        match stored {
            Stored::New => one.moved.store(new.len() as u64, Ordering::Relaxed),
            Stored::Unknown => on_disk.unknown.extend(&moving),
            Stored::Old => {}
        }
        self.end(export, moving.clone(), stored).await?;
        match failed {
            Some(fault) => Err(MoveError::Device(fault)),
            None => {
                let stayed = units.into_iter().filter(|unit| !moving.contains(unit)).collect();
                Ok(Ended { moved: moving, stayed })
            }
        }
    }

    /// Copies what was overwritten again; returns the units of which this failed.
    ///
    /// # Errors
    /// The copies are not on the medium.
    async fn copy(&self, copies: &[Begun]) -> Result<Vec<u64>, Fault> {
        let mut failed = Vec::new();
        for &Begun { unit, from, to } in copies {
            let copied = match self.ask(Kind::Read, from, Bytes::new()).await {
                Ok(data) => self.ask(Kind::Write, to, data).await,
                failed => failed,
            };
            match copied {
                Ok(_) => {}
                Err(Fault::Io) => failed.push(unit),
                Err(fault) => return Err(fault),
            }
        }
        if !copies.is_empty() {
            self.ask(Kind::Flush, TaskRange { lbn: 0, count: 0 }, Bytes::new()).await?;
        }
        Ok(failed)
    }

    /// Writes the map again in which units of an earlier failure are in their old places.
    async fn know_again(
        &self,
        export: u32,
        one: &Reorganised,
        on_disk: &mut OnDisk,
        session: SessionId,
    ) -> Result<(), MoveError> {
        if on_disk.unknown.is_empty() {
            return Ok(());
        }
        let Settling { map, .. } = self.settling(export, session, Vec::new()).await?;
        if let Written { copies: 0, fault } = self.store(&one.area, on_disk, &entries(&map, &[])).await {
            return Err(MoveError::Device(fault.unwrap_or(Fault::Io)));
        }
        let units = std::mem::take(&mut on_disk.unknown);
        Ok(self.end(export, units, Stored::Old).await?)
    }

    async fn settling(&self, export: u32, session: SessionId, units: Vec<u64>) -> Result<Settling, SendError> {
        let (reply, answer) = oneshot::channel();
        self.engine().call(EngineMessage::Layout(LayoutCall::Settle { export, session, units, reply })).await?;
        answer.await.map_err(|_| SendError::Ended)
    }

    async fn end(&self, export: u32, units: Vec<u64>, stored: Stored) -> Result<(), SendError> {
        let (reply, answer) = oneshot::channel();
        self.engine().call(EngineMessage::Layout(LayoutCall::End { export, units, stored, reply })).await?;
        answer.await.map_err(|_| SendError::Ended)
    }

    /// Writes a map over both copies, one after the other.
    async fn store(&self, area: &Area, on_disk: &mut OnDisk, moved: &[(u64, u32)]) -> Written {
        let mut written = Written { copies: 0, fault: None };
        for number in 0..2 {
            // Counted first: a copy that failed may be there.
            on_disk.sequence += 1;
            let data = area.encode(moved, on_disk.sequence);
            let range =
                TaskRange { lbn: area.copy(number).lbn, count: data.len() as u64 / u64::from(area.sector_bytes) };
            match self.write_through(range, data).await {
                Ok(()) => written.copies += 1,
                Err(fault) => written.fault = Some(fault),
            }
        }
        written
    }

    async fn write_through(&self, range: TaskRange, data: Bytes) -> Result<(), Fault> {
        self.ask(Kind::Write, range, data).await?;
        // Some drives acknowledge a write with FUA from their cache.
        self.ask(Kind::Flush, TaskRange { lbn: 0, count: 0 }, Bytes::new()).await.map(|_| ())
    }

    /// Sends the engine a request; a write completes when it is on the medium.
    async fn ask(&self, kind: Kind, range: TaskRange, data: Bytes) -> Answer {
        let (reply, mut answers) = mpsc::unbounded_channel();
        let submission = Submission {
            kind,
            lbn: range.lbn,
            count: range.count as u32,
            fua: kind == Kind::Write,
            owner: self.owner,
            data,
            reply: Some((reply, 0)),
            ..Submission::flush()
        };
        self.engine().send(EngineMessage::Submit(submission)).map_err(|_| Fault::Gone)?;
        answers.recv().await.map_or(Err(Fault::Gone), |(_, answer)| answer)
    }
}
