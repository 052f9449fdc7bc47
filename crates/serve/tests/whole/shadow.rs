//! The data that each read may return, and the data that must exist after a crash.
//!
//! Every write fills its sectors with its own stamp. For each sector the shadow holds the possible
//! stamps: those of writes not certainly followed by another. A write certainly follows another if
//! it was issued after that one had ended. The data of a write task may be written from when it was
//! handed over until its result is known, but never over a client's write issued after the task's
//! registration.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes per sector.
pub const SECTOR: usize = 512;

/// A write of a sector.
#[derive(Clone, Copy, Debug)]
struct Version {
    stamp: u64,
    issued: u64,
    /// When it was answered, or could no longer be carried out.
    ended: Option<u64>,
    /// Whether it was answered without an error.
    done: bool,
    /// For a write task: when it was certainly registered.
    registered: Option<u64>,
}

impl Version {
    /// Returns whether it certainly precedes another.
    fn precedes(&self, other: &Version) -> bool {
        let ended = self.ended.is_some_and(|ended| ended <= other.issued);
        ended || other.registered.is_none() && self.registered.is_some_and(|registered| registered < other.issued)
    }
}

#[derive(Clone, Debug)]
struct Sector {
    /// The possible data.
    held: Vec<Version>,
    /// The possible data after a power failure.
    kept: Vec<Version>,
    /// Stamps and times of all writes issued since the oldest read in flight.
    recent: Vec<(u64, u64)>,
    /// When the last completed client write was issued, and when any was last issued or ended.
    newest: u64,
    touched: u64,
}

/// All sectors of an export.
#[derive(Debug)]
pub struct Shadow {
    name: &'static str,
    sectors: Vec<Sector>,
    moment: Arc<AtomicU64>,
    stamps: u64,
    reads: u64,
    /// Sectors checked.
    pub checked: u64,
}

/// A read in flight, with the possible data of each of its sectors when it was issued.
#[derive(Debug)]
pub struct Reading {
    range: Range<usize>,
    issued: u64,
    held: Vec<Vec<u64>>,
    /// The read returns the data of some moment before this one; `None`: before its answer.
    until: Option<u64>,
}

impl Reading {
    /// Returns the number of sectors.
    pub fn sectors(&self) -> usize {
        self.range.len()
    }

    /// Sets the moment that the read's data precedes.
    pub fn is_of_before(&mut self, moment: u64) {
        self.until = Some(moment);
    }
}

/// A write in flight.
#[derive(Clone, Debug)]
pub struct Writing {
    /// Its sectors.
    pub range: Range<usize>,
    /// The stamp they are filled with.
    pub stamp: u64,
    fua: bool,
}

/// Returns a sector filled with a stamp.
pub fn filled(stamp: u64, sector: usize) -> [u8; SECTOR] {
    let mut data = [stamp as u8; SECTOR];
    data[..8].copy_from_slice(&stamp.to_le_bytes());
    data[8..16].copy_from_slice(&(sector as u64).to_le_bytes());
    if stamp == 0 { [0; SECTOR] } else { data }
}

/// Returns the stamp of a sector; fails if it is torn, or has another sector's data.
pub fn stamp_of(data: &[u8], sector: usize) -> u64 {
    let stamp = u64::from_le_bytes(data[..8].try_into().expect("a sector"));
    assert!(data == filled(stamp, sector), "sector {sector} is torn, or holds another's data (stamp {stamp})");
    stamp
}

impl Sector {
    fn add(&mut self, version: Version, reads: u64) {
        self.held.push(version);
        self.kept.push(version);
        if reads > 0 {
            self.recent.push((version.stamp, version.issued));
        }
    }

    fn end(&mut self, stamp: u64, at: u64, done: bool) {
        for list in [&mut self.held, &mut self.kept] {
            if let Some(v) = list.iter_mut().find(|v| v.stamp == stamp) {
                (v.ended, v.done) = (Some(at), done);
                if v.registered.is_none() {
                    self.touched = at;
                    self.newest = if done { self.newest.max(v.issued) } else { self.newest };
                }
            }
        }
    }

    /// Removes the writes that certainly precede a write of this stamp.
    fn supersede(list: &mut Vec<Version>, stamp: u64) {
        if let Some(newer) = list.iter().find(|v| v.stamp == stamp).copied() {
            list.retain(|v| !v.precedes(&newer));
        }
    }
}

fn trace(name: &str, range: &Range<usize>, what: std::fmt::Arguments<'_>) {
    if let Some(sector) = std::env::var("HEADTIME_SECTOR").ok().and_then(|s| s.parse().ok())
        && range.contains(&sector)
    {
        println!("  {name}: {what}");
    }
}

impl Shadow {
    /// Creates `sectors` sectors of zeros.
    pub fn new(name: &'static str, sectors: usize) -> Shadow {
        let zero = Version { stamp: 0, issued: 0, ended: Some(0), done: true, registered: None };
        let sector = Sector { held: vec![zero], kept: vec![zero], recent: vec![], newest: 0, touched: 0 };
        Shadow { name, sectors: vec![sector; sectors], moment: Arc::default(), stamps: 0, reads: 0, checked: 0 }
    }

    /// Returns the number of sectors.
    pub fn len(&self) -> usize {
        self.sectors.len()
    }

    fn now(&mut self) -> u64 {
        self.moment.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the counter of moments, which holds the last one.
    pub fn clock(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.moment)
    }

