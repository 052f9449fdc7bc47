//! What completions of writes with FUA show of the drive's write cache, also when the host handles
//! completions late.

use crate::filling_rig::Rig;
use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Fault, Kind, Model, Time};
use headtime_sched::{Config, Core, Order, Request, Scheduler};
use headtime_testkit::profiles::between;

/// The drive whose profile states that its cache is off.
fn written_through() -> Profile {
    let mut p = profile::builtin("atlas10k").expect("a built-in drive");
    p.electronics.cache.write_back = false;
    p
}

fn rig(faults: Vec<Fault>) -> Rig {
    let p = written_through();
    let mut rig = Rig::new(&p, None, faults);
    let config = Config::new(Order::SptfJoint).with_capacity(256);
    rig.core = Core::new(config, Model::new(&p).expect("a drive that works")).handing_over(32);
    rig
}

/// Random writes with FUA, this number outstanding, until the core reports that the cache is on, or
/// there were `writes` of them. In one of `late` events the host wakes up late, by up to 9 ms.
fn declared_after(rig: &mut Rig, outstanding: u64, writes: u64, late: Option<u64>) -> Option<u64> {
    while rig.ids < writes {
        while rig.ids < rig.finished.len() as u64 + outstanding {
            rig.ids += 1;
            let lbn = between(&mut rig.rng, 0, rig.drive.capacity() / 8 - 1) * 8;
            let request = Request { id: rig.ids, kind: Kind::Write, lbn, count: 8, fua: true, sync: true, owner: 0 };
            rig.core.submit(request, rig.now).expect("there is room");
            rig.drain();
        }
        if let Some(one_in) = late
            && between(&mut rig.rng, 1, one_in) == 1
        {
            let next = [rig.drive.next_event(), rig.core.next_wakeup()].into_iter().flatten().min();
            let by = Dur::from_us(between(&mut rig.rng, 0, 9_000));
            rig.now = rig.now.max(next.expect("requests are unfinished") + by);
        }
        assert!(rig.step(Time::NEVER), "requests are unfinished");
        if rig.core.write_cache().is_some() {
            return Some(rig.finished.len() as u64);
        }
    }
    None
}

#[test]
fn a_drive_that_honours_fua_is_not_declared_by_a_host_that_is_late() {
    for (outstanding, late) in [(1, 10), (4, 10), (32, 10), (32, 5), (1, 2)] {
        let mut rig = rig(vec![]);
        let declared = declared_after(&mut rig, outstanding, 10_000, Some(late));
        assert_eq!(declared, None, "{outstanding} outstanding, one in {late} wake-ups late");
    }
}

#[test]
fn a_cache_that_ignores_fua_is_found_within_seconds_and_the_way_back_too() {
    for outstanding in [1, 4, 32] {
        let on = |at, on| Fault::WriteCache { at, on };
        let off = Time::ZERO + Dur::from_secs(60);
        let mut rig = rig(vec![on(Time::ZERO, true), Fault::IgnoresFua, on(off, false)]);
        let declared = declared_after(&mut rig, outstanding, 1_000, None);
        assert!(declared.is_some() && rig.now < Time::ZERO + Dur::from_secs(10), "{outstanding}: {declared:?}");
        rig.finish();
        rig.run(Dur::from_secs(60));
        // Now it is off, and few are pending.
        for _ in 0..200 {
            rig.ids += 1;
            let lbn = between(&mut rig.rng, 0, rig.drive.capacity() / 8 - 1) * 8;
            let request = Request { id: rig.ids, kind: Kind::Write, lbn, count: 8, fua: true, sync: true, owner: 0 };
            rig.core.submit(request, rig.now).expect("there is room");
            rig.drain();
            rig.finish();
        }
        assert_eq!(rig.core.write_cache(), None, "{outstanding} outstanding");
    }
}
