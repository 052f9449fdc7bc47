//! Streams begin one after another in a core: what admission allows together can be had so, though those at work must
//! be served in other ways than before.

use headtime_disk::model::Model;
use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::admission::{Disk, admit};
use headtime_sched::admit::das::stream::{Kinds, Quality, Stream};
use headtime_sched::admit::das::streams::Setup;
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sched::core::{Config, Core, Order};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Streams of reads, of one family of periods.
fn streams(rng: &mut Xoshiro256PlusPlus, n: u64) -> Vec<Stream> {
    let periods: [&[u64]; 3] = [&[100, 200, 500], &[100, 400], &[200, 300, 700]];
    let periods = periods[between(rng, 0, 2) as usize];
    let mut one = || {
        let ms = periods[between(rng, 0, periods.len() as u64 - 1) as usize];
        let requests = between(rng, 1, (ms / 60).clamp(1, 4)) as u32;
        let ppm = [500_000, 800_000, 950_000, 990_000, 1_000_000][between(rng, 0, 4) as usize];
        let quality = Quality::from_ppm(ppm).expect("a quality");
        Stream::new(requests, Dur::from_ms(ms), quality, 128).expect("a stream").only(Kinds::Reads)
    };
    (0..n).map(|_| one()).collect()
}

#[test]
fn a_set_that_is_admitted_can_be_opened_one_after_another() {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let model = || Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model(), 2).expect("its times");
    let setup = Setup::of(disk, &profile, &model(), Exhausted::Skip).expect("a worst case");
    let (mut rng, mut had, mut at_once) = (rng(1), 0, 0);
    for set in 0..SETS {
        let n = between(&mut rng, 3, 5);
        let all = streams(&mut rng, n);
        let Ok(admitted) = admit(&setup.disk, &all) else { continue };
        had += 1;
        let config = Config { order: Order::Sptf, max_outstanding: 2, capacity: 256, fill: None };
        let mut core = Core::new(config, model()).guaranteeing(&setup);
        for (owner, &stream) in (0..).zip(&all) {
            let before: Vec<bool> = core.standings().iter().map(|s| s.reservation.is_some()).collect();
            let opened = core.open_stream(owner, stream, Time::ZERO);
            assert!(opened.is_ok(), "set {set}: stream {owner} of {all:?}: {opened:?}");
            let after: Vec<bool> = core.standings().iter().map(|s| s.reservation.is_some()).collect();
            let change = |from, to| before.iter().zip(&after).any(|(&b, &a)| (b, a) == (from, to));
            at_once += u32::from(change(false, true) && change(true, false));
        }
        let reservations: Vec<_> = core.standings().iter().map(|s| s.reservation).collect();
        assert_eq!(reservations.len(), admitted.reservations.len());
    }
    println!("{had} of {SETS} sets were admitted; streams were served in the other's way {at_once} times");
    assert!(had > SETS / 4 && at_once > 3, "{had} sets, {at_once} exchanges");
}

const SETS: u64 = 300;
