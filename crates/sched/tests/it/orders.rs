//! Every order against its slow version, decision by decision, over random pools on random drives.

use headtime_disk::profile::Layout;
use headtime_disk::{Angle, Dur, Head, Kind, Mechanics, Model, Place, Rotation, SeekCurve};
use headtime_sched::internals::ahead;
use headtime_sched::internals::ahead::Arrivals;
use headtime_sched::internals::order::View;
use headtime_sched::internals::pool::Pool;
use headtime_sched::{Order, Request};
use headtime_testkit::profiles::{layouts, plain_cache, plain_profile, small_geometry};
use headtime_testkit::sptf::{Situation, Waiting, choose};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CYLINDERS: u32 = 2_000;
const ORDERS: [Order; 11] = [
    Order::Fcfs,
    Order::Clook,
    Order::Sstf,
    Order::Sptf,
    Order::SptfAhead,
    Order::SptfJoint,
    Order::SptfSw(0),
    Order::SptfSw(40),
    Order::SptfSw(300),
    Order::SatfUf(Dur::from_ms(30)),
    Order::SatfUf(Dur::ZERO),
];

struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A seek table with dips, as measured ones have.
fn curve(dice: &mut Dice, base_us: u64) -> SeekCurve {
    let mut points = Vec::new();
    let mut distance = 0;
    while distance < CYLINDERS {
        distance += 1 + dice.below(1 + distance as u64 / 2) as u32;
        let dip = dice.below(300);
        points.push((distance, Dur::from_us(base_us + 2 * distance as u64 + 300 - dip)));
    }
    SeekCurve::from_points(&points, CYLINDERS).expect("a table in order")
}

fn mechanics(dice: &mut Dice) -> Mechanics {
    Mechanics {
        rotation: Rotation::from_rpm(5_400 + dice.below(10_000), 1).expect("a usual speed"),
        seek: curve(dice, 600),
        write_seek: dice.chance(30).then(|| curve(dice, 500)),
        head_switch: Dur::from_us(400 + dice.below(600)),
        write_settle_ns: 600_000 - dice.below(1_200_000) as i64,
        read_on_arrival: false,
        write_on_arrival: false,
    }
}

/// A small drive; its geometry counts only where places are real.
fn model(dice: &mut Dice, layout: Layout) -> Model {
    let geometry = small_geometry(layout, 3, &mut dice.0);
    Model::new(&plain_profile(geometry, &mut dice.0)).expect("a made-up drive that works")
}

/// Where requests of a run lie.
#[derive(Clone, Copy, Debug)]
enum Places {
    /// Anywhere on a large synthetic disk; one cylinder of each group of this number is used.
    Large(u64),
    /// On the small drive's real tracks, of any length.
    Real,
}

fn place(dice: &mut Dice, model: &Model, places: Places, kind: Kind) -> Place {
    match places {
        Places::Large(coarse) => made_up_place(dice, coarse),
        Places::Real => {
            let longest = if dice.chance(20) { 90 } else { 12 };
            let count = 1 + dice.below(longest) as u32;
            let lbn = dice.below(model.geometry.capacity() - count as u64);
            model.place(lbn, count, kind).expect("it is on the drive")
        }
    }
}

/// A place on a disk where few cylinders, angles and LBNs are used, so that ties are common.
fn made_up_place(dice: &mut Dice, coarse: u64) -> Place {
    let cylinder = (dice.below(CYLINDERS as u64) / coarse * coarse) as u32;
    let surface = dice.below(3) as u16;
    let angle = Angle::fraction(dice.below(32), 32);
    Place {
        lbn: cylinder as u64 * 300 + surface as u64 * 100 + dice.below(4) * 10,
        count: 8,
        cylinder,
        surface,
        tracks: 1,
        spt: 100,
        angle,
        transfer: Dur::from_us(100),
        media: Dur::from_us(100),
        end_cylinder: cylinder,
        end_surface: surface,
        end_angle: angle + Angle::fraction(8, 100),
    }
}

struct Run {
    dice: Dice,
    order: Order,
    model: Model,
    pool: Pool,
    /// All pending requests without an older conflict.
    waiting: Vec<(u32, Waiting)>,
    /// Number of queues; 0: the pool is not divided.
    queues: u32,
    head: Head,
    lbn: u64,
    id: u64,
    arrivals: Arrivals,
    /// The same for the plain loop: which request is seen next for the first time, and the time of
    /// each.
    unseen: u64,
    seen: Vec<Dur>,
}

