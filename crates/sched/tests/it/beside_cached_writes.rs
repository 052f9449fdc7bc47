//! Background work beside writes that the drive caches: the predicted head position, and the rate
//! of stragglers.

use crate::filling_rig::{Rig, gaps_only};
use headtime_disk::{Dur, Kind, Model, Time, profile};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order};

fn rig(drive: &str, fill: FillConfig) -> Rig {
    let p = profile::builtin(drive).expect("a built-in drive");
    assert!(p.electronics.cache.write_back);
    let mut rig = Rig::new(&p, None, vec![]);
    let config = Config::new(Order::SptfAhead).with_capacity(256).with_fill(Some(fill));
    rig.core = Core::new(config, Model::new(&p).expect("a drive that works")).handing_over(32);
    rig
}

#[test]
fn idle_work_begins_where_the_cached_write_went_and_not_where_the_last_read_was() {
    for (read, write) in [(1, 8), (8, 1), (2, 5)] {
        let mut rig = rig("hitachi-7k1000c", FillConfig::new(Algorithm::Headtime));
        let tenth = rig.capacity() / 10;
        rig.scan();
        rig.submit(Kind::Read, read * tenth, 8);
        rig.finish();
        rig.submit(Kind::Write, write * tenth, 8);
        rig.finish();
        let before = rig.sent.len();
        rig.run(Dur::from_secs(2));
        let first = rig.sent[before..].first().expect("idle time is used").1;
        let away = first.lbn.abs_diff(write * tenth);
        assert!(away < tenth / 10, "{} sectors from the write, read in tenth {read}, write in tenth {write}", away);
    }
}

/// Sequential writes, sixteen outstanding, for `seconds`, beside sessions that each want a range
/// far away; returns the stragglers of each.
fn stragglers(sessions: u64, seconds: u64) -> Vec<usize> {
    let mut rig = rig("nearline-20tb", gaps_only());
    let far = rig.capacity() / 2;
    for n in 0..sessions {
        let session = rig.session(1);
        rig.task(session, Kind::Read, &[(far + n * 10_000_000, 1_000_000)], 64);
    }
    let mut n = 0;
    while rig.now < Time::ZERO + Dur::from_secs(seconds) {
        while rig.ids < rig.finished.len() as u64 + 16 {
            rig.submit(Kind::Write, n * 256, 256);
            n += 1;
        }
        assert!(rig.step(Time::NEVER));
    }
    assert_eq!(rig.free_commands(0), 0);
    assert!(rig.finished.len() as u64 > 50 * seconds, "{} writes", rig.finished.len());
    let stretch = |n: u64| far + n * 10_000_000..far + (n + 1) * 10_000_000;
    (0..sessions).map(|n| rig.sent.iter().filter(|s| stretch(n).contains(&s.1.lbn)).count()).collect()
}

#[test]
fn a_stream_of_cached_writes_is_interrupted_for_one_straggler_a_minute() {
    assert_eq!(stragglers(1, 200), [3]);
}

#[test]
fn sessions_that_live_on_stragglers_have_them_in_turn() {
    assert_eq!(stragglers(2, 400), [3, 3]);
}
