//! A session with write tasks on sectors that clients write, too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{self, Data, Kind, Register, TaskRef};
use headtime_serve::internals::control::service::Service;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::time::sleep;

use super::session::Session;
use super::shadow::{Shadow, Writing, filled};
use super::{Done, Standing};

/// The longest pause between two tasks.
const PAUSE: u64 = 150_000;
/// The time after which no data of an aborted task is written any more.
const SETTLED_AFTER: Duration = Duration::from_secs(1_000);

/// The state of a block.
enum Block {
    /// Its data was not handed over yet.
    Held,
    /// Its data was handed over.
    Handed(Writing),
    /// It is complete.
    Over,
}

/// Writes tasks repeatedly.
pub struct Writer {
    pub service: Service,
    /// First sector of the export.
    pub first: u64,
    pub shadow: Rc<RefCell<Shadow>>,
    pub done: Rc<RefCell<Done>>,
    pub standing: Standing,
    pub rng: Xoshiro256PlusPlus,
}

/// One task.
struct Task {
    name: u64,
    unit: usize,
    /// Blocks by number within the export.
    blocks: BTreeMap<usize, Block>,
    /// A moment before its registration, and one after it.
    asked: u64,
    registered: u64,
}

impl Task {
    fn sectors(&self, block: usize) -> Range<usize> {
        block * self.unit..(block + 1) * self.unit
    }
}

impl Writer {
    fn chance(&mut self, of: u64) -> u64 {
        self.rng.next_u64() % of
    }

    /// Runs while the server exists.
    pub async fn write(mut self) {
        while !self.standing.may_end() {
            let mut session = Session::open(&self.service, "writer", 1, 64, &self.standing).await;
            for name in 0..1 + self.chance(8) {
                sleep(Duration::from_millis(self.chance(PAUSE))).await;
                let mut task = self.task(name);
                let goes_on = self.carry_out(&mut session, &mut task).await;
                if !goes_on {
                    drop(session);
                    self.give_up(&mut task).await;
                    break;
                }
                self.give_up(&mut task).await;
            }
        }
    }

    /// Chooses the blocks of a task: a few ranges.
    fn task(&mut self, name: u64) -> Task {
        let unit = 1 << self.chance(4);
        let (all, mut blocks, mut at) = (self.shadow.borrow().len() / unit, BTreeMap::new(), 0);
        for _ in 0..1 + self.chance(4) {
            at += self.chance(all as u64 / 3) as usize;
            let end = all.min(at + 1 + self.chance(64 / unit as u64) as usize);
            blocks.extend((at..end).map(|n| (n, Block::Held)));
            at = end + 1;
        }
        if blocks.is_empty() {
            blocks.insert(0, Block::Held);
        }
        let asked = self.shadow.borrow_mut().moment();
        Task { name, unit, blocks, asked, registered: asked }
    }

