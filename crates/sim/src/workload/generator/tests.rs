//! Tests of the requests that patterns draw.

use super::*;

fn target(capacity: u64, sector_bytes: u32) -> Target {
    Target { capacity, sector_bytes, geometry: None }
}

fn draw(spec: &PatternSpec, t: &Target, n: usize) -> Vec<Drawn> {
    let mut rng = Variates::new(1, 0);
    let mut p = Pattern::new(spec, t, &mut rng).unwrap();
    let mut position = None;
    (0..n).map(|_| p.next(&mut rng, &mut position)).collect()
}

#[test]
fn exponential_sizes_have_exactly_the_mean_asked_for() {
    for (mean, step) in [(8192u64, 4096u64), (65_536, 4096), (6144, 512), (4096, 4096)] {
        let spec = PatternSpec {
            size: SizeSpec::Exponential { mean_bytes: mean, step_bytes: step },
            ..PatternSpec::random_reads(4096)
        };
        let all = draw(&spec, &target(1 << 30, 512), 100_000);
        let sum: u64 = all.iter().map(|d| u64::from(d.count) * 512).sum();
        let got = sum as f64 / 1e5;
        assert!((got / mean as f64 - 1.0).abs() < 0.02, "{mean}: {got}");
        assert!(all.iter().all(|d| d.count > 0 && u64::from(d.count) * 512 % step == 0));
    }
}

#[test]
fn half_of_the_steps_of_an_oltp_request_are_single() {
    let spec = PatternSpec {
        size: SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 },
        ..PatternSpec::random_reads(4096)
    };
    let all = draw(&spec, &target(1 << 30, 512), 100_000);
    for k in 1..5u32 {
        let share = all.iter().filter(|d| d.count == 8 * k).count() as f64 / 1e5;
        assert!((share - 0.5f64.powi(k as i32)).abs() < 0.006, "{k}: {share}");
    }
}

#[test]
fn requests_are_aligned_and_stay_on_the_disk() {
    // A capacity that is no multiple of the alignment.
    let spec = PatternSpec {
        size: SizeSpec::Uniform { min_bytes: 512, max_bytes: 16_384, step_bytes: 512 },
        ..PatternSpec::random_reads(4096)
    };
    let t = target(1003, 512);
    let all = draw(&spec, &t, 20_000);
    assert!(all.iter().all(|d| d.lbn % 8 == 0 && d.lbn + u64::from(d.count) <= t.capacity));
    assert!(all.iter().any(|d| d.lbn + u64::from(d.count) > 990));
    assert!(all.iter().any(|d| d.count == 32) && all.iter().any(|d| d.count == 1));
}

#[test]
fn sectors_of_4096_bytes_are_counted_as_such() {
    let all = draw(&PatternSpec::random_reads(40_960), &target(5000, 4096), 100);
    assert!(all.iter().all(|d| d.count == 10));
    let e = Pattern::new(&PatternSpec::random_reads(512), &target(5000, 4096), &mut Variates::new(1, 1))
        .unwrap_err()
        .to_string();
    assert!(e.contains("expected 4096 to"), "{e}");
}

#[test]
fn sequential_requests_follow_each_other_and_begin_again_at_the_front() {
    let spec = PatternSpec { place: PlaceSpec::Sequential, ..PatternSpec::random_reads(4096) };
    let all = draw(&spec, &target(100, 512), 50);
    for w in all.windows(2) {
        let next = w[0].lbn + 8;
        assert_eq!(w[1].lbn, if next + 8 > 100 { 0 } else { next });
    }
}

#[test]
fn backward_requests_end_where_the_one_before_began_and_begin_again_at_the_end() {
    let spec = PatternSpec { place: PlaceSpec::SharedBackward, ..PatternSpec::random_reads(4096) };
    let all = draw(&spec, &target(100, 512), 50);
    for w in all.windows(2) {
        assert_eq!(w[1].lbn, w[0].lbn.checked_sub(8).unwrap_or(92));
    }
}

#[test]
fn tasks_that_share_a_position_read_on_where_any_of_them_ended() {
    let spec = PatternSpec { place: PlaceSpec::SharedSequential, ..PatternSpec::random_reads(4096) };
    let mut rng = Variates::new(1, 0);
    let mut p = Pattern::new(&spec, &target(1 << 30, 512), &mut rng).unwrap();
    let mut positions = [None; 3];
    let all: Vec<Drawn> = (0..30).map(|i| p.next(&mut rng, &mut positions[i % 3])).collect();
    assert!(all.windows(2).all(|w| w[1].lbn == w[0].lbn + 8));
}

#[test]
fn a_part_of_the_disk_is_kept_to() {
    let spec = PatternSpec { place: PlaceSpec::Part { from: 0.5, to: 0.6 }, ..PatternSpec::random_reads(4096) };
    let all = draw(&spec, &target(100_000, 512), 1000);
    assert!(all.iter().all(|d| (50_000..=60_000 - 8).contains(&d.lbn)));
}

#[test]
fn weights_are_kept() {
    let spec =
        PatternSpec { size: SizeSpec::Weighted(vec![(4096, 3), (65_536, 1)]), ..PatternSpec::random_reads(4096) };
    let all = draw(&spec, &target(100_000, 512), 40_000);
    let small = all.iter().filter(|d| d.count == 8).count();
    assert!((29_400..30_600).contains(&small), "{small}");
}

#[test]
fn impossible_patterns_say_the_range() {
    let t = target(1000, 512);
    let with = |size, place, align_bytes| {
        Pattern::new(
            &PatternSpec { size, place, align_bytes, ..PatternSpec::random_reads(4096) },
            &t,
            &mut Variates::new(1, 1),
        )
        .unwrap_err()
        .to_string()
    };
    let fixed = |bytes| SizeSpec::Fixed { bytes };
    let u = PlaceSpec::Uniform;
    assert!(with(fixed(0), u.clone(), 4096).contains("expected 512 to"));
    assert!(with(fixed(700), u.clone(), 4096).contains("expected 512 to"));
    assert!(with(fixed(1 << 20), u.clone(), 4096).contains("expected 1 to 1000"));
    assert!(with(fixed(512), u.clone(), 100).contains("alignment"));
    let part = |from, to| with(fixed(4096), PlaceSpec::Part { from, to }, 512);
    assert!(part(0.7, 0.3).contains("to (a share of the disk): expected more than 0.7 (from) to 1, found 0.3"));
    assert!(part(0.7, 0.7).contains("expected more than 0.7 (from) to 1, found 0.7"));
    assert!(part(0.0, 1.1).contains("expected more than 0 (from) to 1, found 1.1"));
    assert!(part(1.0, 1.0).contains("from (a share of the disk): expected 0 to less than 1, found 1"));
    assert!(part(0.7, 0.703).contains("expected room for a request of 8 sectors, found 3 sectors"));
    assert!(with(fixed(512), PlaceSpec::Window { cylinders: 5 }, 512).contains("needs the disk's geometry"));
    assert!(with(SizeSpec::Weighted(vec![]), u.clone(), 512).contains("sum of the weights"));
    assert!(with(SizeSpec::Exponential { mean_bytes: 512, step_bytes: 4096 }, u, 512).contains("expected 4096 to"));
}
