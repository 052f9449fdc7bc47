//! Tests of the formats of comma-separated columns.

mod msr {
    use super::super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::MsrCsv;

    #[test]
    fn time_begins_with_the_first_request() {
        let r = read(
            F,
            "128166372003061629,hm,0,Read,383496192,32768,413\n\
             128166372016382155,hm,1,Write,2822144,4096,31406\n",
        )
        .unwrap();
        assert_eq!(r[0].arrival, Some(Time(0)));
        assert_eq!(r[1].arrival, Some(Time(1_332_052_600)));
        assert_eq!((r[0].lbn, r[0].count, r[0].kind, r[0].response), (749_016, 64, Kind::Read, Some(Dur(41_300))));
        assert_eq!((r[1].device, r[1].owner, r[1].kind), (1, 0, Kind::Write));
    }

    #[test]
    fn a_heading_is_passed_over_once() {
        let heading = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
        let line = "5,hm,0,Read,0,512,1\n";
        assert_eq!(read(F, &format!("{heading}{line}")).unwrap().len(), 1);
        assert!(error(F, &format!("{line}{heading}")).starts_with("t:2: expected a timestamp"));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        let good = "5,hm,0,Read,0,512,1\n";
        for (line, what) in [
            ("6,hm,0,Read,512", "7 columns"),
            ("6,hm,0,Trim,512,512,1", "Read or Write"),
            ("6,hm,0,Read,100,512,1", "not a multiple of 512"),
            ("6,hm,0,Read,512,700,1", "not a multiple of 512"),
            ("6,hm,0,Read,512,0,1", "0 sectors"),
            ("6,hm,0,Read,512,512,", "a response time"),
        ] {
            let e = error(F, &format!("{good}{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}

mod systor {
    use super::super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};
    use crate::traces::{ReadOptions, Reader, TraceReader};

    const F: TraceFormat = TraceFormat::SystorCsv;

    const SAMPLE: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456135200.013118000,0.000806000,R,4,8192,4096\n\
        1456135200.013200000,,,4,4096,4096\n\
        1456135200.113118000,0.001,W,0,899056122368,131072\n";

    #[test]
    fn time_begins_with_the_first_request_and_blank_types_are_skipped() {
        let mut reader = Reader::new(SAMPLE.as_bytes(), "t".into(), F, ReadOptions::default());
        let a = reader.next_record().unwrap().unwrap();
        let b = reader.next_record().unwrap().unwrap();
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.skipped(), 1);
        assert_eq!((a.arrival, a.response), (Some(Time(0)), Some(Dur(806_000))));
        assert_eq!((a.kind, a.device, a.lbn, a.count), (Kind::Read, 4, 16, 8));
        assert_eq!((b.arrival, b.kind, b.count), (Some(Time(100_000_000)), Kind::Write, 256));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("1456135200.1,0.001,W,0,8192", "6 columns"),
            ("1456135200.1,0.001,X,0,8192,512", "R, W or nothing"),
            ("1456135200.1,0.001,W,a,8192,512", "a LUN"),
            ("1456135200.1,0.001,W,0,8192,511", "not a multiple"),
            ("1456135200.1,fast,W,0,8192,512", "a response time"),
            ("yesterday,0.001,W,0,8192,512", "a timestamp"),
        ] {
            let e = error(F, &format!("{SAMPLE}{line}\n"));
            assert!(e.starts_with("t:5: ") && e.contains(what), "{line}: {e}");
        }
        assert!(read(F, SAMPLE).is_ok());
    }
}

mod tencent {
    use super::super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::TencentCsv;

    #[test]
    fn sectors_are_sectors_and_1_is_a_write() {
        let r = read(F, "1538323200,12910952,128,0,1063\n1538323202,6338688,8,1,1627\n").unwrap();
        assert_eq!(
            (r[0].arrival, r[0].lbn, r[0].count, r[0].kind, r[0].device),
            (Some(Time(0)), 12_910_952, 128, Kind::Read, 1063)
        );
        assert_eq!((r[1].arrival, r[1].kind), (Some(Time(2_000_000_000)), Kind::Write));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (line, what) in [
            ("1538323202,6338688,8,1", "5 columns"),
            ("1538323202,6338688,8,2,1627", "0 (read) or 1 (write)"),
            ("1538323202,6338688,0,1,1627", "0 sectors"),
            ("1538323202,,8,1,1627", "an offset in sectors"),
        ] {
            let e = error(F, &format!("1538323200,12910952,128,0,1063\n{line}\n"));
            assert!(e.starts_with("t:2: ") && e.contains(what), "{line}: {e}");
        }
    }
}

mod plain {
    use super::super::*;
    use crate::traces::TraceFormat;
    use crate::traces::tests::{error, read};

    const F: TraceFormat = TraceFormat::PlainCsv;

    #[test]
    fn it_reads_with_and_without_a_heading() {
        let body = "0,R,8,8\n1.5,write,16,1\n2,F,,\n";
        let bare = read(F, body).unwrap();
        let headed = read(F, &format!("time_ms,op,lbn,sectors\n{body}")).unwrap();
        assert_eq!(bare.len(), 3);
        for (a, b) in bare.iter().zip(&headed) {
            assert_eq!(Record { line: 0, ..*a }, Record { line: 0, ..*b });
        }
        assert_eq!(
            (bare[1].arrival, bare[1].kind, bare[1].lbn, bare[1].count),
            (Some(Time(1_500_000)), Kind::Write, 16, 1)
        );
        assert_eq!((bare[2].kind, bare[2].count), (Kind::Flush, 0));
    }

    #[test]
    fn a_heading_may_reorder_and_add_columns() {
        let r = read(F, "op,sectors,lbn,time_ms,owner,fua,response_ms\nw,2,100,7,3,1,0.25\nr,2,100,8,,,\n").unwrap();
        assert_eq!((r[0].lbn, r[0].count, r[0].owner, r[0].fua, r[0].response), (100, 2, 3, true, Some(Dur(250_000))));
        assert_eq!((r[1].owner, r[1].fua, r[1].response), (0, false, None));
    }

    #[test]
    fn damaged_lines_name_line_and_expectation() {
        for (text, what) in [
            ("time_ms,op,lbn\n", "a column sectors"),
            ("time_ms,op,lbn,blocks\n", "columns named among"),
            ("time_ms,op,lbn,lbn\n", "each column once"),
            ("0,R,8\n", "4 columns"),
            ("0,X,8,8\n", "R, W, F"),
            ("0,R,8,0\n", "0 sectors"),
            ("later,R,8,8\n", "a time in ms"),
            ("0,R,8,eight\n", "a count of sectors"),
        ] {
            let e = error(F, text);
            assert!(e.starts_with("t:1: ") && e.contains(what), "{text}: {e}");
        }
        let e = error(F, "time_ms,op,lbn,sectors,device\n0,R,8,8\n");
        assert!(e.starts_with("t:2: expected 5 columns"), "{e}");
    }
}
