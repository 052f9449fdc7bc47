//! Tests of the event loop with a drive of constant service time.

use super::actions::TIMED_OF;
use super::*;
use crate::device::fixed::Fixed;
use crate::stats::Done;
use crate::traces::{ReadOptions, Reader, TraceFormat};
use crate::workload::{
    Arrivals, Beyond, Gaps, GroupSpec, Mode, Population, Replay, StreamSpec, Streams, Target, closed, oltp, open,
};
use headtime_disk::Dur;
use headtime_sched::Firmware;
use headtime_sched::streams::Quality;

fn target() -> Target {
    Target { capacity: 1_000_000, sector_bytes: 512, geometry: None }
}

fn go(
    device: &mut Fixed,
    depth: u32,
    capacity: usize,
    workload: &mut dyn Workload,
    limits: Limits,
    observer: &mut impl Observer,
) -> Result<Stats, RunError> {
    run(device, &mut Firmware::new(depth, capacity), workload, limits, None, observer)
}

#[derive(Default)]
struct Keep(Vec<Done>);
impl Observer for Keep {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

#[test]
fn a_closed_system_is_served_at_the_drives_rate() {
    let mut d = Fixed::new(Dur::from_ms(5), 4);
    let mut w = Population::of(&closed(10), &target(), 1).unwrap();
    let mut seen = Keep::default();
    let limits = Limits { requests: Some(1000), ..Limits::default() };
    let s = go(&mut d, 4, 100, &mut w, limits, &mut seen).unwrap();
    assert_eq!((s.end, s.requests), (End::Requests, 1000));
    assert_eq!(s.ended_at, Time(5_000_000_000));
    assert_eq!(d.most, 4);
    assert_eq!(s.most_waiting, 10);
    // Ten outstanding requests of 5 ms each: in the steady state every request takes 50 ms, minus
    // the host time.
    assert!(seen.0[10..].iter().all(|d| d.response() + Dur::from_us(20) == Dur::from_ms(50)));
    assert!(seen.0[10..].iter().all(|d| d.service() == Dur::from_ms(20)));
    let shares = s.head.shares(s.ended_at);
    assert_eq!((shares.seek, shares.rotate, shares.transfer), (0.25, 0.25, 0.5));
}

#[test]
fn stamps_of_a_request_never_go_back() {
    let mut d = Fixed::new(Dur::from_ms(4), 2);
    let mut w = Population::of(&oltp(), &target(), 3).unwrap();
    let mut seen = Keep::default();
    let limits = Limits { until: Some(Time(20_000_000_000)), ..Limits::default() };
    let s = go(&mut d, 2, 100, &mut w, limits, &mut seen).unwrap();
    assert_eq!((s.end, s.ended_at), (End::Time, Time(20_000_000_000)));
    assert!(s.requests > 2000);
    for d in &seen.0 {
        assert!(d.due <= d.submitted && d.submitted <= d.dispatched && d.dispatched < d.done);
    }
    assert!(seen.0.windows(2).all(|w| w[0].done <= w[1].done));
}

#[test]
fn a_full_scheduler_makes_requests_late_but_loses_none() {
    // A thousand requests at once, room for eight.
    let text: String = (0..1000).map(|i| format!("0,R,{},8\n", i * 8)).collect();
    let reader = Reader::new(text.as_bytes(), "t".into(), TraceFormat::PlainCsv, ReadOptions::default());
    let mut w = Replay::new(reader, &target(), Mode::Auto, Beyond::Stop).unwrap();
    let mut d = Fixed::new(Dur::from_ms(1), 2);
    let mut seen = Keep::default();
    let s = go(&mut d, 2, 8, &mut w, Limits::default(), &mut seen).unwrap();
    assert_eq!((s.end, s.requests, s.most_waiting), (End::Workload, 1000, 10));
    let lbns: Vec<u64> = seen.0.iter().map(|d| d.lbn).collect();
    assert!(lbns.iter().enumerate().all(|(i, &l)| l == i as u64 * 8));
    let last = seen.0.last().unwrap();
    assert_eq!((last.due, last.response()), (Time::ZERO, Dur::from_secs(1)));
    assert_eq!(last.submitted, Time(990_000_000));
}

#[test]
fn a_closed_replay_waits_for_each_completion() {
    let text = "R Hit 0 8 1 500\nW Hit 8 8 1 700\nR Hit 16 8 1 900\n";
    let reader = Reader::new(text.as_bytes(), "t".into(), TraceFormat::DisksimValidate, ReadOptions::default());
    let mut w = Replay::new(reader, &target(), Mode::Auto, Beyond::Stop).unwrap();
    let mut d = Fixed::new(Dur::from_ms(10), 2);
    let mut seen = Keep::default();
    go(&mut d, 2, 8, &mut w, Limits::default(), &mut seen).unwrap();
    let due: Vec<u64> = seen.0.iter().map(|d| d.due.0).collect();
    assert_eq!(due, [0, 10_500_000, 21_200_000]);
}

#[test]
fn an_open_workload_below_saturation_waits_as_queueing_theory_says() {
    // M/D/1 at 50% load: mean wait = service * rho / (2 (1 - rho)) = half a service time.
    let mut d = Fixed::new(Dur::from_ms(5), 1);
    let mut w = Population::of(&open(100.0).unwrap(), &target(), 11).unwrap();
    let limits = Limits { requests: Some(100_000), ..Limits::default() };
    let s = go(&mut d, 1, 10_000, &mut w, limits, &mut ()).unwrap();
    let mean = s.responses().mean().unwrap().as_ms_f64();
    assert!((mean - 7.5).abs() < 0.15, "{mean}");
    let sure = s.batches.half_width_ns().unwrap() / 1e6;
    assert!(sure < 0.3 && (mean - 7.5).abs() < 2.0 * sure, "{mean} +- {sure}");
}

#[test]
fn a_dead_drive_ends_the_run() {
    let mut d = Fixed::new(Dur::from_ms(5), 2);
    d.dies_at = Time(100_000_000);
    let mut w = Population::of(&closed(3), &target(), 1).unwrap();
    let limits = Limits { until: Some(Time(10_000_000_000)), ..Limits::default() };
    let s = go(&mut d, 2, 8, &mut w, limits, &mut ()).unwrap();
    assert_eq!((s.end, s.requests, s.errors), (End::DeadDrive, 20, 1));
}

#[test]
fn endless_workloads_need_a_limit() {
    let mut w = Population::of(&closed(3), &target(), 1).unwrap();
    let mut d = Fixed::new(Dur::from_ms(5), 2);
    let e = go(&mut d, 2, 8, &mut w, Limits::default(), &mut ()).unwrap_err();
    assert!(matches!(e, RunError::Endless), "{e}");
}

#[test]
fn a_scheduler_that_overfills_the_drive_is_an_error() {
    let mut w = Population::of(&closed(3), &target(), 1).unwrap();
    let mut d = Fixed::new(Dur::from_ms(5), 2);
    let limits = Limits { requests: Some(10), ..Limits::default() };
    let e = go(&mut d, 3, 8, &mut w, limits, &mut ()).unwrap_err();
    assert!(e.to_string().contains("2 commands outstanding"), "{e}");
}

#[test]
fn decisions_are_timed_only_with_a_clock() {
    use std::cell::Cell;
    let at = Cell::new(0);
    let clock = || {
        at.set(at.get() + 10);
        at.get()
    };
    let limits = Limits { requests: Some(10), ..Limits::default() };
    let mut w = Population::of(&closed(3), &target(), 1).unwrap();
    let mut d = Fixed::new(Dur::from_ms(5), 2);
    let mut f = Firmware::new(2, 8);
    let s = run(&mut d, &mut f, &mut w, limits, Some(&clock), &mut ()).unwrap();
    assert_eq!(s.timed_decisions, s.decisions.div_ceil(TIMED_OF));
    assert_eq!(s.decision_ns, Some(10 * s.timed_decisions));
    assert!(s.decisions >= 10);
}

#[test]
fn streams_are_held_to_their_periods_by_every_scheduler() {
    // Two requests per 100 ms, later three, on a device that takes 30 ms for each.
    let stream = |name: &str, requests| StreamSpec {
        stop: Some(Time(1_000_000_000)),
        ..StreamSpec::new(name, requests, Dur::from_ms(100), Quality::MANDATORY)
    };
    let specs = [stream("first", 2), StreamSpec { start: Time(250_000_000), ..stream("second", 1) }];
    let mut w = Streams::new(&specs, None, &target(), 1).unwrap();
    let mut d = Fixed::new(Dur::from_ms(30), 1);
    let s = go(&mut d, 1, 100, &mut w, Limits::default(), &mut ()).unwrap();
    assert_eq!((s.end, s.requests), (End::Workload, 27));
    let [first, second] = &s.streams[..] else { panic!("{:?}", s.streams) };
    assert_eq!((first.by_period.clone(), first.asked, first.begins), (vec![0, 0, 10], 20, Time::ZERO));
    // It begins with the next period after its earliest start.
    assert_eq!((second.by_period.clone(), second.asked, second.begins), (vec![0, 7], 7, Time(300_000_000)));
    // On a slower device the backlog grows: 40 ms per request, three requests per 100 ms.
    let mut w = Streams::new(&specs, None, &target(), 1).unwrap();
    let s = go(&mut Fixed::new(Dur::from_ms(40), 1), 1, 100, &mut w, Limits::default(), &mut ()).unwrap();
    let [first, second] = &s.streams[..] else { panic!("{:?}", s.streams) };
    assert_eq!((second.by_period.clone(), second.late), (vec![7, 0], 7));
    assert_eq!((first.in_time() + first.late, first.periods()), (20, 10));
    assert!(first.late > 0 && first.whole() >= 4, "{first:?}");
}

#[test]
fn a_run_that_ends_before_a_period_does_not_count_it() {
    let spec = StreamSpec::new("a", 1, Dur::from_ms(100), Quality::MANDATORY);
    let mut w = Streams::new(&[spec], None, &target(), 1).unwrap();
    let mut d = Fixed::new(Dur::from_ms(30), 1);
    let limits = Limits { until: Some(Time(1_050_000_000)), ..Limits::default() };
    let s = go(&mut d, 1, 100, &mut w, limits, &mut ()).unwrap();
    assert_eq!((s.streams[0].asked, s.streams[0].periods(), s.streams[0].quality()), (11, 10, Some(1.0)));
    let endless = go(&mut d, 1, 100, &mut w, Limits::default(), &mut ()).unwrap_err();
    assert!(matches!(endless, RunError::Endless));
}

#[test]
fn beside_streams_a_load_that_is_faster_than_the_drive_for_good_ends_with_a_message() {
    let fast = GroupSpec { arrivals: Arrivals::Open { mean_gap: Dur::from_us(10), gaps: Gaps::Uniform }, ..closed(1) };
    let stream = StreamSpec::new("a", 1, Dur::from_ms(100), Quality::MANDATORY);
    let beside = Population::of(&fast, &target(), 1).unwrap();
    let mut w = Streams::new(&[stream], Some(Box::new(beside)), &target(), 1).unwrap();
    let limits = Limits { until: Some(Time(60_000_000_000)), ..Limits::default() };
    let mut d = Fixed::new(Dur::from_ms(5), 1);
    let e = go(&mut d, 1, 8, &mut w, limits, &mut ()).unwrap_err().to_string();
    assert!(e.contains("1048576 requests are due for which the scheduler has no room"), "{e}");
}
