//! A core and a virtual drive, in virtual time.

pub mod looped;

use headtime_disk::profile::{ByLast, HeadOrder, Layout, Overheads, Profile, QueuedOverheads};
use headtime_disk::{Drive, DriveConfig, Dur, Kind, Model, Time};
use headtime_sched::{Action, Config, Core, Finished, Order, Request};
use headtime_testkit::profiles::{between, plain_profile, rng, small_geometry};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A 10,000 rpm drive without a cache, on a fast bus.
pub fn profile(seed: u64) -> Profile {
    let mut rng = rng(seed);
    let geometry = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 3, &mut rng);
    let mut p = plain_profile(geometry, &mut rng);
    p.mechanics.rpm = (10_000, 1);
    p.mechanics.read_on_arrival = false;
    p.electronics.bus.read_block_ps = 3_200_000;
    p.electronics.bus.write_block_ps = 3_200_000;
    let pair = |read, write| ByLast { after_read: Dur::from_us(read), after_write: Dur::from_us(write) };
    p.electronics.overheads = Overheads {
        read_miss: pair(250, 300),
        write_miss: pair(350, 400),
        read_completion: Dur::from_us(20),
        write_completion: Dur::from_us(30),
        queued: QueuedOverheads {
            read_read: Dur::from_us(70),
            read_write: Dur::from_us(110),
            write_read: Dur::from_us(90),
            write_write: Dur::from_us(130),
        },
        ..p.electronics.overheads
    };
    p
}

/// A core in front of a drive.
pub struct Rig {
    pub core: Core,
    pub drive: Drive,
    pub rng: Xoshiro256PlusPlus,
    pub now: Time,
    pub id: u64,
    /// Only requests on one track.
    pub one_track: bool,
    /// Only requests that begin within this number of first sectors of the drive.
    pub within: u64,
    pub finished: Vec<Finished>,
    /// For each finished request, whether the mechanism did nothing for it.
    pub answered_from_cache: Vec<bool>,
}

impl Rig {
    pub fn new(p: &Profile, config: DriveConfig, order: Order, max_outstanding: u32) -> Rig {
        Rig::believing(p, p, config, order, max_outstanding)
    }

    /// Creates a rig whose core models the drive as `belief`.
    pub fn believing(belief: &Profile, p: &Profile, config: DriveConfig, order: Order, max_outstanding: u32) -> Rig {
        let model = Model::new(belief).expect("a drive that works");
        let drive = Drive::new(p, config).expect("a drive that works");
        Rig {
            core: Core::new(Config::new(order).with_outstanding(max_outstanding).with_capacity(64), model),
            within: drive.capacity(),
            drive,
            rng: rng(99),
            now: Time::ZERO,
            id: 0,
            one_track: false,
            finished: vec![],
            answered_from_cache: vec![],
        }
    }

    pub fn submit(&mut self, kind: Kind, lbn: u64, count: u32) {
        while self.drive.advance(self.now).is_some() {}
        self.id += 1;
        let request = Request { id: self.id, kind, lbn, count, fua: false, sync: true, owner: 0 };
        self.core.submit(request, self.now).expect("there is room");
        self.drain();
    }

    pub fn submit_random(&mut self, writes_percent: u64, longest: u64) {
        let (lbn, count) = loop {
            let count = between(&mut self.rng, 1, longest);
            let lbn = between(&mut self.rng, 0, self.within - count);
            let place = self.drive.truth().place(lbn, count as u32, Kind::Read).expect("it is on the drive");
            if !self.one_track || place.tracks == 1 {
                break (lbn, count);
            }
        };
        let write = between(&mut self.rng, 1, 100) <= writes_percent;
        self.submit(if write { Kind::Write } else { Kind::Read }, lbn, count as u32);
    }

    pub fn drain(&mut self) {
        while let Some(action) = self.core.poll() {
            match action {
                Action::Issue(c) => self.drive.submit(c, self.now).expect("it takes two"),
                Action::Finish(f) => self.finished.push(f),
                other => panic!("{other:?} without FILL or streams"),
            }
        }
    }

    /// Advances to the next completion.
    pub fn step(&mut self) -> Option<Finished> {
        let before = self.finished.len();
        while self.finished.len() == before {
            let event = self.drive.next_event()?;
            if let Some(at) = self.core.next_wakeup().filter(|&at| at < event) {
                self.now = at;
                self.core.tick(at);
                self.drain();
                continue;
            }
            self.now = event;
            if let Some(c) = self.drive.advance(self.now) {
                self.answered_from_cache.push(c.media.is_none());
                self.core.complete(c.id, c.outcome, self.now);
                self.drain();
            }
        }
        self.finished.last().copied()
    }

    /// Keeps `unfinished` requests unfinished until `requests` have finished.
    pub fn closed(&mut self, unfinished: u64, requests: usize, writes_percent: u64, longest: u64) {
        (0..unfinished).for_each(|_| self.submit_random(writes_percent, longest));
        for _ in 0..requests {
            self.step().expect("requests are unfinished");
            self.submit_random(writes_percent, longest);
        }
    }

    /// One request at a time, with pauses.
    pub fn alone(&mut self, requests: usize, writes_percent: u64, longest: u64) {
        for _ in 0..requests {
            self.now += Dur::from_us(between(&mut self.rng, 0, 40_000));
            self.submit_random(writes_percent, longest);
            self.step().expect("a request is unfinished");
        }
    }

    pub fn worst_error_us(&self) -> u64 {
        let errors = self.finished.iter().filter_map(|f| f.prediction).map(|p| p.error_ns().unsigned_abs() / 1_000);
        errors.max().expect("something was predicted")
    }
}

pub fn noiseless() -> DriveConfig {
    DriveConfig::default().with_noise(false)
}
