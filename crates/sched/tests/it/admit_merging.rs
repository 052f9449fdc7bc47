//! Merged queues: processes that read one file together.

use std::sync::mpsc::{Sender, channel};

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::internals::admit::{Admission, Turn};
use headtime_sched::internals::bfq::Bfq;
use headtime_sched::internals::merging::Merging;
use headtime_sched::{BfqRules, Class, Request, Share};

const COUNT: u32 = 128;
/// Time of a request that begins where the last one ended, and of another.
const NEAR: Dur = Dur::from_us(700);
const FAR: Dur = Dur::from_ms(9);

/// Processes that read pieces of files, each its own number of pieces apart.
#[derive(Clone, Copy)]
struct Process {
    /// The first piece, and pieces from one to the next.
    file: u64,
    first: u64,
    step: u64,
}

/// Returns `n` processes that share a file.
fn sharing(file: u64, n: u64) -> Vec<Process> {
    (0..n).map(|first| Process { file, first, step: n }).collect()
}

/// A disk, and processes that read on 20 us after each completion.
struct Bench {
    policy: Box<dyn Admission>,
    processes: Vec<Process>,
    now: Time,
    waiting: Vec<Request>,
    due: Vec<(Time, u32)>,
    next: Vec<u64>,
    head: u64,
    served: Vec<u64>,
    id: u64,
}

impl Bench {
    fn new(merging: bool, processes: Vec<Process>) -> Bench {
        let rules = BfqRules { low_latency: None, together: false, ..BfqRules::plus() };
        let far = rules.random_beyond;
        let bfq = Box::new(Bfq::new(rules, 512));
        Bench {
            policy: if merging { Box::new(Merging::new(bfq, far, 512)) } else { bfq },
            now: Time::ZERO,
            waiting: vec![],
            due: (0..processes.len() as u32).map(|i| (Time::ZERO, i)).collect(),
            next: processes.iter().map(|p| p.first).collect(),
            head: 0,
            served: vec![0; processes.len()],
            id: 0,
            processes,
        }
    }

    fn arrive(&mut self, until: Time) {
        self.due.sort_unstable();
        while let Some(&(at, owner)) = self.due.first().filter(|d| d.0 <= until) {
            self.due.remove(0);
            let (p, next) = (self.processes[owner as usize], &mut self.next[owner as usize]);
            let lbn = p.file * 100_000_000 + *next * u64::from(COUNT);
            *next += p.step;
            self.id += 1;
            let r = Request { id: self.id, kind: Kind::Read, lbn, count: COUNT, fua: false, sync: true, owner };
            self.now = self.now.max(at);
            self.policy.arrived(owner, &r, self.now);
            self.waiting.push(r);
        }
    }

    fn run(&mut self, seconds: u64) -> &mut Bench {
        let end = self.now + Dur::from_secs(seconds);
        while self.now < end {
            self.arrive(self.now);
            let owner = match self.policy.turn(self.now) {
                Turn::Queue(owner, _) => owner,
                Turn::Wait(until) => {
                    let next = self.due.iter().map(|d| d.0).min();
                    self.now = next.map_or(until, |due| due.min(until)).max(self.now + Dur(1));
                    continue;
                }
                turn => panic!("{turn:?}"),
            };
            let mine = self.waiting.iter().enumerate().filter(|(_, r)| r.owner == owner);
            let (at, _) = mine.min_by_key(|(_, r)| r.lbn).expect("whose turn it is has a request");
            let r = self.waiting.remove(at);
            self.policy.sent(owner, &r, self.now);
            let done = self.now + if r.lbn == self.head { NEAR } else { FAR };
            self.head = r.lbn + u64::from(r.count);
            self.arrive(done);
            self.now = done;
            self.policy.completed(owner, &r, self.now);
            self.served[owner as usize] += 1;
            self.due.push((done + Dur::from_us(20), owner));
        }
        self
    }
}

#[test]
fn processes_that_read_a_file_together_read_it_in_order() {
    let rate = |merging| Bench::new(merging, [sharing(1, 4), sharing(2, 1)].concat()).run(20).served.clone();
    let (apart, merged) = (rate(false), rate(true));
    let of_file = |served: &[u64]| served[..4].iter().sum::<u64>();
    assert!(of_file(&merged) > 3 * of_file(&apart), "{merged:?} after {apart:?}");
    // They have one share: as much as the other reader, which has no less than before.
    let part = of_file(&merged) as f64 / merged.iter().sum::<u64>() as f64;
    assert!((0.47..0.53).contains(&part) && merged[4] > apart[4], "{merged:?} after {apart:?}");
    let (least, most) = (merged[..4].iter().min().unwrap(), merged[..4].iter().max().unwrap());
    assert!(most - least <= 2, "{merged:?}");
}

