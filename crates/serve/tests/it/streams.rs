//! Streams in real time: replies to clients over NBD and the control interface, and the engine's
//! behaviour.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::rig::{MEASURED_DRIVE, Rig, exports, next, promising, sectors};
use headtime_disk::profile::{self, Figure, Profile};
use headtime_disk::{DriveConfig, Dur, Kind};
use headtime_sched::streams::{Disk, Quality, ServedStream, Stream, admit};
use headtime_sched::write_cache::Limits;
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, TaskEvent, TaskRange};
use headtime_serve::control::client::{Code, connect};
use headtime_serve::control::v1;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::device::{Device, Fault};
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::engine::session_event::SessionEvent;
use headtime_serve::engine::streams::{NotBegun, StreamCall};
use headtime_serve::internals::destage::inside::Caches;
use headtime_serve::internals::device::faulty::{Faulty, Planted};
use headtime_serve::net::address::Address;
use headtime_serve::note::About;
use headtime_serve::server::{CAPACITY, ControlAt, Server, Service};
use headtime_serve::streams::{Grounds, Live};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

const KIB64: u32 = 64 << 10;

fn ultrastar() -> Profile {
    profile::builtin(MEASURED_DRIVE).expect("a built-in drive whose times were measured")
}

fn drive(profile: &Profile) -> (VirtualDrive, std::fs::File) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(64 << 30).unwrap();
    let drive = VirtualDrive::new(profile, DriveConfig::default(), file.try_clone().unwrap().into()).unwrap();
    (drive, file)
}

fn stream(requests: u32, ms: u64, ppm: u32) -> Stream {
    Stream::new(requests, Dur::from_ms(ms), Quality::from_ppm(ppm).unwrap(), 128).unwrap()
}

/// Returns the settings of a scheduler with streams.
fn config(fill: Option<FillConfig>) -> Config {
    Config::new(Order::Sptf).with_capacity(CAPACITY).with_fill(fill)
}

/// Returns a scheduler with these streams, and the drive's figures.
fn core(wanted: &[(u32, Stream)], fill: Option<FillConfig>) -> (Core, Disk) {
    promising(config(fill), &exports(), wanted)
}

/// Starts a server with two exports; returns it and its notes.
fn server(dir: &Path, device: impl Device + Send + 'static, wanted: &[(u32, Stream)]) -> (Server, Arc<Mutex<String>>) {
    server_with(dir, device, wanted, Caches::default())
}

/// Starts a server on a virtual drive; returns it and its streams.
fn live(dir: &Path, wanted: &[(u32, Stream)]) -> (Server, Live) {
    let (server, _) = server(dir, drive(&ultrastar()).0, wanted);
    let live = server.streams().unwrap().clone();
    (server, live)
}

fn server_with(
    dir: &Path,
    device: impl Device + Send + 'static,
    wanted: &[(u32, Stream)],
    caches: Caches,
) -> (Server, Arc<Mutex<String>>) {
    let sectors = device.sectors();
    let exports = exports();
    let noted: Arc<Mutex<String>> = Arc::default();
    let notes = Arc::clone(&noted);
    let note = Arc::new(move |about, line: String| match about {
        About::Visits => {}
        _ => *notes.lock().unwrap() += &(line + "\n"),
    });
    let listen = vec![Address::Unix(dir.join("nbd"))];
    let mut service = Service::new(listen, exports.clone(), note);
    service.caches = caches;
    let path = dir.join("control");
    service.control = Some(ControlAt { path, disk: "u".into(), disk_id: String::new(), sectors, fills: false });
    let (core, disk) = promising(config(None), &exports, wanted);
    service.streams = Some(Arc::new(disk));
    (Server::start(core, device, service).unwrap(), noted)
}

/// A client with structured replies.
struct Client {
    stream: UnixStream,
    /// The longest request, bytes, as negotiated.
    most: u32,
}

