//! Clients that stop in the middle of a message: when their connection or session ends, with which
//! message, and that their share of the budget is returned. In tokio's time, which advances only
//! when every task waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::parts::{bridged, negotiate, request, service};
use headtime_disk::Kind;
use headtime_nbd::Limits;
use headtime_sched::{SessionId, TaskError};
use headtime_serve::control::v1;
use headtime_serve::control::v1::session_call::Call as ClientCall;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::engine::inbox::{Outbox, inbox};
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_serve::internals::control::session;
use headtime_serve::internals::net::connection::{Ended, Shared, UNREAD_TIMEOUT, serve};
use headtime_serve::net::budget::Budget;
use headtime_serve::net::exports::{ExportSpec, Exports};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, channel};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, sleep, timeout};

const SECTORS: u64 = 1 << 16;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes in flight of all clients.
const ROOM: u64 = 8 << 20;
const MIB: u32 = 1 << 20;

/// An engine that answers each request at once.
async fn answers(mut told: UnboundedReceiver<EngineMessage>) {
    let mut sessions = Vec::new();
    while let Some(message) = told.recv().await {
        match message {
            EngineMessage::Submit(ask) => {
                let data = if ask.kind == Kind::Read { vec![7; ask.count as usize * 512] } else { vec![] };
                ask.answer(Ok(data.into()));
            }
            EngineMessage::Session(SessionCall::Open { events, reply, .. }) => {
                sessions.push(events);
                let _ = reply.send(Ok(SessionId(1)));
            }
            EngineMessage::Session(SessionCall::Close { reply, .. }) => _ = reply.send(Err(TaskError::NoFill)),
            other => panic!("{other:?}"),
        }
    }
}

fn engine() -> (Outbox<EngineMessage>, Budget, Exports) {
    let (outbox, told) = inbox(64, 16).unwrap();
    tokio::spawn(answers(bridged(told)));
    let all = ExportSpec {
        name: "all".into(),
        description: String::new(),
        first: 0,
        sectors: SECTORS,
        read_only: false,
        weight: 1,
    };
    (outbox, Budget::new(64, ROOM, 2), Exports::new(vec![all], SECTORS, 512).unwrap())
}

/// A connection to a server, and how it ends.
struct Visit {
    stream: DuplexStream,
    ended: JoinHandle<Result<(), Ended>>,
    /// Dropped when another client needs the room.
    goes_on: Option<oneshot::Sender<()>>,
    budget: Budget,
    _end: watch::Sender<bool>,
}

impl Visit {
    fn new() -> Visit {
        let (engine, budget, exports) = engine();
        let shared = Shared {
            exports,
            engine,
            caches: Arc::new(BTreeMap::new()),
            budget: budget.clone(),
            limits: Limits::default(),
            handshake: HANDSHAKE,
            tls: None,
        };
        let (stream, theirs) = duplex(64 << 10);
        let (goes_on, must_go) = oneshot::channel();
        let (end, ends) = watch::channel(false);
        let places = Arc::new(Semaphore::new(1));
        let ended = tokio::spawn(async move { serve(Box::new(theirs), &shared, places, must_go, ends).await });
        Visit { stream, ended, goes_on: Some(goes_on), budget, _end: end }
    }

    /// Connects and opens the export.
    async fn opened() -> Visit {
        let mut visit = Visit::new();
        negotiate(&mut visit.stream, "all").await.unwrap();
        visit
    }

    async fn ask(&mut self, kind: u16, bytes: u32) {
        self.stream.write_all(&request(0, kind, 0, 0, bytes)).await.unwrap();
    }

    /// Returns how the connection ends, and after how long from now.
    async fn ends(self) -> (Ended, Duration) {
        let began = Instant::now();
        let ended = timeout(10 * UNREAD_TIMEOUT, self.ended).await.expect("it ends").unwrap();
        (ended.expect_err("it has not left"), began.elapsed())
    }
}

fn in_tokios_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

fn about(found: Duration, expected: Duration) -> bool {
    expected <= found && found < expected + Duration::from_secs(1)
}

#[test]
fn a_client_that_does_not_negotiate_ends_in_time_or_when_another_needs_the_room() {
    in_tokios_time(async {
        let (why, after) = Visit::new().ends().await;
        assert!(matches!(why, Ended::Slow(_)) && about(after, HANDSHAKE), "{why} after {after:?}");
        for speaks in [false, true] {
            let mut visit = Visit::new();
            if speaks {
                visit.stream.write_all(&3u32.to_be_bytes()).await.unwrap();
            }
            sleep(HANDSHAKE / 2).await;
            assert!(!visit.ended.is_finished());
            visit.goes_on = None;
            let (why, after) = visit.ends().await;
            assert!(after.is_zero() && matches!(why, Ended::Crowded) == speaks, "{why} after {after:?}");
            assert!(matches!(why, Ended::Silent) != speaks, "{why}");
        }
    });
}

#[test]
fn a_client_that_has_negotiated_may_be_idle_and_makes_room_for_no_other() {
    in_tokios_time(async {
        let mut visit = Visit::opened().await;
        visit.goes_on = None;
        sleep(100 * UNREAD_TIMEOUT).await;
        visit.ask(0, 512).await;
        visit.stream.read_exact(&mut [0; 16 + 512]).await.expect("an answer");
    });
}

