//! An export with a write cache in the server: at shutdown, and when the disk is gone.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::destaging::{Client, FIRST, SECTORS};
use crate::rig::{Rig, SECTOR, core, drive};
use headtime_disk::DriveConfig;
use headtime_sched::SessionId;
use headtime_sched::write_cache::Limits;
use headtime_serve::apps::backup::{self, Backup, Step};
use headtime_serve::apps::job::Job;
use headtime_serve::control::client::{Control, Session, connect, info};
use headtime_serve::control::v1::change_request::Change;
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{ChangeRequest, Empty, Foreground, Kind, Range, Register, StatisticsRequest};
use headtime_serve::destage::driver::{Upstream, UpstreamError};
use headtime_serve::device::Device;
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_serve::internals::control;
use headtime_serve::internals::control::caches::Cached;
use headtime_serve::internals::control::layouts::Layouts;
use headtime_serve::internals::destage::inside::Caches;
use headtime_serve::internals::device::faulty::Faulty;
use headtime_serve::net::address::Address;
use headtime_serve::net::budget::{Budget, MAX_REQUESTS};
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::note::{About, Note};
use headtime_serve::server::{CAPACITY, ControlAt, Server, Service};
use tokio::runtime::Runtime;

const ESHUTDOWN: u32 = 108;

/// Returns one export of a disk.
fn exports(sectors: u64) -> Exports {
    let (name, description) = ("data".into(), String::new());
    let spec = ExportSpec { name, description, first: FIRST, sectors: SECTORS, read_only: false, weight: 100 };
    Exports::new(vec![spec], sectors, 512).unwrap()
}

/// Returns the settings of a cache of 1 MiB for it.
fn caches() -> Caches {
    Caches { exports: vec![(0, Limits { memory: 1 << 20 })], fills: true }
}

fn notes() -> (Note, Arc<Mutex<Vec<String>>>) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = Arc::clone(&said);
    (
        Arc::new(move |about, line| match about {
            About::Visits => {}
            _ => note.lock().unwrap().push(line),
        }),
        said,
    )
}

/// Starts a server of one export with a cache of 1 MiB; returns it and its notes.
fn server(dir: &tempfile::TempDir, device: impl Device + Send + 'static) -> (Server, Arc<Mutex<Vec<String>>>) {
    let sectors = device.sectors();
    let (note, said) = notes();
    let mut service = Service::new(vec![Address::Unix(dir.path().join("nbd"))], exports(sectors), note);
    service.caches = caches();
    let (path, disk, disk_id) = (dir.path().join("control"), "atlas10k".into(), String::new());
    service.control = Some(ControlAt { path, disk, disk_id, sectors, fills: true });
    (Server::start(core(CAPACITY), device, service).unwrap(), said)
}

#[test]
fn what_is_dirty_is_on_the_disk_when_the_server_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (device, file) = drive(DriveConfig::default());
    let (server, said) = server(&dir, device);
    let mut client = Client::new(&dir.path().join("nbd"));
    let blocks: Vec<u64> = (0..60).map(|i| i * 997 % 4000 * 8).collect();
    for &sector in &blocks {
        client.write(sector, &[sector as u8 | 1; 8 * SECTOR], false).unwrap();
    }
    drop(client);
    server.stop().unwrap();
    for &sector in &blocks {
        let mut found = [0; 8 * SECTOR];
        file.read_exact_at(&mut found, (FIRST + sector) * SECTOR as u64).unwrap();
        assert!(found.iter().all(|&b| b == sector as u8 | 1), "sector {sector}");
    }
    assert!(said.lock().unwrap().is_empty(), "{said:?}");
}

