//! Reading and replaying a trace file of arbitrary bytes gives records or an error with a line,
//! never a panic.

use headtime_disk::Time;
use headtime_sim::traces::{ReadOptions, Reader, TraceError, TraceFormat, TraceReader};
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Beyond, Mode, Replay, Target, Workload};

/// A valid start of each format, so that mutations reach every column.
fn sample(format: TraceFormat) -> &'static str {
    match format {
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
}

/// Overwrites, inserts, deletes and repeats a few bytes.
fn damage(text: &str, rng: &mut Variates) -> Vec<u8> {
    const BYTES: &[u8] = b"0123456789.,-+eE \t\n\r[]#RWQDF\"/x\x00\x80\xff";
    let mut bytes = text.as_bytes().to_vec();
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
                    let lines = bytes.split(|b| *b == b'\n').count() as u64;
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
        let read = |text: &str| Reader::new(text.as_bytes(), "t".into(), format, ReadOptions::default()).read_all();
        let all = read(whole).unwrap();
        for cut in 1..whole.len() {
            let mut reader = Reader::new(&whole.as_bytes()[..cut], "t".into(), format, ReadOptions::default());
            let mut n = 0;
            while let Ok(Some(r)) = reader.next_record() {
                // A truncation within a line's last column is indistinguishable from a shorter
                // number; all earlier columns are unchanged.
                if r.line < whole[..cut].lines().count() as u64 {
                    assert_eq!(r, all[n], "{name}, cut at {cut}");
                }
                n += 1;
            }
            assert!(n <= all.len(), "{name}, cut at {cut}");
        }
    }
}
