//! Limits of the resources that one client can occupy.

use crate::client::session::{MAXIMUM, Session, disk};
use crate::client::*;
use headtime_nbd::{Answer, BlockSizes, Closed, Event, Export, Limits, OUTPUT_ROOM, Op, Tls, Violation};

fn tight() -> Limits {
    Limits { options: 5, option_bytes: 100, requests: 3, bytes: 8192 }
}

fn tokens(events: Vec<Event>) -> Vec<u64> {
    let token = |event| match event {
        Event::Request(request) => request.token,
        other => panic!("a request expected, found {other:?}"),
    };
    events.into_iter().map(token).collect()
}

#[test]
fn the_default_limits_are_those_that_are_documented() {
    let expected = Limits { options: 64, option_bytes: 65_536, requests: 128, bytes: 67_108_864 };
    assert_eq!(Limits::default(), expected);
}

#[test]
fn a_flood_of_options_ends_the_connection() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Off, tight());
    for _ in 0..5 {
        session.send(&option(99, b""));
        assert_eq!(session.events(), []);
    }
    session.send(&option(99, b""));
    let violation = Violation::TooManyOptions { limit: 5 };
    assert_eq!(session.events(), [Event::Closed(Closed::Protocol(violation))]);
    assert_eq!(session.hear().len(), 5, "those before it are answered");
}

#[test]
fn an_option_of_the_most_bytes_is_read_and_one_more_is_too_big() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Off, tight());
    for (bytes, error) in [(100, UNSUP), (101, TOO_BIG), (50_000, TOO_BIG)] {
        session.send(&option(99, &vec![1; bytes]));
        let heard = session.hear();
        assert!(matches!(heard[..], [Said::Option { option: 99, kind, .. }] if kind == error), "{bytes}: {heard:?}");
    }
    session.assert_in_step();
}

#[test]
fn what_is_too_big_is_not_held() {
    let mut session = Session::greeted();
    let mut header = option(GO, b"");
    header[12..].copy_from_slice(&u32::MAX.to_be_bytes());
    session.send(&header);
    for _ in 0..64 {
        session.send(&vec![0; 1 << 20]);
        assert_eq!(session.conn.held_bytes(), 0);
    }
    assert!(!session.conn.has_output());
}

#[test]
fn a_name_that_no_export_can_have_ends_the_connection() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Off, tight());
    session.offer(&option(EXPORT_NAME, &[b'a'; 101]));
    let violation = Violation::NameTooLong { length: 101, limit: 100 };
    assert_eq!(session.events(), [Event::Closed(Closed::Protocol(violation))]);
}

#[test]
fn a_client_that_asks_and_never_listens_is_not_understood_any_further() {
    let exports: Vec<_> = (0..100).map(|i| disk(&format!("disk number {i}"))).collect();
    let limits = Limits { options: u32::MAX, ..Limits::default() };
    let mut session = Session::greeted_with(exports, Tls::Off, limits);
    let list = option(LIST, b"");
    let mut asked = 0;
    while session.conn.wants_input() {
        session.send(&list);
        asked += 1;
        assert!(asked < 100, "it understands without end");
    }
    assert_eq!(session.offer(&list), 0, "nothing is taken while it does not listen");
    assert!(asked > 5 && session.conn.held_bytes() < 2 * OUTPUT_ROOM as u64, "{}", session.conn.held_bytes());
    let heard = session.hear();
    assert_eq!(heard.len(), asked * 101, "listening makes room: every answer is there");
    assert!(session.conn.wants_input());
    session.assert_in_step();
}