impl Run {
    fn submit(&mut self, places: Places) {
        let kind = if self.dice.chance(40) { Kind::Write } else { Kind::Read };
        let mut place = place(&mut self.dice, &self.model, places, kind);
        // Some continue another pending request, or end where one begins.
        let others = self.waiting.len() as u64;
        if matches!(places, Places::Real) && others > 0 && self.dice.chance(40) {
            let other = self.waiting[self.dice.below(others) as usize].1.place;
            let before = other.lbn.saturating_sub(u64::from(place.count));
            let lbn = if self.dice.chance(25) { before } else { other.lbn + u64::from(other.count) };
            place = self.model.place(lbn, place.count, kind).unwrap_or(place);
        }
        // Conflicts have tests of their own; here every request is eligible.
        let end = |p: &Place| p.lbn + p.count as u64;
        let overlaps = |p: &Place| p.lbn < end(&place) && place.lbn < end(p);
        let conflict = |w: &Waiting| (kind == Kind::Write || w.kind == Kind::Write) && overlaps(&w.place);
        if self.waiting.iter().any(|(_, w)| conflict(w)) {
            return;
        }
        let (fua, queue) = (self.dice.chance(10), self.dice.below(u64::from(self.queues.max(1))) as u32);
        let request = Request { id: self.id, kind, lbn: place.lbn, count: place.count, fua, sync: true, owner: 0 };
        let slot = self.pool.insert(request, Some(place), queue, self.head.at);
        let waiting = Waiting { id: self.id, seq: self.id, kind, fua, queue, place, submitted: self.head.at };
        self.id += 1;
        self.waiting.push((slot, waiting));
    }

    fn decide(&mut self) {
        let mut write = self.head;
        let mut read = self.head;
        // Overheads by pair make one kind of command begin later than the other.
        let later = Dur::from_us(self.dice.below(3) * 400);
        let one = if self.dice.chance(50) { &mut read } else { &mut write };
        one.at += later;
        one.angle += self.model.mechanics.rotation.angle_after(later);
        let now = self.head.at;
        // Some of the queues, in any order, at least one of them with a request; or everything.
        let mut queues: Vec<u32> = (0..self.queues).filter(|_| self.dice.chance(50)).collect();
        let first = self.pool.get(self.waiting[0].0).queue;
        if self.queues > 0 && !queues.contains(&first) {
            queues.push(first);
        }
        let may_go = |slot: u32| self.queues == 0 || queues.contains(&self.pool.get(slot).queue);
        let slow: Vec<Waiting> = self.waiting.iter().filter(|w| may_go(w.0)).map(|&(_, w)| w).collect();
        // Occasionally one of the reads continues the preceding command, wherever the head is
        // predicted to be.
        let reads = self.waiting.iter().filter(|(slot, w)| w.kind == Kind::Read && may_go(*slot));
        let continuation =
            reads.max_by_key(|(_, w)| w.seq).filter(|_| self.id.is_multiple_of(3)).map(|(slot, w)| (*slot, w.id));
        let few = self.order.looks_ahead() && slow.len() <= ahead::MAX_EXACT;
        // Or a write continues one that the drive's cache takes.
        let writes = self.waiting.iter().filter(|(slot, w)| w.kind == Kind::Write && may_go(*slot));
        let cached =
            writes.max_by_key(|(_, w)| w.seq).filter(|_| few && continuation.is_none() && self.id.is_multiple_of(5));
        let cached = cached.map(|(slot, w)| (*slot, w.id));
        let stream = continuation.or(cached);
        // The cache answers some reads; some of those wait, if there is another request for which
        // they can.
        let (mut hits, mut later) = (vec![], vec![]);
        for (slot, w) in self.waiting.iter().filter(|(slot, w)| few && w.kind == Kind::Read && may_go(*slot)) {
            match self.dice.below(8) {
                0 => hits.push((*slot, w.id)),
                1 if later.len() + 1 < slow.len() && stream.is_none_or(|s| s.0 != *slot) => later.push((*slot, w.id)),
                _ => {}
            }
        }
        let slots = |of: &[(u32, u64)]| of.iter().map(|h| h.0).collect::<Vec<_>>();
        let ids = |of: &[(u32, u64)]| of.iter().map(|h| h.1).collect::<Vec<_>>();
        let writes_in_order = self.dice.chance(50);
        let mut view = View {
            queues: (self.queues > 0).then_some(&queues[..]),
            pool: &self.pool,
            model: &self.model,
            now,
            read,
            write,
            lbn: self.lbn,
            continuation: continuation.map(|(slot, _)| slot),
            stream: stream.map(|(slot, _)| slot),
            is_cached: cached.is_some(),
            hits: &slots(&hits),
            later_hits: &slots(&later),
            writes_in_order,
            arrivals: &mut self.arrivals,
            ranked: &mut Vec::new(),
            looked_at: 0,
        };
        let chosen = self.order.next(&mut view).expect("a request waits");
        let looked_at = view.looked_at;
        let mut situation = Situation {
            model: &self.model,
            now,
            read,
            write,
            lbn: self.lbn,
            continuation: continuation.map(|(_, id)| id),
            stream: stream.map(|(_, id)| id),
            hits: &ids(&hits),
            later_hits: &ids(&later),
            writes_in_order,
            of_applications: self.queues > 0,
            arrivals: &[],
        };
        if few {
            let is_new = |w: &&Waiting| w.seq >= self.unseen && !later.iter().any(|h| h.1 == w.id);
            let mut new: Vec<&Waiting> = slow.iter().filter(is_new).collect();
            new.sort_by_key(|w| w.seq);
            self.seen.extend(new.iter().map(|w| situation.positioning(w)));
            self.unseen = new.last().map_or(self.unseen, |w| w.seq + 1);
        }
        situation.arrivals = &self.seen[self.seen.len().saturating_sub(64)..];
        let expected = choose(self.order, &slow, &situation).expect("a request waits");
        let got = self.pool.get(chosen).request.id;
        assert_eq!(got, expected, "{:?} of {} at {:?}", self.order, slow.len(), self.head);
        let passes = match self.order {
            Order::SptfSw(_) => 2,
            Order::SptfAhead | Order::SptfJoint => slow.len().min(ahead::MAX_EXACT) as u64 + 1,
            _ => 1,
        };
        let most = slow.len().max(queues.len()) as u64;
        assert!(looked_at >= 1 && looked_at <= passes * most, "{looked_at} looked at of {}", slow.len());

        self.pool.send(chosen);
        self.pool.finish(chosen);
        let at = self.waiting.iter().position(|(slot, _)| *slot == chosen);
        let (_, done) = self.waiting.remove(at.expect("it waited"));
        let start = if done.kind == Kind::Write { write } else { read };
        self.head = self.model.access(&start, &done.place, done.kind).end;
        self.lbn = done.place.lbn + done.place.count as u64;
    }
}

