use super::*;

const BIN: Dur = Dur::from_us(10);
const WORST: Dur = Dur::from_us(100);

fn of(us: &[u64]) -> Distribution {
    let samples: Vec<Dur> = us.iter().map(|&us| Dur::from_us(us)).collect();
    Distribution::from_samples(&samples, BIN, WORST).expect("samples")
}

#[test]
fn a_sample_counts_at_the_end_of_its_bin() {
    let x = of(&[10, 11, 20, 0]);
    assert_eq!(x.masses().collect::<Vec<_>>(), [(1, CERTAIN / 2), (2, CERTAIN / 2)]);
    assert_eq!((x.at_most(Dur(9_999)), x.at_most(Dur(10_000))), (0, CERTAIN / 2));
    assert_eq!((x.at_most(Dur(19_999)), x.at_most(Dur(20_000))), (CERTAIN / 2, CERTAIN));
    assert_eq!(x.mean(), Dur::from_us(15));
}

#[test]
fn a_histogram_is_the_samples_that_were_counted() {
    let counted = |counts: &[(u32, u32)]| Distribution::from_counts(counts.iter().copied(), BIN, WORST);
    assert_eq!(counted(&[(1, 2), (2, 0), (3, 1)]), Ok(of(&[3, 10, 25])));
    // A time at the worst case counts at the end of its bin, which may lie beyond.
    assert!(Distribution::from_counts([(10, 1)].into_iter(), BIN, Dur::from_us(91)).is_ok());
    let beyond = DistributionError::BeyondWorst { index: 3, found: Dur::from_us(110), worst: WORST };
    assert_eq!(counted(&[(10, 3), (11, 1)]), Err(beyond));
    assert_eq!(counted(&[(4, 0)]), Err(DistributionError::NoSamples));
    let none = DistributionError::Bin { bin: Dur::ZERO, worst: WORST };
    assert_eq!(Distribution::from_counts([(1, 1)].into_iter(), Dur::ZERO, WORST), Err(none));
}

#[test]
fn quantiles_are_the_least_times_that_reach_them() {
    let x = of(&[10, 20, 30, 40]);
    let us = |ppm| x.quantile(ppm).0 / 1000;
    assert_eq!([us(250_000), us(250_001), us(500_000), us(1_000_000)], [10, 20, 20, 40]);
    // A third of 2^62 is not a whole number, so the sum of three is below the total.
    let thirds = of(&[10, 20, 30]);
    assert!(thirds.at_most(WORST) < CERTAIN);
    assert_eq!((thirds.quantile(1_000_000), thirds.mean()), (Dur::from_us(30), Dur(20_001)));
}

#[test]
fn sums_are_those_of_all_pairs_and_what_is_beyond_the_limit_is_lost() {
    let (x, y) = (of(&[10, 30]), of(&[20, 20, 20, 50]));
    let sum = x.plus(&y, 100);
    let eighth = CERTAIN / 8;
    let found: Vec<_> = sum.masses().filter(|m| m.1 > 0).collect();
    assert_eq!(found, [(3, 3 * eighth), (5, 3 * eighth), (6, eighth), (8, eighth)]);
    let short = x.plus(&y, 5);
    assert_eq!((short.end(), short.at_most(WORST)), (6, 6 * eighth));
    assert_eq!(x.plus(&y, 2).masses().count(), 0);
    let one_by_one = x.plus(&x, 100).plus(&x, 100).plus(&x, 100).plus(&x, 100);
    assert_eq!(x.times(5, 100), one_by_one);
    assert_eq!(x.times(0, 100), Distribution::certain(BIN, 0));
}

#[test]
fn what_is_left_of_a_time_at_any_instant_is_every_part_of_it_alike() {
    // For times of one bin and of three with equal probability, an instant is in the third bin
    // of a long one once in four.
    let eighth = CERTAIN / 8;
    assert_eq!(
        of(&[10, 30]).residual().masses().collect::<Vec<_>>(),
        [(1, 4 * eighth), (2, 2 * eighth), (3, 2 * eighth)]
    );
    assert_eq!(Distribution::certain(BIN, 4).residual().mean(), Dur::from_us(25));
}

#[test]
fn wider_bins_and_the_longer_of_two_are_never_shorter() {
    let (x, y) = (of(&[10, 20, 30, 50]), of(&[20, 20, 20, 60]));
    let wide = x.coarser(2);
    assert_eq!(wide.bin(), Dur::from_us(20));
    assert_eq!(wide.masses().map(|m| m.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!((0..10).all(|t| wide.at_most(Dur::from_us(10 * t)) <= x.at_most(Dur::from_us(10 * t))));
    let both = x.longer_of(&y);
    for t in (0..10).map(|t| Dur::from_us(10 * t)) {
        assert_eq!(both.at_most(t), x.at_most(t).min(y.at_most(t)));
    }
    let over = x.beyond(2);
    assert_eq!(over.masses().collect::<Vec<_>>(), [(0, CERTAIN / 2), (1, CERTAIN / 4), (2, 0), (3, CERTAIN / 4)]);
}

#[test]
fn what_makes_no_distribution_is_said() {
    let us = Dur::from_us;
    assert_eq!(Distribution::from_samples(&[], BIN, WORST), Err(DistributionError::NoSamples));
    let beyond = DistributionError::BeyondWorst { index: 1, found: us(101), worst: WORST };
    assert_eq!(Distribution::from_samples(&[us(100), us(101)], BIN, WORST), Err(beyond));
    let none = DistributionError::Bin { bin: Dur::ZERO, worst: WORST };
    assert_eq!(Distribution::from_samples(&[us(1)], Dur::ZERO, WORST), Err(none));
    let narrow = DistributionError::Bin { bin: Dur(1), worst: Dur::from_ms(30) };
    assert_eq!(Distribution::from_samples(&[us(1)], Dur(1), Dur::from_ms(30)), Err(narrow));
    assert_eq!(
        narrow.to_string(),
        "bin of 0.000001 ms: expected more than nothing, and at most 1048576 bins up to 30.000000 ms"
    );
}
