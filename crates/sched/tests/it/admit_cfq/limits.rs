//! Limits of the asynchronous queue and of requests at the drive.

use super::*;

#[test]
fn the_asynchronous_queue_has_16_requests_in_a_slice_beside_others() {
    // Each takes 1 ms, and a slice is 40 ms.
    let slices = |beside: bool| {
        let mut d = Desk::new(CfqRules::default());
        d.cfq.set_share(1, Share { class: Class::Idle, ..Share::default() });
        (0..200).for_each(|_| d.ask(999, Kind::Write, false));
        if beside {
            // It waits, and does not displace the writes.
            d.ask(1, Kind::Read, false);
        }
        let begins = |n: &usize| {
            let Turn::Queue(ASYNCHRONOUS, patience) = d.cfq.turn(d.now) else { panic!("{n}: not their turn") };
            d.serve(1_000);
            patience < Dur(u64::MAX)
        };
        let begins: Vec<usize> = (0..200).filter(begins).collect();
        begins.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()
    };
    assert_eq!(slices(true), [16; 12]);
    assert_eq!(slices(false), [40; 4]);
}

impl Desk {
    fn send(&mut self, queue: u32) {
        assert!(matches!(self.cfq.turn(self.now), Turn::Queue(q, _) if q == queue), "{:?}", self.cfq.turn(self.now));
        self.cfq.sent(queue, &read(queue), self.now);
    }

    fn finish(&mut self, queue: u32) {
        self.cfq.completed(queue, &read(queue), self.now);
    }
}

fn read(owner: u32) -> Request {
    Request { id: 0, kind: Kind::Read, lbn: 0, count: 8, fua: false, sync: true, owner }
}

#[test]
fn asynchronous_and_synchronous_requests_are_not_at_the_drive_together() {
    let mut d = Desk::new(CfqRules::default());
    // The drive's read of a sequential queue is waited for, and its writes are by such a queue.
    d.ask(1, Kind::Read, false);
    d.send(1);
    d.cfq.set_share(1, Share { class: Class::Idle, ..Share::default() });
    (0..4).for_each(|_| d.ask(999, Kind::Write, false));
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.finish(1);
    d.send(ASYNCHRONOUS);
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.finish(ASYNCHRONOUS);
    d.send(2);
}

#[test]
fn a_queue_has_8_requests_at_the_drive_at_most_while_others_wait() {
    let mut d = Desk::new(CfqRules::default());
    (0..40).for_each(|_| d.ask(1, Kind::Read, false));
    // Alone: any number.
    (0..12).for_each(|_| d.send(1));
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    (0..5).for_each(|_| d.finish(1));
    d.send(1);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    // Half as many when the slice would be over before they are finished.
    d.now += Dur::from_ms(90);
    (0..4).for_each(|_| d.finish(1));
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.finish(1);
    d.send(1);
}

#[test]
fn after_a_delayed_read_asynchronous_requests_go_to_the_drive_one_by_one() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Read, false);
    d.send(1);
    d.now += Dur::from_ms(125);
    d.finish(1);
    d.now += Dur::from_ms(9);
    (0..20).for_each(|_| d.ask(999, Kind::Write, false));
    d.send(ASYNCHRONOUS);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
    // Two more after 200 ms.
    d.finish(ASYNCHRONOUS);
    d.now += Dur::from_ms(191);
    (0..2).for_each(|_| d.send(ASYNCHRONOUS));
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(Time::NEVER));
}
