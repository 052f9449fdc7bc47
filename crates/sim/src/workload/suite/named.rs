//! The suite by names: `10r-seq`, `5r5w-rand+konsole`, `idle+video`.
//!
//! A load is a number of readers and writers, sequential or random, as the paper names its four
//! (Valente 2014 section 7.2), or `idle`. The application after `+` starts when the load has run
//! for ten seconds and none of its weights is raised any more.

use headtime_disk::{Dur, Time};

use super::super::{Target, WorkloadError, unknown};
use super::code::{Tool, Work};
use super::files::greedy;
use super::startup::{Program, Starts};
use super::video::Player;
use super::{Actor, Disk, Suite};

/// Forms of names.
pub const NAMES: [&str; 3] = ["NrMw-seq[+APP]", "NrMw-rand[+APP]", "idle+APP"];
/// Applications beside a load.
pub const APPS: [&str; 7] = ["bash", "xterm", "konsole", "video", "compile", "checkout", "merge"];

/// Maximum number of readers or writers.
const MAX_PROCESSES: u64 = 400;
/// Start of the application.
pub const FIRST: Time = Time(10_000_000_000);
/// Pause between two start-ups of a program.
const PAUSE: Dur = Dur::from_secs(1);
/// Bytes per second and seconds of a video.
const CLIP: (u64, u64) = (1_000_000, 30);

/// A load with its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    readers: u64,
    writers: u64,
    random: bool,
    app: Option<&'static str>,
}

/// Whether a name has the form of the suite's, valid or not.
pub fn is_suite(name: &str) -> bool {
    let load = name.split('+').next().unwrap_or(name);
    load == "idle" || (load.starts_with(|c: char| c.is_ascii_digit()) && load.contains('-'))
}

/// Parses `10r`, `5w` or `5r5w`.
fn counts(text: &str) -> Option<(u64, u64)> {
    let (readers, writers) = match text.split_once('r') {
        Some((readers, "")) => (readers, None),
        Some((readers, rest)) => (readers, Some(rest.strip_suffix('w')?)),
        None => ("0", Some(text.strip_suffix('w')?)),
    };
    let count = |n: &str| n.parse::<u64>().ok().filter(|n| *n <= MAX_PROCESSES);
    Some((count(readers)?, writers.map_or(Some(0), count)?)).filter(|(r, w)| r + w > 0)
}

impl Named {
    /// Parses a name. The error lists the known forms.
    pub fn parse(name: &str) -> Result<Named, WorkloadError> {
        let wrong = || unknown("workload", name, &super::super::NAMES);
        let (load, app) = name.split_once('+').map_or((name, None), |(l, a)| (l, Some(a)));
        let app = match app {
            None => None,
            Some(app) => {
                let known = APPS.into_iter().find(|a| *a == app);
                Some(known.ok_or_else(|| unknown("application of a workload", app, &APPS))?)
            }
        };
        if load == "idle" && app.is_some() {
            return Ok(Named { readers: 0, writers: 0, random: false, app });
        }
        let (files, how) = load.split_once('-').ok_or_else(wrong)?;
        let random = match how {
            "seq" => false,
            "rand" => true,
            _ => return Err(wrong()),
        };
        let (readers, writers) = counts(files).ok_or_else(|| {
            WorkloadError::Conflict(format!(
                "workload {name}: expected N readers, M writers or NrMw of 0 to {MAX_PROCESSES} each, one at least, \
                 found \"{files}\""
            ))
        })?;
        Ok(Named { readers, writers, random, app })
    }

    /// Returns the number of actors: writers, readers, and the application.
    pub fn actors(&self) -> usize {
        (self.readers + self.writers) as usize + usize::from(self.app.is_some())
    }

    /// Whether there is an application.
    pub fn has_app(&self) -> bool {
        self.app.is_some()
    }

    /// Whether any actor writes.
    pub fn writes(&self) -> bool {
        self.writers > 0 || self.app.is_some_and(|app| ["compile", "checkout", "merge"].contains(&app))
    }

