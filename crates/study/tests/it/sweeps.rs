//! The rows of sweeps: the same whatever runs the points, and after any interruption.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use headtime_disk::profile::builtin;
use headtime_sim::scenario::{Prepared, Scenario};
use headtime_study::grid::{Grid, Profiles};
use headtime_study::sweep::{Chunk, Sweep, SweepError, on_threads};
use headtime_study::tables::{COLUMNS, Rows, Table};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const GRID: &str = "[scenario]\nworkload = 'random-4k:4'\nrequests = 60\n[grid]\norder = ['fcfs', 'sptf', 'drive']\n\
                    seed = { from = 1, to = 9 }\n[list]\nfill = ['none', 'headtime']\nbackground = ['none', 'scan']\n";

fn grid() -> Grid {
    Grid::parse(GRID, "g.toml", Path::new("")).unwrap()
}

/// All rows of a directory, one row each, in the order of points.
fn rows(folder: &Path) -> Vec<Table> {
    let mut all = Vec::new();
    for part in parts(folder) {
        for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(part).unwrap()).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            all.extend((0..batch.num_rows()).map(|i| batch.slice(i, 1)));
        }
    }
    all.sort_by_key(point);
    all
}

fn point(row: &Table) -> u64 {
    row.column(0).as_primitive::<UInt64Type>().value(0)
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut parts: Vec<_> = files.filter(|p| p.extension().is_some_and(|e| e == "parquet")).collect();
    parts.sort();
    parts
}

fn sweep(folder: &Path, threads: usize) {
    let (mut sweep, damaged) = Sweep::open(grid(), folder).unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    on_threads(&mut sweep, threads, &AtomicBool::new(false), &mut |_| {}).unwrap();
}

#[test]
fn rows_do_not_depend_on_threads() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    sweep(one.path(), 1);
    sweep(three.path(), 3);
    let found = rows(one.path());
    assert_eq!(found.iter().map(point).collect::<Vec<_>>(), (0..54).collect::<Vec<_>>());
    assert_eq!(found, rows(three.path()));
}

#[test]
fn a_row_has_the_figures_of_its_simulation_or_why_there_are_none() {
    let grid = grid();
    let chunk = Chunk::run(&grid, 0..54, &mut Profiles::default(), &AtomicBool::new(false));
    // The drive's own order fills no gaps.
    assert_eq!(chunk.failed, 9);
    let column = |name: &str| chunk.rows.column_by_name(name).unwrap();
    for i in 0..54 {
        let (order, seed, filled) = (i / 18, i / 2 % 9 + 1, i % 2 == 1);
        let error = column("error").as_string::<i32>();
        if order == 2 && filled {
            assert!(error.value(i).contains("order drive"), "{}", error.value(i));
            continue;
        }
        assert!(column("error").is_null(i), "{}", error.value(i));
        let text = |plain: &str, value: bool| Some(if value { plain } else { "none" }.to_owned());
        let scenario = Scenario {
            workload: Some("random-4k:4".into()),
            requests: Some(60),
            order: Some(["fcfs", "sptf", "drive"][order].into()),
            seed: Some(seed as u64),
            fill: text("headtime", filled),
            background: text("scan", filled),
            ..Scenario::default()
        };
        let prepared = Prepared::new(&scenario, builtin("atlas10k").unwrap(), None).unwrap();
        let result = prepared.run(None, &mut ()).unwrap().result;
        let figure = |name: &str| column(name).as_primitive::<Float64Type>().value(i);
        assert_eq!(figure("foreground.per_second"), result.foreground.per_second);
        assert_eq!(Some(figure("foreground.response_ms.p99")), result.foreground.response_ms.p99);
        assert_eq!(figure("freeblock.mb_s"), result.freeblock.mb_s);
        assert_eq!(column("seed").as_primitive::<UInt64Type>().value(i), seed as u64);
    }
}

#[test]
fn columns_are_keys_of_a_result() {
    let text = "[scenario]\nrequests = 300\nfill = 'headtime'\nbackground = 'scan'\nwrite_cache = '4 MiB'\n";
    let grid = Grid::parse(text, "g.toml", Path::new("")).unwrap();
    let chunk = Chunk::run(&grid, 0..1, &mut Profiles::default(), &AtomicBool::new(false));
    assert_eq!(chunk.failed, 0);
    for name in COLUMNS {
        // A scan of the disk takes longer.
        let unknown = chunk.rows.column_by_name(name).unwrap().is_null(0);
        let may = ["freeblock.scan_seconds", "foreground.response_ms.mean_plus_minus"].contains(&name);
        assert!(!unknown || may, "{name}: no such key in the result");
    }
}

