//! A right profile is good, and the fault of a wrong one is named.

use crate::common::{DRIVES, Lab};
use headtime_disk::profile::{HeadOrder, Layout, Profile, Skew, builtin};
use headtime_disk::{Angle, Dur, Geometry};
use headtime_probe::verify::{Class, LookAt, READS, Verdict, VerifyError, verify};

fn verdict(drive: &str, change: impl Fn(&mut Profile)) -> Verdict {
    let mut lab = Lab::of(drive);
    let mut profile = lab.profile.clone();
    change(&mut profile);
    lab.probe(|sampler, spindle| verify(sampler, spindle, &profile, READS).expect("it is verified"))
}

#[test]
fn the_true_profile_is_good_for_every_drive() {
    for name in DRIVES {
        let v = verdict(name, |_| {});
        println!("{name}: {v:?}");
        assert!(v.good && v.look_at == LookAt::Nothing, "{name}: {v:?}");
        assert!(v.within_50us > 0.9 && v.turn_late + v.turn_early < 0.03, "{name}: {v:?}");
    }
}

#[test]
fn seeks_that_take_longer_or_less_than_predicted_are_reported() {
    let by = |more: i64, from: u32| {
        move |p: &mut Profile| {
            for (d, t) in &mut p.mechanics.seek {
                *t = t.saturating_add_signed(if *d >= from { more } else { 0 });
            }
        }
    };
    for name in ["cheetah36es", "hitachi-7k1000c"] {
        let v = verdict(name, by(-900_000, 1));
        assert!(!v.good && matches!(v.look_at, LookAt::SlowSeeks(..)) && v.turn_late > 0.05, "{name}: {v:?}");
        let v = verdict(name, by(900_000, 1));
        assert!(!v.good && matches!(v.look_at, LookAt::QuickSeeks(..)) && v.turn_early > 0.05, "{name}: {v:?}");
        // Only the long ones.
        let longest = builtin(name).expect("a built-in drive").geometry.cylinders;
        let v = verdict(name, by(-1_500_000, longest * 2 / 5));
        assert!(!v.good, "{name}: {v:?}");
        assert!(matches!(v.look_at, LookAt::SlowSeeks(from, _) if from > longest / 4), "{name}: {v:?}");
    }
}

#[test]
fn a_zone_whose_tracks_lie_elsewhere_and_a_wrong_bus_and_a_wrong_speed_are_reported() {
    let v = verdict("ultrastar36z15", |p| p.geometry.zones[5].track_skew = Skew::Turn(Angle::fraction(1, 5)));
    let zone = 36_000_000 * 5 / 12..36_000_000 * 7 / 12;
    assert!(matches!(v.look_at, LookAt::Region(from, to) if zone.contains(&u64::midpoint(from, to))), "{v:?}");
    let v = verdict("ultrastar36z15", |p| p.electronics.bus.read_block_ps *= 10);
    assert_eq!(v.look_at, LookAt::LongReads, "{v:?}");
    let v = verdict("ultrastar36z15", |p| p.mechanics.rpm = (15_900, 1));
    assert_eq!(v.look_at, LookAt::Everything, "{v:?}");
}

/// Whether a class of moves or angles fails.
fn fails(v: &Verdict, is: impl Fn(&Class) -> bool) -> bool {
    v.classes.iter().any(|c| !c.good && is(&c.class))
}

#[test]
fn a_wrong_layout_that_random_reads_do_not_show_is_not_good() {
    // Every second cylinder with its heads the other way round: sectors, angles and long seeks are
    // the same.
    let v = verdict("cheetah36es", |p| p.geometry.layout = Layout::HeadFirst(HeadOrder::AlternatingInZone));
    assert!(v.within_150us > 0.95 && !v.good && matches!(v.look_at, LookAt::Class(_)), "{v:?}");
    assert!(fails(&v, |c| *c == Class::Crossing), "{v:?}");
}

#[test]
fn a_seek_table_that_is_wrong_at_few_distances_only_is_not_good() {
    let v = verdict("cheetah36es", |p| {
        for (d, t) in &mut p.mechanics.seek {
            *t = t.saturating_add_signed(if (2..=30).contains(d) { 220_000 } else { 0 });
        }
    });
    assert!(v.within_150us > 0.95 && !v.good && fails(&v, |c| *c == Class::Near), "{v:?}");
    let v = verdict("cheetah36es", |p| p.mechanics.head_switch += Dur::from_us(220));
    assert!(v.within_150us > 0.95 && !v.good && fails(&v, |c| *c == Class::NextTrack), "{v:?}");
}

#[test]
fn a_zone_at_slightly_other_angles_is_not_good() {
    let v = verdict("cheetah36es", |p| {
        let truth = Geometry::new(&p.geometry).expect("a built-in drive");
        // The next zone stays where it is.
        for (zone, us) in [(4, 40.0), (5, 0.0)] {
            let zone = &mut p.geometry.zones[zone];
            let begins = truth.track(zone.first_cylinder, 0).expect("a track").angle.turns();
            zone.offset = Some(Skew::Turn(Angle::from_turns(begins + us / 6_000.0)));
        }
    });
    let first = builtin("cheetah36es").expect("a built-in drive").geometry.zones[4].first_cylinder;
    assert!(v.within_150us > 0.95 && !v.good, "{v:?}");
    assert!(fails(&v, |c| matches!(c, Class::Angles(from, ..) if *from == first)), "{v:?}");
}

#[test]
fn a_profile_of_another_drive_is_refused() {
    let mut lab = Lab::of("atlas10k");
    let other = builtin("cheetah36es").expect("a built-in drive");
    let refused = lab.probe(|sampler, spindle| verify(sampler, spindle, &other, 100));
    assert!(matches!(refused, Err(VerifyError::Size { .. })), "{refused:?}");
    let mut nonsense = builtin("atlas10k").expect("a built-in drive");
    nonsense.mechanics.seek = vec![(1, Dur::from_secs(5))];
    let refused = lab.probe(|sampler, spindle| verify(sampler, spindle, &nonsense, 100));
    assert!(matches!(refused, Err(VerifyError::Model(_))), "{refused:?}");
}
