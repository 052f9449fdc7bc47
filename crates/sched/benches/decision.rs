//! Cost of a decision: choose one of N pending requests, remove it, insert a new one.
//!
//! Run with `cargo bench -p headtime-sched`; under `cargo test` every benchmark runs once.

use divan::Bencher;
use headtime_disk::profile::{HeadOrder, Layout, Skew};
use headtime_disk::{Dur, Head, Kind, Model, Outcome, Place, Time};
use headtime_sched::internals::ahead::Arrivals;
use headtime_sched::internals::order::View;
use headtime_sched::internals::pool::Pool;
use headtime_sched::{Action, Config, Core, Order, Policy, Request};
use headtime_testkit::profiles::{plain_profile, rng, small_geometry};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

const CYLINDERS: u32 = 10_042;
const SURFACES: u16 = 6;
const SECTORS: u32 = 280;

/// Read seeks of a Quantum Atlas 10K, thinned: distance and us (DiskSim 4.0, `atlas10k.seek`).
const SEEK: [(u32, u64); 20] = [
    (1, 1_245),
    (2, 1_157),
    (3, 1_163),
    (4, 1_378),
    (6, 1_437),
    (8, 1_645),
    (10, 1_531),
    (20, 1_620),
    (30, 1_698),
    (40, 1_929),
    (50, 1_863),
    (60, 2_313),
    (70, 1_927),
    (80, 2_420),
    (90, 1_970),
    (100, 2_011),
    (150, 2_531),
    (175, 2_380),
    (5_000, 7_000),
    (10_000, 10_800),
];

fn main() {
    divan::main();
}

/// A drive like the Atlas 10K, with one zone where it has 24.
fn atlas() -> Model {
    let mut rng = rng(1);
    let forward = Layout::HeadFirst(HeadOrder::Forward);
    let mut profile = plain_profile(small_geometry(forward, SURFACES, &mut rng), &mut rng);
    profile.geometry.cylinders = CYLINDERS;
    profile.geometry.zones.truncate(1);
    let zone = &mut profile.geometry.zones[0];
    zone.last_cylinder = CYLINDERS - 1;
    zone.sectors_per_track = vec![SECTORS];
    zone.offset = Some(Skew::ZERO);
    zone.track_skew = Skew::Sectors(58);
    zone.cylinder_skew = Skew::Sectors(83);
    profile.mechanics.rpm = (10_025, 1);
    profile.mechanics.seek = SEEK.map(|(d, us)| (d, Dur::from_us(us))).to_vec();
    profile.mechanics.write_settle_ns = 0;
    profile.mechanics.head_switch = Dur::from_us(176);
    profile.mechanics.read_on_arrival = false;
    Model::new(&profile).expect("a drive that works")
}

/// Random 4 KiB reads all over the disk, as pending requests that are replaced when they have been
/// served.
struct Load {
    requests: Vec<(Request, Place)>,
    next: usize,
    model: Model,
    pool: Pool,
    head: Head,
    lbn: u64,
    arrivals: Arrivals,
}

impl Load {
    fn new(waiting: usize, order: Order) -> Load {
        let mut rng = rng(1);
        let model = atlas();
        let mut load = Load {
            requests: (0..65_536).map(|_| random_read(&mut rng, &model)).collect(),
            next: 0,
            model,
            pool: Pool::new(waiting, order.key()),
            head: Head::default(),
            lbn: 0,
            arrivals: Arrivals::default(),
        };
        (0..waiting).for_each(|_| load.submit());
        load
    }

    fn submit(&mut self) {
        let request = self.requests[self.next % self.requests.len()];
        self.next += 1;
        self.pool.insert(request.0, Some(request.1), 0, self.head.at);
    }

    fn decide(&mut self, order: Order) -> u64 {
        let mut view = View {
            pool: &self.pool,
            queues: None,
            model: &self.model,
            now: self.head.at,
            read: self.head,
            write: self.head,
            lbn: self.lbn,
            continuation: None,
            stream: None,
            is_cached: false,
            hits: &[],
            later_hits: &[],
            writes_in_order: false,
            arrivals: &mut self.arrivals,
            ranked: &mut Vec::new(),
            looked_at: 0,
        };
        let slot = order.next(&mut view).expect("a request waits");
        let looked_at = view.looked_at;
        self.pool.send(slot);
        let done = self.pool.finish(slot);
        let place = done.place.expect("reads have a place");
        self.lbn = place.lbn + 8;
        self.head = self.model.access(&self.head, &place, Kind::Read).end;
        self.submit();
        looked_at
    }
}

fn random_read(rng: &mut Xoshiro256PlusPlus, model: &Model) -> (Request, Place) {
    let lbn = rng.next_u64() % (model.geometry.capacity() / 8) * 8;
    let place = model.place(lbn, 8, Kind::Read).expect("it is on the drive");
    (Request { id: lbn, kind: Kind::Read, lbn, count: 8, fua: false, sync: true, owner: 0 }, place)
}

