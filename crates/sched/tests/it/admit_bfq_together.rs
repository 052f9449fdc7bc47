//! Scattered applications of equal weight under BFQ+: when ORDER may choose among them, and how far
//! one gets ahead.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::internals::admit::{Admission, Turn, queue_of};
use headtime_sched::internals::bfq::Bfq;
use headtime_sched::internals::together::AHEAD;
use headtime_sched::{BfqRules, Class, Request, Share};

/// Sectors of the disk and of a request, and the time of each.
const DISK: u64 = 100_000_000;
const COUNT: u32 = 8;
const TAKES: Dur = Dur::from_ms(8);
const HOST: Dur = Dur::from_us(20);

/// An application that keeps some requests outstanding.
#[derive(Clone, Copy)]
struct App {
    outstanding: usize,
    /// The part of the disk that it reads: first sector and length.
    part: (u64, u64),
    in_order: bool,
    host: Dur,
}

const SCATTERED: App = App { outstanding: 1, part: (0, DISK), in_order: false, host: HOST };

/// A disk that serves one request at a time, and applications that submit again a host time after
/// each completion.
struct Bench {
    bfq: Bfq,
    now: Time,
    apps: Vec<App>,
    waiting: Vec<Request>,
    due: VecDeque<(Time, u32)>,
    at: Vec<u64>,
    seed: u64,
    served: Vec<u64>,
    /// Decisions that left the choice to ORDER, and times at which the disk waited for an
    /// application.
    together: u64,
    waits: u64,
}

impl Bench {
    fn new(rules: BfqRules, apps: Vec<App>) -> Bench {
        let first =
            (0..apps.len() as u32).flat_map(|i| (0..apps[i as usize].outstanding).map(move |_| (Time::ZERO, i)));
        Bench {
            bfq: Bfq::new(rules, 512),
            now: Time::ZERO,
            waiting: vec![],
            due: first.collect(),
            at: vec![0; apps.len()],
            seed: 1,
            served: vec![0; apps.len()],
            together: 0,
            waits: 0,
            apps,
        }
    }

    fn arrive(&mut self) {
        while let Some((_, owner)) = self.due.front().copied().filter(|d| d.0 <= self.now) {
            self.due.pop_front();
            let app = self.apps[owner as usize];
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = &mut self.at[owner as usize];
            *at = if app.in_order { *at + u64::from(COUNT) } else { (self.seed >> 20) % app.part.1 };
            let lbn = app.part.0 + *at % app.part.1;
            let r = Request { id: 0, kind: Kind::Read, lbn, count: COUNT, fua: false, sync: true, owner };
            self.bfq.arrived(queue_of(&r), &r, self.now);
            self.waiting.push(r);
        }
    }

    /// Serves requests until `until`; `order` selects among the eligible queues.
    fn run(&mut self, until: Time, order: impl Fn(&[u32]) -> u32) {
        while self.now < until {
            self.arrive();
            let queue = match self.bfq.turn(self.now) {
                Turn::Queue(queue, _) => queue,
                Turn::Together => {
                    let mut queues = vec![];
                    self.bfq.together(&mut queues);
                    self.together += 1;
                    order(&queues)
                }
                Turn::Wait(at) => {
                    self.waits += 1;
                    let next = self.due.front().map_or(at, |d| d.0.min(at));
                    assert!(next > self.now, "waits for what is over at {}", self.now);
                    self.now = next;
                    continue;
                }
                Turn::Idle => {
                    self.now = self.due.front().expect("all wait for an answer that is not due").0;
                    continue;
                }
            };
            let at = self.waiting.iter().position(|r| queue_of(r) == queue).expect("a queue that may go has a request");
            let r = self.waiting.remove(at);
            self.bfq.sent(queue, &r, self.now);
            let done = self.now + TAKES;
            while let Some(&(at, _)) = self.due.front().filter(|d| d.0 < done) {
                self.now = at.max(self.now);
                self.arrive();
            }
            self.now = done;
            self.bfq.completed(queue, &r, self.now);
            self.served[r.owner as usize] += u64::from(r.count);
            self.due.push_back((self.now + self.apps[r.owner as usize].host, r.owner));
            self.due.make_contiguous().sort();
        }
    }
}

fn seconds(s: u64) -> Time {
    Time::ZERO + Dur::from_secs(s)
}

fn last(queues: &[u32]) -> u32 {
    queues[queues.len() - 1]
}

fn first(queues: &[u32]) -> u32 {
    queues[0]
}

/// Raised weights are over after 6 s.
fn after_start(rules: BfqRules, apps: Vec<App>) -> Bench {
    let mut b = Bench::new(rules, apps);
    b.run(seconds(8), first);
    (b.together, b.waits) = (0, 0);
    b.served.fill(0);
    b
}