fn run(seed: u64, order: Order, size: usize, places: Places, decisions: usize) {
    println!("{order:?}, seed {seed}, {places:?}");
    let mut dice = Dice(Xoshiro256PlusPlus::seed_from_u64(seed));
    let layouts = layouts();
    let mut model = model(&mut dice, layouts[seed as usize % layouts.len()]);
    if let Places::Large(_) = places {
        model.mechanics = mechanics(&mut dice);
    } else if seed.is_multiple_of(2) {
        // It continues from one read to the next without a break.
        model.cache = plain_cache();
    }
    let mut pool = Pool::new(size, order.key());
    // A third of the runs has one pool for all, the others have queues.
    let queues = (seed % 3) as u32 * 3;
    if queues > 0 {
        pool.divide();
    }
    let (waiting, head) = (Vec::new(), Head::default());
    let mut run = Run {
        dice,
        order,
        model,
        pool,
        waiting,
        queues,
        head,
        lbn: 0,
        id: 0,
        arrivals: Arrivals::default(),
        unseen: 0,
        seen: vec![],
    };
    for _ in 0..decisions {
        // Pools alternate between empty and full.
        let upto = 1 + run.dice.below(size as u64) as usize;
        while run.waiting.is_empty() || (run.waiting.len() < upto && run.dice.chance(95)) {
            run.submit(places);
        }
        run.decide();
    }
}

#[test]
fn every_order_chooses_what_a_plain_loop_chooses_from_all_or_from_some_queues() {
    for order in ORDERS {
        for seed in 0..40 {
            run(seed, order, 1 + seed as usize * 3, Places::Large(1), 150);
        }
    }
}

#[test]
fn ties_go_to_whoever_came_first() {
    // Few cylinders and angles: nearly every decision is a tie.
    for order in ORDERS {
        for seed in 100..120 {
            run(seed, order, 60, Places::Large(400), 150);
        }
    }
}

#[test]
fn choices_are_exact_on_real_tracks_and_on_drives_that_read_on_arrival() {
    // Half of the synthetic drives read on arrival; requests of up to 90 sectors are longer than
    // many tracks.
    for order in ORDERS {
        for seed in 200..260 {
            run(seed, order, 40, Places::Real, 100);
        }
    }
}
