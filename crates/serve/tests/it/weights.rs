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
fn an_application_with_requests_of_32_mib_holds_the_disk_for_one_piece_at_a_time() {
    let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
    let config = Config::new(Order::Sptf).with_capacity(200);
    let core = Core::new(config, model).admitting(&Policy::Bfq(BfqRules { low_latency: None, ..BfqRules::plus() }));
    let (device, file) = drive(DriveConfig::default());
    let mut rig = Rig::under(core, device, file);
    let weights = [1, 1000].map(ExportSettings::weighing).to_vec();
    rig.engine.send(EngineMessage::Settings(weights)).unwrap();
    let (mut under_way, mut at, mut small) = (BTreeMap::new(), 0, 0_u64);
    let mut ask = |rig: &mut Rig, under_way: &mut BTreeMap<u64, u32>, owner: u32| {
        let (lbn, count) = match owner {
            0 => (8_000_000 + 65_536 * (at % 64), 65_536),
            _ => (at * 1_234_577 % 7_000_000, 8),
        };
        at += 1;
        under_way.insert(rig.read_as(owner, lbn, count), owner);
    };
    [0, 0, 1].into_iter().for_each(|owner| ask(&mut rig, &mut under_way, owner));
    let (began, mut large) = (Instant::now(), 0);
    while large < 3 && small < 200 && began.elapsed() < Duration::from_secs(60) {
        let (id, answer) = rig.answer();
        let owner = under_way.remove(&id).expect("it was asked for");
        assert_eq!(answer.unwrap().len(), [65_536 * 512, 8 * 512][owner as usize]);
        // It pauses for longer than the disk idles for it, so the other has the disk each time.
        match owner {
            0 => large += 1,
            _ => {
                small += 1;
                std::thread::sleep(Duration::from_millis(4));
            }
        }
        ask(&mut rig, &mut under_way, owner);
    }
    // 26 pieces each.
    assert!(small > 60, "{small} small requests beside {large} large ones");
    assert_eq!(rig.end(), End::Drained);
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