    /// Issues a write.
    pub fn write(&mut self, range: Range<usize>, fua: bool) -> Writing {
        self.stamps += 1;
        let (stamp, issued, reads) = (self.stamps, self.now(), self.reads);
        for sector in &mut self.sectors[range.clone()] {
            sector.add(Version { stamp, issued, ended: None, done: false, registered: None }, reads);
            sector.touched = issued;
        }
        trace(self.name, &range, format_args!("write {stamp} fua {fua} issued {issued}"));
        Writing { range, stamp, fua }
    }

    /// Hands over data of a write task, which had been registered by then. Where a client has
    /// written since, it may no longer be written.
    pub fn hand_over(&mut self, range: Range<usize>, registered: u64) -> Writing {
        self.stamps += 1;
        let (stamp, issued, reads) = (self.stamps, self.now(), self.reads);
        for sector in self.sectors[range.clone()].iter_mut().filter(|s| s.newest <= registered) {
            sector.add(Version { stamp, issued, ended: None, done: false, registered: Some(registered) }, reads);
        }
        trace(self.name, &range, format_args!("{stamp} handed over at {issued}, registered by {registered}"));
        Writing { range, stamp, fua: false }
    }

    /// Returns whether a client may have written here since this moment.
    pub fn may_be_newer(&self, range: Range<usize>, moment: u64) -> bool {
        let under_way = |v: &Version| v.registered.is_none() && v.ended.is_none();
        self.sectors[range].iter().any(|s| s.touched > moment || s.held.iter().any(under_way))
    }

    /// Records the answer of a write.
    pub fn written(&mut self, writing: Writing, done: bool) {
        let at = self.now();
        trace(self.name, &writing.range, format_args!("written {} {done} at {at}", writing.stamp));
        for sector in &mut self.sectors[writing.range] {
            sector.end(writing.stamp, at, done);
            if done {
                Sector::supersede(&mut sector.held, writing.stamp);
                if writing.fua {
                    Sector::supersede(&mut sector.kept, writing.stamp);
                }
            }
        }
    }

    /// Returns the current moment. A flush issued at it covers writes answered before.
    pub fn moment(&mut self) -> u64 {
        self.now()
    }

    /// Records the successful answer of a flush.
    pub fn flushed(&mut self, issued: u64) {
        trace(self.name, &(0..self.len()), format_args!("flushed {issued}"));
        for sector in &mut self.sectors {
            let covered = |v: &&Version| v.done && v.ended.is_some_and(|ended| ended < issued);
            let durable: Vec<Version> = sector.kept.iter().filter(covered).copied().collect();
            sector.kept.retain(|v| !durable.iter().any(|d| d.stamp != v.stamp && v.precedes(d)));
        }
    }

    /// Issues a read.
    pub fn read(&mut self, range: Range<usize>) -> Reading {
        self.reads += 1;
        let issued = self.now();
        let held = self.sectors[range.clone()].iter().map(|s| s.held.iter().map(|v| v.stamp).collect()).collect();
        Reading { range, issued, held, until: None }
    }

    /// Fixes the read's data to moments before now.
    pub fn fix(&mut self, reading: &mut Reading) {
        reading.until = Some(self.now());
    }

    /// Checks the data of a read; `None` if it was not answered.
    pub fn have_read(&mut self, reading: Reading, data: Option<&[u8]>) {
        for (at, sector) in data.into_iter().flat_map(|data| data.chunks(SECTOR)).zip(reading.range.clone()) {
            let stamp = stamp_of(at, sector);
            let before = &reading.held[sector - reading.range.start];
            let since = self.sectors[sector]
                .recent
                .iter()
                .any(|r| r.0 == stamp && r.1 > reading.issued && reading.until.is_none_or(|until| r.1 < until));
            assert!(
                before.contains(&stamp) || since,
                "sector {sector} holds {stamp}; when it was asked for it held one of {before:?}: {:?}",
                self.sectors[sector]
            );
            self.checked += 1;
        }
        self.reads -= 1;
        if self.reads == 0 {
            self.sectors.iter_mut().for_each(|s| s.recent.clear());
        }
    }

    /// Checks the sectors after a crash. `volatile`: unflushed writes may be lost; otherwise each
    /// answered write exists. `power`: what exists is on the platters; otherwise it may still be
    /// lost.
    pub fn crashed(&mut self, found: impl Fn(usize) -> [u8; SECTOR], volatile: bool, power: bool) {
        let at = self.now();
        trace(self.name, &(0..self.len()), format_args!("crash at {at}, volatile {volatile}, power {power}"));
        self.reads = 0;
        for (n, sector) in self.sectors.iter_mut().enumerate() {
            let stamp = stamp_of(&found(n), n);
            let allowed = if volatile { &sector.kept } else { &sector.held };
            assert!(
                allowed.iter().any(|v| v.stamp == stamp),
                "after a crash (volatile: {volatile}, power: {power}) sector {n} holds {stamp}, and may hold one of \
                 {allowed:?}"
            );
            self.checked += 1;
            let version = Version { stamp, issued: at, ended: Some(at), done: true, registered: None };
            sector.recent.clear();
            sector.held = vec![version];
            if power {
                sector.kept = vec![version];
            } else {
                // What was found counts as just written; other data may be on the platters as long
                // as nothing was flushed since, and none of it is written any more.
                sector.kept.retain(|v| v.stamp != stamp);
                sector.kept.iter_mut().for_each(|v| v.ended = Some(at - 1));
                sector.kept.push(version);
            }
        }
    }
}
