//! Gaps before requests that are missed by a hair, by what is known.

mod filling_rig;

use filling_rig::{Rig, gaps_only};
use headtime_disk::command::Kind;
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_disk::time::Dur;
use headtime_sched::core::{Config, Core, Order};
use headtime_sched::fill::subsystem::FillConfig;
use headtime_testkit::profiles::between;

/// The drive with every seek longer by so much.
fn slower(p: &Profile, by: Dur) -> Profile {
    let mut p = p.clone();
    p.mechanics.seek.iter_mut().for_each(|s| s.1 += by);
    p
}

/// Responses to the same reads of a core that takes each seek to be 80 us longer than it is: a read that it thinks missed by less is in
/// time.
fn responses(fill: Option<FillConfig>) -> (Vec<Dur>, u64) {
    let truth = profile::builtin("cheetah36es").expect("a built-in drive");
    let mut rig = Rig::new(&truth, None, vec![]);
    let wants = fill.is_some();
    let belief = Model::new(&slower(&truth, Dur::from_us(80))).expect("a drive that works");
    rig.core = Core::new(Config { order: Order::Fcfs, max_outstanding: 2, capacity: 256, fill }, belief);
    if wants {
        rig.scan();
    }
    let last = rig.capacity() / 8 - 2;
    for _ in 0..2_000 {
        let lbn = between(&mut rig.rng, 0, last) * 8;
        rig.submit(Kind::Read, lbn, 8);
        rig.finish();
        // Whatever was done, the next read finds the platter at an angle that depends on chance alone.
        let pause = Dur::from_us(between(&mut rig.rng, 20_000, 26_000));
        rig.run(pause);
    }
    (rig.finished.iter().map(|f| f.done.since(f.submitted)).collect(), rig.delivered())
}

#[test]
fn a_request_that_may_be_in_time_after_all_loses_no_turn() {
    let (alone, _) = responses(None);
    let (beside, delivered) = responses(Some(gaps_only()));
    let mean = |all: &[Dur]| all.iter().map(|d| d.0).sum::<u64>() / all.len() as u64;
    assert!(delivered > 100_000, "{delivered} sectors");
    // 80 us are 1.3% of a turn.
    assert!(mean(&beside) * 1_000 < mean(&alone) * 1_003, "{} ns alone, {} beside", mean(&alone), mean(&beside));
}
