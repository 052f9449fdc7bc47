//! Reading and replaying a trace file of arbitrary bytes gives records or an error with a line,
//! never a panic.

use headtime_disk::Time;
use headtime_sim::traces::{ReadOptions, Reader, TraceError, TraceFormat, TraceReader};
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Beyond, Mode, Replay, Target, Workload};

/// A valid start of each format, so that mutations reach every column.
fn sample(format: TraceFormat) -> &'static [u8] {
    match format {
        TraceFormat::Vscsi => {
            return b"\x07\0\0\0\0\x10\0\0\x01\0\0\0\x28\0\0\x01\x23\x0a\0\0\0\0\0\0\xe8\x03\0\0\0\0\0\0\
                     \x08\0\0\0\0\x02\0\0\x01\0\0\0\x2a\0\0\x01\x09\0\0\0\0\0\0\0\xe9\x03\0\0\0\0\0\0";
        }
        TraceFormat::AlibabaCsv => "0,R,126703644672,4096,1577808000000626\n419,W,8192,512,1577808000001626\n",
        TraceFormat::Spc => "0,20941264,8192,W,0.551706\n1,8,1000,r,1.551706\n",
        TraceFormat::ThesiosCsv => {
            "filename,file_offset,application,op_type,cache_hit,request_io_size_bytes,disk_io_size_bytes,start_time,\
             simulated_latency\nf1,1048576,a,READ,0,100,4096,1705305600.5,0.02\n\
             f2,0,b,WRITE,-1,600,0,1705305601.5,0.003\n"
        }
        TraceFormat::DisksimValidate => {
            "W Hit    4583176   4    663.00000  45422.00000\nR Miss 564347 2 14095.370 13876.270\n"
        }
        TraceFormat::DisksimAscii => "0.000000 0 1000 8 1\n12.345678 1 2000 16 0\n13 0 5 1 1\n",
        TraceFormat::Mqsim => "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n",
        TraceFormat::Blkparse => {
            "  8,0    3        1     0.000000000   697  Q   R 223490 + 8 [kjournald]\n  8,0 1 6 0.0096 702 Q FWFS 300 \
             + 8 [a b]\n8,0 1 7 0.0097 702 D  WS 300 + 8 [a]\nCPU0 (8,0):\n Reads Queued: 1\n"
        }
        TraceFormat::MsrCsv => {
            "128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,hm,1,Write,2822144,4096,31406\n"
        }
        TraceFormat::FioIolog => {
            "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 4096 8192\n/dev/sda wait 1500 0\n/dev/sda \
             sync 0 0\n"
        }
        TraceFormat::SystorCsv => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n\
             1456135200.013118000,0.000806000,R,4,8192,4096\n\
             1456135200.113,0.001,W,0,4096,512\n"
        }
        TraceFormat::TencentCsv => "1538323200,12910952,128,0,1063\n1538323202,6338688,8,1,1627\n",
        TraceFormat::PlainCsv => "time_ms,op,lbn,sectors,response_ms\n0,R,8,8,1\n1.5,write,16,1,\n2,F,,,\n",
    }
    .as_bytes()
}

/// The number of lines; of records in a binary format.
fn lines(format: TraceFormat, bytes: &[u8]) -> u64 {
    match format {
        TraceFormat::Vscsi => bytes.len() as u64 / 32 + 1,
        _ => bytes.split(|b| *b == b'\n').count() as u64,
    }
}

/// Overwrites, inserts, deletes and repeats a few bytes.
fn damage(text: &[u8], rng: &mut Variates) -> Vec<u8> {
    const BYTES: &[u8] = b"0123456789.,-+eE \t\n\r[]#RWQDF\"/x\x00\x80\xff";
    let mut bytes = text.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        let byte = BYTES[rng.below(BYTES.len() as u64) as usize];
        match rng.below(5) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at.max(1)),
            _ => {
                let digits = [b'9'; 25];
                let n = 1 + rng.below(25) as usize;
                bytes.splice(at..at, digits[..n].iter().copied());
            }
        }
        if bytes.is_empty() {
            bytes.push(byte);
        }
    }
    bytes
}

#[test]
fn damaged_traces_give_records_or_an_error_with_a_line() {
    let (mut read, mut refused) = (0, 0);
    for (name, format) in TraceFormat::ALL {
        let mut rng = Variates::new(1, format as u64);
        for round in 0..4_000 {
            let bytes = damage(sample(format), &mut rng);
            let shown = || String::from_utf8_lossy(&bytes).into_owned();
            match Reader::new(&bytes[..], "t".into(), format, ReadOptions::default()).read_all() {
                Ok(records) => {
                    read += 1;
                    let lines = lines(format, &bytes);
                    assert!(records.iter().all(|r| r.line >= 1 && r.line <= lines), "{name} {round}: {}", shown());
                    assert!(
                        records.iter().all(|r| r.count > 0 || r.kind == headtime_disk::Kind::Flush),
                        "{name} {round}: {}",
                        shown()
                    );
                }
                Err(e @ (TraceError::Line { .. } | TraceError::Empty { .. })) => {
                    refused += 1;
                    let text = e.to_string();
                    assert!(text.starts_with("t:") && text.contains("expected"), "{name} {round}: {text}");
                }
                Err(e) => panic!("{name} {round}: {e}"),
            }
        }
    }
    assert!(read > 1_000 && refused > 10_000, "{read} read, {refused} refused");
}

#[test]
fn damaged_traces_can_be_replayed_and_time_never_goes_back() {
    let target = Target { capacity: 40_000_000, sector_bytes: 512, geometry: None };
    for (name, format) in TraceFormat::ALL {
        let mut rng = Variates::new(2, format as u64);
        for _ in 0..1_000 {
            let bytes = damage(sample(format), &mut rng);
            for mode in [Mode::Auto, Mode::Open, Mode::Closed] {
                let reader = Reader::new(&bytes[..], "t".into(), format, ReadOptions::default());
                let Ok(mut replay) = Replay::new(reader, &target, mode, Beyond::Refuse) else { continue };
                let mut last = Time::ZERO;
                while replay.next_due().is_some() {
                    let Ok(ask) = replay.take() else { break };
                    assert!(ask.due >= last, "{name}");
                    assert!(ask.lbn + u64::from(ask.count) <= target.capacity, "{name}");
                    last = ask.due;
                    replay.finished(ask.owner, last);
                }
            }
        }
    }
}

#[test]
fn every_sample_cut_anywhere_within_a_line_is_an_error_or_misses_its_last_request() {
    for (name, format) in TraceFormat::ALL {
        let whole = sample(format);
        let read = |bytes: &[u8]| Reader::new(bytes, "t".into(), format, ReadOptions::default()).read_all();
        let all = read(whole).unwrap();
        for cut in 1..whole.len() {
            let mut reader = Reader::new(&whole[..cut], "t".into(), format, ReadOptions::default());
            let mut n = 0;
            while let Ok(Some(r)) = reader.next_record() {
                // A truncation within a line's last column is indistinguishable from a shorter
                // number; all earlier columns are unchanged.
                if r.line < lines(format, &whole[..cut]) {
                    assert_eq!(r, all[n], "{name}, cut at {cut}");
                }
                n += 1;
            }
            assert!(n <= all.len(), "{name}, cut at {cut}");
        }
    }
}
