//! Complete simulations: workload, core, virtual drive.

use crate::common;

use std::fmt::Write;

use headtime_disk::profile::{FirmwareOrder, Layout, Profile};
use headtime_disk::{DriveConfig, Dur, Fault, Kind, Time};
use headtime_sched::Order;
use headtime_sim::observe::Observer;
use headtime_sim::result::{About, SimResult};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, SimError, Simulation};
use headtime_sim::stats::{Done, End, Stats};
use headtime_sim::timeline::{Doing, Timeline};
use headtime_sim::traces::{Gap, ReadOptions, Reader, TraceFormat};
use headtime_sim::validate::{self, Measured};
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{
    Beyond, GroupSpec, Mode, PatternSpec, PlaceSpec, Population, Replay, by_name, closed, local_4k, oltp,
};

const ORDERS: [Order; 6] =
    [Order::Fcfs, Order::Clook, Order::Sstf, Order::Sptf, Order::SptfSw(60), Order::SatfUf(Dur::from_ms(100))];

fn requests(n: u64) -> Limits {
    Limits { requests: Some(n), ..Limits::default() }
}

fn simulate(setup: &Setup, group: &GroupSpec, seed: u64, limits: Limits) -> Stats {
    let sim = Simulation::new(setup).unwrap();
    let mut w = Population::of(group, sim.target(), seed).unwrap();
    sim.run(&mut w, limits, None, &mut ()).unwrap()
}

