//! Weights of applications in real time: each one's share, and the effect of a new weight.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::rig::{Rig, drive};
use headtime_disk::{DriveConfig, Model, profile};
use headtime_sched::{BfqRules, Config, Core, Order, Policy};
use headtime_serve::engine::End;
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::net::exports::ExportSettings;

/// Sectors per read.
const COUNT: u32 = 256;

/// Runs two applications that read sequentially with one request each at a time; returns the
/// requests of the second for each request of the first.
fn ratio(rig: &mut Rig, at: &mut [u64; 2], under_way: &mut BTreeMap<u64, u32>) -> f64 {
    let mut got = [0.0_f64; 2];
    let began = Instant::now();
    // Requests and not seconds: a busy machine takes longer, but the dispatch order is unchanged.
    while got[0] + got[1] < 500.0 && began.elapsed() < Duration::from_secs(60) {
        let (id, answer) = rig.answer();
        answer.unwrap();
        let owner = under_way.remove(&id).expect("it was asked for") as usize;
        got[owner] += 1.0;
        let next = rig.read_as(owner as u32, at[owner], COUNT);
        under_way.insert(next, owner as u32);
        at[owner] += u64::from(COUNT);
    }
    got[1] / got[0]
}

#[test]
fn shares_are_as_weights_say_and_change_when_they_do() {
    let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
    let config = Config::new(Order::Sptf).with_capacity(100);
    // A client may be late on a busy machine, so the disk idles for longer than it normally should.
    let rules = BfqRules { low_latency: None, idle: headtime_disk::Dur::from_ms(100), ..BfqRules::plus() };
    let core = Core::new(config, model).admitting(&Policy::Bfq(rules));
    let (device, file) = drive(DriveConfig::default());
    let mut rig = Rig::under(core, device, file);
    let weigh = |rig: &Rig, weights: [u32; 2]| {
        rig.engine.send(EngineMessage::Settings(weights.map(ExportSettings::weighing).to_vec())).unwrap();
    };
    weigh(&rig, [100, 300]);
    let (mut at, mut under_way) = ([0, 4_000_000], BTreeMap::new());
    for owner in 0..2 {
        under_way.insert(rig.read_as(owner, at[owner as usize], COUNT), owner);
        at[owner as usize] += u64::from(COUNT);
    }
    let first = ratio(&mut rig, &mut at, &mut under_way);
    assert!((2.0..4.5).contains(&first), "{first}");
    weigh(&rig, [300, 100]);
    let second = ratio(&mut rig, &mut at, &mut under_way);
    assert!((0.2..0.55).contains(&second), "{second}");
    assert_eq!(rig.end(), End::Drained);
}
