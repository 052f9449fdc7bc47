//! `thesios-csv`: requests to one disk of a storage server, with a heading.
//!
//! The traces of Google's disks that Thesios synthesised (README of their repository;
//! Phothilimthana et al., ASPLOS 2024). Columns are found by their names. Reads that a cache
//! answered are skipped: the disk did nothing. `start_time` is in seconds since 1970;
//! `simulated_latency` is the response time.
//!
//! The traces have files and offsets, and no blocks. A file begins at a place that a hash of its
//! name decides, at a multiple of 1 MiB, and its blocks follow one another; the places are those of
//! a volume much larger than any drive, which a replay folds onto the drive
//! ([`super::TraceFormat::is_folded`]). Ranges are widened to whole sectors.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind};
use xxhash_rust::xxh3::xxh3_64;

use super::text::{Bad, Columns, quote};
use super::{LineFormat, Names, Parsed, Record, Since, range};

const SHAPE: &str = "a heading with filename, file_offset, application, op_type, request_io_size_bytes, \
                     disk_io_size_bytes and start_time, and lines with as many columns";

/// Files begin at multiples of this many sectors (1 MiB).
const ALIGNMENT: u64 = 2048;
/// The sectors of the volume: files of 2^20 hashes each share places on a drive of 20 TB only by
/// its folding.
const VOLUME: u64 = 1 << 52;

/// Columns by their meaning.
#[derive(Clone, Copy, Default)]
struct Places {
    filename: usize,
    offset: usize,
    application: usize,
    op: usize,
    request_bytes: usize,
    disk_bytes: usize,
    start: usize,
    latency: Option<usize>,
    cache_hit: Option<usize>,
    flash: Option<usize>,
    count: usize,
}

#[derive(Default)]
pub(super) struct ThesiosCsv {
    clock: Since,
    applications: Names,
    places: Option<Places>,
}

fn heading(c: &Columns) -> Result<Places, Bad> {
    let find = |name: &[u8]| (0..c.count()).find(|i| c.get(*i) == name);
    let need = |name: &'static str| {
        find(name.as_bytes()).ok_or_else(|| Bad { expected: SHAPE.into(), found: quote(c.line()) })
    };
    Ok(Places {
        filename: need("filename")?,
        offset: need("file_offset")?,
        application: need("application")?,
        op: need("op_type")?,
        request_bytes: need("request_io_size_bytes")?,
        disk_bytes: need("disk_io_size_bytes")?,
        start: need("start_time")?,
        latency: find(b"simulated_latency"),
        cache_hit: find(b"cache_hit"),
        flash: find(b"from_flash_cache"),
        count: c.count(),
    })
}

impl LineFormat for ThesiosCsv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        let Some(p) = self.places else {
            self.places = Some(heading(&c)?);
            return Ok(Parsed::Taken);
        };
        if c.count() != p.count {
            return Err(Bad { expected: SHAPE.into(), found: format!("{} columns in {}", c.count(), quote(line)) });
        }
        let kind = match c.get(p.op) {
            b"READ" => Kind::Read,
            b"WRITE" => Kind::Write,
            other => return Err(Bad::new("READ or WRITE in op_type", other)),
        };
        let is_true = |at: Option<usize>| at.is_some_and(|at| matches!(c.get(at), b"1" | b"true" | b"True" | b"TRUE"));
        let at = c.scaled(p.start, 9, "seconds in start_time")?;
        // Time begins with the first request, whether or not the disk sees it.
        let arrival = self.clock.first(at, 1);
        let disk_bytes = c.whole(p.disk_bytes, "bytes in disk_io_size_bytes")?;
        if kind == Kind::Read && (is_true(p.cache_hit) || is_true(p.flash) || disk_bytes == 0) {
            return Ok(Parsed::Skipped);
        }
        // The size of the disk's operation is not recorded for writes.
        let bytes = match kind {
            Kind::Read => disk_bytes,
            _ => c.whole(p.request_bytes, "bytes in request_io_size_bytes")?,
        };
        let offset = c.whole(p.offset, "bytes in file_offset")?;
        let first = xxh3_64(c.get(p.filename)) % (VOLUME / ALIGNMENT) * ALIGNMENT;
        let end = offset.checked_add(bytes).map(|end| end.div_ceil(512));
        let count = end.map_or(0, |end| end - offset / 512);
        let place = range(first.saturating_add(offset / 512), count)?;
        let response = match p.latency {
            Some(at) => Some(Dur(c.scaled(at, 9, "seconds in simulated_latency")?)),
            None => None,
        };
        let owner = self.applications.number(c.get(p.application));
        out.push_back(Record::new(number, kind, place).at(arrival).by(owner).answered(response));
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        SHAPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};
    use headtime_disk::Time;

    const F: TraceFormat = TraceFormat::ThesiosCsv;
    const HEADING: &str = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,\
                           from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,\
                           response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,simulated_latency";

    #[test]
    fn blocks_of_a_file_follow_one_another_and_hits_are_skipped() {
        let text = format!(
            "{HEADING}\n\
             f1,1048576,bigtable,1,WARM,REPLICATED,READ,OTHER,0,0,100,4096,100,1705305600.5,0.01,1705305600.51,0.02\n\
             f1,1052672,bigtable,1,WARM,REPLICATED,READ,OTHER,0,1,100,0,100,1705305600.6,0,0,0.001\n\
             f1,1052672,spanner,1,WARM,REPLICATED,WRITE,OTHER,0,-1,600,0,600,1705305601.5,0,0,0.003\n\
             f2,0,spanner,1,COLD,ERASURE_CODED,READ,OTHER,0,0,100,1,100,1705305602.5,0.01,1705305600.51,0.02\n"
        );
        let r = read(F, &text).unwrap();
        assert_eq!(r.len(), 3);
        assert_eq!((r[0].count, r[0].kind, r[0].owner), (8, Kind::Read, 0));
        assert_eq!((r[0].arrival, r[0].response), (Some(Time::ZERO), Some(Dur(20_000_000))));
        assert_eq!((r[1].lbn, r[1].count, r[1].kind, r[1].owner), (r[0].lbn + 8, 2, Kind::Write, 1));
        assert_eq!(r[1].arrival, Some(Time(1_000_000_000)));
        assert_eq!((r[2].lbn % ALIGNMENT, r[2].count), (0, 1));
        assert_ne!(r[2].lbn, r[0].lbn - 2048, "another file");
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let good = "f1,0,a,1,WARM,REPLICATED,READ,OTHER,0,0,100,4096,100,1.5,0.01,1.5,0.02";
        for (line, what) in [
            ("f1,0,a", "a heading with filename"),
            (&good.replace("READ", "ERASE")[..], "READ or WRITE"),
            (&good.replace("4096", "x"), "bytes in disk_io_size_bytes"),
            (&good.replace(",1.5,0.01", ",-1,0.01"), "seconds in start_time"),
            (&good.replace(",4096,", ",18446744073709551615,"), "1 to 2^32-1 sectors"),
        ] {
            let e = error(F, &format!("{HEADING}\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}
