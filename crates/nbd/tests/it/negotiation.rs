//! From the greeting to an open export, as a client sees it.

use crate::client::session::{SIZE, Session, disk};
use crate::client::*;
use headtime_nbd::{Closed, Event, Export, Limits, Tls, Violation};

/// HAS_FLAGS, FLUSH, FUA, ROTATIONAL, TRIM, WRITE_ZEROES, CAN_MULTI_CONN, FAST_ZERO.
const ALL: u16 = 0b1001_0111_1101;
const DF_OFFERED: u16 = 1 << 7;

fn said(option: u32, kind: u32, data: &[u8]) -> Said {
    Said::Option { option, kind, data: data.to_vec() }
}

fn told(option: u32, kind: u16, data: &[&[u8]]) -> Said {
    said(option, TELL, &[&kind.to_be_bytes()[..], &data.concat()].concat())
}

fn told_export(option: u32, flags: u16) -> Said {
    told(option, 0, &[&SIZE.to_be_bytes(), &flags.to_be_bytes()])
}

fn told_blocks(option: u32) -> Said {
    told(option, 3, &[&[0, 0, 2, 0], &[0, 0, 0x10, 0], &[0, 1, 0, 0]])
}

/// Returns the kind of the single reply to an option, which is an error.
fn error_of(session: &mut Session, number: u32) -> u32 {
    let heard = session.hear();
    let [Said::Option { option, kind, data }] = &heard[..] else { panic!("one answer expected, found {heard:?}") };
    assert_eq!(*option, number);
    assert!(!data.is_empty(), "an error says what is wrong");
    *kind
}

fn violation(session: &mut Session) -> Violation {
    let events = session.events();
    let [Event::Closed(Closed::Protocol(violation))] = &events[..] else { panic!("a violation expected: {events:?}") };
    assert!(!session.conn.wants_input());
    assert_eq!(session.offer(b"more"), 0, "nothing is taken behind it");
    session.hear();
    assert!(session.conn.is_closed());
    violation.clone()
}

#[test]
fn the_server_speaks_first_and_offers_the_fixed_newstyle_without_zeroes() {
    let mut session = Session::new(vec![disk("a")], Tls::Off, Limits::default());
    assert!(session.conn.is_negotiating());
    assert!(session.conn.has_output());
    assert_eq!(session.hear(), [Said::Greeting { flags: 3 }]);
    assert!(!session.conn.has_output());
}

#[test]
fn flags_that_were_not_offered_end_the_connection() {
    for found in [4, 0x8000_0001] {
        let mut session = Session::new(vec![disk("a")], Tls::Off, Limits::default());
        session.send(&flags(found));
        assert_eq!(violation(&mut session), Violation::ClientFlags { found });
    }
}

#[test]
fn go_tells_size_flags_and_block_sizes_unasked_and_opens() {
    let mut session = Session::greeted();
    session.send(&option(GO, &about("b", &[])));
    assert_eq!(session.hear(), [told_export(GO, ALL), told_blocks(GO), said(GO, ACK, b"")]);
    assert_eq!(session.events(), [Event::Opened { export: 1 }]);
    assert!(!session.conn.is_negotiating());
}

#[test]
fn info_tells_the_same_and_opens_nothing() {
    let mut session = Session::greeted();
    session.send(&option(INFO, &about("a", &[3])));
    assert_eq!(session.hear(), [told_export(INFO, ALL), told_blocks(INFO), said(INFO, ACK, b"")]);
    assert_eq!(session.events(), []);
    session.assert_in_step();
}

#[test]
fn name_and_description_are_sent_when_asked_for() {
    let mut session = Session::greeted();
    session.send(&option(INFO, &about("", &[2, 1, 77])));
    let heard = session.hear();
    assert!(heard.contains(&told(INFO, 1, &[b"a"])), "{heard:?}");
    assert!(heard.contains(&told(INFO, 2, &[b"disk a"])), "{heard:?}");
    assert_eq!(heard.len(), 5, "an unknown kind is skipped");
}

