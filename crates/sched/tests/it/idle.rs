//! Work in idle time: which cells are chosen, and that it shortens a scan.

use headtime_disk::{Model, profile};
use headtime_sched::IdlePolicy;
use headtime_sched::internals::reach::{BANDS, Gone, Reach, WantedCells};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

const TRACKS: u32 = 4;

/// Cells of four tracks each.
struct Disk {
    /// Wanted tracks of each cell.
    left: Vec<u32>,
}

impl WantedCells for Disk {
    fn count(&self) -> u32 {
        self.left.len() as u32
    }
    fn next_up(&self, from: u32) -> Option<u32> {
        (from..self.count()).find(|&c| self.left[c as usize] > 0)
    }
    fn next_down(&self, from: u32) -> Option<u32> {
        (0..=from.min(self.count() - 1)).rev().find(|&c| self.left[c as usize] > 0)
    }
}

/// Returns the reach of the Cheetah 36ES, in this number of cells.
fn reach(cells: u32) -> Reach {
    let model = Model::new(&profile::builtin("cheetah36es").expect("a built-in drive")).expect("it works");
    Reach::new(cells, &model.mechanics, model.geometry.cylinders())
}

fn full(cells: usize) -> Disk {
    Disk { left: vec![TRACKS; cells] }
}

#[test]
fn nearest_goes_to_the_nearer_side() {
    let (mut d, r) = (full(100), reach(100));
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 40), Some(40));
    d.left[30..=47].fill(0);
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 40), Some(48));
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 36), Some(29));
    d.left.fill(0);
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 36), None);
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 36), None);
    assert_eq!(IdlePolicy::Smart.choose(&full(0), &r, 36), None);
}

/// Returns the wanted sectors of `d`, where gaps bring the middle half ten times as quickly as the
/// rest, and the remainder of each cell.
fn middle_is_easy(d: &Disk) -> (Reach, Vec<u64>) {
    let (mut r, mut rest) = (reach(d.count()), vec![100_000; d.left.len()]);
    (0..d.count()).for_each(|c| r.wanted(c, 100_000));
    for i in 0..20_000u32 {
        let quarter = d.count() / 4;
        let cell = if i % 11 == 0 { i % d.count() } else { quarter + i % (2 * quarter) };
        r.gone(cell, 10, if i % 10 == 0 { Gone::Idle } else { Gone::Free });
        rest[cell as usize] -= 10;
    }
    (r, rest)
}

#[test]
fn smart_goes_where_gaps_bring_little_unless_it_is_too_far() {
    let mut d = full(320);
    let (mut r, rest) = middle_is_easy(&d);
    assert!(r.worth(0) > 2 * r.worth(160), "{} {}", r.worth(0), r.worth(160));
    // The bands next to the middle are known less well than those further out.
    assert!((59..80).contains(&IdlePolicy::Smart.choose(&d, &r, 150).unwrap()));
    assert!((240..261).contains(&IdlePolicy::Smart.choose(&d, &r, 170).unwrap()));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 30), Some(30));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 1_000_000), Some(319));
    // The outer quarter is done: from there the choice is past the middle.
    d.left[..80].fill(0);
    (0..80).for_each(|c| r.gone(c, rest[c as usize], Gone::Otherwise));
    assert!((240..261).contains(&IdlePolicy::Smart.choose(&d, &r, 30).unwrap()));
    // When nothing else is left it is the middle after all.
    d.left[240..].fill(0);
    (240..320).for_each(|c| r.gone(c, rest[c as usize], Gone::Otherwise));
    assert!((80..101).contains(&IdlePolicy::Smart.choose(&d, &r, 30).unwrap()));
}

