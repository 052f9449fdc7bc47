use super::*;

#[test]
fn the_grain_is_what_all_units_are_made_of() {
    let profile = headtime_disk::profile::builtin("atlas10k").unwrap();
    let mut regions = Regions::new(&Geometry::new(&profile.geometry).unwrap(), 8);
    assert_eq!(regions.grain(), 1);
    let range = |lbn, count| TaskRange { lbn, count };
    regions.has_units(128, &[range(63, 1_280)]);
    assert_eq!(regions.grain(), 128, "where they begin does not matter while all begin so");
    regions.has_units(64, &[range(63 + 96, 640)]);
    assert_eq!(regions.grain(), 32, "two that overlap by 32");
    regions.has_units(64, &[range(63, 72)]);
    assert_eq!(regions.grain(), 8, "the last unit is 8 long");
}