#[test]
fn a_list_is_written_as_the_client_fetches_it() {
    let exports: Vec<_> = (0..1024).map(|i| disk(&format!("{i:04096}"))).collect();
    let reply = |e: &Export| 20 + 4 + e.name.len() + e.description.len();
    let (longest, all) = (reply(&exports[0]), exports.iter().map(reply).sum::<usize>() + 20);
    let mut session = Session::greeted_with(exports, Tls::Off, Limits::default());
    let list = option(LIST, b"");
    assert_eq!(session.conn.receive(&list), list.len());
    let (mut chunks, mut bytes) = (0, 0);
    let most = OUTPUT_ROOM + longest;
    loop {
        assert!(session.conn.held_bytes() <= most as u64, "{} are held", session.conn.held_bytes());
        let Some(chunk) = session.conn.output() else { break };
        (chunks, bytes) = (chunks + 1, bytes + chunk.len());
    }
    assert_eq!(bytes, all);
    assert!(chunks >= bytes / most, "{chunks}");
    assert!(session.conn.wants_input());
    // A client whose input has ended still gets the whole list.
    session.conn.receive(&list);
    session.conn.end_of_input();
    while session.conn.output().is_some() {}
    assert_eq!(session.conn.poll(), Some(Event::Closed(Closed::EndOfInput)));
}

#[test]
fn refusals_wait_for_a_client_that_listens() {
    let mut session = Session::open(false);
    let wrong = request(99, 0, 1, 0, 0);
    let mut asked = 0;
    while session.conn.wants_input() {
        session.send(&wrong);
        asked += 1;
        assert!(asked < OUTPUT_ROOM, "it understands without end");
    }
    assert_eq!(asked, OUTPUT_ROOM / 16 + 1, "the last one is taken, and waits");
    assert_eq!(session.offer(&wrong), 0);
    assert_eq!(session.hear().len(), asked);
    session.assert_in_step();
}

#[test]
fn options_that_are_too_big_wait_for_a_client_that_listens() {
    let limits = Limits { options: u32::MAX, option_bytes: 8, ..Limits::default() };
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Off, limits);
    let long = option(99, &[0; 9]);
    let mut asked = 0;
    while session.conn.wants_input() {
        session.send(&long);
        asked += 1;
        assert!(asked < OUTPUT_ROOM, "it understands without end");
    }
    assert!(asked > 100, "{asked}");
    assert_eq!(session.offer(&long), 0);
    assert_eq!(session.hear().len(), asked);
    session.assert_in_step();
}

#[test]
fn a_client_may_leave_without_listening() {
    let mut session = Session::open(false);
    let wrong = request(99, 0, 1, 0, 0);
    for _ in 0..OUTPUT_ROOM / 16 {
        session.send(&wrong);
    }
    session.send(&request(DISC, 0, 0, 0, 0));
    assert_eq!(session.events(), [Event::Closed(Closed::ByClient)]);
}

#[test]
fn no_more_requests_are_in_flight_than_are_allowed() {
    let mut session = Session::open_with(disk("a"), true, tight());
    for cookie in 0..3 {
        session.send(&request(FLUSH, 0, cookie, 0, 0));
    }
    assert!(session.conn.wants_input());
    // The fourth is taken and waits; the fifth is not taken.
    session.send(&request(FLUSH, 0, 3, 0, 0));
    assert!(!session.conn.wants_input());
    assert_eq!(session.offer(&request(FLUSH, 0, 4, 0, 0)), 0);
    let first = tokens(session.events());
    assert_eq!((first.len(), session.conn.in_flight()), (3, 3));
    session.reply(first[1], Answer::Done);
    assert_eq!(tokens(session.events()).len(), 1, "an answer makes room, with no further input");
    assert!(session.conn.wants_input());
}

#[test]
fn no_more_bytes_are_in_flight_than_are_allowed() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.read(1, 0, 4096);
    session.send(&write(0, 2, 0, &[1; 3584]));
    session.read(3, 0, 512);
    let first = tokens(session.events());
    assert_eq!(first.len(), 3, "exactly as many as are allowed");
    session.reply(first[2], Answer::Data(vec![0; 512].into()));
    session.read(4, 0, 1024);
    assert_eq!(session.events(), []);
    assert!(!session.conn.wants_input(), "what was read counts until it is taken for sending");
    session.hear();
    assert_eq!(session.events(), [], "half of it is too little");
    session.reply(first[1], Answer::Done);
    assert_eq!(tokens(session.events()).len(), 1);
}

