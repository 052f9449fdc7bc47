//! The queues of streams: the requests of one stream that belong to one period have one of their
//! own.

use headtime_disk::time::Time;

use super::super::subset::Member;

/// Queues from here on are streams'; owners are below.
pub const STREAM_QUEUES: u32 = 1 << 31;
/// One past the last queue that a stream can have: behind are those of the policies.
const LAST_QUEUE: u32 = u32::MAX - 16;

/// The requests of one stream that belong to one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub number: u32,
    pub member: Member,
    /// When its period is over.
    pub due: Time,
    /// Requests that are not finished.
    unfinished: u32,
    /// Its period is over, and what is not at the drive is given up.
    pub given_up: bool,
}

/// All queues that have a request.
#[derive(Debug)]
pub(super) struct Queues {
    all: Vec<Queue>,
    /// The next number that is tried.
    next: u32,
    /// They are looked through for periods that are over when this comes.
    next_due: Time,
}

impl Queues {
    /// No stream has a request.
    pub fn new() -> Queues {
        Queues { all: Vec::new(), next: STREAM_QUEUES, next_due: Time::NEVER }
    }

    /// Whether a queue is a stream's.
    #[inline]
    pub fn is_one(number: u32) -> bool {
        (STREAM_QUEUES..LAST_QUEUE).contains(&number)
    }

    /// One more request of `member`, whose period is over at `due`: its queue.
    pub fn add(&mut self, member: Member, due: Time) -> u32 {
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

    /// The queue of this number. Panics when it has no request.
    pub fn get(&self, number: u32) -> &Queue {
        &self.all[self.at(number)]
    }

    /// The number of a member's queue, if it has a request.
    pub fn of(&self, member: Member) -> Option<u32> {
        self.all.iter().find(|q| q.member == member).map(|q| q.number)
    }

    /// Queues whose periods are over by `now` and of which `gives_up` says that what waits is given
    /// up, each once.
    pub fn over(&mut self, now: Time, gives_up: impl Fn(Member) -> bool) -> Vec<u32> {
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

    /// A request is finished: whose it was. A queue without one is none.
    pub fn finished(&mut self, number: u32) -> Member {
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