impl Client {
    fn open(dir: &Path, export: &str) -> Client {
        let mut stream = UnixStream::connect(dir.join("nbd")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let option = |kind: u32, data: &[u8]| {
            [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
        };
        let about = [&(export.len() as u32).to_be_bytes()[..], export.as_bytes(), &[0, 1, 0, 3]].concat();
        let said = [&3u32.to_be_bytes()[..], &option(8, &[]), &option(7, &about)].concat();
        stream.write_all(&said).unwrap();
        let mut client = Client { stream, most: 0 };
        let mut acks = 0;
        while acks < 2 {
            let mut head = [0; 20];
            client.stream.read_exact(&mut head).unwrap();
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let data = client.bytes(word(16) as usize);
            match word(12) {
                1 => acks += 1,
                3 if data[..2] == [0, 3] => client.most = u32::from_be_bytes(data[10..14].try_into().unwrap()),
                3 => {}
                refused => panic!("refused: {refused:#x}"),
            }
        }
        client
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn ask(&mut self, cookie: u64, offset: u64, length: u32) {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
        let said = [&head[..], &cookie.to_be_bytes(), &offset.to_be_bytes(), &length.to_be_bytes()].concat();
        self.stream.write_all(&said).unwrap();
    }

    /// Returns the next answer: its cookie, and its error number and message, if any.
    fn answer(&mut self) -> (u64, Option<(u32, String)>) {
        let head = self.bytes(20);
        assert_eq!(head[..4], [0x66, 0x8e, 0x33, 0xef]);
        let length = u32::from_be_bytes(head[16..].try_into().unwrap());
        let data = self.bytes(length as usize);
        let error = (head[6] & 0x80 != 0).then(|| {
            let errno = u32::from_be_bytes(data[..4].try_into().unwrap());
            (errno, String::from_utf8(data[6..].to_vec()).unwrap())
        });
        (u64::from_be_bytes(head[8..16].try_into().unwrap()), error)
    }

    fn read(&mut self, offset: u64, length: u32) -> Option<(u32, String)> {
        self.ask(1, offset, length);
        self.answer().1
    }
}

#[test]
fn what_is_late_is_answered_so_and_a_drive_that_breaks_its_worst_case_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = drive(&ultrastar());
    // One command takes far longer than its worst case of 30 ms.
    let device = Faulty::new(device, [(0, Planted::Hangs(Dur::from_ms(700)))]);
    let (server, noted) = server(dir.path(), device, &[(0, stream(4, 250, 500_000))]);
    let mut client = Client::open(dir.path(), "a");
    assert_eq!(client.most, KIB64, "a stream's requests are as large as it declared");
    for n in 0..8 {
        client.ask(n, n * 100 * u64::from(KIB64), KIB64);
    }
    let answers: Vec<_> = (0..8).map(|_| client.answer()).collect();
    let late: Vec<_> = answers.iter().filter_map(|a| a.1.as_ref()).collect();
    assert!(!late.is_empty() && late.len() < 8, "{answers:?}");
    for (errno, sentence) in late.iter().copied() {
        assert_eq!((*errno, sentence.as_str()), (5, "not done in its period, and given up"));
    }
    let s = server.snapshot().unwrap();
    let tally = s.streams[0].tally;
    assert_eq!((tally.asked, tally.given_up), (8, late.len() as u64), "{tally:?}");
    assert!(tally.late >= tally.given_up && tally.in_time + tally.late == 8, "{tally:?}");
    let (times, last) = s.overdue;
    let last = last.expect("it took longer than at its worst");
    assert!(times >= 1 && last.command.count == 128 && last.took > last.worst, "{last:?}");
    let began = Instant::now();
    while !noted.lock().unwrap().contains("the drive took ") && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = noted.lock().unwrap().clone();
    assert!(said.contains("for a read of 128 sectors at ") && said.contains("at its worst (1 times"), "{said}");
    server.stop().unwrap();
}

fn asked(export: Option<&str>, requests: u32, quality_ppm: u32, bytes: u32) -> v1::StreamRequest {
    let stream = v1::Stream { requests, period_ns: 500_000_000, quality_ppm, bytes, kinds: 0, blocked_by: 0 };
    v1::StreamRequest { export: export.map(String::from), stream: Some(stream) }
}

#[test]
fn streams_come_and_go_over_the_control_interface() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = drive(&ultrastar());
    let (server, _) = server(dir.path(), device, &[]);
    let mut before = Client::open(dir.path(), "a");
    assert_eq!(before.most, 1 << 20);
    assert_eq!(before.read(0, 2 << 20), Some((22, "length: expected at most 1048576 bytes, found 2097152".into())));
    Runtime::new().unwrap().block_on(async {
        let mut control = connect(&dir.path().join("control")).await.unwrap();
        let no = control.ask_stream(asked(None, 1000, 1_000_000, KIB64)).await.unwrap().into_inner();
        assert!(!no.admitted && no.why_not.contains("mandatory streams would take"), "{no:?}");
        let most = no.nearest_requests.expect("fewer would do");
        for (requests, admitted) in [(most, true), (most + 1, false)] {
            let said = control.ask_stream(asked(Some("a"), requests, 1_000_000, KIB64)).await.unwrap().into_inner();
            assert_eq!(said.admitted, admitted, "{said:?}");
        }
        // The worst case of older requests counts, too.
        let mut behind = asked(None, most, 1_000_000, KIB64);
        behind.stream.as_mut().unwrap().blocked_by = 1;
        let said = control.ask_stream(behind).await.unwrap().into_inner();
        assert!(!said.admitted && said.nearest_requests.is_some_and(|n| n < most / 2), "{said:?}");
        for (request, why) in [
            (asked(Some("c"), 5, 990_000, KIB64), "no export is called \"c\""),
            (asked(Some("a"), 5, 990_000, 1000), "expected whole sectors of 512 bytes, found 1000"),
            (asked(Some("a"), 0, 990_000, KIB64), "requests per period: expected 1 to 10000, found 0"),
            (asked(Some("a"), 5, 990_000, 64 << 20), "expected at most 33554432 bytes, found 67108864"),
            (asked(None, 5, 990_000, KIB64), "export: expected a name, found none"),
        ] {
            let e = control.open_stream(request).await.unwrap_err();
            assert!(e.message().contains(why), "{e:?}");
        }
        let opened = control.open_stream(asked(Some("a"), 5, 990_000, KIB64)).await.unwrap().into_inner();
        let last = opened.reserved.last().unwrap();
        assert!(opened.admitted && last.export.as_deref() == Some("a"), "{opened:?}");
        // Table 2 of the paper has 20.9 ms.
        assert!((15.0e6..30.0e6).contains(&(last.reservation_ns.unwrap() as f64)), "{opened:?}");
        assert!(opened.worst_ns > 25_000_000 && opened.left_ppm + opened.expected_ppm <= 1_020_000, "{opened:?}");
        // Whether there is room for another stream does not matter here.
        for again in [asked(Some("a"), 5, 990_000, KIB64), asked(Some("a"), 1_000, 1_000_000, KIB64)] {
            let twice = control.open_stream(again).await.unwrap_err();
            assert_eq!(twice.code(), Code::FailedPrecondition, "{twice:?}");
            assert!(twice.message().starts_with("export \"a\", it is a stream already"), "{twice:?}");
        }
        // An earlier client negotiated larger requests; they are now rejected with a reason.
        let (errno, why) = before.read(0, 2 * KIB64).expect("it is too large");
        assert!(errno == 22 && why.contains("larger than requests may be here"), "{errno} {why}");
        assert_eq!(before.read(0, KIB64), None);
        assert_eq!(Client::open(dir.path(), "a").most, KIB64);
        let mut once = control.statistics(v1::StatisticsRequest { every_ms: 0 }).await.unwrap().into_inner();
        let s = once.message().await.unwrap().unwrap();
        assert_eq!((s.streams.len(), s.streams[0].export.as_str(), s.streams[0].asked), (1, "a", 1));
        let close = v1::CloseStreamRequest { export: "a".into() };
        control.close_stream(close.clone()).await.unwrap();
        assert!(control.close_stream(close).await.unwrap_err().message().contains("no stream"));
        assert_eq!(before.read(0, 2 * KIB64), None);
        assert_eq!(Client::open(dir.path(), "a").most, 1 << 20);
        let load = control.ask_stream(v1::StreamRequest::default()).await.unwrap().into_inner();
        assert_eq!((load.left_ppm, load.reserved.len()), (1_000_000, 0), "{load:?}");
    });
    assert!(server.snapshot().unwrap().streams.is_empty());
    server.stop().unwrap();
}

/// Its writes are acknowledged from memory, in requests of any size, and the cache could not write
/// these to a stream.
#[test]
fn an_export_with_a_write_cache_does_not_become_a_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = drive(&ultrastar());
    let caches = Caches { exports: vec![(1, Limits { memory: 1 << 20 })], fills: false };
    let (server, noted) = server_with(dir.path(), device, &[], caches);
    Runtime::new().unwrap().block_on(async {
        let mut control = connect(&dir.path().join("control")).await.unwrap();
        let request = |export: &str| {
            let (requests, period_ns, quality_ppm, bytes) = (5, 500_000_000, 500_000, 2048);
            let stream = Some(v1::Stream { requests, period_ns, quality_ppm, bytes, kinds: 0, blocked_by: 0 });
            v1::StreamRequest { export: Some(export.into()), stream }
        };
        let why = "export \"b\", write-cache: expected an export without a stream (what its writes are promised is \
                   that the disk has them), found one that has a write cache";
        let refused = control.open_stream(request("b")).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::FailedPrecondition, why));
        assert_eq!(control.ask_stream(request("b")).await.unwrap_err().message(), why);
        assert!(control.open_stream(request("a")).await.unwrap().into_inner().admitted, "the other one does");
    });
    let mut client = Client::open(dir.path(), "b");
    assert_eq!(client.most, 1 << 20, "it takes what it took");
    assert_eq!(client.read(0, 2 * KIB64), None);
    drop(client);
    server.stop().unwrap();
    assert_eq!(*noted.lock().unwrap(), "");
}