/// A disk that is gone does not return: requests of clients fail, as without a cache, and the
/// server ends.
#[test]
fn requests_fail_and_the_server_ends_when_the_disk_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _file) = drive(DriveConfig::default());
    let (server, said) = server(&dir, Faulty::new(device, []).gone_from(1));
    let mut client = Client::new(&dir.path().join("nbd"));
    client.read(0, 8).unwrap();
    client.write(80, &[1; 8 * SECTOR], false).unwrap();
    assert_eq!(client.flush(), Err(ESHUTDOWN));
    assert_eq!(client.read(8000, 8), Err(ESHUTDOWN));
    assert_eq!(client.write(800, &[1; 8 * SECTOR], false), Err(ESHUTDOWN));
    drop(client);
    let began = Instant::now();
    let _ = server.stop();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let said = said.lock().unwrap();
    let lost = "export \"data\": 4096 bytes that clients were told are written are not on the disk";
    assert!(said.iter().any(|line| line.starts_with(lost)), "{said:?}");
    assert!(said.len() <= 4, "each is said once: {said:?}");
}

/// Returns the answer to a call in a new session of the control interface.
async fn answer(control: &mut Control, call: Call) -> Event {
    let on = info(control).await.unwrap();
    let mut session = Session::open(control, &on, "another client", 100, 64).await.unwrap();
    session.say(call).await.unwrap();
    session.next().await.unwrap()
}