#[test]
fn readers_of_their_own_files_are_not_merged() {
    let readers = || (0..4).flat_map(|file| sharing(file, 1)).collect::<Vec<_>>();
    assert_eq!(Bench::new(true, readers()).run(20).served, Bench::new(false, readers()).run(20).served);
    // Nor those of files that lie one behind the other, and grow towards the next.
    let behind = |i: u64| Process { file: 0, first: i * 10_000, step: 1 };
    let served = Bench::new(true, vec![behind(0), behind(1)]).run(20).served.clone();
    assert!(served[0].abs_diff(served[1]) * 50 < served[0], "{served:?}");
}

#[test]
fn processes_with_different_shares_or_a_latency_target_are_not_merged() {
    type Change = fn(&mut Bench);
    let rates = |change: Change| {
        let mut b = Bench::new(true, sharing(1, 2));
        change(&mut b);
        let begins: u64 = b.run(30).served.iter().sum();
        // The same when they are merged already.
        let mut b = Bench::new(true, sharing(1, 2));
        b.run(10);
        change(&mut b);
        b.served.fill(0);
        [begins, b.run(30).served.iter().sum()]
    };
    let merged = rates(|_| ());
    // All is in order only if they are merged.
    let changes: [Change; 3] = [
        |b| b.policy.set_share(1, Share::weighing(300).unwrap()),
        |b| b.policy.set_share(1, Share { class: Class::Idle, ..Share::default() }),
        |b| b.policy.set_latency_target(0, Some(Dur::from_secs(1))),
    ];
    for change in changes {
        let apart = rates(change);
        assert!((0..2).all(|i| merged[i] > 5 * apart[i]), "{merged:?} {apart:?}");
    }
}

#[test]
fn who_reads_elsewhere_leaves_a_merged_queue() {
    let mut b = Bench::new(true, [sharing(1, 2), sharing(2, 1)].concat());
    b.run(10);
    // The second reads all over the disk now. Both have gaps between their pieces.
    b.processes[1] = Process { file: 3, first: 0, step: 100_003 };
    b.run(10);
    b.served.fill(0);
    b.run(60);
    let served = b.served.clone();
    let apart = [sharing(1, 2)[0], b.processes[1], b.processes[2]];
    let alone = Bench::new(false, apart.to_vec()).run(60).served.clone();
    let close = |i: usize| served[i].abs_diff(alone[i]) * 20 < alone[i];
    assert!((0..3).all(close), "{served:?}, and apart from the start {alone:?}");
}

#[test]
fn who_reads_another_file_in_order_leaves_a_merged_queue_and_so_do_those_whose_leader_does() {
    // The first request of process 1 merges its queue with that of process 0, which leads.
    for leaves in [0, 1] {
        let mut b = Bench::new(true, [sharing(1, 2), sharing(2, 1)].concat());
        b.run(10);
        b.processes[leaves] = Process { file: 3, first: 0, step: 1 };
        b.run(10);
        b.served.fill(0);
        b.run(60);
        // With a share of its own it has as much as the reader of file 2.
        let served = b.served.clone();
        assert!(served[leaves].abs_diff(served[2]) * 20 < served[2], "{served:?}");
    }
}

#[test]
fn the_oldest_request_of_a_merged_queue_is_not_passed_over_for_long() {
    let mut policy: Box<dyn Admission> =
        Box::new(Merging::new(Box::new(Bfq::new(BfqRules { low_latency: None, ..BfqRules::plus() }, 512)), 8192, 512));
    let mut now = Time::ZERO;
    let mut id = 0;
    let mut read = |policy: &mut Box<dyn Admission>, owner, lbn, now| {
        id += 1;
        let r = Request { id, kind: Kind::Read, lbn, count: COUNT, fua: false, sync: true, owner };
        policy.arrived(owner, &r, now);
        r
    };
    // Processes 0 and 1 are merged; then process 1 waits behind the head, while process 0 always
    // has the next request ahead of it. Process 2, whose file lies between the two, makes them take
    // turns.
    let mut waiting = vec![read(&mut policy, 0, 50_000_128, now), read(&mut policy, 1, 50_000_256, now)];
    let old = read(&mut policy, 1, 0, now);
    waiting.push(old);
    waiting.push(read(&mut policy, 2, 10_000_000, now));
    let mut ahead = [50_000_384, 10_000_128];
    while now < Time::ZERO + Dur::from_secs(2) {
        let owner = match policy.turn(now) {
            Turn::Queue(owner, _) => owner,
            Turn::Wait(until) => {
                now = until;
                continue;
            }
            turn => panic!("{turn:?}"),
        };
        // ORDER avoids what is behind the head.
        let mine = waiting.iter().enumerate().filter(|(_, r)| r.owner == owner);
        let (at, _) = mine.min_by_key(|(_, r)| (r.lbn == 0, r.lbn)).expect("whose turn it is has a request");
        let r = waiting.remove(at);
        policy.sent(owner, &r, now);
        if r.id == old.id {
            // A turn of the other, and its own.
            assert!(now < Time::ZERO + Dur::from_ms(400), "{now}");
            return;
        }
        let next = &mut ahead[usize::from(owner == 2)];
        waiting.push(read(&mut policy, if owner == 2 { 2 } else { 0 }, *next, now));
        *next += u64::from(COUNT);
        now += NEAR;
        policy.completed(owner, &r, now);
    }
    panic!("it was not served");
}

