//! The copies of a reorganised export's block map, on a disk that fails.

use std::os::unix::fs::FileExt;

use headtime_disk::DriveConfig;
use headtime_sched::layout::{Move, Place};
use headtime_sched::{SessionId, TaskRange};
use headtime_serve::device::Fault;
use headtime_serve::engine::layout_call::Begun;
use headtime_serve::internals::control::layouts::{Ended, Layouts, MoveError};
use headtime_serve::internals::device::faulty::{Faulty, Planted};
use headtime_serve::layout::{Area, LayoutError};
use headtime_serve::net::exports::{ExportSpec, Exports};
use tokio::runtime::Runtime;

use crate::rig::{Rig, drive, sectors};

const SECTOR: u64 = 512;
const ME: SessionId = SessionId(5);
/// Commands of a start: reads of both copies, and for each a write and a flush.
const START: u64 = 6;

fn area() -> Area {
    Area {
        part: TaskRange { lbn: 0, count: 8_000 },
        reserve: TaskRange { lbn: 100_000, count: 4_096 },
        unit: 128,
        sector_bytes: 512,
    }
}

/// A server's engine over a disk, and what it knows of its layout.
struct Served {
    rig: Rig,
    layouts: Layouts,
    runtime: Runtime,
}

impl Served {
    /// `plan`: which commands fail.
    fn new(plan: impl IntoIterator<Item = (u64, Planted)>) -> Served {
        let (device, file) = drive(DriveConfig::default());
        let rig = Rig::over(Faulty::new(device, plan), file);
        let layouts = Served::layouts(&rig);
        Served { rig, layouts, runtime: Runtime::new().unwrap() }
    }

    fn layouts(rig: &Rig) -> Layouts {
        let spec = ExportSpec {
            name: "data".into(),
            description: String::new(),
            first: 0,
            sectors: area().part.count,
            read_only: false,
            weight: 100,
        };
        let exports = Exports::new(vec![spec], 1_000_000, 512).unwrap();
        Layouts::new(&[(0, area())], &exports, rig.engine.clone())
    }

    fn load(&self, is_new: bool) -> Result<(), LayoutError> {
        let new: &[u32] = if is_new { &[0] } else { &[] };
        self.runtime.block_on(self.layouts.load(new)).map_err(|(_, why)| why)
    }

    fn begin(&self, unit: u64, slot: u32) -> Begun {
        let moves = vec![Move { unit, to: Place::Slot(slot) }];
        let begun = self.runtime.block_on(self.layouts.begin(0, ME, moves, &self.rig.engine)).unwrap();
        *begun[0].as_ref().unwrap()
    }

    fn copies(&self, begun: &Begun) {
        let mut data = vec![0; (begun.from.count * SECTOR) as usize];
        self.rig.file.read_exact_at(&mut data, begun.from.lbn * SECTOR).unwrap();
        self.rig.file.write_all_at(&data, begun.to.lbn * SECTOR).unwrap();
    }

    /// Copies a unit into a slot, and settles its move.
    fn moves(&self, unit: u64, slot: u32) -> Result<Ended, MoveError> {
        self.copies(&self.begin(unit, slot));
        self.runtime.block_on(self.layouts.settle(0, ME, vec![unit]))
    }

    /// Returns the map that the disk has, as units and slots.
    fn on_disk(&self) -> Result<Vec<(u64, u32)>, LayoutError> {
        let copy = |number| {
            let range = area().copy(number);
            let mut data = vec![0; (range.count * SECTOR) as usize];
            self.rig.file.read_exact_at(&mut data, range.lbn * SECTOR).unwrap();
            data
        };
        Ok(area().read([&copy(0), &copy(1)])?.0.moved().collect())
    }
}

fn failing(commands: impl IntoIterator<Item = u64>) -> Vec<(u64, Planted)> {
    commands.into_iter().map(|n| (n, Planted::Fails(Fault::Io))).collect()
}