fn decisions(bencher: Bencher, waiting: usize, order: Order) {
    let mut load = Load::new(waiting, order);
    // Steady state of the pool: requests that are easily reached leave it, others stay.
    (0..2_000).for_each(|_| _ = load.decide(order));
    bencher.bench_local(|| load.decide(order));
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn fcfs(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::Fcfs);
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn clook(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::Clook);
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn sstf(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::Sstf);
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn sptf(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::Sptf);
}

#[divan::bench(args = [10, 32, 100, 1_000, 10_000])]
fn sptf_ahead(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::SptfAhead);
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn sptf_sw60(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::SptfSw(60));
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn satfuf(bencher: Bencher, waiting: usize) {
    decisions(bencher, waiting, Order::SatfUf(Dur::from_secs(3_600)));
}

/// The whole core: a completion, a new request, and the time at which the next command is
/// committed, with N requests pending. There is no drive: every command takes 5 ms.
struct Whole {
    core: Core,
    requests: Vec<Request>,
    next: usize,
    at_drive: Vec<u64>,
    now: Time,
}

impl Whole {
    fn new(waiting: usize, order: Order) -> Whole {
        let mut rng = rng(1);
        let model = atlas();
        let requests = (0..65_536).map(|_| random_read(&mut rng, &model).0).collect();
        let core = Core::new(Config::new(order).with_capacity(waiting + 2), model);
        let mut whole = Whole { core, requests, next: 0, at_drive: Vec::with_capacity(4), now: Time::ZERO };
        (0..waiting + 2).for_each(|_| whole.submit());
        whole
    }

    fn submit(&mut self) {
        let request = self.requests[self.next % self.requests.len()];
        self.next += 1;
        self.core.submit(request, self.now).expect("there is room");
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            if let Action::Issue(command) = action {
                self.at_drive.push(command.id);
            }
        }
    }

    fn turn(&mut self) {
        let done_at = self.now + Dur::from_ms(5);
        if let Some(at) = self.core.next_wakeup().filter(|&at| at < done_at) {
            self.core.tick(at);
            self.drain();
        }
        self.now = done_at;
        let done = self.at_drive.remove(0);
        self.core.complete(done, Outcome::Ok, self.now);
        self.drain();
        self.submit();
    }
}

fn round_trips(bencher: Bencher, waiting: usize, order: Order) {
    let mut whole = Whole::new(waiting, order);
    (0..2_000).for_each(|_| whole.turn());
    bencher.bench_local(|| whole.turn());
}

#[divan::bench(args = [10, 1_000])]
fn whole_core_fcfs(bencher: Bencher, waiting: usize) {
    round_trips(bencher, waiting, Order::Fcfs);
}

#[divan::bench(args = [10, 1_000])]
fn whole_core_sptf(bencher: Bencher, waiting: usize) {
    round_trips(bencher, waiting, Order::Sptf);
}

/// The whole core under BFQ+, with two pending requests of each of N applications. A command takes
/// longer than a slice, so that every turn is another application's.
struct Shared {
    core: Core,
    requests: Vec<Request>,
    next: usize,
    applications: u32,
    at_drive: u64,
    now: Time,
}

impl Shared {
    fn new(applications: u32, order: Order) -> Shared {
        let mut rng = rng(1);
        let model = atlas();
        let requests = (0..65_536).map(|_| random_read(&mut rng, &model).0).collect();
        let config = Config::new(order).with_outstanding(1).with_capacity(2 * applications as usize + 2);
        let core = Core::new(config, model).admitting(&Policy::named("bfq+").expect("a policy"));
        let mut shared = Shared { core, requests, next: 0, applications, at_drive: 0, now: Time::ZERO };
        for owner in (0..applications).chain(0..applications) {
            shared.submit(owner);
        }
        shared
    }

    fn submit(&mut self, owner: u32) {
        self.next += 1;
        // The owner follows from the request's ID.
        let id = self.next as u64 * u64::from(self.applications) + u64::from(owner);
        let request = Request { id, owner, ..self.requests[self.next % self.requests.len()] };
        self.core.submit(request, self.now).expect("there is room");
        self.drain();
    }

    /// Returns the owner of a finished request.
    fn drain(&mut self) -> Option<u32> {
        let mut owner = None;
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(command) => self.at_drive = command.id,
                Action::Finish(finished) => owner = Some((finished.request % u64::from(self.applications)) as u32),
                Action::Background(_) | Action::Expired(_) | Action::Overdue(_) => {}
            }
        }
        owner
    }

    fn turn(&mut self) {
        self.now += Dur::from_ms(126);
        self.core.complete(self.at_drive, Outcome::Ok, self.now);
        let owner = self.drain().expect("it is finished");
        self.submit(owner);
    }
}

fn shared_turns(bencher: Bencher, applications: u32, order: Order) {
    let mut shared = Shared::new(applications, order);
    (0..applications).for_each(|_| shared.turn());
    bencher.bench_local(|| shared.turn());
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn whole_core_bfq_plus_clook(bencher: Bencher, applications: u32) {
    shared_turns(bencher, applications, Order::Clook);
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn whole_core_bfq_plus_sptf(bencher: Bencher, applications: u32) {
    shared_turns(bencher, applications, Order::Sptf);
}
