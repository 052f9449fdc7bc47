use headtime_disk::profile::{HeadOrder, Layout};
use headtime_testkit::profiles::{plain_cache, rng, small_geometry};

use super::*;

/// Returns three segments of 128 sectors, and a geometry for track boundaries.
pub(super) fn three() -> (Segments, Geometry) {
    let spec = CacheSpec { segments: 3, ..plain_cache() };
    let geometry = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 2, &mut rng(1));
    (Segments::new(&spec), Geometry::new(&geometry).expect("it works"))
}

#[test]
fn the_segment_used_longest_ago_gives_way() {
    let (mut s, g) = three();
    let [a, b, _] = [0, 100, 200].map(|lbn| s.read(lbn, lbn, lbn + 8));
    s.touch(a);
    assert_eq!(s.read(300, 300, 308), b);
    assert_eq!(s.look_up(&g, 100, 104), Found::Nothing);
    assert_eq!(s.look_up(&g, 2, 8), Found::All(a));
    assert_eq!(s.look_up(&g, 2, 9), Found::Front(a));
    assert_eq!(s.look_up(&g, 8, 9), Found::Nothing);
}

#[test]
fn what_passed_before_the_track_began_is_not_there() {
    let (mut s, g) = three();
    let second = g.track_of(g.track_of(0).expect("there is one").lbns as u64).expect("there is another");
    let asked = second.first_lbn + 5;
    let i = s.read(asked - 10, asked, asked + 2);
    assert_eq!(s.look_up(&g, second.first_lbn - 1, asked), Found::Nothing);
    assert_eq!(s.look_up(&g, second.first_lbn, asked), Found::All(i));
    assert_eq!(s.range(&g, i), (second.first_lbn, asked + 2));
}

#[test]
fn a_write_takes_its_blocks_out_of_every_segment_but_its_own_and_the_one_being_filled() {
    let (mut s, g) = three();
    let [a, b, c] = [0, 4, 8].map(|lbn| s.read(lbn, lbn, lbn + 8));
    s.filling(c);
    s.write(&g, 6, 10, true, false);
    assert_eq!(s.range(&g, a), (6, 10));
    assert_eq!(s.look_up(&g, 4, 5), Found::Nothing);
    assert_eq!(s.look_up(&g, 8, 12), Found::All(c));
    // The emptied one is the next to be used.
    assert_eq!(s.read(500, 500, 501), b);
    s.write(&g, 500, 501, false, false);
    assert_eq!(s.look_up(&g, 500, 501), Found::Nothing);
}

#[test]
fn a_segment_keeps_the_last_blocks_that_fit() {
    let (mut s, g) = three();
    let i = s.read(0, 0, 8);
    s.fill_to(i, 200);
    assert_eq!(s.range(&g, i), (72, 200));
    s.drop_delivered(i, 200);
    s.filled(i);
    // Of the empty ones it is the one used last.
    s.read(400, 400, 408);
    s.read(500, 500, 508);
    assert_eq!(s.read(300, 300, 308), i);
}

#[test]
fn only_what_was_asked_for_is_left_of_a_read_that_went_otherwise() {
    let (mut s, g) = three();
    let i = s.read(0, 3, 8);
    assert!(s.only(i, 3, 5));
    assert_eq!(s.range(&g, i), (3, 5));
    assert!(!s.only(i, 100, 108));
    s.forget(i);
    assert!(!s.only(i, 3, 5));
}