#[test]
fn a_flush_does_not_move_the_head() {
    let mut policy = Merging::new(Box::new(Bfq::new(BfqRules::plus(), 512)), 8192, 512);
    let now = Time::ZERO;
    let request = |id, kind, owner, lbn| {
        let count = if kind == Kind::Flush { 0 } else { COUNT };
        Request { id, kind, lbn, count, fua: false, sync: true, owner }
    };
    // Processes 0 and 1 are merged; the first piece, and then a flush, are served.
    let first = request(0, Kind::Read, 0, 50_000_000);
    let next = request(1, Kind::Read, 1, 50_000_128);
    let flush = request(2, Kind::Flush, 0, 0);
    for r in [first, next, flush] {
        policy.arrived(r.owner, &r, now);
    }
    assert!(matches!(policy.turn(now), Turn::Queue(0, _)));
    for r in [first, flush] {
        policy.sent(0, &r, now);
        policy.completed(0, &r, now);
    }
    // What is behind the head waits.
    let behind = request(3, Kind::Read, 0, 1_000);
    policy.arrived(0, &behind, now);
    assert!(matches!(policy.turn(now), Turn::Queue(1, _)), "{:?}", policy.turn(now));
}

#[test]
fn requests_that_waited_before_a_merger_are_served() {
    // Each keeps three requests outstanding, so that some always wait when queues are merged.
    let processes: Vec<Process> = [sharing(1, 4), sharing(2, 1)].concat();
    let mut b = Bench::new(true, processes);
    let more: Vec<(Time, u32)> = (0..5).flat_map(|i| [(Time::ZERO, i), (Time::ZERO, i)]).collect();
    b.due.extend(more);
    b.run(20);
    assert!(b.served.iter().all(|n| *n > 500), "{:?}", b.served);
    // All stop, and everything is served.
    b.due.clear();
    while !b.waiting.is_empty() {
        b.due.clear();
        b.run(1);
    }
}

/// A policy that tells as whose it sees each request.
#[derive(Debug)]
struct SeenAs(Sender<u32>);

impl Admission for SeenAs {
    fn arrived(&mut self, queue: u32, _: &Request, _: Time) {
        self.0.send(queue).unwrap();
    }
    fn turn(&mut self, _: Time) -> Turn {
        Turn::Idle
    }
    fn sent(&mut self, _: u32, _: &Request, _: Time) {}
    fn sent_out_of_turn(&mut self, _: u32, _: &Request, _: Time) {}
    fn completed(&mut self, _: u32, _: &Request, _: Time) {}
    fn charge_external(&mut self, _: Dur, _: Time) {}
    fn set_share(&mut self, _: u32, _: Share) {}
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
}

/// As whose the last request is seen; each is a process, milliseconds, and the first sector.
fn last_seen_as(requests: &[(u32, u64, u64)]) -> u32 {
    let (seen, receiver) = channel();
    let mut policy = Merging::new(Box::new(SeenAs(seen)), BfqRules::plus().random_beyond, 512);
    for (id, &(owner, ms, lbn)) in requests.iter().enumerate() {
        let r = Request { id: id as u64, kind: Kind::Read, lbn, count: COUNT, fua: false, sync: true, owner };
        policy.arrived(owner, &r, Time::ZERO + Dur::from_ms(ms));
    }
    receiver.try_iter().last().expect("each request is seen")
}

#[test]
fn a_request_at_the_end_of_anothers_is_one_sign_and_two_near_it_are() {
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 1, 128)]), 0);
    // Not after 100 ms, and not if its own last request ended there, too.
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 101, 128)]), 1);
    assert_eq!(last_seen_as(&[(1, 0, 0), (0, 1, 0), (1, 2, 128)]), 1);
    // Eight sectors behind it.
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 1, 136)]), 1);
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 1, 136), (0, 2, 1_000), (1, 3, 1_136)]), 0);
    // Two that are not in a row, and two of which one is farther away than 128 KiB.
    let between = [(0, 0, 0), (1, 1, 136), (1, 2, 50_000_000), (0, 3, 1_000), (1, 4, 1_136)];
    assert_eq!(last_seen_as(&between), 1);
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 1, 128 + 257), (0, 2, 1_000), (1, 3, 1_136)]), 1);
    assert_eq!(last_seen_as(&[(0, 0, 0), (1, 1, 128 + 256), (0, 2, 1_000), (1, 3, 1_136)]), 0);
}
