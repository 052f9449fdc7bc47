//! Reading applications beside a server: a point-in-time backup, and a scrub of a read-only archive
//! that is occasionally damaged. They continue when the server is replaced by another.
//!
//! Their files are in memory and are accessed synchronously, as the programs do: this takes no
//! virtual time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headtime_serve::apps::backup::{self, Backup};
use headtime_serve::apps::coverage::Place;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Job};
use headtime_serve::apps::journal::Journal;
use headtime_serve::apps::pace::Floor;
use headtime_serve::apps::progress::JournalError;
use headtime_serve::apps::scrub::{self, Plan};
use headtime_serve::internals::apps::sums::SumsError;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tempfile::TempDir;
use tokio::sync::watch;

use super::door::Door;
use super::shadow::{SECTOR, Shadow};
use super::{ARCHIVE, Done, FIRST, NAMES, SECTORS, Standing, Store};

/// Sectors per unit.
const UNIT: usize = 8;
/// The longest pause between two runs of a program.
const PAUSE: u64 = 1_000_000;

fn job(door: &Door, name: &str) -> Job {
    Job { save_every: Duration::from_secs(500), ..Job::new(door.socket(), name) }
}

/// Returns a folder that is removed with the world; in memory if possible.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

/// Runs backups of an export repeatedly while the server exists.
pub async fn backups(
    door: Door,
    folder: Rc<TempDir>,
    shadow: Rc<RefCell<Shadow>>,
    done: Rc<RefCell<Done>>,
    standing: Standing,
    mut rng: Xoshiro256PlusPlus,
) {
    let (_go_on, stop) = watch::channel(false);
    let image = folder.path().join("image");
    loop {
        tokio::time::sleep(Duration::from_millis(rng.next_u64() % PAUSE)).await;
        let plan = Backup {
            job: job(&door, "backup"),
            export: Some(NAMES[0].into()),
            image: image.clone(),
            live: false,
            unit: Some(UNIT as u32),
            overwrite: true,
            restart: true,
            verify_disk: false,
        };
        let units = (0..SECTORS).step_by(UNIT).map(|from| shadow.borrow_mut().read(from..from + UNIT));
        let units: Vec<_> = units.collect();
        // When the first data arrived: the image is of an earlier moment.
        let (clock, begun) = (shadow.borrow().clock(), Arc::new(AtomicU64::new(u64::MAX)));
        let seen = Arc::clone(&begun);
        let mut watch = move |step: backup::Step<'_>| {
            if matches!(step, backup::Step::Reading(s) if s.done > 0) {
                seen.fetch_min(clock.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        };
        let made = backup::run(&plan, &mut watch, stop.clone()).await;
        let until = begun.load(Ordering::Relaxed);
        let report = match made {
            Ok(report) => Some(report.expect("it is not stopped")),
            // The image is lost with its session.
            Err(AppError::Lost(_) | AppError::Client(_) | AppError::Gone) if standing.is_shaky() => None,
            // Other tasks of this kind use up the limit.
            Err(AppError::Refused(_)) if standing.is_shaky() => None,
            Err(e) => panic!("a backup failed: {e}"),
        };
        let Some(report) = report else {
            units.into_iter().for_each(|unit| shadow.borrow_mut().have_read(unit, None));
            continue;
        };
        assert!(report.wrong.is_empty(), "{report:?}");
        assert!(report.unreadable.is_empty() || standing.may_fail(), "{report:?}");
        let data = std::fs::read(&image).expect("an image");
        for (n, mut unit) in units.into_iter().enumerate() {
            let (from, to) = (FIRST[0] + (n * UNIT) as u64, FIRST[0] + ((n + 1) * UNIT) as u64);
            let lost = report.unreadable.iter().any(|p| p.lbn < to && from < p.lbn + p.count);
            unit.is_of_before(until);
            let data = (!lost).then_some(&data[n * UNIT * SECTOR..(n + 1) * UNIT * SECTOR]);
            shadow.borrow_mut().have_read(unit, data);
        }
        done.borrow_mut().backups += 1;
    }
}

/// Repeated scrubs of the archive, whatever server there is.
pub struct Scrubs {
    pub door: Door,
    pub folder: Rc<TempDir>,
    pub first: Rc<Store>,
    pub done: Rc<RefCell<Done>>,
    pub rng: Xoshiro256PlusPlus,
}

impl Scrubs {
    pub async fn scrub(mut self) {
        let (_go_on, stop) = watch::channel(false);
        let path = |name: &str| self.folder.path().join(name);
        let plan = Plan {
            // Few gaps reach the archive.
            job: Job { floor: Floor { bytes_s: Some(2_500.0), within: None }, ..job(&self.door, "scrub") },
            export: Some(ARCHIVE.into()),
            unit: Some(UNIT as u32),
            catalogue: Some(path("sums")),
            expect_unchanged: true,
            journal: Journal::At(path("journal")),
            restart: false,
        };
        let (mut known, mut damaged) = (BTreeSet::new(), BTreeSet::new());
        loop {
            tokio::time::sleep(Duration::from_millis(self.rng.next_u64() % PAUSE)).await;
            if self.rng.next_u64().is_multiple_of(4) && !known.is_empty() {
                let sector = self.rng.next_u64() as usize % SECTORS;
                // The same damage a second time would undo the first.
                if damaged.insert(sector / UNIT) {
                    self.first.media.lock().unwrap().damage(FIRST[3] + sector as u64);
                }
            }
            // An earlier run's completed units are not read again.
            let goes_on = path_exists(&plan.journal);
            let (report, end, _) = match scrub::run(&plan, &mut |_| {}, stop.clone()).await {
                Ok(done) => done,
                // There is no server, or one with another disk or without its device.
                Err(AppError::Client(_) | AppError::OtherDisk { .. } | AppError::Gone) => continue,
                Err(AppError::Sums(SumsError::Foreign { .. }) | AppError::Journal(JournalError::Foreign { .. })) => {
                    continue;
                }
                Err(e) => panic!("a scrub failed: {e}"),
            };
            assert_eq!(end, End::Complete);
            let units = |places: &[Place]| -> BTreeSet<usize> {
                let sectors = places.iter().flat_map(|p| p.lbn - FIRST[3]..p.lbn - FIRST[3] + p.count);
                sectors.map(|sector| sector as usize / UNIT).collect()
            };
            let compared = report.catalogue.as_ref().expect("it has one");
            let (changed, unreadable) = (units(&compared.changed), units(&report.read.unreadable));
            let right = changed.is_subset(&damaged);
            assert!(right, "a scrub reports change where there was none: {changed:?}, damaged are {damaged:?}");
            if !goes_on {
                let missed =
                    damaged.iter().find(|u| known.contains(*u) && !unreadable.contains(u) && !changed.contains(u));
                assert_eq!(missed, None, "a scrub has not found what was damaged");
                self.done.borrow_mut().found += changed.len() as u64;
            }
            known.extend((0..SECTORS / UNIT).filter(|u| !unreadable.contains(u) && !damaged.contains(u)));
            self.done.borrow_mut().scrubs += 1;
        }
    }
}

fn path_exists(journal: &Journal) -> bool {
    matches!(journal, Journal::At(path) if path.exists())
}