#[test]
fn opened_at_once_they_are_admitted_one_beside_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let (server, live) = live(dir.path(), &[]);
    // Each alone fits, both together do not: the later one is rejected.
    let opened: Vec<bool> = std::thread::scope(|scope| {
        let both = [0, 1].map(|export| {
            let live = live.clone();
            scope.spawn(move || live.open(export, stream(10, 500, 1_000_000)).is_ok())
        });
        both.map(|t| t.join().unwrap()).to_vec()
    });
    assert_eq!(opened.iter().filter(|yes| **yes).count(), 1, "{opened:?}");
    assert_eq!(live.standings().unwrap().len(), 1);
    server.stop().unwrap();
}

/// Opening a stream of thousands of requests takes a second or more.
#[test]
fn while_a_stream_is_worked_out_others_are_asked_about_and_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (server, live) = live(dir.path(), &[(0, stream(1, 500, 950_000))]);
    let opened = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            _ = live.open(1, stream(10_000, 10_000, 999_000));
            opened.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        live.ask(Some(stream(1, 400, 950_000))).unwrap();
        live.close(0).unwrap();
        assert!(!opened.load(std::sync::atomic::Ordering::SeqCst), "both waited for it");
    });
    server.stop().unwrap();
}

/// The first must then become mandatory, which happens while its requests are in flight.
#[test]
fn a_stream_begins_beside_a_busy_one_that_is_served_otherwise_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let (server, live) = live(dir.path(), &[(0, stream(1, 60, 700_000))]);
    assert!(live.standings().unwrap()[0].reservation.is_some(), "it is served as it asks");
    let mut client = Client::open(dir.path(), "a");
    (0..100).for_each(|n| client.ask(n, n << 20, KIB64));
    while live.standings().unwrap()[0].unfinished == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    live.ask(Some(stream(16, 300, 950_000))).unwrap();
    live.open(1, stream(16, 300, 950_000)).unwrap();
    let first = live.standings().unwrap()[0];
    assert!(first.reservation.is_none() && first.unfinished > 0, "{first:?}");
    (0..100).for_each(|_| assert_eq!(client.answer().1, None));
    server.stop().unwrap();
}