#[test]
fn an_empty_description_is_not_sent() {
    let plain = Export { description: String::new(), ..disk("a") };
    let mut session = Session::greeted_with(vec![plain], Tls::Off, Limits::default());
    session.send(&option(INFO, &about("", &[2])));
    assert_eq!(session.hear(), [told_export(INFO, ALL), told_blocks(INFO), said(INFO, ACK, b"")]);
}

#[test]
fn structured_replies_bring_unfragmented_reads() {
    let mut session = Session::greeted();
    session.send(&option(STRUCTURED, b""));
    assert_eq!(session.hear(), [said(STRUCTURED, ACK, b"")]);
    session.send(&option(GO, &about("a", &[])));
    assert_eq!(session.hear()[0], told_export(GO, ALL | DF_OFFERED));
}

#[test]
fn an_unknown_export_is_refused_and_the_next_may_be_tried() {
    for number in [INFO, GO] {
        let mut session = Session::greeted();
        session.send(&option(number, &about("c", &[])));
        assert_eq!(error_of(&mut session, number), UNKNOWN);
        assert_eq!(session.events(), []);
        session.assert_in_step();
    }
}

#[test]
fn the_list_has_every_export_with_its_description() {
    let mut session = Session::greeted();
    session.send(&option(LIST, b""));
    let expected =
        [said(LIST, SERVER, b"\0\0\0\x01adisk a"), said(LIST, SERVER, b"\0\0\0\x01bdisk b"), said(LIST, ACK, b"")];
    assert_eq!(session.hear(), expected);
}

#[test]
fn a_server_without_exports_has_an_empty_list_and_no_default() {
    let mut session = Session::greeted_with(vec![], Tls::Off, Limits::default());
    session.send(&option(LIST, b""));
    assert_eq!(session.hear(), [said(LIST, ACK, b"")]);
    session.send(&option(GO, &about("", &[])));
    assert_eq!(error_of(&mut session, GO), UNKNOWN);
}

#[test]
fn an_unknown_option_is_refused() {
    for number in [0, 4, 11, 12, u32::MAX] {
        let mut session = Session::greeted();
        session.send(&option(number, b"some data"));
        assert_eq!(error_of(&mut session, number), UNSUP);
        session.assert_in_step();
    }
}

#[test]
fn an_option_that_makes_no_sense_is_refused() {
    let malformed = [
        (LIST, b"x".to_vec()),
        (STRUCTURED, b"x".to_vec()),
        (GO, vec![]),
        (INFO, b"\0\0\0\x09a\0\0".to_vec()),
        (GO, [about("a", &[]), b"x".to_vec()].concat()),
        (SET_META, b"\0\0\0\x01a".to_vec()),
        (LIST_META, text("a")),
    ];
    for (number, data) in malformed {
        let mut session = Session::greeted();
        session.send(&option(number, &data));
        assert_eq!(error_of(&mut session, number), INVALID, "option {number} with {data:x?}");
        assert_eq!(session.events(), []);
        session.assert_in_step();
    }
}

#[test]
fn there_are_no_metadata_contexts() {
    for number in [LIST_META, SET_META] {
        let mut session = Session::greeted();
        let asked = option(number, &contexts("a", &["base:allocation", "qemu:"]));
        session.send(&asked);
        assert_eq!(error_of(&mut session, number), INVALID, "structured replies come first");
        session.send(&option(STRUCTURED, b""));
        session.hear();
        session.send(&asked);
        assert_eq!(session.hear(), [said(number, ACK, b"")]);
        session.send(&option(number, &contexts("c", &[])));
        assert_eq!(error_of(&mut session, number), UNKNOWN);
    }
}

#[test]
fn abort_is_acknowledged_whatever_comes_with_it() {
    for data in [&b""[..], b"good bye"] {
        let mut session = Session::greeted();
        session.send(&option(ABORT, data));
        assert_eq!(session.events(), [Event::Closed(Closed::ByClient)]);
        assert!(!session.conn.is_closed(), "the acknowledgement is not sent yet");
        assert_eq!(session.hear(), [said(ABORT, ACK, b"")]);
        assert!(session.conn.is_closed());
    }
}