#[test]
fn rows_pass_between_processes() {
    let grid = grid();
    let chunk = Chunk::run(&grid, 3..8, &mut Profiles::default(), &AtomicBool::new(false));
    let bytes = chunk.to_ipc().unwrap();
    assert_eq!(Chunk::rows_from_ipc(&grid, &bytes).unwrap(), chunk.rows);
    let other = Grid::parse("[grid]\nseed = [1]\n", "g.toml", Path::new("")).unwrap();
    assert!(Chunk::rows_from_ipc(&other, &bytes).is_err());
    for cut in [0, 1, 40, bytes.len() / 2] {
        assert!(Chunk::rows_from_ipc(&grid, &bytes[..cut]).is_err(), "{cut} bytes");
    }
}

/// Whatever is taken, given back and accepted, in any order, each point is stored once.
#[test]
fn points_of_lost_workers_are_given_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sweep, _) = Sweep::open(grid(), folder.path()).unwrap();
    let run =
        |range: std::ops::Range<u64>| Chunk::run(&grid(), range, &mut Profiles::default(), &AtomicBool::new(false));
    let (first, second) = (sweep.take().unwrap(), sweep.take().unwrap());
    assert_eq!((first.start, second.start), (0, first.end));
    let late = run(first.clone());
    sweep.give_back(&first);
    let again = sweep.take().unwrap();
    assert_eq!(again.start, 0);
    sweep.accept(&again, run(again.clone())).unwrap();
    // The lost worker was only slow.
    sweep.accept(&first, late).unwrap();
    sweep.accept(&second, run(second.start..second.start)).unwrap();
    while let Some(points) = sweep.take() {
        // A worker that is stopped runs a part of its points.
        let end = points.start + (points.end - points.start).div_ceil(2);
        sweep.accept(&points, run(points.start..end)).unwrap();
    }
    sweep.flush().unwrap();
    assert_eq!(sweep.progress().done, 54);
    drop(sweep);
    let whole = tempfile::tempdir().unwrap();
    self::sweep(whole.path(), 2);
    assert_eq!(rows(folder.path()), rows(whole.path()));
}

#[test]
fn a_stopped_sweep_goes_on() {
    // Long enough to be stopped in the middle of a chunk.
    let slow = || Grid::parse(&GRID.replace("60", "3000"), "g.toml", Path::new("")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (mut first, _) = Sweep::open(slow(), folder.path()).unwrap();
    let stop = AtomicBool::new(false);
    on_threads(&mut first, 2, &stop, &mut |p| stop.store(p.done > 0, Ordering::Relaxed)).unwrap();
    let done = first.progress().done;
    assert!((1..54).contains(&done), "{done}");
    assert!(matches!(Sweep::open(slow(), folder.path()), Err(SweepError::Store(_))), "it is still open");
    drop(first);
    let (mut second, _) = Sweep::open(slow(), folder.path()).unwrap();
    assert_eq!(second.progress().done, done);
    on_threads(&mut second, 2, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let whole = tempfile::tempdir().unwrap();
    let (mut other, _) = Sweep::open(slow(), whole.path()).unwrap();
    on_threads(&mut other, 2, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!(rows(folder.path()).len(), 54);
    assert_eq!(rows(folder.path()), rows(whole.path()));
}

#[test]
fn damaged_parts_are_set_aside_and_run_again() {
    let folder = tempfile::tempdir().unwrap();
    sweep(folder.path(), 2);
    let expected = rows(folder.path());
    let whole = fs::read(&parts(folder.path())[0]).unwrap();
    for n in 0..20 {
        let mut bytes = whole.clone();
        match n {
            0 => bytes.truncate(whole.len() / 2),
            1 => bytes = b"PAR1PAR1".to_vec(),
            2 => bytes.clear(),
            // Anywhere from the first page to the footer.
            n => bytes[whole.len() * n / 21] ^= 0x55,
        }
        let part = parts(folder.path()).pop().unwrap();
        fs::write(&part, bytes).unwrap();
        let (mut sweep, damaged) = Sweep::open(grid(), folder.path()).unwrap();
        on_threads(&mut sweep, 2, &AtomicBool::new(false), &mut |_| {}).unwrap();
        drop(sweep);
        assert_eq!(damaged.len(), 1, "{n}: {damaged:?}");
        assert_eq!(rows(folder.path()), expected, "{n}: {damaged:?}");
    }
}

#[test]
fn the_rows_of_another_grid_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    sweep(folder.path(), 2);
    let other = Grid::parse(&GRID.replace("60", "61"), "g.toml", Path::new("")).unwrap();
    let refused = Sweep::open(other, folder.path()).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("its grid"), "{refused}");
}

#[test]
fn a_grid_of_any_size_costs_nothing_until_its_points_are_run() {
    let text = "[grid]\nseed = { from = 1, to = 1000000000 }\nrequests = { from = 1, to = 1000000 }\n";
    let grid = Grid::parse(text, "g.toml", Path::new("")).unwrap();
    assert_eq!(grid.len(), 1_000_000_000_000_000);
    let folder = tempfile::tempdir().unwrap();
    let (mut sweep, _) = Sweep::open(grid.clone(), folder.path()).unwrap();
    let points = sweep.take().unwrap();
    assert_eq!(Rows::schema(&grid).field(1).name(), "requests");
    assert_eq!(points, 0..1);
}
