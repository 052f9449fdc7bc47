//! `headtime reorganise`: moves the hot units of an export into its reserve, or all of them home,
//! in free bandwidth. The server learns what is hot; this application decides what is moved, and
//! copies it with background tasks, a batch at a time. Between two batches the map is consistent:
//! if the application is killed, only the moves of its last batch have not happened.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headtime_sched::TaskRange;
use headtime_sched::layout::{BlockMap, HotUnit, Move, Place, moves};
use serde::Serialize;
use tokio::sync::watch;

use super::error::AppError;
use super::job::{State, Status};
use super::link::{Link, answer, export, look};
use super::pace::Rates;
use crate::control::client::{Control, Session};
use crate::control::socket::Socket;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Data, Kind, LayoutReply, LayoutRequest, Moves, Register, Settle, TaskRef, UnitMove};

/// Bytes of a batch, which the server keeps until they are written.
const BATCH_BYTES: u64 = 32 << 20;
/// Units of a batch at the first and at later attempts. Small batches are copied quickly, so
/// clients overwrite less of them meanwhile.
const BATCHES: [u64; 3] = [256, 16, 4];
/// Bytes that are picked up at a time: a few fit into a usual gap.
const PICKUP_BYTES: u64 = 32 << 10;
/// How long a batch's writes wait for gaps before they are promoted: on a busy disk the head may
/// rarely be near the reserve. In experiment S17 all batches together take 4 to 10 minutes, without
/// any promotion.
const PATIENCE: Duration = Duration::from_secs(300);

/// The parameters.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's socket.
    pub control: Socket,
    /// The export.
    pub export: String,
    /// Priority of the session.
    pub priority: u32,
    /// The highest rate, MB/s; `None`: none.
    pub max_mb_s: Option<f64>,
    /// Moves all units home instead.
    pub undo: bool,
    /// Moves nothing.
    pub dry_run: bool,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The export.
    pub export: String,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Units that the reserve has room for.
    pub slots: u32,
    /// Units in the reserve before.
    pub in_reserve_before: u64,
    /// Units in the reserve now.
    pub in_reserve: u64,
    /// Accesses that the server knows of, and those of them to units in the reserve now.
    pub accesses: u64,
    /// See `accesses`.
    pub accesses_in_reserve: u64,
    /// Units to be moved at the beginning.
    pub planned: u64,
    /// Units moved.
    pub moved: u64,
    /// Units that stay where they were: clients wrote to them at each attempt, or sectors of them
    /// could not be read or written.
    pub left: u64,
    /// Whether all planned units were tried.
    pub complete: bool,
}

/// An export's map and heat, as the server has them.
struct View {
    map: BlockMap,
    hot: Vec<HotUnit>,
    accesses: u64,
}

impl View {
    fn new(reply: &LayoutReply) -> Result<View, AppError> {
        let absurd = |why: &str| AppError::Refused(format!("a layout that cannot be: {why}"));
        let range = |r: Option<v1::Range>| r.map(|r| TaskRange { lbn: r.lbn, count: r.count });
        let (Some(part), Some(slots)) = (range(reply.part), range(reply.slots)) else {
            return Err(absurd("expected the ranges of export and reserve, found none"));
        };
        let gap = range(reply.gap);
        let ends = [Some(part), Some(slots), gap].iter().flatten().all(|r| r.lbn.checked_add(r.count).is_some());
        if !ends {
            return Err(absurd("expected ranges of a disk"));
        }
        let map = match gap {
            Some(gap) => BlockMap::around(part, gap, slots, reply.unit_sectors),
            None => BlockMap::new(part, slots, reply.unit_sectors),
        };
        let mut map = map.map_err(|e| absurd(&e.to_string()))?;
        for m in &reply.moved {
            map.set(m.unit, place(m)).map_err(|e| absurd(&e.to_string()))?;
        }
        let hot = reply.hot.iter().map(|h| HotUnit { unit: h.unit, count: h.count, next: h.next }).collect();
        Ok(View { map, hot, accesses: reply.accesses })
    }

    /// Returns the accesses to units in the reserve.
    fn accesses_in_reserve(&self) -> u64 {
        let inside = |h: &&HotUnit| h.unit < self.map.units() && self.map.place(h.unit) != Place::Home;
        self.hot.iter().filter(inside).map(|h| u64::from(h.count)).sum()
    }
}

fn place(m: &UnitMove) -> Place {
    m.slot.map_or(Place::Home, Place::Slot)
}

fn asked(m: &Move) -> UnitMove {
    let slot = match m.to {
        Place::Home => None,
        Place::Slot(slot) => Some(slot),
    };
    UnitMove { unit: m.unit, slot }
}

