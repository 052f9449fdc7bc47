//! What writes cost, on drives that write through, and that nothing outside the region is written.

mod common;

use common::Lab;
use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};
use headtime_probe::device::{Answer, Ask, Device, DeviceError};
use headtime_probe::sampler::{Sampler, Unwatched};
use headtime_probe::spindle::Spindle;
use headtime_probe::{seeks, writes};

/// Looks at what is written.
struct Guard<'d> {
    drive: &'d mut dyn Device,
    from: u64,
    to: u64,
    written: u64,
}

impl Device for Guard<'_> {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }

    fn depth(&self) -> u32 {
        self.drive.depth()
    }

    fn now(&self) -> Time {
        self.drive.now()
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError> {
        for ask in asks.iter().filter(|a| a.kind == Kind::Write) {
            assert!(ask.lbn >= self.from && ask.lbn + u64::from(ask.count) <= self.to, "{ask:?}");
            self.written += 1;
        }
        self.drive.run(asks, outstanding)
    }
}

#[test]
fn writes_are_within_30_us_and_stay_in_their_region() {
    for name in ["atlas10k", "cheetah36es", "ultrastar36z15", "barracuda36es2", "maxtor-7l250s0"] {
        let mut lab = Lab::of(name);
        let (geometry, truth, profile) = (lab.truth.geometry.clone(), lab.truth.clone(), lab.profile.clone());
        let end = geometry.capacity();
        let (from, to) = (end / 2 + 17, end / 2 + end / 10 + 5);
        let mut device = Guard { drive: lab.device(), from, to, written: 0 };
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, 11);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        let table = seeks::measure(&mut sampler, &mut spindle, &geometry, &[50]).expect("it is measured");
        let found = writes::measure(&mut sampler, &mut spindle, &geometry, &table, (from, to)).expect("it is measured");
        println!("{name}: {found:?}");
        let written = device.written;
        assert!(written >= 12, "{name}: {written}");
        if profile.electronics.cache.write_back {
            assert_eq!(found.through, None, "{name}");
            continue;
        }
        let w = found.through.expect("it writes through");
        let (o, m) = (&truth.overheads, &truth.mechanics);
        let us = |t: Dur| t.0 as f64 / 1e3;
        let off = |f: Option<headtime_probe::overheads::Found>, is: Dur| us(f.expect("a border").time) - us(is);
        let settle = w.settle_ns.expect("a border") as f64 / 1e3 - m.write_settle_ns as f64 / 1e3;
        // A sector's data must have come, too.
        let command = off(w.command, o.per_request + o.write_miss.after_read + o.reselect + o.write_completion);
        let pairs = [
            off(w.read_write, o.queued.read_write),
            off(w.write_read, o.queued.write_read),
            off(w.write_write, o.queued.write_write),
        ];
        println!("  settle {settle:.1} command {command:.1} pairs {pairs:.1?} us off");
        assert!(settle.abs() < 30.0 && command.abs() < 30.0, "{name}");
        assert!(pairs.iter().all(|p| p.abs() < 30.0), "{name}: {pairs:?}");
    }
}
