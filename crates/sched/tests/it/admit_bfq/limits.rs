//! Limits of the asynchronous queue and of requests at the drive, and drives with a command queue.

use super::*;

impl Desk {
    fn write(&mut self, owner: u32) {
        let at = &mut self.at[owner as usize];
        let r = Desk::request(owner, Kind::Write, u64::from(owner) * 10_000_000 + *at, 256);
        *at += 256;
        self.ask(r);
    }

    /// Dispatches a request of this queue, which has the turn.
    fn send(&mut self, queue: u32) -> Request {
        assert_eq!(self.whose(), Some(queue), "{:?}", self.bfq.turn(self.now));
        let at = self.waiting.iter().position(|r| queue_of(r) == queue).expect("it has a request");
        let r = self.waiting.remove(at);
        self.bfq.sent(queue, &r, self.now);
        r
    }

    fn finish(&mut self, r: Request) {
        self.bfq.completed(queue_of(&r), &r, self.now);
    }
}

#[test]
fn asynchronous_writes_are_one_queue_and_charged_tenfold() {
    let mut d = Desk::new(fair());
    d.read(1);
    (2..6).for_each(|owner| (0..4).for_each(|_| d.write(owner)));
    let mut got = [0u64; 2];
    while d.now < Time::ZERO + Dur::from_secs(60) {
        match d.serve(2_000) {
            ASYNCHRONOUS => {
                got[1] += 1;
                d.write(2);
            }
            owner => {
                got[0] += 1;
                d.read(owner);
            }
        }
    }
    let ratio = got[0] as f64 / got[1] as f64;
    assert!((8.0..12.0).contains(&ratio), "{ratio}");
}

#[test]
fn an_application_with_all_its_requests_at_the_drive_loses_the_turn_when_another_is_overdue() {
    // A command queue; 1 has its four at the drive, and 2 waits for its turn.
    let mut d = Desk::new(BfqRules { ncq: true, ..fair() });
    d.bfq.set_latency_target(2, Some(Dur::from_ms(20)));
    (0..6).for_each(|_| d.read(1));
    let sent: Vec<Request> = (0..4).map(|_| d.send(1)).collect();
    d.read(2);
    let overdue = d.now + Dur::from_ms(10);
    assert_eq!((d.bfq.turn(d.now), d.bfq.next_wakeup()), (Turn::Wait(overdue), Some(overdue)));
    d.now = overdue;
    assert_eq!(d.send(2).owner, 2);
    sent.into_iter().for_each(|r| d.finish(r));
}

#[test]
fn the_asynchronous_queue_has_four_requests_or_40_ms_a_turn_beside_others() {
    let turn = |us: u64, rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        (0..100).for_each(|_| d.write(2));
        // Whatever remains of its first turn, which began before the reader was known.
        while d.serve(us) != 1 {}
        d.read(1);
        while d.whose() == Some(1) {
            d.serve(us);
            d.read(1);
        }
        let mut writes = 0;
        while d.whose() == Some(ASYNCHRONOUS) {
            d.serve(us);
            writes += 1;
        }
        writes
    };
    assert_eq!(turn(2_000, fair()), 4);
    assert_eq!(turn(15_000, fair()), 3);
    // With another limit it goes on until its budget is used up: 2,560 of 16,384 sectors each.
    let more = AsynchronousLimits { requests: 100, ..AsynchronousLimits::default() };
    assert_eq!(turn(2_000, BfqRules { asynchronous: Some(more), ..fair() }), 7);
    // Alone it continues.
    let mut d = Desk::new(fair());
    (0..100).for_each(|_| d.write(2));
    assert!((0..100).all(|_| d.serve(2_000) == ASYNCHRONOUS));
}

#[test]
fn a_turn_of_the_asynchronous_queue_is_charged_a_whole_budget_before_the_heuristics() {
    // The reader's budget is 16,384 sectors, 64 requests; a turn of the writes is four of as many
    // sectors each.
    let writes = |rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        (0..4_000).for_each(|_| d.write(2));
        let mut writes = 0;
        for _ in 0..50 * 64 {
            while d.serve(2_000) != 1 {
                writes += 1;
            }
            d.read(1);
        }
        writes
    };
    let original = BfqRules::original();
    let few = writes(original.clone());
    assert!((190..=210).contains(&few), "{few} writes beside 50 budgets of the reader");
    let many = writes(BfqRules { charges_whole_asynchronous_turns: false, ..original });
    assert!((3_100..=3_400).contains(&many), "{many} writes beside 50 budgets of the reader");
}

#[test]
fn no_asynchronous_request_is_dispatched_beside_a_synchronous_one() {
    let mut d = Desk::new(BfqRules { idle: Dur::ZERO, ..fair() });
    d.read(1);
    let read = d.send(1);
    d.write(2);
    assert_eq!((d.bfq.turn(d.now), d.bfq.next_wakeup()), (Turn::Wait(Time::NEVER), None));
    d.finish(read);
    d.send(ASYNCHRONOUS);
    // Without limits it is.
    let mut d = Desk::new(BfqRules { idle: Dur::ZERO, asynchronous: None, ..fair() });
    d.read(1);
    d.send(1);
    d.write(2);
    d.send(ASYNCHRONOUS);
}

#[test]
fn an_application_has_four_requests_at_the_drive_beside_others_and_16_alone() {
    let mut d = Desk::new(BfqRules { ncq: true, ..fair() });
    (0..40).for_each(|_| d.read(1));
    let mut sent: Vec<Request> = (0..16).map(|_| d.send(1)).collect();
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.read(2);
    (0..12).for_each(|_| d.finish(sent.pop().expect("it was sent")));
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.finish(sent.pop().expect("it was sent"));
    d.send(1);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
}

#[test]
fn with_a_command_queue_the_disk_idles_for_all_but_scattered_applications() {
    let ncq = |rules| BfqRules { ncq: true, ..rules };
    let mut d = Desk::new(ncq(fair()));
    d.read(1);
    d.read(2);
    d.serve(2_000);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(8)), "a sequential one");
    // A scattered one keeps it for an eighth of the largest budget: 2,048 sectors, 256 requests.
    let served_before_another = |rules: BfqRules| {
        let mut d = Desk::new(BfqRules { slice: Dur::from_secs(60), ..ncq(rules) });
        d.read(1);
        d.serve(100);
        d.now += Dur::from_ms(20);
        let mut requests = 0;
        d.read_far(3);
        loop {
            assert_eq!(d.serve(100), 3);
            requests += 1;
            if requests == 9 {
                d.read(1);
            }
            if d.whose() == Some(1) || requests == 1_000 {
                return requests;
            }
            d.read_far(3);
        }
    };
    assert_eq!(served_before_another(fair()), 256);
    // So it does without H-fairness; the disk only idles for a shorter time.
    let unfair = BfqRules { fairness: false, ..fair() };
    assert_eq!(served_before_another(unfair.clone()), 256);
    let mut d = Desk::new(ncq(unfair));
    (0..3).for_each(|_| d.read_far(3));
    (0..2).for_each(|_| assert_eq!(d.serve(100), 3));
    d.read(1);
    assert_eq!(d.serve(100), 3);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(2)));
    // A raised one keeps it for as long as it is raised.
    assert_eq!(served_before_another(BfqRules::plus()), 1_000);
}
