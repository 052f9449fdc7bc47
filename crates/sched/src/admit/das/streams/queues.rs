//! The queues of streams: one for the requests of one stream and one period.

use headtime_disk::Time;

use super::super::subset::Member;

/// First queue number of streams; owners are below.
pub(crate) const STREAM_QUEUES: u32 = 1 << 31;
/// One past the last queue number of streams; the policies' queues are above.
const LAST_QUEUE: u32 = u32::MAX - 16;

/// The requests of one stream that belong to one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub number: u32,
    pub member: Member,
    /// End of its period.
    pub due: Time,
    /// Number of unfinished requests.
    unfinished: u32,
    /// Its period is over, and its requests not yet dispatched have expired.
    pub given_up: bool,
}

/// All queues with a request.
#[derive(Debug)]
pub(super) struct Queues {
    all: Vec<Queue>,
    /// Next number to try.
    next: u32,
    /// When the queues are next searched for periods that are over.
    next_due: Time,
}

impl Queues {
    /// Creates the state without queues.
    pub(super) fn new() -> Queues {
        Queues { all: Vec::new(), next: STREAM_QUEUES, next_due: Time::NEVER }
    }

    /// Returns whether a number is that of a stream's queue.
    #[inline]
    pub(super) fn is_one(number: u32) -> bool {
        (STREAM_QUEUES..LAST_QUEUE).contains(&number)
    }

    /// Adds a request of `member`, whose period ends at `due`; returns its queue.
    pub(super) fn add(&mut self, member: Member, due: Time) -> u32 {
        if let Some(queue) = self.all.iter_mut().find(|q| q.member == member) {
            queue.unfinished += 1;
            return queue.number;
        }
        let number = self.free();
        self.all.push(Queue { number, member, due, unfinished: 1, given_up: false });
        self.next_due = self.next_due.min(due);
        number
    }

    fn free(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = if number + 1 == LAST_QUEUE { STREAM_QUEUES } else { number + 1 };
            if self.all.iter().all(|q| q.number != number) {
                return number;
            }
        }
    }

    fn at(&self, number: u32) -> usize {
        let at = self.all.iter().position(|q| q.number == number);
        at.unwrap_or_else(|| panic!("queue {number} has no request"))
    }

    /// Returns the queue of this number. Panics if it has no request.
    pub(super) fn get(&self, number: u32) -> &Queue {
        &self.all[self.at(number)]
    }

    /// Returns the number of a member's queue, if it has a request.
    pub(super) fn of(&self, member: Member) -> Option<u32> {
        self.all.iter().find(|q| q.member == member).map(|q| q.number)
    }

    /// Returns the queues whose periods are over by `now` and whose waiting requests expire
    /// according to `gives_up`, each once.
    pub(super) fn over(&mut self, now: Time, gives_up: impl Fn(Member) -> bool) -> Vec<u32> {
        if now < self.next_due {
            return Vec::new();
        }
        let mut over = Vec::new();
        for queue in self.all.iter_mut().filter(|q| q.due <= now && !q.given_up) {
            queue.given_up = gives_up(queue.member);
            if queue.given_up {
                over.push(queue.number);
            }
        }
        self.next_due = self.all.iter().map(|q| q.due).filter(|&due| due > now).min().unwrap_or(Time::NEVER);
        over
    }

    /// Removes a finished request and returns its member. Empty queues are removed.
    pub(super) fn finished(&mut self, number: u32) -> Member {
        let at = self.at(number);
        let queue = &mut self.all[at];
        queue.unfinished -= 1;
        let (member, last) = (queue.member, queue.unfinished == 0);
        if last {
            self.all.swap_remove(at);
        }
        member
    }
}
