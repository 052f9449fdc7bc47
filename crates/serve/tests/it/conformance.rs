//! The simulator and the real-time engine drive the same core: with the same requests and device it
//! must make the same decisions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::conform::{Arrival, Arrivals, Body, Log, Real, Recorded, Simulated, Stepping, Told, ask, line};
use headtime_disk::{Drive, DriveConfig, Dur, Kind, Model, Outcome, Time, profile};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order};
use headtime_serve::clock::Clock;
use headtime_serve::engine::Engine;
use headtime_serve::engine::inbox::inbox;
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_sim::background::{Background, Job, Jobs, Nothing};
use headtime_sim::run::{Limits, run_with};
use headtime_testkit::scripted::{Answer, Scripted};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const END: Time = Time(3_000_000_000);

fn core(order: Order, fill: bool) -> Core {
    let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
    let fill = fill.then(|| FillConfig { seed: 5, ..FillConfig::new(Algorithm::Headtime) });
    Core::new(Config::new(order).with_capacity(1000).with_fill(fill), model)
}

fn arrivals(seed: u64, mean_us: u64) -> Vec<Arrival> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut at = 0;
    let mut all = vec![];
    while at < END.0 {
        at += 1_000 + rng.next_u64() % (2_000 * mean_us);
        let kind = if rng.next_u64().is_multiple_of(3) { Kind::Write } else { Kind::Read };
        all.push(Arrival {
            at: Time(at),
            kind,
            lbn: rng.next_u64() % 17_000_000,
            count: 8 + (rng.next_u64() % 64) as u32,
        });
    }
    all
}

fn simulated(core: Core, body: impl Body, arrivals: &[Arrival], scan: bool) -> Vec<String> {
    let log = Log::default();
    let mut scheduler = Recorded::new(core, &log);
    let capacity = body.capacity();
    let mut jobs: Box<dyn Background> = match scan {
        true => Box::new(Jobs::new(vec![Job::scan(capacity, 8)])),
        false => Box::new(Nothing),
    };
    let limits = Limits { until: Some(END), ..Limits::default() };
    let mut workload = Arrivals(arrivals.iter().copied().collect());
    let mut device = Simulated(body);
    run_with(&mut device, &mut scheduler, &mut workload, &mut *jobs, limits, None, &mut ()).unwrap();
    log.take()
}

fn in_engine(core: Core, body: impl Body, arrivals: &[Arrival], scan: bool) -> Vec<String> {
    let log = Log::default();
    let scheduler = Recorded::new(core, &log);
    let (outbox, inbox) = inbox(4096, 16).unwrap();
    // The core's capacity, from the drive as in the simulator.
    let capacity = body.capacity();
    let clock = Stepping {
        now: Cell::new(Time::ZERO),
        arrivals: RefCell::new(arrivals.iter().copied().collect()),
        engine: outbox.clone(),
        until: END,
        ended: Cell::new(false),
    };
    let (events, mut told) = tokio::sync::mpsc::channel(1 << 16);
    if scan {
        let (reply, mut opened) = tokio::sync::oneshot::channel();
        let open = SessionCall::Open { priority: 1, window: u64::MAX, events, reply };
        outbox.send(EngineMessage::Session(open)).unwrap();
        let (reply, _) = tokio::sync::oneshot::channel();
        let spec = Job::scan(capacity, 8).tasks.remove(0);
        // The first session of a core always has the number 1, which is checked below.
        let session = headtime_sched::SessionId(first_session());
        outbox
            .send(EngineMessage::Session(SessionCall::Register { session, spec, point_in_time: false, reply }))
            .unwrap();
        Engine::new(clock, scheduler, Real { body, at: vec![] }, inbox).run().unwrap();
        assert_eq!(opened.try_recv().unwrap().unwrap(), session);
        while told.try_recv().is_ok() {}
    } else {
        drop(events);
        Engine::new(clock, scheduler, Real { body, at: vec![] }, inbox).run().unwrap();
    }
    log.take()
}

/// Returns the number of a core's first session.
fn first_session() -> u32 {
    core(Order::Sptf, true).open(1, Time::ZERO).unwrap().0
}

/// Checks that both agree up to the end of the simulator's run; the engine then completes the
/// requests in flight.
fn agree(simulated: &[String], engine: &[String], at_least: usize) {
    assert!(simulated.len() > at_least, "only {} decisions", simulated.len());
    for (i, (s, e)) in simulated.iter().zip(engine).enumerate() {
        assert_eq!(s, e, "decision {i}");
    }
    assert!(engine.len() >= simulated.len());
}

fn drive(seed: u64) -> Drive {
    Drive::new(&profile::builtin("atlas10k").unwrap(), DriveConfig::default().with_seed(seed)).unwrap()
}

