//! Free writes: the data is requested just in time (Thereska 2003 sections 2.1 and 3.4).
//!
//! When a search has chosen a range to write, [`ask`](TaskManager::ask) creates one
//! [`TaskEvent::GetBuffer`] for each task's part of it. The applications
//! [`answer`](TaskManager::answer). At the next opportunity the core checks whether all of it is
//! [`granted`](TaskManager::granted), and then either sends the command
//! ([`picked`](TaskManager::picked)) or releases it ([`release`](TaskManager::release)). Parts that
//! were refused, or not answered, are not offered for a while. An ask is void, and never granted,
//! as soon as a part of it is superseded, aborted or suspended.

use headtime_disk::{Kind, Time};

use super::manager::TaskManager;
use super::marks::{MAX_WRITES, Piece, Refusal, State, Write};
use super::table::WRITE;
use super::{TaskEvent, TaskId, TaskRange};

impl TaskManager {
    /// Requests the data of a write. False, and nothing is requested, if not every sector of it is
    /// in a whole unit that is wanted written now, or if there is no room.
    pub fn ask(&mut self, range: TaskRange) -> bool {
        let full = self.marks.asks.len() + self.marks.flights.len() >= MAX_WRITES;
        if full || range.count == 0 || self.marks.write_busy(&range) {
            return false;
        }
        let mut pieces = vec![];
        let hits = self.touched(WRITE, &range);
        for &at in &hits {
            let e = &self.extents[at];
            let (mut a, b) = e.within(range.lbn, range.end());
            while self.may(e)
                && let Some((from, to)) = e.bits.next_run(a, b)
            {
                let task = self.tasks[e.task].id;
                pieces.push(Piece { task, extent: at, range: e.span(from, to), state: State::Asked });
                a = to;
            }
        }
        self.put_back(hits);
        // No two write tasks want the same sector, so the parts cover the range if their lengths
        // add up to it.
        let covered: u64 = pieces.iter().map(|p| p.range.count).sum();
        if covered != range.count || pieces.len() > self.limits.events.saturating_sub(self.events.len()) {
            return false;
        }
        pieces.sort_unstable_by_key(|p| p.range.lbn);
        assert!(pieces.windows(2).all(|w| w[0].range.end() == w[1].range.lbn), "two write tasks want one sector");
        for p in &pieces {
            let session = self.sessions.get(self.extents[p.extent].session).id;
            self.events.push_back(TaskEvent::GetBuffer { session, task: p.task, range: p.range });
        }
        self.marks.asks.push(Write { range, pieces });
        true
    }

    /// Handles the answer to an [`TaskEvent::GetBuffer`] with this task and range. False if none is
    /// pending.
    pub fn answer(&mut self, task: TaskId, range: TaskRange, yes: bool) -> bool {
        let mut asked = self.marks.asks.iter_mut().flat_map(|w| &mut w.pieces);
        let Some(p) = asked.find(|p| p.task == task && p.range == range && p.state == State::Asked) else {
            return false;
        };
        p.state = if yes { State::Granted } else { State::Refused };
        true
    }

    /// Returns whether all the data of a write that was [asked](TaskManager::ask) for is available.
    pub fn granted(&self, range: TaskRange) -> bool {
        let ask = self.marks.asks.iter().find(|w| w.range == range);
        ask.is_some_and(|w| w.pieces.iter().all(|p| p.state == State::Granted))
    }

    /// Notes that the command for a granted write is being sent, as a background command or as part
    /// of a foreground one. From here on it is in flight until it is
    /// [`completed`](TaskManager::completed) or [released](TaskManager::release).
    ///
    /// # Panics
    /// If it was not granted: a bug in the caller.
    pub fn picked(&mut self, range: TaskRange) {
        assert!(self.granted(range), "a write of {range:?} is sent without its data");
        let n = self.marks.asks.iter().position(|w| w.range == range).expect("it was granted");
        let ask = self.marks.asks.remove(n);
        self.marks.flights.push(ask);
    }

    /// Releases what was asked for, picked, or handed out by
    /// [`next_promoted`](TaskManager::next_promoted), and is not carried out now. What is still
    /// wanted is offered again; of a write that was asked for, the parts that were refused or not
    /// answered only after a while.
    pub fn release(&mut self, kind: Kind, range: TaskRange, now: Time) {
        self.advance(now);
        if kind == Kind::Flush {
            return;
        }
        self.uncarry(kind, &range);
        if kind == Kind::Read {
            return;
        }
        if let Some(n) = self.marks.asks.iter().position(|w| w.range == range) {
            let until = self.now + self.backoff;
            for p in self.marks.asks.remove(n).pieces {
                if p.state != State::Granted && until > self.now {
                    self.marks.refuse(Refusal { task: p.task, range: p.range, until });
                }
            }
        }
        if let Some(n) = self.marks.flights.iter().position(|w| w.range == range) {
            let write = self.marks.flights.remove(n);
            self.end_flight(write.pieces, false, None);
        }
    }
}