/// Moves units until all planned ones were tried, or until it is stopped.
///
/// # Errors
/// The server cannot be reached, does no background work, or the export is not reorganised.
pub async fn run(
    plan: &Plan,
    watch: &mut (dyn FnMut(&Status) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<Report, AppError> {
    let (mut control, info) = answer(&plan.control, &stop, look(&plan.control)).await?;
    if !info.fills {
        return Err(AppError::NoFill);
    }
    if export(&info, &plan.export)?.moved_units.is_none() {
        return Err(AppError::NotReorganised { name: plan.export.clone() });
    }
    let mut view = look_at(&mut control, plan).await?;
    let sector = u64::from(info.sector_bytes);
    let unit_bytes = view.map.unit_sectors() * sector;
    let mut wanted = match plan.undo {
        true => view.map.moved().map(|(unit, _)| Move { unit, to: Place::Home }).collect(),
        false => moves(&view.map, &view.hot, view.accesses),
    };
    let before = view.map.moved().len() as u64;
    let planned = wanted.len() as u64;
    let mut report = Report {
        export: plan.export.clone(),
        unit_bytes,
        slots: view.map.slots(),
        in_reserve_before: before,
        in_reserve: before,
        accesses: view.accesses,
        accesses_in_reserve: view.accesses_in_reserve(),
        planned,
        moved: 0,
        left: planned,
        complete: false,
    };
    if plan.dry_run || planned == 0 {
        report.complete = planned == 0;
        return Ok(report);
    }
    let window = BATCH_BYTES / 4 / sector;
    let session = Session::open(&mut control, &info, "reorganise", plan.priority, window);
    let mut mover = Mover {
        link: Link::new(answer(&plan.control, &stop, async { Ok(session.await?) }).await?, window),
        export: plan.export.clone(),
        sector,
        last_task: 0,
    };
    if let Some(mb) = plan.max_mb_s {
        mover.link.say(Call::MaxMbS(mb));
    }
    let begun = Instant::now();
    let mut rates = Rates::default();
    rates.at(Duration::ZERO);
    let session = Some(mover.link.opened.session);
    'all: for units in BATCHES {
        let size = (BATCH_BYTES / unit_bytes).clamp(1, units) as usize;
        let mut again = Vec::new();
        // Units that go home leave slots to others: the server knows it once their batch has
        // ended.
        let (homes, others): (Vec<Move>, Vec<Move>) = wanted.iter().copied().partition(|m| m.to == Place::Home);
        for batch in homes.chunks(size).chain(others.chunks(size)) {
            let moving = tokio::select! {
                biased;
                _ = stop.wait_for(|&s| s) => break 'all,
                moving = mover.batch(batch) => moving?,
            };
            report.moved += moving.moved;
            again.extend(moving.again);
            rates.add(moving.moved * unit_bytes);
            rates.at(begun.elapsed());
            watch(&Status {
                state: State::Working,
                session,
                done: report.moved * unit_bytes,
                total: planned * unit_bytes,
                lately: rates.lately(),
                left: None,
                promoted: 0,
                unreadable: 0,
            });
        }
        wanted = again;
        if wanted.is_empty() {
            break;
        }
    }
    report.complete = !*stop.borrow();
    view = look_at(&mut control, plan).await?;
    report.left = planned - report.moved;
    report.in_reserve = view.map.moved().len() as u64;
    (report.accesses, report.accesses_in_reserve) = (view.accesses, view.accesses_in_reserve());
    Ok(report)
}

async fn look_at(control: &mut Control, plan: &Plan) -> Result<View, AppError> {
    let reply = control.layout(LayoutRequest { export: plan.export.clone() }).await;
    View::new(&reply.map_err(|status| AppError::Client(status.into()))?.into_inner())
}

/// What became of a batch.
#[derive(Debug, Default)]
struct Moved {
    moved: u64,
    /// Moves to be tried again.
    again: Vec<Move>,
}

/// A unit on its way.
#[derive(Clone, Copy, Debug)]
struct Unit {
    asked: Move,
    from: TaskRange,
    to: TaskRange,
}

struct Mover {
    link: Link,
    export: String,
    sector: u64,
    last_task: u64,
}

impl Mover {
    /// Moves a batch of units.
    async fn batch(&mut self, batch: &[Move]) -> Result<Moved, AppError> {
        let mut moved = Moved::default();
        let units = self.begin(batch, &mut moved.again).await?;
        if units.is_empty() {
            return Ok(moved);
        }
        let copied = self.read(&units).await?;
        let written = self.write(&units, copied).await?;
        if written.is_empty() {
            return Ok(moved);
        }
        let all = written.iter().map(|u| u.asked.unit).collect();
        self.link.say(Call::Settle(Settle { export: self.export.clone(), units: all }));
        let settled = loop {
            if let Event::Settled(settled) = self.next().await? {
                break settled;
            }
        };
        moved.moved = settled.moved.len() as u64;
        moved.again.extend(written.iter().filter(|u| settled.stayed.contains(&u.asked.unit)).map(|u| u.asked));
        Ok(moved)
    }

    /// Begins moves. Those that are refused are tried again later: a place may be in use.
    async fn begin(&mut self, batch: &[Move], again: &mut Vec<Move>) -> Result<Vec<Unit>, AppError> {
        let moves = batch.iter().map(asked).collect();
        self.link.say(Call::Moves(Moves { export: self.export.clone(), moves }));
        let moving = loop {
            if let Event::Moving(moving) = self.next().await? {
                break moving;
            }
        };
        let range = |r: v1::Range| TaskRange { lbn: r.lbn, count: r.count };
        let mut units = Vec::new();
        for (&asked, begun) in batch.iter().zip(moving.begun) {
            match (begun.from, begun.to) {
                (Some(from), Some(to)) if begun.why_not.is_empty() && from.count == to.count => {
                    units.push(Unit { asked, from: range(from), to: range(to) });
                }
                _ => again.push(asked),
            }
        }
        Ok(units)
    }

    /// Registers a task.
    fn register(&mut self, kind: Kind, ranges: impl Iterator<Item = TaskRange>) -> u64 {
        self.last_task += 1;
        let pickup = (PICKUP_BYTES / self.sector).max(1) as u32;
        self.link.say(Call::Register(Register {
            task: self.last_task,
            kind: kind.into(),
            ranges: ranges.map(|r| v1::Range { lbn: r.lbn, count: r.count }).collect(),
            blksize: pickup,
            min_pickup: pickup,
            point_in_time: false,
        }));
        self.last_task
    }

    /// Reads units; returns the data of those that were read completely, by their first sectors.
    async fn read(&mut self, units: &[Unit]) -> Result<BTreeMap<u64, Vec<u8>>, AppError> {
        let sector = self.sector;
        let task = self.register(Kind::Read, units.iter().map(|u| u.from));
        let empty = |u: &Unit| (u.from.lbn, vec![0; (u.from.count * sector) as usize]);
        let mut data: BTreeMap<u64, Vec<u8>> = units.iter().map(empty).collect();
        // Bytes of each that have not arrived.
        let mut left: BTreeMap<u64, usize> = data.iter().map(|(&first, unit)| (first, unit.len())).collect();
        loop {
            match self.next().await? {
                Event::Delivered(d) if d.task == task => {
                    let count = d.data.len() as u64 / sector;
                    self.link.acknowledge(count);
                    // Absent: another part of it could not be read.
                    if let Some((&first, unit)) = data.range_mut(..=d.lbn).next_back() {
                        let at = ((d.lbn - first) * sector) as usize;
                        if let Some(place) = unit.get_mut(at..at + d.data.len()) {
                            place.copy_from_slice(&d.data);
                            *left.entry(first).or_default() -= d.data.len();
                        }
                    }
                }
                Event::Failed(f) if f.task == task => {
                    let hit = units.iter().filter(|u| u.from.overlaps(&TaskRange { lbn: f.lbn, count: f.count }));
                    hit.for_each(|u| _ = data.remove(&u.from.lbn));
                }
                Event::Done(d) if d.task == task => {
                    // What is not whole must not be written as if it were.
                    data.retain(|first, _| left[first] == 0);
                    return Ok(data);
                }
                _ => {}
            }
        }
    }

    /// Writes units to their new places; returns those that were written completely.
    async fn write(&mut self, units: &[Unit], mut data: BTreeMap<u64, Vec<u8>>) -> Result<Vec<Unit>, AppError> {
        let (mut written, mut blocks) = (Vec::new(), BTreeMap::new());
        for unit in units {
            if let Some(data) = data.remove(&unit.from.lbn) {
                blocks.insert(unit.to.lbn, Bytes::from(data));
                written.push(*unit);
            }
        }
        if written.is_empty() {
            return Ok(written);
        }
        let task = self.register(Kind::Write, written.iter().map(|u| u.to));
        for (&lbn, data) in &blocks {
            self.link.say(Call::Data(Data { task, lbn, data: data.clone() }));
        }
        let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
        let mut waits = true;
        loop {
            let event = tokio::select! {
                biased;
                event = self.next() => event?,
                () = &mut patience, if waits => {
                    waits = false;
                    self.link.say(Call::Promote(TaskRef { task }));
                    continue;
                }
            };
            match event {
                // The server had no room for it when it was sent.
                Event::Wanted(p) if p.task == task => {
                    if let Some((&first, data)) = blocks.range(..=p.lbn).next_back() {
                        let at = |sectors: u64| (sectors * self.sector) as usize;
                        let end = at(p.lbn - first + p.count).min(data.len());
                        let data = data.slice(at(p.lbn - first).min(end)..end);
                        self.link.say(Call::Data(Data { task, lbn: p.lbn, data }));
                    }
                }
                // Only this session may write there: a sector that another client wrote is lost.
                Event::Failed(v1::Failed { task: of, lbn, count, .. })
                | Event::Superseded(v1::Piece { task: of, lbn, count })
                    if of == task =>
                {
                    written.retain(|u| !u.to.overlaps(&TaskRange { lbn, count }));
                }
                Event::Done(d) if d.task == task => return Ok(written),
                _ => {}
            }
        }
    }

    /// Returns the next event that is about the work.
    async fn next(&mut self) -> Result<Event, AppError> {
        match self.link.next().await? {
            Event::Refused(r) => Err(AppError::Refused(r.why)),
            Event::Gone(_) => Err(AppError::Gone),
            event => Ok(event),
        }
    }
}
