//! Requests per second of wall time that the reader of each trace format reads, and the same from
//! compressed files.
//!
//! Run with `cargo bench -p headtime-sim --bench traces`; under `cargo test` every benchmark runs
//! once, on a short trace. The requests are those of `random-4k`: reads and writes of 4 KiB, one a
//! millisecond.

use std::fmt::Write as _;
use std::io::Write as _;

use divan::Bencher;
use divan::counter::ItemsCount;
use flate2::Compression;
use flate2::write::GzEncoder;
use headtime_sim::traces::{self, ReadOptions, Reader, TraceFormat, TraceReader};
use headtime_sim::workload::variates::Variates;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn main() {
    divan::main();
}

/// Number of requests of a trace.
fn length() -> u64 {
    if std::env::args().any(|a| a == "--bench") { 200_000 } else { 200 }
}

/// A request: its number, sector and whether it reads.
struct Request {
    n: u64,
    lbn: u64,
    reads: bool,
}

impl Request {
    /// One of two words.
    fn either<'a>(&self, read: &'a str, write: &'a str) -> &'a str {
        if self.reads { read } else { write }
    }
}

/// Appends the line of a request, or its binary record.
fn append(format: TraceFormat, out: &mut Vec<u8>, r: &Request) {
    let (n, lbn, bytes) = (r.n, r.lbn, r.lbn * 512);
    let mut line = String::new();
    let done = match format {
        TraceFormat::PlainCsv => writeln!(line, "{n}.25,{},{lbn},8", r.either("R", "W")),
        TraceFormat::DisksimValidate => {
            writeln!(line, "{} Miss {lbn} 8 8{}.125 {}.500", r.either("R", "W"), n % 1000, n % 77)
        }
        TraceFormat::DisksimAscii => writeln!(line, "{n}.250000 0 {lbn} 8 {}", r.either("1", "0")),
        TraceFormat::Mqsim => writeln!(line, "{n}000000 0 {lbn} 8 {}", r.either("1", "0")),
        TraceFormat::Blkparse => writeln!(
            line,
            "  8,0    3 {n:>8} {:>5}.{:03}000000   697  Q   {} {lbn} + 8 [fio]",
            n / 1000,
            n % 1000,
            r.either("R", "W")
        ),
        TraceFormat::MsrCsv => {
            let read = r.either("Read", "Write");
            writeln!(line, "{},hm,0,{read},{bytes},4096,413", 128_166_372_003_061_629 + n * 10_000)
        }
        TraceFormat::FioIolog => writeln!(line, "{n} /dev/sda {} {bytes} 4096", r.either("read", "write")),
        TraceFormat::SystorCsv => {
            let (s, ms) = (1_456_135_200 + n / 1000, n % 1000);
            writeln!(line, "{s}.{ms:03}000000,0.000806000,{},0,{bytes},4096", r.either("R", "W"))
        }
        TraceFormat::TencentCsv => {
            writeln!(line, "{},{lbn},8,{},1063", 1_538_323_200 + n / 1000, r.either("0", "1"))
        }
        TraceFormat::AlibabaCsv => {
            writeln!(line, "0,{},{bytes},4096,{}", r.either("R", "W"), 1_577_808_000_000_626 + n * 1000)
        }
        TraceFormat::ThesiosCsv => {
            let (s, ms) = (1_705_305_600 + n / 1000, n % 1000);
            writeln!(
                line,
                "{:04x},{},bigtable,{},0,4096,4096,{s}.{ms:03},0.012",
                lbn % 5000,
                bytes % (1 << 27),
                r.either("READ", "WRITE")
            )
        }
        TraceFormat::Spc => writeln!(line, "0,{lbn},4096,{},{}.{:03}", r.either("R", "W"), n / 1000, n % 1000),
        TraceFormat::Vscsi => {
            out.extend((n as u32).to_le_bytes());
            out.extend(4096_u32.to_le_bytes());
            out.extend(1_u32.to_le_bytes());
            out.extend(if r.reads { 0x28_u16 } else { 0x2a }.to_le_bytes());
            out.extend(0x0100_u16.to_le_bytes());
            out.extend(lbn.to_le_bytes());
            out.extend((n * 1000).to_le_bytes());
            Ok(())
        }
    };
    done.expect("memory");
    out.extend(line.as_bytes());
}

/// Returns a trace in a format.
fn trace(format: TraceFormat) -> Vec<u8> {
    let mut out = match format {
        TraceFormat::FioIolog => b"fio version 3 iolog\n".to_vec(),
        TraceFormat::ThesiosCsv => b"filename,file_offset,application,op_type,cache_hit,request_io_size_bytes,\
            disk_io_size_bytes,start_time,simulated_latency\n"
            .to_vec(),
        _ => Vec::new(),
    };
    let mut places = Variates::new(1, 0);
    for n in 0..length() {
        let request = Request { n, lbn: places.below(1 << 21) * 8, reads: places.below(3) > 0 };
        append(format, &mut out, &request);
    }
    out
}

/// Reads a whole trace and returns the number of its requests.
fn count(mut reader: impl TraceReader) -> u64 {
    let mut found = 0;
    while reader.next_record().expect("a sound trace").is_some() {
        found += 1;
    }
    found
}

fn names() -> impl Iterator<Item = &'static str> {
    TraceFormat::ALL.into_iter().map(|(name, _)| name)
}

#[divan::bench(args = names())]
fn read(bencher: Bencher, name: &str) {
    let format = TraceFormat::from_name(name).expect("a known name");
    let text = trace(format);
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let found = count(Reader::new(text.as_slice(), name.into(), format, ReadOptions::default()));
        assert_eq!(found, length());
    });
}

#[divan::bench(args = ["gzip", "zstd"])]
fn read_compressed_alibaba(bencher: Bencher, how: &str) {
    let text = trace(TraceFormat::AlibabaCsv);
    let packed = match how {
        "gzip" => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(&text).expect("memory");
            packed.finish().expect("memory")
        }
        _ => compress_to_vec(text.as_slice(), CompressionLevel::Fastest),
    };
    let file = std::env::temp_dir().join(format!("headtime-bench-{}-{how}", std::process::id()));
    std::fs::write(&file, packed).expect("a writable directory of temporary files");
    bencher.counter(ItemsCount::new(length())).bench_local(|| {
        let reader = traces::open(&file, TraceFormat::AlibabaCsv, ReadOptions::default()).expect("the file is there");
        assert_eq!(count(reader), length());
    });
    std::fs::remove_file(&file).expect("it is there");
}