#[test]
fn as_long_as_nothing_is_known_smart_is_nearest() {
    let mut rng = rng(7);
    for round in 0..500 {
        let cells = between(&mut rng, 1, 200) as u32;
        let mut d = full(cells as usize);
        let share = between(&mut rng, 0, 100);
        d.left.iter_mut().for_each(|l| *l = u32::from(between(&mut rng, 1, 100) <= share));
        let mut r = reach(cells);
        (0..cells).for_each(|c| r.wanted(c, u64::from(d.left[c as usize])));
        let head = between(&mut rng, 0, u64::from(cells) - 1) as u32;
        let away = |found: Option<u32>| found.map(|c| c.abs_diff(head));
        let best = (0..cells).filter(|&c| d.left[c as usize] > 0).map(|c| c.abs_diff(head)).min();
        assert_eq!(away(IdlePolicy::Nearest.choose(&d, &r, head)), best, "round {round}");
        // Bands are the finest resolution.
        let smart = away(IdlePolicy::Smart.choose(&d, &r, head));
        assert_eq!(smart.is_some(), best.is_some());
        assert!(smart <= best.map(|b| b + cells.div_ceil(BANDS as u32)), "round {round}: {smart:?} {best:?}");
    }
}

/// A scan of a disk that is busy occasionally. After each request there may be idle time, in which
/// commands of a track each are sent to the cells that the policy chooses; each request has a gap,
/// which brings a track from where it looks with the probability `of_gap(place)` for a full cell
/// (places from 0 to 1000), less for a fragment. Returns ms.
fn scan(policy: IdlePolicy, idle_one_in: u64, of_gap: fn(u64) -> u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    const CELLS: u32 = 2_000;
    let (mut d, mut r, mut took_us) = (full(CELLS as usize), reach(CELLS), 0u64);
    (0..CELLS).for_each(|c| r.wanted(c, u64::from(TRACKS)));
    let mut left = CELLS * TRACKS;
    while left > 0 {
        let mut head = between(rng, 0, u64::from(CELLS) - 1) as u32;
        took_us += 8_000;
        let tracks = d.left[head as usize];
        if between(rng, 1, 1_000 * u64::from(TRACKS))
            <= of_gap(u64::from(head) * 1_000 / u64::from(CELLS)) * u64::from(tracks)
        {
            d.left[head as usize] -= 1;
            r.gone(head, 1, Gone::Free);
            left -= 1;
        }
        // Occasionally the disk is idle for a while, 40 ms on average beyond the threshold.
        if between(rng, 1, idle_one_in) > 1 {
            continue;
        }
        let mut idle_us = between(rng, 0, 80_000) as i64;
        took_us += 20_000 + idle_us as u64;
        while idle_us > 0 && left > 0 {
            let to = policy.choose(&d, &r, head).expect("something is wanted");
            let away = u64::from(to.abs_diff(head));
            let seek = if away == 0 { 0 } else { 800 + (away * 30_000).isqrt() as i64 };
            idle_us -= seek + 6_500;
            d.left[to as usize] -= 1;
            r.gone(to, 1, Gone::Idle);
            left -= 1;
            head = to;
        }
    }
    took_us / 1_000
}

#[test]
fn idle_time_spent_on_what_gaps_rarely_reach_shortens_a_scan() {
    // Gaps reach the middle well and the edges hardly.
    let edges_are_hard = |place| 4 * place * (1_000 - place) / 1_000;
    for seed in 0..5 {
        let of = |policy, one_in, of_gap| scan(policy, one_in, of_gap, &mut rng(seed));
        let (smart, nearest) = (of(IdlePolicy::Smart, 20, edges_are_hard), of(IdlePolicy::Nearest, 20, edges_are_hard));
        println!("seed {seed}, mostly gaps: smart {smart} ms, nearest {nearest} ms");
        assert!(smart * 100 < nearest * 95);
        // Where gaps reach all places alike, or idle time does nearly everything, there is nothing
        // to gain, and little is lost.
        for (one_in, of_gap) in [(20, (|_| 600) as fn(u64) -> u64), (3, edges_are_hard)] {
            let (smart, nearest) = (of(IdlePolicy::Smart, one_in, of_gap), of(IdlePolicy::Nearest, one_in, of_gap));
            println!("seed {seed}, idle 1 in {one_in}: smart {smart} ms, nearest {nearest} ms");
            assert!(smart * 100 < nearest * 103);
        }
    }
}