#[test]
fn a_map_is_written_once_by_request_and_then_both_copies_have_it() {
    let s = Served::new([]);
    assert!(matches!(s.load(false), Err(LayoutError::None { at: 100_000, .. })));
    s.load(true).unwrap();
    assert_eq!(s.on_disk().unwrap(), []);
    assert_eq!(s.moves(3, 7).unwrap(), Ended { moved: vec![3], stayed: vec![] });
    // Either copy alone says so.
    for (number, spoilt) in [(0, area().copy(0)), (1, area().copy(1))] {
        s.rig.file.write_all_at(&[0x5a; 512], spoilt.lbn * SECTOR).unwrap();
        assert_eq!(s.on_disk().unwrap(), [(3, 7)], "without copy {number}");
        // The next start writes both again.
        let again = Served::layouts(&s.rig);
        let loaded = s.runtime.block_on(again.load(&[0])).map_err(|(_, why)| why);
        assert!(matches!(loaded, Err(LayoutError::There { .. })), "{loaded:?}");
        s.runtime.block_on(again.load(&[])).unwrap();
        assert_eq!(s.on_disk().unwrap(), [(3, 7)]);
    }
}

#[test]
fn when_a_copy_cannot_be_written_the_unit_stays_and_the_old_map_counts() {
    // After the flush of the settling: the first, or the second copy of the new map.
    for fails in [START + 1, START + 3] {
        let mut s = Served::new(failing([fails]));
        s.load(true).unwrap();
        assert_eq!(s.moves(3, 7), Err(MoveError::Device(Fault::Io)));
        assert_eq!(s.on_disk().unwrap(), []);
        s.rig.write(3 * 128, sectors(3 * 128, 8, 9)).unwrap();
        assert_eq!(s.rig.on_disk(3 * 128, 8), sectors(3 * 128, 8, 9), "at home");
        assert_eq!(s.moves(3, 7).unwrap().moved, [3]);
    }
}

#[test]
fn while_nobody_knows_which_map_is_there_writes_to_the_unit_fail_and_reads_do_not() {
    let mut s = Served::new(failing(START + 1..START + 5));
    s.load(true).unwrap();
    assert_eq!(s.moves(3, 7), Err(MoveError::Device(Fault::Io)));
    assert_eq!(s.rig.write(3 * 128, sectors(3 * 128, 8, 9)), Err(Fault::Io));
    s.rig.read(3 * 128, 8).unwrap();
    s.rig.write(4 * 128, sectors(4 * 128, 8, 9)).unwrap();
    // The next settling writes the old map first.
    assert_eq!(s.moves(4, 8).unwrap().moved, [4]);
    s.rig.write(3 * 128, sectors(3 * 128, 8, 9)).unwrap();
    assert_eq!(s.rig.on_disk(3 * 128, 8), sectors(3 * 128, 8, 9), "at home");
    assert_eq!(s.on_disk().unwrap(), [(4, 8)]);
}

#[test]
fn what_was_overwritten_is_copied_again_before_the_map_names_its_place() {
    // Of the first settling after one write: its flush, the read and the write of the last copy, a
    // flush, then the copies of the map.
    for (fails, moved) in [(None, true), (Some(START + 2), false), (Some(START + 3), false), (Some(START + 4), false)] {
        let mut s = Served::new(failing(fails));
        s.load(true).unwrap();
        let begun = s.begin(3, 7);
        s.copies(&begun);
        // A write while it is copied.
        s.rig.write(3 * 128 + 40, sectors(3 * 128 + 40, 8, 9)).unwrap();
        let settled = s.runtime.block_on(s.layouts.settle(0, ME, vec![3]));
        if moved {
            assert_eq!(settled.unwrap(), Ended { moved: vec![3], stayed: vec![] });
            assert_eq!(s.rig.on_disk(begun.to.lbn + 40, 8), sectors(3 * 128 + 40, 8, 9));
        } else {
            assert!(settled.map_or(true, |ended| ended.moved.is_empty()), "command {fails:?}");
            assert_eq!(s.on_disk().unwrap(), []);
        }
        s.rig.write(3 * 128 + 40, sectors(3 * 128 + 40, 8, 10)).unwrap();
        let place = if moved { begun.to.lbn } else { begun.from.lbn };
        assert_eq!(s.rig.on_disk(place + 40, 8), sectors(3 * 128 + 40, 8, 10), "command {fails:?}");
    }
}