    /// Creates the workload on a disk.
    pub fn suite(&self, target: &Target, seed: u64) -> Suite {
        let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
        let mut writers = greedy(&disk, self.readers, self.writers, self.random, seed);
        let readers = writers.split_off(self.writers as usize);
        let mut groups: Vec<(&str, Vec<Box<dyn Actor>>)> = vec![("writers", writers), ("readers", readers)];
        groups.retain(|g| !g.1.is_empty());
        if let Some(app) = self.app {
            groups.push((app, vec![self.beside(app, &disk, seed)]));
        }
        Suite::classed(target, groups)
    }

    fn beside(&self, app: &str, disk: &Disk, seed: u64) -> Box<dyn Actor> {
        let starts = |program| Box::new(Starts::new(disk, program, FIRST, PAUSE, usize::MAX, seed)) as Box<dyn Actor>;
        let work = |tool| Box::new(Work::new(disk, tool, FIRST, seed)) as Box<dyn Actor>;
        let files = self.readers + self.writers;
        match app {
            "bash" => starts(Program::BASH),
            "xterm" => starts(Program::XTERM),
            "konsole" => starts(Program::KONSOLE),
            "video" => Box::new(Player::new(disk, CLIP.0, CLIP.1, FIRST, (files, files + 2))),
            "compile" => work(Tool::COMPILE),
            "checkout" => work(Tool::CHECKOUT),
            "merge" => work(Tool::MERGE),
            other => unreachable!("{other} was checked when it was read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::Load;
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn names_are_read_and_others_refused_with_what_is_known() {
        let of = |name| Named::parse(name).unwrap();
        let named = |readers, writers, random, app| Named { readers, writers, random, app };
        assert_eq!(of("10r-seq"), named(10, 0, false, None));
        assert_eq!(of("5r5w-rand+konsole"), named(5, 5, true, Some("konsole")));
        assert_eq!(of("3w-seq"), named(0, 3, false, None));
        assert_eq!((of("5r5w-seq+bash").actors(), of("10r-seq").actors()), (11, 10));
        assert_eq!(["10r-seq+video", "idle+merge", "1w-rand"].map(|n| of(n).writes()), [false, true, true]);
        assert_eq!(of("idle+video"), named(0, 0, false, Some("video")));
        let said = |name| Named::parse(name).unwrap_err().to_string();
        for name in ["idle", "10-seq", "0r-seq", "401r-seq", "10r-both", "r-seq", "10rw-seq", "10r-", "5r5-seq"] {
            assert!(said(name).contains("NrMw"), "{name}: {}", said(name));
            assert!(is_suite(name) || name == "r-seq", "{name}");
        }
        assert!(said("10r-seq+emacs").contains("konsole"));
        for name in ["oltp", "closed:10", "random-4k:3", "local-4k"] {
            assert!(!is_suite(name), "{name}");
        }
    }

    #[test]
    fn the_papers_four_loads_are_what_their_names_say() {
        let target = Target { capacity: 600_000_000, sector_bytes: 512, geometry: None };
        let disk = Disk { capacity: 600_000_000, sector_bytes: 512 };
        for load in Load::ALL {
            let mut named = Named::parse(load.name()).unwrap().suite(&target, 1);
            let mut known = Suite::new(&target, load.actors(&disk, 1));
            for _ in 0..50 {
                let (a, b) = (named.take().unwrap(), known.take().unwrap());
                assert_eq!((a.kind, a.lbn, a.count, a.owner), (b.kind, b.lbn, b.count, b.owner), "{}", load.name());
                let now = a.due + Dur::from_ms(1);
                named.finished(a.owner, now);
                known.finished(a.owner, now);
            }
        }
    }

    #[test]
    fn classes_and_measures_tell_the_program_from_the_load() {
        let target = Target { capacity: 600_000_000, sector_bytes: 512, geometry: None };
        let mut s = Named::parse("1r-seq+bash").unwrap().suite(&target, 1);
        assert_eq!((s.classes(), s.measures()), (&["readers".to_owned(), "bash".to_owned()][..], vec![]));
        let mut now = Time::ZERO;
        let mut asked = [0; 2];
        while asked[1] < 18 {
            now = now.max(s.next_due().unwrap());
            let ask = s.take().unwrap();
            asked[usize::from(ask.class)] += 1;
            now += Dur::from_ms(500);
            s.finished(ask.owner, now);
        }
        assert_eq!(s.measures()[0], ("starts", 1.0));
        assert!(s.measures()[1].1 > 8.5, "18 reads of half a second each");
    }
}