#[derive(Default)]
struct Keep(Vec<Done>);
impl Observer for Keep {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

fn json(profile: &Profile, order: Order, seed: u64) -> String {
    let setup = Setup::new(profile, order, seed);
    let sim = Simulation::new(&setup).unwrap();
    let mut w = Population::of(&oltp(), sim.target(), seed).unwrap();
    let limits = Limits { until: Some(Time(60_000_000_000)), ..Limits::default() };
    let stats = sim.run(&mut w, limits, None, &mut ()).unwrap();
    let about = About {
        disk: profile.name.clone(),
        seed,
        sector_bytes: profile.sector_bytes,
        wall_seconds: None,
        depth: sim.depth(),
        model_bytes: sim.model_bytes(),
        media_bytes_per_second: sim.media_bytes_per_second(),
    };
    SimResult::new(&about, &stats).to_json()
}

#[test]
fn the_same_seed_gives_the_same_bytes_of_json() {
    let mut profile = common::head_first();
    profile.noise.seek_sd = Dur::from_us(30);
    profile.noise.seek_max = Dur::from_us(150);
    profile.noise.settle_retry_ppm = 1_000;
    profile.noise.settle_retry_turns = 1;
    for order in ORDERS {
        assert_eq!(json(&profile, order, 1), json(&profile, order, 1), "{order:?}");
    }
    assert_ne!(json(&profile, Order::Sptf, 1), json(&profile, Order::Sptf, 2));
}

#[test]
fn every_order_serves_the_same_requests_and_leaves_no_time_unexplained() {
    let profile = common::head_first();
    for order in ORDERS {
        let sim = Simulation::new(&Setup::new(&profile, order, 1)).unwrap();
        let text: String = {
            let mut w = Population::of(&oltp(), sim.target(), 1).unwrap();
            let mut text = String::new();
            for i in 0..2_000u64 {
                let a = headtime_sim::workload::Workload::take(&mut w).unwrap();
                headtime_sim::workload::Workload::finished(&mut w, a.owner, a.due);
                let op = if a.kind == Kind::Read { 'R' } else { 'W' };
                writeln!(text, "{},{op},{},{}", i * 8, a.lbn, a.count).unwrap();
            }
            text
        };
        let reader = Reader::new(text.as_bytes(), "t".into(), TraceFormat::PlainCsv, ReadOptions::default());
        let mut w = Replay::new(reader, sim.target(), Mode::Open, Beyond::Stop).unwrap();
        let mut seen = Keep::default();
        let stats = sim.run(&mut w, Limits::default(), None, &mut seen).unwrap();
        assert_eq!((stats.end, stats.requests, stats.errors), (End::Workload, 2_000, 0), "{order:?}");
        let mut served: Vec<_> = seen.0.iter().map(|d| (d.sequence, d.lbn, d.count)).collect();
        served.sort_unstable();
        assert!(served.iter().enumerate().all(|(i, s)| s.0 == i as u64));
        let s = stats.head.shares(stats.ended_at);
        assert!((s.seek + s.rotate + s.transfer + s.free + s.idle - 1.0).abs() < 1e-9);
        assert!(s.seek > 0.2 && s.rotate > 0.1 && s.transfer > 0.01 && s.idle >= 0.0, "{order:?}: {s:?}");
    }
}

#[test]
fn cleverer_orders_serve_more() {
    let profile = common::head_first();
    let rate = |order| simulate(&Setup::new(&profile, order, 1), &closed(20), 1, requests(5_000)).per_second();
    let [fcfs, _, sstf, sptf, sw, _] = ORDERS.map(rate);
    assert!(fcfs * 1.2 < sstf && sstf < sw && sw < sptf, "{fcfs} {sstf} {sw} {sptf}");
}

#[test]
fn a_drive_that_orders_itself_does_what_the_host_does_with_the_same_choice() {
    // The host passes two commands to the drive and chooses among the others; the drive sees all of
    // them.
    let profile = common::head_first();
    for n in [4, 12] {
        let host = Setup::new(&profile, Order::Sptf, 1);
        let drive = Setup { scheduling: Scheduling::Drive, ..host.clone() };
        let [a, b] = [&host, &drive].map(|s| simulate(s, &closed(n), 1, requests(5_000)).per_second());
        assert!((a / b - 1.0).abs() < 0.05, "{n}: host {a} drive {b}");
        let mut plain = profile.clone();
        plain.electronics.queue.order = FirmwareOrder::Fcfs;
        let c = simulate(&Setup { profile: &plain, ..drive }, &closed(n), 1, requests(5_000)).per_second();
        assert!(c < b * 0.95, "{n}: first come first served {c}, drive {b}");
    }
}

#[test]
fn a_closed_replay_gives_the_responses_that_validation_gives() {
    let profile = common::head_first();
    let setup = Setup { depth: Some(1), ..Setup::new(&profile, Order::Fcfs, 1) };
    let sim = Simulation::new(&setup).unwrap();
    let mut w = Population::of(&oltp(), sim.target(), 3).unwrap();
    let mut text = String::new();
    let mut trace = Vec::new();
    for i in 0..1_000u64 {
        let a = headtime_sim::workload::Workload::take(&mut w).unwrap();
        headtime_sim::workload::Workload::finished(&mut w, a.owner, a.due);
        // Every third request is contiguous with its predecessor, to exercise cache and prefetch.
        let lbn = if i % 3 == 2 { trace.last().map_or(0, |m: &Measured| m.lbn + u64::from(m.count)) } else { a.lbn };
        let gap = Dur(i * 7_919 % 20_000 * 1_000);
        let op = if a.kind == Kind::Read { 'R' } else { 'W' };
        writeln!(text, "{op} Miss {lbn} {} 1000.000 {}.000", a.count, gap.0 / 1_000).unwrap();
        trace.push(Measured {
            kind: a.kind,
            lbn,
            count: a.count,
            response: Dur::from_ms(1),
            gap: Gap::After(gap),
            line: i + 1,
        });
    }
    let mut drive = sim.drive().clone();
    let v = validate::run(&mut drive, &trace).unwrap();
    let reader = Reader::new(text.as_bytes(), "t".into(), TraceFormat::DisksimValidate, ReadOptions::default());
    let mut w = Replay::new(reader, sim.target(), Mode::Auto, Beyond::Stop).unwrap();
    let mut seen = Keep::default();
    sim.run(&mut w, Limits::default(), None, &mut seen).unwrap();
    let got: Vec<_> = seen.0.iter().map(|d| (d.due, d.response())).collect();
    let expected: Vec<_> = v.replayed.iter().map(|r| (r.issued, r.modelled)).collect();
    assert_eq!(got, expected);
}

#[test]
fn local_requests_stay_within_fifty_cylinders_in_every_layout() {
    let serpentine = Layout::SeekFirst { group_tracks: 100, tracks_alternate: true, surfaces_alternate: true };
    for profile in [common::head_first(), common::drive(serpentine)] {
        let sim = Simulation::new(&Setup::new(&profile, Order::Sptf, 1)).unwrap();
        let mut w = Population::of(&local_4k(2), sim.target(), 1).unwrap();
        let mut seen = Keep::default();
        sim.run(&mut w, requests(3_000), None, &mut seen).unwrap();
        let geometry = sim.target().geometry.clone().unwrap();
        let cylinders: Vec<u32> = seen.0.iter().map(|d| geometry.locate(d.lbn).unwrap().cylinder).collect();
        let (low, high) = (cylinders.iter().min().unwrap(), cylinders.iter().max().unwrap());
        assert!(high - low < 50, "{low} to {high}");
        let mut surfaces: Vec<u16> = seen.0.iter().map(|d| geometry.locate(d.lbn).unwrap().surface).collect();
        surfaces.sort_unstable();
        surfaces.dedup();
        assert_eq!(surfaces.len(), 6);
    }
}

#[test]
fn the_share_asked_for_stays_in_the_recent_cylinder_group() {
    let profile = common::head_first();
    let sim = Simulation::new(&Setup::new(&profile, Order::Fcfs, 1)).unwrap();
    let group = GroupSpec {
        pattern: PatternSpec {
            place: PlaceSpec::RecentGroup { share: Share::new(7, 10).unwrap(), cylinders: 16 },
            ..PatternSpec::random_reads(4096)
        },
        ..closed(1)
    };
    let mut w = Population::of(&group, sim.target(), 1).unwrap();
    let mut seen = Keep::default();
    sim.run(&mut w, requests(10_000), None, &mut seen).unwrap();
    let geometry = sim.target().geometry.clone().unwrap();
    let groups: Vec<u32> = seen.0.iter().map(|d| geometry.locate(d.lbn).unwrap().cylinder / 16).collect();
    let stayed = groups.windows(2).filter(|w| w[0] == w[1]).count();
    assert!((6_850..7_200).contains(&stayed), "{stayed}");
}

#[test]
fn a_timeline_of_a_real_drive_has_no_gaps_and_agrees_with_the_statistics() {
    let profile = common::head_first();
    let sim = Simulation::new(&Setup::new(&profile, Order::Sptf, 1)).unwrap();
    let mut w = Population::of(&oltp(), sim.target(), 1).unwrap();
    let mut t = Timeline::new(usize::MAX, None);
    let stats = sim.run(&mut w, requests(500), None, &mut t).unwrap();
    assert!(t.slices().windows(2).all(|w| w[0].to == w[1].from));
    let sum = |doing| t.slices().iter().filter(|s| s.doing == doing).map(|s| s.to.since(s.from)).sum::<Dur>();
    assert_eq!((sum(Doing::Seek), sum(Doing::Rotate), sum(Doing::Transfer)), {
        let h = stats.head;
        (h.seek, h.rotate, h.transfer)
    });
}

#[test]
fn faults_show_as_errors_and_a_dead_drive_ends_the_run() {
    let profile = common::head_first();
    let capacity = Simulation::new(&Setup::new(&profile, Order::Sptf, 1)).unwrap().target().capacity;
    let unreadable = Fault::Unreadable { lbn: 0, count: capacity / 10 };
    let with = |faults| {
        let mut setup = Setup::new(&profile, Order::Sptf, 1);
        setup.drive = DriveConfig::default().with_seed(1).with_faults(faults);
        simulate(&setup, &closed(4), 1, requests(2_000))
    };
    let stats = with(vec![unreadable]);
    assert!((120..280).contains(&stats.errors), "{}", stats.errors);
    let stats = with(vec![Fault::Death { at: Time(1_000_000_000) }]);
    assert_eq!(stats.end, End::DeadDrive);
    assert!(stats.requests > 50 && stats.requests < 1_000);
}

#[test]
fn too_deep_a_queue_says_what_the_drive_takes() {
    let profile = common::head_first();
    for depth in [0, 17] {
        let setup = Setup { depth: Some(depth), ..Setup::new(&profile, Order::Sptf, 1) };
        match Simulation::new(&setup) {
            Err(e @ SimError::Depth { .. }) => assert!(e.to_string().contains("expected 1 to 16"), "{e}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_belief_that_is_wrong_still_serves_everything() {
    let truth = common::head_first();
    let mut belief = truth.clone();
    belief.mechanics.seek = belief.mechanics.seek.iter().map(|(d, t)| (*d, Dur(t.0 * 95 / 100))).collect();
    belief.geometry.zones[0].last_cylinder = 10_000;
    let setup = Setup { belief: Some(&belief), ..Setup::new(&truth, Order::Sptf, 1) };
    let sim = Simulation::new(&setup).unwrap();
    let mut w = Population::of(&by_name("random-4k:8").unwrap(), sim.target(), 1).unwrap();
    let stats = sim.run(&mut w, requests(1_000), None, &mut ()).unwrap();
    assert_eq!((stats.requests, stats.errors), (1_000, 0));
    let right = simulate(&Setup::new(&truth, Order::Sptf, 1), &by_name("random-4k:8").unwrap(), 1, requests(1_000));
    assert!(stats.prediction.within_50us < right.prediction.within_50us);
}