#[test]
fn scattered_applications_of_one_weight_have_no_turns_and_none_is_idled_for() {
    let mut b = after_start(BfqRules::plus(), vec![SCATTERED; 4]);
    b.run(seconds(20), first);
    let requests: u64 = b.served.iter().sum::<u64>() / u64::from(COUNT);
    assert!((requests..requests + 3).contains(&b.together), "{} of {requests}", b.together);
    assert_eq!((b.waits, requests), (0, 1500));
}

#[test]
fn the_paper_has_turns() {
    for rules in [BfqRules::published(), BfqRules::original()] {
        let mut b = after_start(rules, vec![SCATTERED; 4]);
        b.run(seconds(20), first);
        assert_eq!(b.together, 0);
        assert!(b.waits > 500, "{}", b.waits);
    }
}

#[test]
fn turns_resume_while_one_is_not_like_the_others() {
    let none = |b: &mut Bench| {
        let before = b.together;
        b.run(b.now + Dur::from_secs(5), first);
        b.together == before
    };
    // One sequential application.
    let in_order = App { in_order: true, ..SCATTERED };
    assert!(none(&mut after_start(BfqRules::plus(), vec![SCATTERED, SCATTERED, in_order])));
    // Weights that differ, for as long as they do.
    let mut b = after_start(BfqRules::plus(), vec![SCATTERED; 3]);
    b.bfq.set_share(1, Share::weighing(200).unwrap());
    assert!(none(&mut b));
    b.bfq.set_share(1, Share::default());
    assert!(!none(&mut b));
    // The idle class.
    b.bfq.set_share(1, Share { class: Class::Idle, ..Share::default() });
    assert!(none(&mut b));
    // A raised weight: that of a new application. After 6 s it has its own.
    let mut b = after_start(BfqRules::plus(), vec![SCATTERED; 3]);
    b.apps.push(SCATTERED);
    b.at.push(0);
    b.served.push(0);
    b.due.push_front((b.now, 3));
    assert!(none(&mut b));
    b.run(b.now + Dur::from_secs(2), first);
    assert!(!none(&mut b));
}

#[test]
fn an_order_that_favours_one_gets_it_ahead_by_four_budgets_and_no_further() {
    let mut b = after_start(BfqRules::plus(), vec![App { outstanding: 8, ..SCATTERED }; 4]);
    // Another was favoured until now, so it begins as far behind. A budget is what a slice of 125
    // ms transfers.
    let most = 2 * (AHEAD * 125 / 8 + 2) * u64::from(COUNT);
    let mut furthest = 0;
    for _ in 0..2_000 {
        b.run(b.now + Dur::from_ms(1), last);
        furthest = furthest.max(b.served.iter().max().unwrap() - b.served.iter().min().unwrap());
    }
    assert!(furthest <= most, "{furthest} of {most} sectors");
    assert!(furthest > most / 2, "the order had its way: {furthest} of {most} sectors");
}

#[test]
fn many_requests_at_a_time_do_not_make_a_share_larger() {
    let many = App { outstanding: 16, ..SCATTERED };
    let mut b = after_start(BfqRules::plus(), vec![many, SCATTERED]);
    b.run(seconds(108), first);
    let share = b.served[1] as f64 / b.served.iter().sum::<u64>() as f64;
    assert!(share > 0.47, "{share}");
}

fn parts(n: u64, host: Dur) -> Vec<App> {
    let part = |i| App { part: (i * (DISK / n), DISK / n), host, ..SCATTERED };
    (0..n).map(part).collect()
}

#[test]
fn with_parts_of_the_disk_of_their_own_the_last_is_waited_for_until_its_visit_is_over() {
    let mut b = after_start(BfqRules::plus(), parts(5, HOST));
    // An order that prefers late arrivals: it can choose among them only if they are waited for.
    let mut row = vec![];
    for _ in 0..400 {
        let before = b.served.clone();
        while b.served == before {
            b.run(b.now + Dur::from_us(1), last);
        }
        row.push((0..5).find(|&i| b.served[i] != before[i]).unwrap());
    }
    let stays = row.windows(2).filter(|w| w[0] == w[1]).count();
    // 40 ms are five requests.
    assert!((300..=340).contains(&stays), "{stays} of 399");
    let (least, most) = (b.served.iter().min().unwrap(), b.served.iter().max().unwrap());
    assert!(most - least <= 12 * u64::from(COUNT), "{:?}", b.served);
}

#[test]
fn a_queue_with_a_long_think_time_is_not_idled_for() {
    for (apps, ncq, waits) in [
        (parts(5, HOST), false, true),
        // The drive's own order has the others' requests meanwhile.
        (parts(5, HOST), true, false),
        // More than the 2 ms of `idle_random`.
        (parts(5, Dur::from_us(2_500)), false, false),
        (vec![SCATTERED; 5], false, false),
    ] {
        let mut b = after_start(BfqRules { ncq, ..BfqRules::plus() }, apps);
        b.run(seconds(12), first);
        assert_eq!(b.waits > 100, waits, "{}", b.waits);
    }
}