#[test]
fn over_a_drive_both_make_the_core_decide_the_same() {
    for (seed, order) in [(1, Order::Sptf), (2, Order::Clook), (3, Order::SatfUf(Dur::from_ms(50)))] {
        let a = arrivals(seed, 8_000);
        let s = simulated(core(order, false), drive(seed), &a, false);
        let e = in_engine(core(order, false), drive(seed), &a, false);
        agree(&s, &e, 1_000);
    }
}

/// Consecutive writes, more than one at a time, are merged into one command.
#[test]
fn writes_in_order_go_together_in_both() {
    let mut a = arrivals(11, 3_000);
    let mut end = 0;
    for arrival in a.iter_mut().filter(|a| a.kind == Kind::Write) {
        arrival.lbn = end;
        end += u64::from(arrival.count);
    }
    // It does not write on arrival, so it loses a revolution with each command.
    let profile = profile::builtin("barracuda36es2").unwrap();
    let drive = || Drive::new(&profile, DriveConfig::default().with_seed(11)).unwrap();
    let core = || {
        let config = Config::new(Order::SptfAhead).with_capacity(1000);
        Core::new(config, Model::new(&profile).unwrap())
    };
    let s = simulated(core(), drive(), &a, false);
    let e = in_engine(core(), drive(), &a, false);
    agree(&s, &e, 1_000);
    let count = |what: &str| s.iter().filter(|l| l.starts_with(what)).count();
    assert!(count("Issue") + 50 < count("finish"), "{} commands", count("Issue"));
}

#[test]
fn with_a_scan_in_the_gaps_too() {
    for (seed, mean_us) in [(4, 7_000), (5, 30_000)] {
        let a = arrivals(seed, mean_us);
        let s = simulated(core(Order::Sptf, true), drive(seed), &a, true);
        let e = in_engine(core(Order::Sptf, true), drive(seed), &a, true);
        assert!(s.iter().any(|l| l.contains("Delivered")));
        agree(&s, &e, 1_000);
    }
}

fn script(seed: u64) -> Scripted {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Scripted::new((0..2000).map(|_| Answer {
        after: Dur(1_000_000 + rng.next_u64() % 20_000_000),
        outcome: match rng.next_u64() % 20 {
            0 => Outcome::MediaError { lbn: 0 },
            _ => Outcome::Ok,
        },
    }))
}

#[test]
fn over_a_device_that_answers_out_of_order_and_fails_too() {
    for seed in 6..9 {
        let a = arrivals(seed, 6_000);
        let s = simulated(core(Order::Sptf, false), script(seed), &a, false);
        let e = in_engine(core(Order::Sptf, false), script(seed), &a, false);
        assert!(s.iter().any(|l| l.contains("MediaError")));
        agree(&s, &e, 1_000);
    }
}

/// In real time the moments differ from run to run, but a replay of the core's inputs and their
/// times must give the same outputs: the engine keeps to the contract and adds nothing.
#[test]
fn inputs_recorded_in_real_time_give_the_same_decisions_when_replayed() {
    let (outbox, inbox) = inbox(1000, 16).unwrap();
    let all = arrivals(9, 1_000);
    let sender = std::thread::spawn(move || {
        for a in all.iter().take(150) {
            outbox.send(EngineMessage::Submit(ask(a))).unwrap();
            std::thread::sleep(std::time::Duration::from_micros(a.lbn % 2_000));
        }
        outbox.send(EngineMessage::End).unwrap();
    });
    let log = Log::default();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let quick = (0..400).map(|_| Answer { after: Dur(rng.next_u64() % 3_000_000), outcome: Outcome::Ok });
    let scheduler = Recorded::new(core(Order::Sptf, false), &log);
    let told = Rc::clone(&scheduler.told);
    Engine::new(Clock::start(), scheduler, Real { body: Scripted::new(quick), at: vec![] }, inbox).run().unwrap();
    sender.join().unwrap();
    let (log, told) = (log.take(), told.take());
    assert!(log.iter().filter(|l| l.starts_with("Issue")).count() == 151, "150 requests and the last flush");

    let (mut again, mut last) = (core(Order::Sptf, false), Time::ZERO);
    let mut told = told.into_iter().peekable();
    for (i, expected) in log.iter().enumerate() {
        let Some((_, what)) = told.next_if(|(at, _)| *at == i) else {
            assert_eq!(&line(&again.poll().expect("there was more to say")), expected, "line {i}");
            continue;
        };
        if what.at() > last {
            assert!(again.poll().is_none(), "the engine did not ask to the end before line {i}");
            last = what.at();
        }
        match what {
            Told::Submit(r, now) => again.submit(r, now).unwrap(),
            Told::Complete(c, outcome, now) => again.complete(c, outcome, now),
            Told::Tick(now) => again.tick(now),
        }
    }
}