/// Operators and other programs see a cache's session and its export, but cannot make it lose data.
#[test]
fn other_clients_neither_end_a_cache_nor_write_past_it() {
    let dir = tempfile::tempdir().unwrap();
    let (device, file) = drive(DriveConfig::default());
    let (server, said) = server(&dir, device);
    let mut client = Client::new(&dir.path().join("nbd"));
    client.write(80, &[7; 8 * SECTOR], false).unwrap();
    Runtime::new().unwrap().block_on(async {
        let mut control = connect(&dir.path().join("control")).await.unwrap();
        assert!(info(&mut control).await.unwrap().exports[0].write_cache);
        // The cache opens its session beside its first requests.
        loop {
            let mut once = control.statistics(StatisticsRequest { every_ms: 0 }).await.unwrap().into_inner();
            let listed = once.message().await.unwrap().unwrap().sessions;
            if listed.iter().any(|session| session.name.starts_with("write cache")) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for change in [Change::Close(Empty {}), Change::Suspended(true), Change::Priority(1)] {
            let refused = control.change(ChangeRequest { session: 0, change: Some(change) }).await.unwrap_err();
            assert!(refused.message().contains("write cache"), "{refused}");
        }
        let write = |lbn| Register {
            task: 1,
            kind: Kind::Write.into(),
            ranges: vec![Range { lbn, count: 16 }],
            blksize: 8,
            min_pickup: 8,
            point_in_time: false,
        };
        // Its last sector is the export's first.
        match answer(&mut control, Call::Register(write(FIRST - 15))).await {
            Event::Refused(r) => assert!(r.why.contains("export \"data\" has a write cache"), "{}", r.why),
            other => panic!("{other:?}"),
        }
        for beside in [FIRST - 16, FIRST + SECTORS] {
            let event = answer(&mut control, Call::Register(write(beside))).await;
            assert!(matches!(event, Event::Registered(_)), "{event:?}");
        }
        let data = vec![9; 8 * SECTOR].into();
        let write = Foreground { token: 1, kind: Kind::Write.into(), lbn: FIRST + 80, count: 8, data, fua: false };
        match answer(&mut control, Call::Foreground(write)).await {
            Event::Answered(a) => assert!(a.why_not.contains("write cache"), "{a:?}"),
            other => panic!("{other:?}"),
        }
        let read = Foreground { token: 1, kind: Kind::Read.into(), lbn: FIRST + 80, count: 8, ..Foreground::default() };
        match answer(&mut control, Call::Foreground(read)).await {
            Event::Answered(a) => assert!(a.why_not.is_empty() && a.data.len() == 8 * SECTOR, "{a:?}"),
            other => panic!("{other:?}"),
        }
        // A backup reports that the cache's dirty data may be missing.
        let backup = Backup {
            job: Job::new(dir.path().join("control"), "backup"),
            export: Some("data".into()),
            image: dir.path().join("image"),
            live: true,
            unit: None,
            overwrite: false,
            restart: false,
            verify_disk: false,
        };
        let mut cached = false;
        let mut watch = |step: Step<'_>| cached |= matches!(step, Step::Cached("data"));
        backup::run(&backup, &mut watch, tokio::sync::watch::channel(false).1).await.unwrap();
        assert!(cached);
        let upstream = Upstream { control: dir.path().join("control").into(), export: "data".into(), priority: 100 };
        assert!(matches!(upstream.look().await, Err(UpstreamError::Cached(_))));
    });
    client.flush().unwrap();
    let mut found = [0; 8 * SECTOR];
    file.read_exact_at(&mut found, (FIRST + 80) * SECTOR as u64).unwrap();
    assert!(found.iter().all(|&b| b == 7));
    drop(client);
    server.stop().unwrap();
    assert!(said.lock().unwrap().is_empty(), "{said:?}");
}

/// Also before the cache's first request to the disk, while the engine does not know the export.
#[test]
fn what_is_dirty_is_shown_before_the_cache_asks_the_disk_for_anything() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _file) = drive(DriveConfig::default());
    let (server, _) = server(&dir, device);
    let mut client = Client::new(&dir.path().join("nbd"));
    for n in 0..20 {
        client.write(n * 800, &[1; 8 * SECTOR], false).unwrap();
    }
    let counted = Runtime::new().unwrap().block_on(async {
        let mut control = connect(&dir.path().join("control")).await.unwrap();
        let began = Instant::now();
        loop {
            let mut once = control.statistics(StatisticsRequest { every_ms: 0 }).await.unwrap().into_inner();
            let counted = once.message().await.unwrap().unwrap();
            // The cache's counter is at most one tick old.
            let dirty = counted.exports.first().and_then(|e| e.dirty_bytes);
            if dirty == Some(20 * 4096) || began.elapsed() > Duration::from_secs(5) {
                break counted;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let [export] = &counted.exports[..] else { panic!("one export: {counted:?}") };
    assert_eq!((export.name.as_str(), export.writes, export.dirty_bytes), ("data", 0, Some(20 * 4096)), "{counted:?}");
    drop(client);
    server.stop().unwrap();
}

/// A session ends without the disk if the engine's queue was full, for example. Nothing is lost by
/// that.
#[test]
fn a_cache_whose_session_has_ended_goes_on_with_another() {
    let mut rig = Rig::new();
    let runtime = Runtime::new().unwrap();
    let (note, said) = notes();
    let sectors = 17_000_000;
    let service = control::service::Service {
        disk: String::new(),
        disk_id: String::new(),
        sectors,
        exports: exports(sectors),
        fills: true,
        engine: rig.engine.clone(),
        budget: Budget::new(MAX_REQUESTS, 64 << 20, 2),
        names: Arc::default(),
        streams: None,
        cached: Cached::new([0].into_iter()),
        layouts: Layouts::default(),
        cache: None,
    };
    let working = caches().start(&runtime, &service, &note).unwrap();
    let to_engine = std::mem::replace(&mut rig.engine, working.outboxes()[&0].clone());
    let blocks: Vec<u64> = (0..120).map(|i| FIRST + i * 997 % 4000 * 8).collect();
    for (n, &lbn) in blocks.iter().enumerate() {
        rig.write(lbn, vec![lbn as u8 | 1; 8 * SECTOR]).unwrap();
        if n == 60 {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let close = SessionCall::Close { session: SessionId(0), reply };
            to_engine.send(EngineMessage::Session(close)).unwrap();
            answer.blocking_recv().unwrap().unwrap();
        }
    }
    rig.ask(headtime_disk::Kind::Flush, 0, 0, vec![]);
    rig.answer().1.unwrap();
    for &lbn in &blocks {
        let mut found = [0; 8 * SECTOR];
        rig.file.read_exact_at(&mut found, lbn * SECTOR as u64).unwrap();
        assert!(found.iter().all(|&b| b == lbn as u8 | 1), "sector {lbn}");
    }
    let left = runtime.block_on(working.finish());
    assert_eq!(left[0].1.as_ref().map(|l| l.bytes), Some(0));
    assert_eq!(said.lock().unwrap().len(), 2, "its end, and that there is another: {said:?}");
    rig.engine = to_engine;
}
