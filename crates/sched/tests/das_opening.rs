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

/// Requests, period in ms and quality in parts per million. Found by trying random sets: when the last of each comes,
/// one of those before it has a reservation from then on and another is served as a mandatory one.
const EXCHANGED: [&[(u32, u64, u32)]; 4] = [
    &[(2, 200, 900_000), (2, 100, 900_000), (6, 400, 950_000)],
    &[(2, 100, 950_000), (5, 200, 950_000), (2, 200, 950_000)],
    &[(3, 200, 800_000), (2, 100, 800_000), (7, 400, 800_000)],
    &[(1, 200, 950_000), (4, 200, 950_000), (2, 100, 950_000), (9, 400, 800_000)],
];

/// There is no time for both as mandatory ones, so the reservation comes first.
#[test]
fn one_stream_makes_room_for_another_that_is_served_as_a_mandatory_one() {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let model = || Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model(), 2).expect("its times");
    let setup = Setup::of(disk, &profile, &model(), Exhausted::Skip).expect("a worst case");
    for set in EXCHANGED {
        let streams: Vec<Stream> = set
            .iter()
            .map(|&(requests, ms, ppm)| {
                let quality = Quality::from_ppm(ppm).expect("a quality");
                Stream::new(requests, Dur::from_ms(ms), quality, 128).expect("a stream").only(Kinds::Reads)
            })
            .collect();
        let admitted = admit(&setup.disk, &streams);
        assert!(admitted.is_ok(), "{set:?}: {admitted:?}");
        let config = Config { order: Order::Sptf, max_outstanding: 2, capacity: 256, fill: None };
        let mut core = Core::new(config, model()).guaranteeing(&setup);
        let reserved =
            |core: &Core| -> Vec<bool> { core.standings().iter().map(|s| s.reservation.is_some()).collect() };
        let mut before = Vec::new();
        for (owner, &stream) in (0..).zip(&streams) {
            before = reserved(&core);
            let opened = core.open_stream(owner, stream, Time::ZERO);
            assert!(opened.is_ok(), "{set:?}: stream {owner}: {opened:?}");
        }
        let after = reserved(&core);
        let change = |from, to| before.iter().zip(&after).any(|(&b, &a)| (b, a) == (from, to));
        assert!(change(false, true) && change(true, false), "{set:?}: {before:?}, then {after:?}");
    }
}
