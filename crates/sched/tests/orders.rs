//! Every order against its slow version, decision by decision, over random pools on random drives.

use headtime_disk::angle::Angle;
use headtime_disk::command::Kind;
use headtime_disk::mechanics::{Head, Mechanics};
use headtime_disk::model::{Model, Place};
use headtime_disk::rotation::Rotation;
use headtime_disk::seek::SeekCurve;
use headtime_disk::time::Dur;
use headtime_sched::core::Order;
use headtime_sched::order::View;
use headtime_sched::pool::Pool;
use headtime_sched::request::Request;
use headtime_testkit::sptf::{Situation, Waiting, choose};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const CYLINDERS: u32 = 2_000;
const ORDERS: [Order; 9] = [
    Order::Fcfs,
    Order::Clook,
    Order::Sstf,
    Order::Sptf,
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
    }
}

/// A place on a disk where few cylinders, angles and LBNs are used, so that ties are common.
fn place(dice: &mut Dice, coarse: u64) -> Place {
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
    /// Everything that waits and does not conflict with anything older.
    waiting: Vec<(u32, Waiting)>,
    head: Head,
    lbn: u64,
    id: u64,
}

impl Run {
    fn submit(&mut self, coarse: u64) {
        let place = place(&mut self.dice, coarse);
        // Reads only where places repeat: conflicts have tests of their own, and here every request is eligible.
        let used = self.waiting.iter().any(|(_, w)| {
            w.place.lbn < place.lbn + 8 && place.lbn < w.place.lbn + 8
        });
        let kind = match self.dice.below(10) {
            0..4 if !used => Kind::Write,
            _ => Kind::Read,
        };
        let conflict = self.waiting.iter().any(|(_, w)| {
            w.kind == Kind::Write && w.place.lbn < place.lbn + 8 && place.lbn < w.place.lbn + 8
        });
        if conflict {
            return;
        }
        let request = Request {
            id: self.id,
            kind,
            lbn: place.lbn,
            count: 8,
            fua: false,
            owner: 0,
        };
        let slot = self.pool.insert(request, Some(place), self.head.at);
        let waiting = Waiting {
            id: self.id,
            seq: self.id,
            kind,
            place,
            submitted: self.head.at,
        };
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
        let mut view = View {
            pool: &self.pool,
            model: &self.model,
            now,
            read,
            write,
            lbn: self.lbn,
            looked_at: 0,
        };
        let chosen = self.order.next(&mut view).expect("somebody waits");
        let looked_at = view.looked_at;
        let slow: Vec<Waiting> = self.waiting.iter().map(|&(_, w)| w).collect();
        let situation = Situation {
            model: &self.model,
            now,
            read,
            write,
            lbn: self.lbn,
        };
        let expected = choose(self.order, &slow, &situation).expect("somebody waits");
        let got = self.pool.get(chosen).request.id;
        assert_eq!(got, expected, "{:?} of {} at {:?}", self.order, slow.len(), self.head);
        let passes = if matches!(self.order, Order::SptfSw(_)) { 2 } else { 1 };
        assert!(looked_at >= 1 && looked_at <= passes * slow.len() as u64);

        self.pool.send(chosen);
        self.pool.finish(chosen);
        let at = self.waiting.iter().position(|(slot, _)| *slot == chosen);
        let (_, done) = self.waiting.remove(at.expect("it waited"));
        let start = if done.kind == Kind::Write { write } else { read };
        self.head = self.model.access(&start, &done.place, done.kind).end;
        self.lbn = done.place.lbn + 8;
    }
}

fn run(seed: u64, order: Order, size: usize, coarse: u64, decisions: usize) {
    let mut dice = Dice(Xoshiro256PlusPlus::seed_from_u64(seed));
    let model = model(mechanics(&mut dice));
    let mut run = Run {
        dice,
        order,
        model,
        pool: Pool::new(size, order.key()),
        waiting: Vec::new(),
        head: Head::default(),
        lbn: 0,
        id: 0,
    };
    for _ in 0..decisions {
        // Pools swing between empty and full.
        let upto = 1 + run.dice.below(size as u64) as usize;
        while run.waiting.is_empty() || (run.waiting.len() < upto && run.dice.chance(95)) {
            run.submit(coarse);
        }
        run.decide();
    }
}

#[test]
fn every_order_chooses_what_a_plain_loop_chooses() {
    for order in ORDERS {
        for seed in 0..40 {
            println!("{order:?}, seed {seed}");
            run(seed, order, 1 + seed as usize * 3, 1, 150);
        }
    }
}

#[test]
fn ties_go_to_whoever_came_first() {
    // Few cylinders and angles: nearly every decision is a tie.
    for order in ORDERS {
        for seed in 100..120 {
            println!("{order:?}, seed {seed}");
            run(seed, order, 60, 400, 150);
        }
    }
}

fn model(mechanics: Mechanics) -> Model {
    Model { geometry: headtime_disk::geometry::Geometry {}, mechanics, overheads: Default::default(), sector_bytes: 512 }
}
