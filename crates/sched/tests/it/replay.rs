//! Every planner's plans, simulated on drives: with exact predictions a request is never delayed by
//! what is put before it.

use headtime_disk::profile::{FirmwareOrder, Profile, builtin};
use headtime_disk::{Dur, Kind, Model};
use headtime_sched::internals::conservatism::Margins;
use headtime_sched::internals::gap::Leg;
use headtime_sched::internals::planner::{Planner, Task};
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{Algorithm, FillConfig, Placement, SessionId, TaskRange};
use headtime_testkit::gap_replay::{Asked, Situation};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rounding to nanoseconds, and to a sector's time on the bus.
const CLOSE: Dur = Dur(2_000);

/// Of all units of a drive the given percentage; of these the given tenths are to be written, the
/// others to be read.
struct Scattered {
    unit: u64,
    units: u64,
    percent: u64,
    writes: u64,
}

impl Scattered {
    fn kind_of(&self, i: u64) -> Option<Kind> {
        let mixed = (i ^ i >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // Neighbours are of one kind: writes include no other sectors.
        let writes = (i / 16).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40;
        let kind = if writes % 10 < self.writes { Kind::Write } else { Kind::Read };
        (mixed % 100 < self.percent).then_some(kind)
    }
}

impl Wants for Scattered {
    fn wanted(&self, _: Who, kind: Kind, out: &mut Wanted) {
        let (from, to) = (out.from().div_ceil(self.unit), (out.end() / self.unit).min(self.units));
        let wanted = (from..to).filter(|&i| self.kind_of(i) == Some(kind));
        wanted.for_each(|i| out.set(i * self.unit, (i + 1) * self.unit));
    }

    fn any(&self, _: Who, _: Kind) -> bool {
        true
    }
}

/// A built-in drive, but written through (with a write-back cache the head's position is unknown),
/// and serving commands in order: the core prevents a reordering drive from other choices.
fn drive(name: &str) -> Profile {
    let mut profile = builtin(name).unwrap();
    profile.electronics.cache.write_back = false;
    profile.electronics.queue.order = FirmwareOrder::Fcfs;
    profile
}

/// Returns a request somewhere, or near another one.
fn asked(rng: &mut Xoshiro256PlusPlus, capacity: u64, near: Option<u64>) -> Asked {
    let count = between(rng, 1, 24);
    let lbn = match near {
        Some(near) => (near + between(rng, 0, 20_000)).saturating_sub(10_000).min(capacity - count),
        None => between(rng, 0, capacity - count),
    };
    (if between(rng, 0, 2) == 0 { Kind::Write } else { Kind::Read }, lbn, count as u32)
}

/// The plans made.
#[derive(Debug, Default)]
struct Seen {
    plans: u32,
    merged: u32,
    several: u32,
    writes: u32,
    before_writes: u32,
}

/// Replays the plans of an algorithm in a placement, in situations of a seed.
fn replay(profile: &Profile, algorithm: Algorithm, placement: Placement, seed: u64, situations: u32) -> Seen {
    let model = Model::new(profile).unwrap();
    let (capacity, mut rng) = (model.geometry.capacity(), rng(seed));
    let unit = 8;
    let mut regions = Regions::new(&model.geometry, 8);
    let all = TaskRange { lbn: 0, count: capacity / unit * unit };
    regions.has_units(unit as u32, &[all]);
    regions.add(SessionId(0), &model.geometry, all);
    let mut planner = Planner::new(&FillConfig { placement, ..FillConfig::new(algorithm) }, &model);
    let mut seen = Seen::default();
    for _ in 0..situations {
        let percent = [100, 50, 5][between(&mut rng, 0, 2) as usize];
        let writes = [0, 3, 10][between(&mut rng, 0, 2) as usize];
        let wants = Scattered { unit, units: capacity / unit, percent, writes };
        let last = asked(&mut rng, capacity, None);
        let near = (between(&mut rng, 0, 3) == 0).then_some(last.1);
        let s = Situation {
            profile,
            model: &model,
            before: asked(&mut rng, capacity, None),
            last,
            request: asked(&mut rng, capacity, near),
            next: asked(&mut rng, capacity, None),
            inside: placement != Placement::Host,
        };
        let exclude = [s.before, s.last].map(|(_, lbn, count)| TaskRange { lbn, count: u64::from(count) });
        if s.request.1 < exclude[1].end() && s.request.1 + u64::from(s.request.2) > exclude[1].lbn {
            continue;
        }
        let Some((gap, last_read)) = s.gap(&Margins::fixed(Dur::ZERO)) else { continue };
        let (wants, winner) = (&wants, SessionId(0));
        let task = Task {
            model: &model,
            gap: &gap,
            wants,
            regions: &regions,
            winner,
            exclude: &exclude,
            last_read,
            legs_before: 0,
            front_only: false,
        };
        let Some(plan) = planner.plan(&task) else { continue };
        let legs: &[Leg] = plan.legs();
        let slow = s.slowly(&gap, legs).unwrap();
        assert!(
            slow <= gap.ends + CLOSE,
            "{algorithm:?} {placement:?} {legs:?}: {slow:?} after {:?}, slowly",
            gap.ends
        );
        let (with, without) = (s.replay(legs), s.replay(&[]));
        if without.request + CLOSE < gap.ends {
            // The drive has it in its buffer, and the predicted gap does not exist.
            continue;
        }
        let case =
            format!("{algorithm:?} {placement:?} {legs:?} before {:?}: {with:?}, {without:?} without", s.request);
        assert!(with.request <= without.request + CLOSE, "{case}");
        // The effect of the papers' plans on the next command is due to the request itself: it
        // takes no longer.
        assert!(algorithm != Algorithm::Headtime || with.next <= without.next + CLOSE, "{case}");
        seen.plans += 1;
        seen.merged += u32::from(legs.iter().any(|l| l.merged));
        seen.several += u32::from(legs.len() > 1);
        seen.writes += u32::from(legs.iter().any(|l| l.kind == Kind::Write));
        seen.before_writes += u32::from(s.request.0 == Kind::Write);
    }
    seen
}

fn replay_all(name: &str, algorithm: Algorithm, situations: u32) {
    let profile = drive(name);
    for placement in [Placement::Host, Placement::Firmware] {
        let seed = 40 + placement as u64;
        println!("{name} {algorithm:?} {placement:?} seed {seed}");
        let seen = replay(&profile, algorithm, placement, seed, situations);
        println!("{seen:?}");
        assert!(seen.plans > situations / 3 && seen.merged > 10 && seen.writes > 10 && seen.before_writes > 10);
        assert!(algorithm != Algorithm::Headtime || seen.several > 10);
    }
}

#[test]
fn headtimes_plans_make_no_request_later_on_a_drive_of_2000() {
    replay_all("atlas10k", Algorithm::Headtime, 400);
}

#[test]
fn headtimes_plans_make_no_request_later_on_a_serpentine_drive() {
    replay_all("hitachi-7k1000c", Algorithm::Headtime, 400);
}

#[test]
fn the_papers_plans_make_no_request_later_on_a_drive_of_2000() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| a.policy().is_some()) {
        replay_all("atlas10k", algorithm, 200);
    }
}

#[test]
fn the_papers_plans_make_no_request_later_on_a_serpentine_drive() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| a.policy().is_some()) {
        replay_all("hitachi-7k1000c", algorithm, 200);
    }
}