    /// Runs a task; returns whether the session continues.
    async fn carry_out(&mut self, session: &mut Session, task: &mut Task) -> bool {
        let numbers: Vec<usize> = task.blocks.keys().copied().collect();
        let ranges = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| v1::Range {
            lbn: self.first + (run[0] * task.unit) as u64,
            count: (run.len() * task.unit) as u64,
        });
        let (kind, unit) = (Kind::Write.into(), task.unit as u32);
        let register = Register {
            task: task.name,
            kind,
            ranges: ranges.collect(),
            blksize: unit,
            min_pickup: unit,
            point_in_time: false,
        };
        if !session.say(Call::Register(register)).await {
            return false;
        }
        loop {
            match session.hear_of(task.name).await {
                None => return false,
                Some(Event::Refused(r)) if r.task == Some(task.name) => panic!("a write task was refused: {}", r.why),
                Some(Event::Registered(_)) => break,
                // An event of the previous task.
                Some(_) => {}
            }
        }
        task.registered = self.shadow.borrow_mut().moment();
        let some = 1 + self.chance(8);
        let first: Vec<usize> = numbers.into_iter().filter(|_| self.chance(8) < some).collect();
        self.hand_over(session, task, &first).await;
        if self.chance(3) == 0 {
            session.say(Call::Promote(TaskRef { task: task.name })).await;
        }
        // After this number of events the task is aborted, or the session ends.
        let mut left = if self.chance(3) == 0 { self.chance(8) } else { u64::MAX };
        loop {
            if left == 0 {
                let aborts = self.chance(2) == 0;
                return aborts && session.say(Call::Abort(TaskRef { task: task.name })).await;
            }
            left -= 1;
            match session.hear_of(task.name).await {
                None => return false,
                Some(Event::Done(t)) if t.task == task.name => {
                    let over = task.blocks.values().all(|b| matches!(b, Block::Over));
                    assert!(over, "a write task is done, and of some of its blocks nothing was heard");
                    return true;
                }
                Some(event) => self.hears(session, task, event).await,
            }
        }
    }

    async fn hears(&mut self, session: &Session, task: &mut Task, event: Event) {
        let at = |lbn: u64, count: u64| {
            let from = (lbn - self.first) as usize;
            from / task.unit..(from + count as usize).div_ceil(task.unit)
        };
        match event {
            Event::Wanted(p) if p.task == task.name => {
                let wanted = at(p.lbn, p.count);
                let held = wanted.filter(|n| matches!(task.blocks.get(n), Some(Block::Held))).collect::<Vec<_>>();
                self.hand_over(session, task, &held).await;
            }
            Event::Written(p) if p.task == task.name => {
                for n in at(p.lbn, p.count) {
                    let was = std::mem::replace(task.blocks.get_mut(&n).expect("its own block"), Block::Over);
                    let Block::Handed(writing) = was else { panic!("block {n} is written, and had no data, or twice") };
                    self.shadow.borrow_mut().written(writing, true);
                    self.done.borrow_mut().free_writes += 1;
                }
            }
            Event::Superseded(p) if p.task == task.name => {
                for n in at(p.lbn, p.count) {
                    let newer = self.shadow.borrow().may_be_newer(task.sectors(n), task.asked);
                    assert!(newer, "block {n} is superseded without a write there");
                    self.over(task, n);
                    self.done.borrow_mut().superseded += 1;
                }
            }
            Event::Failed(f) if f.task == task.name => {
                assert!(self.standing.may_fail(), "sectors failed without a reason: {f:?}");
                at(f.lbn, f.count).for_each(|n| self.over(task, n));
            }
            Event::NotTaken(p) if p.task == task.name => {
                let mut blocks = at(p.lbn, p.count);
                let over = blocks.all(|n| matches!(task.blocks.get(&n), Some(Block::Over)));
                assert!(over, "data of a task was not taken: {p:?}");
            }
            _ => {}
        }
    }

    fn over(&self, task: &mut Task, n: usize) {
        let was = std::mem::replace(task.blocks.get_mut(&n).expect("its own block"), Block::Over);
        assert!(!matches!(was, Block::Over), "block {n} ends twice");
        if let Block::Handed(writing) = was {
            self.shadow.borrow_mut().written(writing, false);
        }
    }

    /// Hands over data in pieces that are not blocks, in any order.
    async fn hand_over(&mut self, session: &Session, task: &mut Task, blocks: &[usize]) {
        let mut pieces: Vec<(usize, Vec<u8>)> = Vec::new();
        for &n in blocks {
            let sectors = task.sectors(n);
            let writing = self.shadow.borrow_mut().hand_over(sectors.clone(), task.registered);
            for sector in sectors {
                let data = filled(writing.stamp, sector);
                let goes_on = self.chance(3) > 0;
                match pieces.last_mut().filter(|p| goes_on && p.0 + p.1.len() / data.len() == sector) {
                    Some(piece) => piece.1.extend_from_slice(&data),
                    None => pieces.push((sector, data.to_vec())),
                }
            }
            task.blocks.insert(n, Block::Handed(writing));
        }
        while !pieces.is_empty() {
            let (sector, data) = pieces.swap_remove(self.chance(pieces.len() as u64) as usize);
            let lbn = self.first + sector as u64;
            session.say(Call::Data(Data { task: task.name, lbn, data: data.into() })).await;
        }
    }

    /// Ends a task whose further events will not arrive.
    async fn give_up(&mut self, task: &mut Task) {
        if task.blocks.values().any(|b| matches!(b, Block::Handed(_))) {
            sleep(SETTLED_AFTER).await;
        }
        for block in std::mem::take(&mut task.blocks).into_values() {
            if let Block::Handed(writing) = block {
                self.shadow.borrow_mut().written(writing, false);
            }
        }
    }
}