#[test]
fn export_name_opens_with_and_without_padding() {
    for (client_flags, zeroes) in [(FIXED | NO_ZEROES, 0), (FIXED, 124), (0, 124), (NO_ZEROES, 0)] {
        let mut session = Session::new(vec![disk("a"), disk("b")], Tls::Off, Limits::default());
        session.ear = Ear::new(client_flags & NO_ZEROES != 0);
        session.send(&flags(client_flags));
        session.send(&option(EXPORT_NAME, b"b"));
        let export = Said::Export { size: SIZE, flags: ALL, zeroes };
        assert_eq!(session.hear(), [Said::Greeting { flags: 3 }, export]);
        assert_eq!(session.events(), [Event::Opened { export: 1 }]);
        session.assert_in_step();
    }
}

#[test]
fn export_name_without_a_name_opens_the_first() {
    let mut session = Session::greeted();
    session.send(&option(EXPORT_NAME, b""));
    assert_eq!(session.events(), [Event::Opened { export: 0 }]);
}

#[test]
fn export_name_of_no_export_ends_the_connection() {
    let mut session = Session::greeted();
    session.send(&option(EXPORT_NAME, b"c"));
    assert_eq!(violation(&mut session), Violation::UnknownExport { name: "c".into() });
}

#[test]
fn a_client_of_old_can_do_nothing_but_name_an_export() {
    for number in [ABORT, LIST, GO, STRUCTURED, STARTTLS] {
        let mut session = Session::new(vec![disk("a")], Tls::Offered, Limits::default());
        session.send(&flags(NO_ZEROES));
        let _ = session.offer(&option(number, b""));
        assert_eq!(violation(&mut session), Violation::NotFixedNewstyle { option: number });
    }
}

#[test]
fn an_option_with_another_magic_ends_the_connection() {
    let mut session = Session::greeted();
    session.send(b"IHAVEOPS\0\0\0\x03\0\0\0\0");
    assert_eq!(violation(&mut session), Violation::OptionMagic { found: 0x4948_4156_454f_5053 });
}

#[test]
fn starttls_is_not_known_where_there_is_no_tls() {
    let mut session = Session::greeted();
    session.send(&option(STARTTLS, b""));
    assert_eq!(error_of(&mut session, STARTTLS), UNSUP);
    session.assert_in_step();
}

#[test]
fn tls_begins_once_and_what_was_agreed_before_is_forgotten() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Offered, Limits::default());
    session.send(&option(STRUCTURED, b""));
    session.send(&option(STARTTLS, b""));
    assert_eq!(session.events(), [Event::StartTls]);
    assert!(!session.conn.wants_input());
    assert!(session.conn.is_negotiating());
    assert_eq!(session.hear(), [said(STRUCTURED, ACK, b""), said(STARTTLS, ACK, b"")]);
    session.conn.tls_established();
    session.ear.tls_established();
    assert!(session.conn.wants_input());
    session.send(&option(STARTTLS, b""));
    assert_eq!(error_of(&mut session, STARTTLS), INVALID);
    session.send(&option(GO, &about("a", &[])));
    assert_eq!(session.hear()[0], told_export(GO, ALL), "unfragmented reads are no longer offered");
    assert_eq!(session.events(), [Event::Opened { export: 0 }]);
    session.assert_in_step();
}

#[test]
fn starttls_with_data_is_refused() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Offered, Limits::default());
    session.send(&option(STARTTLS, b"x"));
    assert_eq!(error_of(&mut session, STARTTLS), INVALID);
    session.assert_in_step();
}