#[test]
fn what_is_asked_about_in_place_of_others_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (server, live) = live(dir.path(), &[(0, stream(10, 500, 1_000_000))]);
    let (small, large) = (stream(2, 500, 1_000_000), stream(10, 500, 1_000_000));
    let (at, why) = live.ask_instead(&[], &[(1, small), (1, large)]).expect_err("20 do not fit");
    assert!(at == 1 && why.to_string().contains("mandatory streams would take"), "{at}: {why}");
    assert_eq!(live.ask_instead(&[0], &[(1, small), (1, large)]), Ok(()));
    assert_eq!(live.standings().unwrap().len(), 1);
    server.stop().unwrap();
}

/// Without another stream opened after it.
#[test]
fn when_a_stream_is_closed_the_others_have_what_is_found_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let (server, live) = live(dir.path(), &[(0, stream(10, 200, 950_000))]);
    let reserved = || live.standings().unwrap()[0].reservation;
    let alone = reserved();
    live.open(1, stream(40, 500, 800_000)).unwrap();
    assert!(reserved() > alone, "it needs more beside another");
    live.close(1).unwrap();
    let by = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while reserved() != alone {
        assert!(std::time::Instant::now() < by, "{:?} and not {alone:?}", reserved());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server.stop().unwrap();
}

