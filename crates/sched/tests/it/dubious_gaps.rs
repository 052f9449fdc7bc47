//! Gaps before requests that are narrowly missed according to the model.

use crate::filling_rig::Rig;
use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Kind, Model};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order};
use headtime_testkit::profiles::{between, rng};

/// Returns the drive with every seek longer by `by`.
fn slower(p: &Profile, by: Dur) -> Profile {
    let mut p = p.clone();
    p.mechanics.seek.iter_mut().for_each(|s| s.1 += by);
    p
}

/// Returns the mean response in ns, and the sectors of a scan, of the first reads of some scanned
/// drives, with a core that assumes each seek to be 80 us longer than it is, and has not learned
/// otherwise yet. A read that it predicts to miss by less is in time.
fn first_reads(scans: bool) -> (u64, u64) {
    let truth = profile::builtin("cheetah36es").expect("a built-in drive");
    let belief = Model::new(&slower(&truth, Dur::from_us(80))).expect("a drive that works");
    let (mut all, mut reads, mut sectors) = (0, 0, 0);
    for seed in 0..40 {
        let mut rig = Rig::new(&truth, None, vec![]);
        rig.rng = rng(seed);
        let fill = FillConfig { idle: None, ..FillConfig::new(Algorithm::AngleEpFrag) };
        let config = Config::new(Order::Fcfs).with_capacity(256).with_fill(scans.then_some(fill));
        rig.core = Core::new(config, belief.clone());
        if scans {
            rig.scan();
        }
        let last = rig.capacity() / 8 - 2;
        for _ in 0..100 {
            let lbn = between(&mut rig.rng, 0, last) * 8;
            rig.submit(Kind::Read, lbn, 8);
            rig.finish();
            // In any case the next read finds the platter at a random angle.
            let pause = Dur::from_us(between(&mut rig.rng, 20_000, 26_000));
            rig.run(pause);
        }
        all += rig.finished.iter().map(|f| f.done.since(f.submitted).0).sum::<u64>();
        reads += rig.finished.len() as u64;
        sectors += rig.delivered();
    }
    (all / reads, sectors)
}

#[test]
fn a_request_that_may_be_in_time_after_all_loses_no_turn() {
    let ((alone, _), (beside, sectors)) = (first_reads(false), first_reads(true));
    println!("{alone} ns alone, {beside} beside a scan, {sectors} sectors");
    assert!(sectors > 400_000, "{sectors} sectors");
    // 80 us are 1.3% of a revolution.
    assert!(beside * 1_000 < alone * 1_002, "{alone} ns alone, {beside} beside a scan");
}
