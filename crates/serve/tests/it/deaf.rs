//! Clients of the control interface that send calls and do not read: the memory for them is
//! bounded, and all answers are available once they read.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig;
use crate::rig::{Rig, core};
use headtime_disk::Kind;
use headtime_sched::{TaskError, TaskEvent, TaskRange};
use headtime_serve::control::client::{Control, Session, connect, info};
use headtime_serve::control::v1::session_call::Call as ClientCall;
use headtime_serve::control::v1::session_event::Event as ClientEvent;
use headtime_serve::control::v1::{self, StatisticsRequest, TaskRef};
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_serve::engine::session_event::SessionEvent;
use headtime_serve::internals::device::null::Null;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{CAPACITY, ControlAt, Server, Service};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::Streaming;

/// A client that cannot send for this time is no longer read. On a slow machine it may only be
/// delayed; then the test passes without testing the bound.
const STALLED: Duration = Duration::from_millis(1500);

/// Starts a server with a disk that takes no time and only a control interface.
fn server(dir: &Path) -> Server {
    let sectors = core(CAPACITY).model().geometry.capacity();
    let all =
        ExportSpec { name: "all".into(), description: String::new(), first: 0, sectors, read_only: true, weight: 100 };
    let exports = Exports::new(vec![all], sectors, 512).unwrap();
    let mut service = Service::new(vec![], exports, Arc::new(|_, line| eprintln!("note: {line}")));
    service.control = Some(ControlAt {
        path: dir.join("control"),
        disk: "null".into(),
        disk_id: String::new(),
        sectors,
        fills: true,
    });
    Server::start(core(CAPACITY), Null::new(sectors, 512, 2), service).unwrap()
}

/// Runs a client of the server with a session of its own.
fn beside(client: impl AsyncFnOnce(Control, Sender<v1::SessionCall>, Streaming<v1::SessionEvent>)) {
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path());
    Runtime::new().unwrap().block_on(async {
        let mut control = connect(&dir.path().join("control")).await.unwrap();
        let on = info(&mut control).await.unwrap();
        let (calls, events) = Session::open(&mut control, &on, "deaf", 1, 1).await.unwrap().split();
        client(control, calls, events).await;
    });
    server.stop().unwrap();
}

#[test]
fn a_client_that_fetches_no_refusals_is_not_heard_until_it_does() {
    // Each takes a few dozen bytes. Besides those that the session keeps, both sides' windows fill
    // up.
    const MAX_CALLS_SENT: u64 = 400_000;
    beside(async |_, calls, mut events| {
        let mut said = 0;
        let abort = |task| v1::SessionCall { call: Some(ClientCall::Abort(TaskRef { task })) };
        while let Ok(sent) = timeout(STALLED, calls.send(abort(said))).await {
            sent.expect("the session goes on");
            said += 1;
            assert!(said < MAX_CALLS_SENT, "whatever is said is heard, and its answers are kept");
        }
        for task in 0..said {
            let Some(ClientEvent::Refused(r)) = events.message().await.unwrap().unwrap().event else {
                panic!("{task}")
            };
            assert_eq!(r.task, Some(task));
        }
    });
}

#[test]
fn a_client_that_fetches_no_data_gets_no_more_of_it_until_it_does() {
    const REQUESTS: u64 = 400;
    const SECTORS: u32 = 2048;
    beside(async |mut control, calls, mut events| {
        for token in 0..REQUESTS {
            let kind = v1::Kind::Read.into();
            let f = v1::Foreground { token, kind, lbn: token * 4096, count: SECTORS, ..v1::Foreground::default() };
            // A sent request may not have been read yet.
            calls.send(v1::SessionCall { call: Some(ClientCall::Foreground(f)) }).await.unwrap();
        }
        let mut reads = async || {
            let once = control.statistics(StatisticsRequest { every_ms: 0 }).await.unwrap();
            let snapshot = once.into_inner().message().await.unwrap().unwrap();
            snapshot.exports.iter().map(|e| e.reads).sum::<u64>()
        };
        let (mut before, until) = (0, Instant::now() + Duration::from_secs(60));
        let done = loop {
            tokio::time::sleep(STALLED).await;
            let done = reads().await;
            // However slow the machine is, this number is reached.
            if done == before && (done >= 64 || Instant::now() > until) {
                break done;
            }
            before = done;
        };
        // 64 MiB here, and some in the connection.
        assert!((64..80).contains(&done), "{done} reads of a MiB were done for a client that fetches none");
        for token in 0..REQUESTS {
            let Some(ClientEvent::Answered(a)) = events.message().await.unwrap().unwrap().event else {
                panic!("{token}")
            };
            assert_eq!((a.fault(), a.data.len()), (v1::Fault::None, SECTORS as usize * 512));
        }
        assert_eq!(reads().await, REQUESTS);
    });
}

/// More requests than there are shares: the last wait for answers that the client has not read.
#[test]
fn requests_that_wait_for_room_delay_no_answer_to_a_reading_client() {
    const REQUESTS: u64 = 4_000;
    beside(async |_, calls, mut events| {
        let says = tokio::spawn(async move {
            for token in 0..REQUESTS {
                let kind = v1::Kind::Read.into();
                let f = v1::Foreground { token, kind, lbn: token * 64, count: 1, ..v1::Foreground::default() };
                calls.send(v1::SessionCall { call: Some(ClientCall::Foreground(f)) }).await.unwrap();
            }
            calls
        });
        tokio::time::sleep(STALLED).await;
        for token in 0..REQUESTS {
            let event = timeout(Duration::from_secs(30), events.message()).await.expect("it goes on");
            let Some(ClientEvent::Answered(a)) = event.unwrap().unwrap().event else { panic!("{token}") };
            assert_eq!(a.fault(), v1::Fault::None);
        }
        drop(says.await);
    });
}

#[test]
fn a_session_whose_client_fetches_no_events_is_closed() {
    let rig = Rig::new();
    let (events, mut told) = channel(8);
    let session = rig.call(|reply| SessionCall::Open { priority: 1, window: 64, events, reply });
    let task = rig.register(session, Kind::Read, TaskRange { lbn: 0, count: 64 }, 64, false);
    let suspend = || {
        let (reply, answer) = oneshot::channel();
        rig.engine.send(EngineMessage::Session(SessionCall::Suspend { session, reply })).unwrap();
        answer.blocking_recv().unwrap()
    };
    let heard = (0..20).take_while(|_| suspend().is_ok()).count();
    // The last one closed it; data of the task may have arrived in between.
    assert!((6..=9).contains(&heard), "{heard}");
    assert_eq!(suspend(), Err(TaskError::NoSession(session)));
    let all: Vec<SessionEvent> = std::iter::from_fn(|| told.blocking_recv()).collect();
    assert!(all.len() == 8 && all.iter().all(|t| t.task().is_none_or(|t| t == task)), "{all:?}");
    // Its place is free, and other clients are served.
    let (other, mut told) = rig.open(64);
    rig.register(other, Kind::Read, TaskRange { lbn: 0, count: 64 }, 64, false);
    assert!(matches!(rig::next(&mut told), SessionEvent::Task(TaskEvent::Delivered { .. }, _)));
}