#[test]
fn a_stream_that_was_worked_out_beside_others_does_not_begin() {
    let (core, disk) = core(&[(0, stream(5, 500, 990_000))], None);
    let (device, file) = drive(&ultrastar());
    let rig = Rig::under(core, device, file);
    let begin = |beside: Vec<Stream>, as_mandatory: bool| {
        let new = stream(5, 500, 990_000);
        let all: Vec<Stream> = beside.iter().copied().chain([new]).collect();
        let admitted = admit(&disk, &all).unwrap();
        let beside = beside.into_iter().map(|stream| ServedStream { stream, as_mandatory }).collect();
        let (reply, answer) = oneshot::channel();
        rig.engine
            .send(EngineMessage::Stream(StreamCall::Begin { owner: 1, stream: new, beside, admitted, reply }))
            .unwrap();
        answer.blocking_recv().unwrap()
    };
    assert_eq!(begin(vec![], false), Err(NotBegun::Changed));
    assert_eq!(begin(vec![stream(5, 500, 980_000)], false), Err(NotBegun::Changed));
    // The stream exists, and is not mandatory.
    assert_eq!(begin(vec![stream(5, 500, 990_000)], true), Err(NotBegun::Changed));
    begin(vec![stream(5, 500, 990_000)], false).unwrap();
    rig.end();
}

#[test]
fn a_backup_takes_nothing_of_what_a_stream_declared() {
    let fill = Some(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    let (core, _) = core(&[(0, stream(4, 500, 1_000_000))], fill);
    let (device, file) = drive(&ultrastar());
    let mut rig = Rig::under(core, device, file);
    rig.plant(10_000, &sectors(10_000, 128, 1));
    let (session, mut told) = rig.open(1 << 20);
    let image = TaskRange { lbn: 10_000, count: 128 };
    rig.register(session, Kind::Read, image, 16, true);
    rig.write(10_000, sectors(10_000, 128, 2)).unwrap();
    let mut got = vec![0; 128 * 512];
    let mut count = 0;
    while count < 128 {
        if let SessionEvent::Task(TaskEvent::Delivered { range, .. }, Ok(data)) = next(&mut told) {
            let at = (range.lbn - 10_000) as usize * 512;
            got[at..at + data.len()].copy_from_slice(&data);
            count += range.count;
        }
    }
    assert!(got == sectors(10_000, 128, 1), "the image is of before");
    assert!(rig.on_disk(10_000, 128) == sectors(10_000, 128, 2));
    let s = rig.snapshot();
    assert_eq!((s.streams[0].tally.asked, s.streams[0].owner), (1, 0), "the read before the write is not its");
    rig.end();
}

#[test]
fn blocks_too_large_to_be_preserved_beside_streams_are_said_to_be_missing() {
    let fill = Some(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    // All time is reserved for the worst case, so no read for a backup starts and the write comes
    // first.
    let (core, _) = core(&[(0, stream(16, 500, 1_000_000))], fill);
    let (device, file) = drive(&ultrastar());
    let mut rig = Rig::under(core, device, file);
    let (session, mut told) = rig.open(1 << 20);
    // Blocks of 2 MiB, of which a write of one sector changes one.
    let image = TaskRange { lbn: 0, count: 8192 };
    rig.register(session, Kind::Read, image, 4096, true);
    rig.ask_as(1, Kind::Write, 100, 1, sectors(100, 1, 2));
    rig.answer().1.unwrap();
    let failed = std::iter::repeat_with(|| next(&mut told)).find_map(|t| match t {
        SessionEvent::Task(TaskEvent::Failed { range, .. }, Err(fault)) => Some((range, fault)),
        _ => None,
    });
    assert_eq!(failed, Some((TaskRange { lbn: 0, count: 4096 }, Fault::TooLarge)));
    rig.end();
}

#[test]
fn a_mandatory_stream_is_refused_where_its_worst_case_rests_on_what_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _) = drive(&ultrastar());
    let (server, _) = server(dir.path(), device, &[]);
    let live = server.streams().expect("it promises").clone();
    let [all, most] = [Quality::MANDATORY, Quality::from_ppm(900_000).unwrap()]
        .map(|q| Stream::new(1, Dur::from_ms(500), q, 128).unwrap());
    assert!(live.ask(Some(all)).is_ok());
    let unknown = [Figure::SettleTurns].into_iter().collect();
    let ignorant = live.on(Arc::new(Grounds { unknown, ..Grounds::default() }));
    for refused in [ignorant.ask(Some(all)), ignorant.open(0, all)] {
        let e = refused.expect_err("unknown").to_string();
        assert!(e.contains("n, the turns until the head has settled (`headtime characterize"), "{e}");
    }
    assert!(ignorant.ask(Some(most)).is_ok() && ignorant.ask(None).is_ok());
    assert!(ignorant.open(0, most).is_ok());
}
