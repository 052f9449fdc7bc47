//! What grids accept, and which points they have.

use std::collections::BTreeSet;
use std::path::Path;

use headtime_study::grid::{Grid, GridError};
use proptest::prelude::*;

fn grid(text: &str) -> Result<Grid, GridError> {
    Grid::parse(text, "g.toml", Path::new(""))
}

fn refused(text: &str) -> String {
    grid(text).map(|g| g.len()).expect_err(text).to_string()
}

/// A point's values as text.
fn point(grid: &Grid, index: u64) -> String {
    let point = grid.point(index);
    grid.keys().zip(&point.values).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_key_changes_with_each_point_and_lists_before_it() {
    let g =
        grid("[grid]\ndepth = [1, 2]\norder = ['sptf', 'sstf']\n[list]\nseed = [7, 8]\nrequests = [10, 20]\n").unwrap();
    assert_eq!(g.len(), 8);
    let points: Vec<String> = (0..4).map(|i| point(&g, i)).collect();
    assert_eq!(
        points,
        [
            "depth=1 order=\"sptf\" requests=10 seed=7",
            "depth=1 order=\"sptf\" requests=20 seed=8",
            "depth=1 order=\"sstf\" requests=10 seed=7",
            "depth=1 order=\"sstf\" requests=20 seed=8",
        ]
    );
    assert_eq!(point(&g, 4), "depth=2 order=\"sptf\" requests=10 seed=7");
}

#[test]
fn ranges_have_their_ends() {
    let values = |axis: &str| {
        let g = grid(&format!("[grid]\nseconds = {axis}\n")).unwrap();
        (0..g.len()).map(|i| g.point(i).values[0].as_float().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(values("{ from = 0.1, to = 0.3, step = 0.1 }").len(), 3);
    assert_eq!(values("{ from = 1.0, to = 2.0, count = 3 }"), [1.0, 1.5, 2.0]);
    assert_eq!(values("{ from = 1, to = 2, count = 1 }"), [1.0]);
    let log = values("{ from = 1.0, to = 100.0, count = 3, scale = 'log' }");
    assert!((log[1] - 10.0).abs() < 1e-9 && log[2] == 100.0, "{log:?}");
    let whole = grid("[grid]\nseed = { from = 1, to = 10, step = 4 }\n").unwrap();
    assert_eq!((0..3).map(|i| point(&whole, i)).collect::<Vec<_>>(), ["seed=1", "seed=5", "seed=9"]);
}

#[test]
fn without_tables_there_is_one_point() {
    assert_eq!(grid("").unwrap().len(), 1);
    assert_eq!(grid("[scenario]\nrequests = 5\n").unwrap().point(0).values, []);
}

#[test]
fn wrong_keys_and_values_are_refused_before_a_run() {
    for (text, expected) in [
        ("[grid]\nordr = ['sptf']\n", "unknown key \"ordr\"; the closest are order"),
        ("[grid]\norder = ['sptff']\n", "g.toml: order = \"sptff\""),
        ("[grid]\ndepth = [1, -1]\n", "g.toml: depth = -1"),
        (
            "[grid]\n'profile.mechanics.rpmm' = [7200]\n",
            "unknown key \"mechanics.rpmm\"; the closest are mechanics.rpm",
        ),
        ("[grid]\n'profile.mechanics.rpm' = [0]\n", "profile.mechanics.rpm = 0"),
        ("[grid]\n'task.0.think_ms' = [1.0]\n", "expected a table task"),
        ("[grid]\ndepth = []\n", "expected one value or more"),
        (
            "[grid]\nseed = { from = -9223372036854775808, to = 9223372036854775807 }\n",
            "grid.seed: expected at most 1099511627776 values",
        ),
        (
            "[grid]\nhost_us = { from = 1.0, to = 100.0, count = 5, scale = 'log' }\n",
            "host_us = 3.16227766016838: expected a whole number, found 3.16",
        ),
        ("[random]\npoints = 2\n[random.keys]\nhost_us = { from = 1.0, to = 9.0 }\n", "expected a whole number"),
        ("[grid]\nconservatism_us = [2.5]\n", "expected a whole number, found 2.5"),
        ("[grid]\ndisk = ['atlas10k', 'atlas10kk']\n", "no built-in drive and no file is called 'atlas10kk'"),
        ("[scenario]\ndisk = 'atlas10kk'\n", "no built-in drive and no file is called 'atlas10kk'"),
        ("[grid]\ntrace = ['g-nowhere.csv']\n", "g-nowhere.csv: No such file"),
        ("[grid]\ndepth = { from = 3, to = 1 }\n", "expected from below to"),
        ("[grid]\ndepth = { from = 1, to = 3, stp = 1 }\n", "expected the keys from, to, step, count, scale"),
        ("[grid]\nseconds = { from = 0.0, to = 1.0, count = 3, scale = 'log' }\n", "above 0"),
        ("[grid]\norder = ['sptf']\n[list]\norder = ['sstf']\n", "each key once"),
        ("[list]\norder = ['sptf']\ndepth = [1, 2]\n", "expected 2 values, as depth has, found 1"),
        ("[random]\npoints = 0\n[random.keys]\nseed = [1]\n", "random.points: expected a whole number from 1"),
        ("[random]\npoints = 2\n", "random.keys"),
        ("[random]\npoints = 2\nsed = 1\n[random.keys]\nseed = [1]\n", "the closest are random.seed"),
        ("[grdi]\n", "unknown key \"grdi\"; the closest are grid"),
        ("[scenario]\nrequests = 'x'\n", "scenario: expected a whole number"),
        ("[scenario]\n\ndepth = = 1\n", "g.toml:3"),
        ("grid = 5\n", "expected a table [grid]"),
    ] {
        let found = refused(text);
        assert!(found.contains(expected), "{text}: expected {expected:?} in {found:?}");
    }
}

#[test]
fn draws_depend_on_their_number_alone() {
    let text = |order: &str| {
        format!(
            "[grid]\norder = [{order}]\n[random]\npoints = 100\nseed = 4\n[random.keys]\n\
             seed = {{ from = 0, to = 5 }}\n"
        )
    };
    let (one, two) = (grid(&text("'sptf'")).unwrap(), grid(&text("'sptf', 'sstf'")).unwrap());
    let seed = |g: &Grid, i| g.point(i).values[1].clone();
    for i in 0..100 {
        assert_eq!(seed(&one, i), seed(&two, i));
        assert_eq!(seed(&one, i), seed(&two, 100 + i));
    }
    let drawn: BTreeSet<i64> = (0..100).map(|i| seed(&one, i).as_integer().unwrap()).collect();
    assert_eq!(drawn, (0..=5).collect());
}

proptest! {
    /// Every combination is there once.
    #[test]
    fn points_are_the_combinations(a in 1u64..6, b in 1u64..6, rows in 1usize..4, draws in 1u64..4) {
        let list: Vec<String> = (0..rows).map(|i| i.to_string()).collect();
        let text = format!(
            "[grid]\ndepth = {{ from = 1, to = {a} }}\nrequests = {{ from = 1, to = {b} }}\n[list]\nseed = [{}]\n\
             [random]\npoints = {draws}\n[random.keys]\nseconds = {{ from = 1.0, to = 2.0 }}\n",
            list.join(", ")
        );
        let g = grid(&text).unwrap();
        prop_assert_eq!(g.len(), a * b * rows as u64 * draws);
        let all: BTreeSet<String> = (0..g.len()).map(|i| point(&g, i)).collect();
        prop_assert_eq!(all.len() as u64, g.len());
    }
}