#[test]
fn nothing_can_be_slipped_in_before_tls() {
    let injected = option(GO, &about("a", &[]));
    // In the same piece as the option, and in a separate piece.
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Required, Limits::default());
    let both = [option(STARTTLS, b""), injected.clone()].concat();
    assert_eq!(session.offer(&both), 16);
    let closed = Event::Closed(Closed::Protocol(Violation::PlainAfterStartTls));
    assert_eq!(session.events(), [Event::StartTls, closed.clone()]);
    session.conn.tls_established();
    assert!(!session.conn.wants_input());

    let mut session = Session::greeted_with(vec![disk("a")], Tls::Required, Limits::default());
    session.send(&option(STARTTLS, b""));
    assert_eq!(session.offer(&injected), 0);
    assert_eq!(session.events(), [Event::StartTls, closed]);
}

#[test]
fn where_tls_is_required_nothing_else_is_answered_before_it() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Required, Limits::default());
    for number in [LIST, INFO, GO, STRUCTURED, LIST_META, SET_META, 99] {
        session.send(&option(number, b""));
        assert_eq!(error_of(&mut session, number), TLS_REQD, "option {number}");
    }
    session.send(&option(STARTTLS, b""));
    assert_eq!(session.hear(), [said(STARTTLS, ACK, b"")]);
    session.conn.tls_established();
    session.send(&option(LIST, b""));
    assert_eq!(session.hear().len(), 2);
}

#[test]
fn where_tls_is_required_one_may_still_leave() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Required, Limits::default());
    session.send(&option(ABORT, b""));
    assert_eq!(session.hear(), [said(ABORT, ACK, b"")]);
}

#[test]
fn where_tls_is_required_export_name_ends_the_connection() {
    let mut session = Session::greeted_with(vec![disk("a")], Tls::Required, Limits::default());
    session.send(&option(EXPORT_NAME, b"a"));
    assert_eq!(violation(&mut session), Violation::TlsRequired);
}

#[test]
#[should_panic(expected = "expected Event::StartTls first")]
fn tls_that_was_not_to_begin_is_a_mistake_of_the_driver() {
    Session::greeted_with(vec![disk("a")], Tls::Offered, Limits::default()).conn.tls_established();
}

#[test]
fn a_server_that_goes_away_refuses_options() {
    let mut session = Session::greeted();
    session.conn.shut_down();
    for number in [LIST, INFO, GO, STRUCTURED, 99] {
        session.send(&option(number, b""));
        assert_eq!(error_of(&mut session, number), SHUTDOWN, "option {number}");
    }
    session.assert_in_step();
}

#[test]
fn a_server_that_goes_away_hangs_up_on_export_name() {
    let mut session = Session::greeted();
    session.conn.shut_down();
    session.send(&option(EXPORT_NAME, b"a"));
    assert_eq!(session.events(), [Event::Closed(Closed::ShutDown)]);
}

#[test]
fn a_full_server_gives_no_export_and_says_why_where_that_can_be_said() {
    let mut session = Session::greeted();
    session.conn.set_full(true);
    session.send(&option(LIST, b""));
    assert!(session.hear().len() > 1);
    session.send(&option(GO, &about("a", &[])));
    assert_eq!(error_of(&mut session, GO), (1 << 31) | 2);
    // The same client succeeds once there is room.
    session.conn.set_full(false);
    session.send(&option(GO, &about("a", &[])));
    assert_eq!(session.events(), [Event::Opened { export: 0 }]);
    let mut session = Session::greeted();
    session.conn.set_full(true);
    session.send(&option(EXPORT_NAME, b"a"));
    assert_eq!(session.events(), [Event::Closed(Closed::Full)]);
}

#[test]
fn the_end_of_input_closes_wherever_it_comes() {
    let whole = [flags(FIXED | NO_ZEROES), option(LIST, b""), option(GO, &about("a", &[]))].concat();
    for cut in 0..=whole.len() {
        let mut session = Session::new(vec![disk("a")], Tls::Off, Limits::default());
        session.send(&whole[..cut]);
        session.conn.end_of_input();
        session.hear();
        assert_eq!(session.events().pop(), Some(Event::Closed(Closed::EndOfInput)), "after {cut} bytes");
        assert!(session.conn.is_closed());
        assert_eq!(session.offer(b"more"), 0);
        assert_eq!(session.events(), []);
    }
}
