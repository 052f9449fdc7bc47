//! A busy disk: a constant number of requests is pending, and the one with the shortest predicted
//! positioning time, or the oldest, is dispatched next. The test owns the predictor, so that the
//! model of the drive can change during the run.

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Drive, DriveConfig, Dur, Kind, Model, Outcome, Place, Time};
use headtime_sched::Surprise;
use headtime_sched::internals::adaptive::Adaptive;
use headtime_sched::internals::classify::CLOSE;
use headtime_sched::internals::evidence::Seen;
use headtime_sched::internals::gate::Gate;
use headtime_sched::internals::predictor::Predictor;
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Which request is dispatched next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    Sptf,
    First,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Seconds {
    pub requests: u64,
    pub predicted: u64,
    pub close: u64,
    pub extra_turns: u64,
    pub early_turns: u64,
}

impl Seconds {
    /// Of all requests, the share predicted within 150 us.
    pub fn close_per_mille(&self) -> u64 {
        self.close * 1_000 / self.requests.max(1)
    }
}

struct Sent {
    place: Place,
    kind: Kind,
    from: (u32, u16),
}

pub struct Loop {
    pub model: Model,
    pub drive: Drive,
    pub predictor: Predictor,
    pub adaptive: Option<Adaptive>,
    pub gate: Gate,
    /// When the gate was shut and opened.
    pub turned: Vec<(Time, bool)>,
    pub writes_percent: u64,
    pub sectors: u64,
    pub now: Time,
    pick: Pick,
    rng: Xoshiro256PlusPlus,
    waiting: Vec<(Place, Kind)>,
    at_drive: Vec<(u64, Sent)>,
    last: (u32, u16),
    next: u64,
}

impl Loop {
    pub fn new(belief: &Profile, truth: &Profile, seed: u64, pick: Pick, waiting: usize) -> Loop {
        let model = Model::new(belief).expect("a drive that works");
        let mut new = Loop {
            adaptive: Some(Adaptive::new(&model, Dur::ZERO)),
            predictor: Predictor::new(2, &model),
            gate: Gate::default(),
            turned: vec![],
            drive: Drive::new(truth, DriveConfig::default().with_seed(seed)).expect("a drive that works"),
            model,
            writes_percent: 33,
            sectors: 16,
            now: Time::ZERO,
            pick,
            rng: rng(seed),
            waiting: vec![],
            at_drive: vec![],
            last: (0, 0),
            next: 0,
        };
        (0..waiting).for_each(|_| new.arrive());
        new
    }

    /// Keeps the initial model.
    pub fn not_adaptive(self) -> Loop {
        Loop { adaptive: None, ..self }
    }

    fn arrive(&mut self) {
        let count = between(&mut self.rng, 1, self.sectors / 8) * 8;
        let lbn = between(&mut self.rng, 0, (self.drive.capacity() - count) / 8) * 8;
        let write = between(&mut self.rng, 1, 100) <= self.writes_percent;
        let kind = if write { Kind::Write } else { Kind::Read };
        self.waiting.push((self.model.place(lbn, count as u32, kind).expect("it is on the drive"), kind));
    }

    fn send(&mut self) {
        while self.at_drive.len() < 2 && !self.waiting.is_empty() {
            let (read, write) = self.predictor.next_heads(&self.model, self.now);
            let cost = |(place, kind): &(Place, Kind)| {
                let head = if *kind == Kind::Write { &write } else { &read };
                self.model.access(head, place, *kind).positioning()
            };
            let at = match self.pick {
                Pick::First => 0,
                Pick::Sptf => (0..self.waiting.len()).min_by_key(|&i| cost(&self.waiting[i])).expect("not empty"),
            };
            let (place, kind) = self.waiting.remove(at);
            let (id, from) = (self.next, self.last);
            self.next += 1;
            self.last = (place.end_cylinder, place.end_surface);
            let command = Command { id, kind, lbn: place.lbn, count: place.count, fua: false };
            self.drive.submit(command, self.now).expect("it takes two");
            self.predictor.sent(&self.model, id, kind, Some(&place), self.now);
            self.at_drive.push((id, Sent { place, kind, from }));
        }
    }

    /// Runs for `all`; counting begins after `warm`.
    pub fn run(&mut self, all: Dur, warm: Dur) -> Seconds {
        let (until, from) = (self.now + all, self.now + warm);
        let mut counted = Seconds::default();
        self.send();
        while self.now < until {
            self.now = self.drive.next_event().expect("requests are at the drive");
            let Some(c) = self.drive.advance(self.now) else { continue };
            assert_eq!(c.outcome, Outcome::Ok);
            let at = self.at_drive.iter().position(|s| s.0 == c.id).expect("it was sent");
            let sent = self.at_drive.remove(at).1;
            let prediction = self.predictor.completed(&self.model, c.id, c.outcome, self.now);
            let seen = prediction.and_then(|p| Seen::new(sent.from, &sent.place, sent.kind, &p, false));
            let mut explained = false;
            if let (Some(adaptive), Some(seen)) = (&mut self.adaptive, &seen) {
                explained = adaptive.observe(seen).explained;
                adaptive.revise(&mut self.model.mechanics);
            }
            let open = self.gate.is_open();
            self.gate.observe(prediction.map(|p| p.surprise), explained);
            if open != self.gate.is_open() {
                self.turned.push((self.now, !open));
            }
            if self.now >= from {
                counted.requests += 1;
                if let Some(p) = prediction {
                    counted.predicted += 1;
                    counted.close += u64::from(p.error_ns().unsigned_abs() <= CLOSE.0);
                    counted.extra_turns += u64::from(p.surprise == Surprise::ExtraTurn);
                    counted.early_turns += u64::from(p.surprise == Surprise::EarlyTurn);
                }
            }
            self.arrive();
            self.send();
        }
        counted
    }
}