#[test]
fn a_write_that_is_not_sent_to_its_end_ends_the_connection() {
    in_tokios_time(async {
        let mut visit = Visit::opened().await;
        visit.ask(1, 4 * 512).await;
        for _ in 0..10 {
            // A slow client is not disconnected.
            visit.stream.write_all(&[1; 64]).await.unwrap();
            sleep(UNREAD_TIMEOUT - Duration::from_secs(2)).await;
        }
        assert!(!visit.ended.is_finished());
        let (why, after) = visit.ends().await;
        assert!(matches!(why, Ended::Unsent) && about(after, Duration::from_secs(2)), "{why} after {after:?}");
    });
}

#[test]
fn a_write_holds_its_share_from_when_it_begins_and_no_longer_than_its_client_goes_on() {
    in_tokios_time(async {
        for sent in [0, 64] {
            let mut visit = Visit::opened().await;
            visit.ask(1, 4 * MIB).await;
            visit.stream.write_all(&vec![1; sent]).await.unwrap();
            sleep(Duration::from_secs(1)).await;
            let budget = visit.budget.clone();
            let other = budget.client();
            assert!(budget.try_share(0, other, u64::from(4 * MIB)).is_none(), "half of the room is held for the data");
            let (why, after) = visit.ends().await;
            assert!(
                matches!(why, Ended::Unsent) && about(after, UNREAD_TIMEOUT - Duration::from_secs(1)),
                "{why} after {after:?}"
            );
            assert!(budget.try_share(0, other, u64::from(4 * MIB)).is_some());
        }
    });
}

#[test]
fn a_client_has_all_the_time_to_go_on_after_the_server_did_not_listen() {
    in_tokios_time(async {
        let mut visit = Visit::opened().await;
        // Each client leaves something for the next.
        let share = || visit.budget.try_share(0, visit.budget.client(), 512);
        let shares: Vec<_> = std::iter::from_fn(share).collect();
        // A write that waits for room, and the beginning of another, which the server has received
        // with it.
        let write = request(0, 1, 0, 0, 512);
        visit.stream.write_all(&[&write[..], &[1; 512], &write, &[2; 64]].concat()).await.unwrap();
        sleep(2 * UNREAD_TIMEOUT).await;
        drop(shares);
        sleep(UNREAD_TIMEOUT / 2).await;
        assert!(!visit.ended.is_finished(), "it was listened to for half of the time that it has");
        visit.stream.write_all(&[2; 512 - 64]).await.unwrap();
        visit.stream.read_exact(&mut [0; 2 * 16]).await.expect("two answers");
    });
}

#[test]
fn a_client_that_does_not_read_its_answers_is_disconnected_and_its_share_given_back() {
    in_tokios_time(async {
        let mut visit = Visit::opened().await;
        visit.ask(0, 4 * MIB).await;
        let mut piece = vec![0; 64 << 10];
        for _ in 0..10 {
            // A slow client is not disconnected.
            sleep(UNREAD_TIMEOUT - Duration::from_secs(2)).await;
            visit.stream.read_exact(&mut piece).await.unwrap();
        }
        let budget = visit.budget.clone();
        let other = budget.client();
        let room = timeout(UNREAD_TIMEOUT / 2, budget.share(0, other, u64::from(4 * MIB))).await;
        assert!(room.is_err(), "half of the room is held for the answer");
        let (why, after) = visit.ends().await;
        assert!(matches!(why, Ended::Unread) && about(after, UNREAD_TIMEOUT / 2), "{why} after {after:?}");
        assert!(budget.try_share(0, other, u64::from(4 * MIB)).is_some());
    });
}

#[test]
fn a_session_whose_answers_are_not_fetched_is_closed_and_its_share_given_back() {
    in_tokios_time(async {
        let (engine, budget, exports) = engine();
        let service = service(&exports, &engine, &budget, SECTORS, &[]);
        let (calls, heard) = channel(16);
        let (out, mut events) = channel(1);
        let session = tokio::spawn(session::run(service, heard, out));
        let say = async |call| calls.send(v1::SessionCall { call: Some(call) }).await.unwrap();
        say(ClientCall::Open(v1::Open { name: "deaf".into(), priority: 1, window: 8 })).await;
        for token in 0..4 {
            let kind = v1::Kind::Read.into();
            say(ClientCall::Foreground(v1::Foreground { token, kind, count: 2048, ..Default::default() })).await;
        }
        let mut fetch = async || events.recv().await.map(|e| e.map(|e| e.event));
        assert!(matches!(fetch().await, Some(Ok(Some(Event::Opened(_))))));
        sleep(UNREAD_TIMEOUT - Duration::from_secs(2)).await;
        // A slow client is not disconnected.
        assert!(matches!(fetch().await, Some(Ok(Some(Event::Answered(_))))));
        sleep(UNREAD_TIMEOUT - Duration::from_secs(2)).await;
        assert!(!session.is_finished());
        let other = budget.client();
        assert!(budget.try_share(1, other, 6 << 20).is_none(), "the answers hold room");
        sleep(Duration::from_secs(4)).await;
        assert!(matches!(fetch().await, Some(Ok(Some(Event::Answered(_))))), "one was on its way");
        let why = fetch().await.unwrap().unwrap_err();
        assert_eq!(why.code(), tonic::Code::ResourceExhausted);
        assert!(why.message().contains("fetched nothing of its answers"), "{why}");
        session.await.unwrap();
        assert!(budget.try_share(1, other, 6 << 20).is_some());
    });
}