#[test]
fn taking_output_makes_room_for_what_waits() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.read(1, 0, 8192);
    let first = session.one_request();
    session.reply(first.token, Answer::Data(vec![0; 8192].into()));
    session.read(2, 0, 512);
    assert_eq!(session.events(), []);
    session.hear();
    assert_eq!(session.one_request().length, 512);
}

#[test]
fn what_carries_no_data_waits_for_no_bytes() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.read(1, 0, MAXIMUM);
    session.send(&request(TRIM, 0, 2, 0, 1 << 19));
    assert_eq!(tokens(session.events()).len(), 2);
}

#[test]
fn a_request_longer_than_the_limit_goes_alone() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.send(&write(0, 1, 0, &vec![1; MAXIMUM as usize]));
    let long = session.one_request();
    assert_eq!((long.op, long.data.len()), (Op::Write, MAXIMUM as usize));
    session.read(2, 0, 512);
    assert_eq!(session.events(), []);
    session.reply(long.token, Answer::Done);
    let short = session.one_request();
    // A long request after a short one waits until nothing else is in flight.
    session.send(&request(READ, 0, 3, 0, MAXIMUM));
    assert_eq!(session.events(), []);
    session.reply(short.token, Answer::Data(vec![0; 512].into()));
    assert_eq!(session.events(), [], "the short one's data is not taken yet");
    session.hear();
    assert_eq!(session.one_request().length, MAXIMUM.into());
}

#[test]
fn a_limit_of_no_requests_is_a_limit_of_one() {
    let mut session = Session::open_with(disk("a"), true, Limits { requests: 0, bytes: 0, ..tight() });
    session.assert_in_step();
}

#[test]
fn a_write_that_is_announced_and_not_sent_holds_nothing() {
    let large = Export { blocks: BlockSizes::new(512, 4096, 32 << 20).unwrap(), size: 1 << 30, ..disk("a") };
    let mut session = Session::open_with(large, true, Limits::default());
    session.send(&request(WRITE, 0, 1, 0, 32 << 20));
    assert_eq!(session.conn.held_bytes(), 0);
    assert_eq!((session.events(), &session.payloads[..]), (vec![], &[32 << 20][..]), "the driver hears of it first");
    session.send(&[0; 1000]);
    assert!(session.conn.held_bytes() <= 1 << 20, "{}", session.conn.held_bytes());
}

#[test]
fn a_write_is_held_until_it_is_answered() {
    let mut session = Session::open(true);
    session.send(&write(0, 1, 0, &[0; 4096]));
    let token = session.one_request().token;
    assert_eq!(session.conn.held_bytes(), 4096);
    session.reply(token, Answer::Done);
    session.hear();
    assert_eq!(session.conn.held_bytes(), 0);
}

#[test]
fn a_request_that_waits_when_the_client_stops_sending_is_still_served() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.read(1, 0, 8192);
    session.read(2, 0, 512);
    session.conn.end_of_input();
    let first = session.one_request();
    assert!(!session.conn.wants_input());
    assert_eq!(session.offer(&request(FLUSH, 0, 3, 0, 0)), 0);
    session.reply(first.token, Answer::Data(vec![0; 8192].into()));
    session.hear();
    let events = session.events();
    let [Event::Request(second), Event::Closed(Closed::EndOfInput)] = &events[..] else { panic!("{events:?}") };
    session.reply(second.token, Answer::Data(vec![0; 512].into()));
    session.hear();
    assert!(session.conn.is_closed());
}

#[test]
fn a_request_that_waits_when_the_server_goes_away_is_refused() {
    let mut session = Session::open_with(disk("a"), true, tight());
    session.read(1, 0, 8192);
    session.read(2, 0, 512);
    session.events();
    session.conn.shut_down();
    let reply = session.hear_reply();
    assert_eq!((reply.cookie(), reply.error()), (2, ESHUTDOWN));
    assert_eq!(session.events(), []);
    assert!(session.conn.wants_input());
}
