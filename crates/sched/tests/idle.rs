//! What is fetched in idle time: which cells are chosen, and that it shortens a scan.

use headtime_sched::fill::reach::{BANDS, Cells, Gone, IdlePolicy, Reach};
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

const TRACKS: u32 = 4;

/// Cells of four tracks each.
struct Disk {
    /// Tracks wanted of each.
    left: Vec<u32>,
    overdue: Option<u32>,
}

impl Cells for Disk {
    fn count(&self) -> u32 {
        self.left.len() as u32
    }
    fn next_up(&self, from: u32) -> Option<u32> {
        (from..self.count()).find(|&c| self.left[c as usize] > 0)
    }
    fn next_down(&self, from: u32) -> Option<u32> {
        (0..=from.min(self.count() - 1)).rev().find(|&c| self.left[c as usize] > 0)
    }
    fn overdue(&self, _: u32) -> Option<u32> {
        self.overdue
    }
}

fn full(cells: usize) -> Disk {
    Disk { left: vec![TRACKS; cells], overdue: None }
}

#[test]
fn nearest_goes_to_the_nearer_side() {
    let (mut d, r) = (full(100), Reach::new(100));
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 40), Some(40));
    d.left[30..=47].fill(0);
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 40), Some(48));
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 36), Some(29));
    d.left.fill(0);
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 36), None);
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 36), None);
    assert_eq!(IdlePolicy::Smart.choose(&full(0), &r, 36), None);
}

/// What is wanted of `d`, the middle half being brought by gaps ten times as quickly as the rest.
fn middle_is_easy(d: &Disk) -> Reach {
    let mut r = Reach::new(d.count());
    (0..d.count()).for_each(|c| r.wanted(c, 100_000));
    for i in 0..20_000u32 {
        let quarter = d.count() / 4;
        let cell = if i % 11 == 0 { i % d.count() } else { quarter + i % (2 * quarter) };
        r.gone(cell, 10, if i % 10 == 0 { Gone::Idle } else { Gone::Free });
    }
    r
}

#[test]
fn smart_goes_to_the_nearest_place_that_gaps_leave_behind() {
    let mut d = full(320);
    let r = middle_is_easy(&d);
    let easy = 80..240;
    assert!(easy.clone().all(|c| !r.is_short_of_time(c)));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 150), Some(79));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 170), Some(240));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 30), Some(30));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 1_000_000), Some(319));
    d.left[..80].fill(0);
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 30), Some(240));
    // When nothing else is left it is the nearest after all.
    d.left[240..].fill(0);
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 30), Some(80));
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 150), Some(150));
}

#[test]
fn smart_agrees_with_a_search_of_all_cells() {
    let mut rng = rng(7);
    for round in 0..500 {
        let cells = between(&mut rng, 1, 200) as usize;
        let mut d = full(cells);
        let share = between(&mut rng, 0, 100);
        d.left.iter_mut().for_each(|l| *l = u32::from(between(&mut rng, 1, 100) <= share));
        let mut r = Reach::new(cells as u32);
        (0..cells as u32).for_each(|c| r.wanted(c, 50_000));
        for _ in 0..2_000 {
            let cell = between(&mut rng, 0, cells as u64 - 1).min(between(&mut rng, 0, cells as u64 - 1)) as u32;
            r.gone(cell, 5, if between(&mut rng, 0, 3) == 0 { Gone::Idle } else { Gone::Free });
        }
        let head = between(&mut rng, 0, cells as u64 - 1) as u32;
        let all = || (0..cells as u32).filter(|&c| d.left[c as usize] > 0);
        let best = |short: bool| all().filter(|&c| !short || r.is_short_of_time(c)).map(|c| c.abs_diff(head)).min();
        let found = IdlePolicy::Smart.choose(&d, &r, head).map(|c| c.abs_diff(head));
        assert_eq!(found, best(true).or(best(false)), "round {round}");
        let found = IdlePolicy::Nearest.choose(&d, &r, head).map(|c| c.abs_diff(head));
        assert_eq!(found, best(false), "round {round}");
    }
    assert_eq!(BANDS, 32);
}

#[test]
fn smart_does_not_let_tasks_wait_for_ever() {
    let mut d = full(320);
    let r = middle_is_easy(&d);
    d.overdue = Some(151);
    assert_eq!(IdlePolicy::Smart.choose(&d, &r, 150), Some(151));
    assert_eq!(IdlePolicy::Nearest.choose(&d, &r, 150), Some(150));
}

/// A scan of a disk that is busy now and then. Behind each request there may be idle time, in which commands of a track
/// each are sent to the cells that the policy says; each request has a gap, which brings a track from where it looks with
/// the probability `of_gap(place)` for a full cell (places from 0 to 1000), less for a fragment. Returns ms.
fn scan(policy: IdlePolicy, idle_one_in: u64, of_gap: fn(u64) -> u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    const CELLS: u32 = 2_000;
    let (mut d, mut r, mut took_us) = (full(CELLS as usize), Reach::new(CELLS), 0u64);
    (0..CELLS).for_each(|c| r.wanted(c, u64::from(TRACKS)));
    let mut left = CELLS * TRACKS;
    while left > 0 {
        let mut head = between(rng, 0, u64::from(CELLS) - 1) as u32;
        took_us += 8_000;
        let tracks = d.left[head as usize];
        if between(rng, 1, 1_000 * u64::from(TRACKS)) <= of_gap(u64::from(head) * 1_000 / u64::from(CELLS)) * u64::from(tracks) {
            d.left[head as usize] -= 1;
            r.gone(head, 1, Gone::Free);
            left -= 1;
        }
        // Now and then the disk is left alone for a while, 40 ms on average beyond the threshold.
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
    for one_in in [3, 6, 10, 20, 40] {
    for seed in 0..5 {
        let both = |of_gap: fn(u64) -> u64| {
            let of = |policy| scan(policy, one_in, of_gap, &mut rng(seed));
            (of(IdlePolicy::Smart), of(IdlePolicy::Nearest))
        };
        // Gaps reach the middle well and the edges hardly.
        let (smart, nearest) = both(|place| 4 * place * (1_000 - place) / 1_000);
        println!("{one_in} seed {seed}: smart {smart} ms, nearest {nearest} ms");
        // Everywhere alike: there is nothing to be gained, and little must be lost.
        let (alike, nearest_alike) = both(|_| 600);
        println!("{one_in} seed {seed}: alike: smart {alike} ms, nearest {nearest_alike} ms");
    }
    }
}
