//! Requests and their replies, as a client sees them.

use crate::client::session::{MAXIMUM, SIZE, Session, disk};
use crate::client::*;
use headtime_nbd::{Answer, BlockSizes, Closed, Errno, Event, Export, Limits, Op, PAYLOAD_SKIPPED, Request, Violation};

const REPLY_STYLES: [bool; 2] = [false, true];

fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|i| (i / 7) as u8).collect()
}

/// Sends a request that must be refused, with its data; returns the error. The stream must remain
/// in sync.
fn refused(export: Export, structured: bool, bytes: &[u8]) -> u32 {
    let mut session = Session::open_with(export, structured, Limits::default());
    session.send(bytes);
    assert_eq!(session.events(), [], "it is not handed on");
    let reply = session.hear_reply();
    assert_eq!(reply.cookie(), 7);
    if let Said::Chunk { data, .. } = &reply {
        assert!(data.len() > 6, "an error says what is wrong");
    }
    session.assert_in_step();
    reply.error()
}

#[test]
fn a_read_is_handed_on_and_answered_with_data() {
    for structured in REPLY_STYLES {
        let mut session = Session::open(structured);
        session.read(9, 4096, 1024);
        let request = session.one_request();
        let expected = Request {
            token: request.token,
            op: Op::Read,
            offset: 4096,
            length: 1024,
            fua: false,
            no_hole: false,
            data: Default::default(),
        };
        assert_eq!(request, expected);
        assert_eq!(session.conn.in_flight(), 1);
        assert!(!session.conn.has_output());
        session.reply(request.token, Answer::Data(pattern(1024).into()));
        assert_eq!(session.conn.in_flight(), 0);
        let data = pattern(1024);
        let expected = match structured {
            true => Said::Chunk { flags: 1, kind: 1, cookie: 9, data: [&4096u64.to_be_bytes()[..], &data].concat() },
            false => Said::Simple { error: 0, cookie: 9, data },
        };
        assert_eq!(session.hear_reply(), expected);
    }
}

#[test]
fn read_data_goes_out_without_being_copied() {
    for structured in REPLY_STYLES {
        let mut session = Session::open(structured);
        session.read(9, 0, 4096);
        let token = session.one_request().token;
        let data = bytes::Bytes::from(pattern(4096));
        session.reply(token, Answer::Data(data.clone()));
        session.conn.output();
        assert_eq!(session.conn.output().map(|d| d.as_ptr()), Some(data.as_ptr()));
    }
}

#[test]
fn a_write_is_handed_on_with_its_data_in_one_piece() {
    for structured in REPLY_STYLES {
        let mut session = Session::open(structured);
        let message = write(0, 9, 512, &pattern(MAXIMUM));
        // In three pieces, none of which ends at a field boundary.
        session.send(&message[..20]);
        session.send(&message[20..5000]);
        assert_eq!(session.events(), []);
        session.send(&message[5000..]);
        let request = session.one_request();
        assert_eq!((request.op, request.offset, request.length), (Op::Write, 512, MAXIMUM.into()));
        assert_eq!(request.data, pattern(MAXIMUM));
        assert!(!request.fua);
        session.reply(request.token, Answer::Done);
        assert_eq!(session.hear_reply(), done(structured, 9));
    }
}

fn done(structured: bool, cookie: u64) -> Said {
    match structured {
        true => Said::Chunk { flags: 1, kind: 0, cookie, data: vec![] },
        false => Said::Simple { error: 0, cookie, data: vec![] },
    }
}

#[test]
fn flush_trim_and_zeroes_are_handed_on() {
    for structured in REPLY_STYLES {
        for (command, op, offset, length) in
            [(FLUSH, Op::Flush, 0, 0), (TRIM, Op::Trim, 512, 1 << 19), (ZEROES, Op::WriteZeroes, 1024, 1 << 19)]
        {
            let mut session = Session::open(structured);
            session.send(&request(command, 0, 3, offset, length));
            let request = session.one_request();
            assert_eq!((request.op, request.offset, request.length), (op, offset, length.into()));
            session.reply(request.token, Answer::Done);
            assert_eq!(session.hear_reply(), done(structured, 3));
        }
    }
}

#[test]
fn fua_is_passed_on_for_writes() {
    for (command, expected) in [(READ, false), (TRIM, true), (ZEROES, true)] {
        let mut session = Session::open(true);
        session.send(&request(command, FUA, 3, 0, 512));
        assert_eq!(session.one_request().fua, expected, "command {command}");
    }
    let mut session = Session::open(true);
    session.send(&write(FUA, 3, 0, &[0; 512]));
    assert!(session.one_request().fua);
    session.send(&request(FLUSH, FUA, 3, 0, 0));
    assert!(!session.one_request().fua);
}

#[test]
fn zeroes_that_must_have_a_place_say_so() {
    for (flags, expected) in [(NO_HOLE, true), (0, false)] {
        let mut session = Session::open(true);
        session.send(&request(ZEROES, flags, 3, 0, 512));
        assert_eq!(session.one_request().no_hole, expected);
    }
}

#[test]
fn requests_are_answered_in_any_order_and_cookies_may_repeat() {
    let mut session = Session::open(true);
    for offset in [0, 512, 1024] {
        session.send(&request(READ, 0, 5, offset, 512));
    }
    let mut tokens: Vec<_> = session
        .events()
        .into_iter()
        .map(|e| match e {
            Event::Request(request) => (request.token, request.offset),
            other => panic!("{other:?}"),
        })
        .collect();
    tokens.reverse();
    for &(token, offset) in &tokens {
        session.reply(token, Answer::Data(vec![(offset / 512) as u8; 512].into()));
    }
    let firsts: Vec<u8> = session
        .hear()
        .iter()
        .map(|said| match said {
            Said::Chunk { cookie: 5, data, .. } => data[8],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(firsts, [2, 1, 0]);
}

#[test]
fn every_error_has_its_number() {
    let errors = [
        (Errno::Perm, 1),
        (Errno::Io, 5),
        (Errno::NoMem, 12),
        (Errno::Inval, 22),
        (Errno::NoSpc, 28),
        (Errno::Overflow, 75),
        (Errno::NotSup, 95),
        (Errno::Shutdown, 108),
    ];
    for structured in REPLY_STYLES {
        for (errno, number) in errors {
            let mut session = Session::open(structured);
            session.read(9, 0, 512);
            let token = session.one_request().token;
            session.reply(token, Answer::Failed(errno));
            let reply = session.hear_reply();
            assert_eq!((reply.error(), reply.cookie()), (number, 9));
            session.assert_in_step();
        }
    }
}

#[test]
fn the_error_of_a_failed_request_is_sent_where_possible() {
    for structured in REPLY_STYLES {
        let mut session = Session::open(structured);
        session.read(9, 0, 512);
        let token = session.one_request().token;
        session.reply(token, Answer::FailedSaying(Errno::Io, "too late"));
        let reply = session.hear_reply();
        assert_eq!((reply.error(), reply.cookie()), (EIO, 9));
        if let Said::Chunk { kind, data, .. } = reply {
            assert_eq!((kind, &data[4..]), (0x8001, &b"\0\x08too late"[..]));
        }
        session.assert_in_step();
    }
}

#[test]
fn the_offset_of_a_failed_request_is_sent_where_possible() {
    let failed_at = |structured, at| {
        let mut session = Session::open(structured);
        session.read(9, 4096, 1024);
        let token = session.one_request().token;
        session.reply(token, Answer::FailedAt(Errno::Io, at));
        let reply = session.hear_reply();
        assert_eq!((reply.error(), reply.cookie()), (EIO, 9));
        reply
    };
    for at in [4096u64, 4608, 5119] {
        let Said::Chunk { kind, data, .. } = failed_at(true, at) else { panic!() };
        assert_eq!(kind, 0x8002);
        assert_eq!(data[data.len() - 8..], at.to_be_bytes());
    }
    for at in [4095, 5120] {
        let Said::Chunk { kind, .. } = failed_at(true, at) else { panic!() };
        assert_eq!(kind, 0x8001, "{at} is none of the request's bytes");
    }
    assert_eq!(failed_at(false, 4096), Said::Simple { error: EIO, cookie: 9, data: vec![] });
}

#[test]
fn a_range_beyond_the_end_is_refused() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(READ, 0, 7, SIZE - 512, 1024)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &request(TRIM, 0, 7, SIZE, 512)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &request(ZEROES, 0, 7, SIZE, 512)), ENOSPC);
    }
}

#[test]
fn the_last_block_belongs_to_the_export() {
    let mut session = Session::open(true);
    session.read(1, SIZE - 512, 512);
    assert_eq!(session.one_request().offset, SIZE - 512);
    session.send(&request(TRIM, 0, 1, 0, SIZE as u32));
    assert_eq!(session.one_request().length, SIZE);
}

#[test]
fn a_write_beyond_the_end_is_refused() {
    for structured in REPLY_STYLES {
        let far = u64::MAX - 511;
        for offset in [SIZE - 512, SIZE, far] {
            assert_eq!(refused(disk("a"), structured, &write(0, 7, offset, &pattern(1024))), ENOSPC);
        }
    }
}

#[test]
fn a_range_that_is_not_aligned_is_refused() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(READ, 0, 7, 100, 512)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &write(0, 7, 512, &pattern(100))), EINVAL);
        assert_eq!(refused(disk("a"), structured, &request(TRIM, 0, 7, 0, 511)), EINVAL);
    }
}

#[test]
fn a_range_of_nothing_is_refused() {
    for structured in REPLY_STYLES {
        for command in [READ, WRITE, TRIM, ZEROES] {
            assert_eq!(refused(disk("a"), structured, &request(command, 0, 7, 512, 0)), EINVAL);
        }
    }
}

#[test]
fn more_than_the_maximum_is_refused() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(READ, 0, 7, 0, MAXIMUM + 512)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &write(0, 7, 0, &pattern(MAXIMUM + 512))), EINVAL);
    }
}

#[test]
fn the_data_of_a_refused_write_is_never_held() {
    let mut session = Session::open(true);
    session.send(&request(WRITE, 0, 7, 0, MAXIMUM + PAYLOAD_SKIPPED));
    let piece = vec![0; 1 << 20];
    let mut left = (MAXIMUM + PAYLOAD_SKIPPED) as usize;
    while left > 0 {
        assert!(!session.conn.has_output(), "it is answered once its data is gone");
        let piece = &piece[..left.min(piece.len())];
        session.send(piece);
        left -= piece.len();
        assert!(session.conn.held_bytes() < 200);
    }
    assert_eq!(session.hear_reply().error(), EINVAL);
    session.assert_in_step();
}

#[test]
fn a_write_that_is_absurdly_long_ends_the_connection() {
    let mut session = Session::open(true);
    let length = MAXIMUM + PAYLOAD_SKIPPED + 1;
    session.send(&request(WRITE, 0, 7, 0, length));
    let violation = Violation::PayloadTooLong { length, limit: u64::from(length) - 1 };
    assert_eq!(session.events(), [Event::Closed(Closed::Protocol(violation))]);
    assert!(session.conn.is_closed());
}

#[test]
fn nothing_is_written_to_a_read_only_export() {
    let fixed = || Export { read_only: true, ..disk("a") };
    for structured in REPLY_STYLES {
        assert_eq!(refused(fixed(), structured, &write(0, 7, 0, &pattern(512))), EPERM);
        assert_eq!(refused(fixed(), structured, &request(TRIM, 0, 7, 0, 512)), EPERM);
        assert_eq!(refused(fixed(), structured, &request(ZEROES, 0, 7, 0, 512)), EPERM);
    }
}

#[test]
fn a_command_that_is_not_offered_is_refused() {
    let plain = || Export { trim: false, write_zeroes: false, ..disk("a") };
    for structured in REPLY_STYLES {
        for command in [TRIM, ZEROES, CACHE, STATUS, 8, 1000] {
            assert_eq!(refused(plain(), structured, &request(command, 0, 7, 0, 512)), EINVAL, "command {command}");
        }
    }
}

#[test]
fn flags_that_a_command_does_not_have_are_refused() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(READ, 1 << 9, 7, 0, 512)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &write(NO_HOLE, 7, 0, &pattern(512))), EINVAL);
        assert_eq!(refused(disk("a"), structured, &request(FLUSH, DF, 7, 0, 0)), EINVAL);
    }
}

#[test]
fn an_unfragmented_read_needs_structured_replies() {
    assert_eq!(refused(disk("a"), false, &request(READ, DF, 7, 0, 512)), EINVAL);
    let mut session = Session::open(true);
    session.send(&request(READ, DF, 7, 0, 512));
    assert_eq!(session.one_request().op, Op::Read);
}

#[test]
fn fast_zeroing_is_not_supported() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(ZEROES, FAST_ZERO, 7, 0, 512)), ENOTSUP);
        assert_eq!(refused(disk("a"), structured, &request(ZEROES, FAST_ZERO | NO_HOLE | FUA, 7, 0, 512)), ENOTSUP);
    }
}

#[test]
fn a_flush_of_a_range_is_refused() {
    for structured in REPLY_STYLES {
        assert_eq!(refused(disk("a"), structured, &request(FLUSH, 0, 7, 0, 512)), EINVAL);
        assert_eq!(refused(disk("a"), structured, &request(FLUSH, 0, 7, 512, 0)), EINVAL);
    }
}

#[test]
fn a_request_with_another_magic_ends_the_connection() {
    let mut session = Session::open(true);
    session.read(1, 0, 512);
    let token = session.one_request().token;
    session.send(&[0x25, 0x60, 0x95, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    let violation = Violation::RequestMagic { found: 0x2560_9514 };
    assert_eq!(session.events(), [Event::Closed(Closed::Protocol(violation))]);
    assert_eq!(session.offer(b"more"), 0);
    session.reply(token, Answer::Data(vec![0; 512].into()));
    assert_eq!(session.hear_reply().cookie(), 1, "what is in flight is still answered");
    assert!(session.conn.is_closed());
}

#[test]
fn a_client_that_leaves_gets_what_it_asked_for_before() {
    let mut session = Session::open(true);
    session.read(1, 0, 512);
    let token = session.one_request().token;
    let leaving = [request(DISC, 0, 2, 0, 0), request(READ, 0, 3, 0, 512)].concat();
    assert_eq!(session.offer(&leaving), 28, "nothing is taken behind it");
    assert_eq!(session.events(), [Event::Closed(Closed::ByClient)]);
    assert!(!session.conn.is_closed());
    session.reply(token, Answer::Data(vec![0; 512].into()));
    assert!(!session.conn.is_closed(), "the reply is not sent yet");
    assert_eq!(session.hear_reply().cookie(), 1);
    assert!(session.conn.is_closed());
}

#[test]
fn a_connection_is_not_closed_before_its_end_was_sent() {
    let mut session = Session::open(true);
    session.conn.receive(&request(DISC, 0, 2, 0, 0));
    assert!(!session.conn.is_closed());
    assert_eq!(session.conn.poll(), Some(Event::Closed(Closed::ByClient)));
    assert!(session.conn.is_closed());
}

#[test]
fn the_end_of_input_in_the_middle_of_a_write_drops_the_write_alone() {
    let mut session = Session::open(false);
    session.send(&write(0, 1, 0, &pattern(512)));
    let token = session.one_request().token;
    session.send(&write(0, 2, 0, &pattern(512))[..300]);
    session.conn.end_of_input();
    session.hear();
    assert_eq!(session.events(), [Event::Closed(Closed::EndOfInput)]);
    session.reply(token, Answer::Done);
    assert_eq!(session.hear(), [done(false, 1)]);
    assert!(session.conn.is_closed());
}

#[test]
fn a_server_that_goes_away_answers_what_it_took_and_refuses_the_rest() {
    for structured in REPLY_STYLES {
        let mut session = Session::open(structured);
        session.read(1, 0, 512);
        let token = session.one_request().token;
        // One write is incomplete when the server shuts down, another comes later.
        let half = write(0, 2, 0, &pattern(2048));
        session.send(&half[..1000]);
        session.conn.shut_down();
        session.send(&half[1000..]);
        session.send(&write(0, 3, 0, &pattern(512)));
        session.send(&request(FLUSH, 0, 4, 0, 0));
        assert_eq!(session.events(), []);
        session.reply(token, Answer::Data(vec![0; 512].into()));
        let heard: Vec<_> = session.hear().iter().map(|said| (said.cookie(), said.error())).collect();
        assert_eq!(heard, [(2, ESHUTDOWN), (3, ESHUTDOWN), (4, ESHUTDOWN), (1, 0)]);
        session.send(&request(DISC, 0, 0, 0, 0));
        assert_eq!(session.events(), [Event::Closed(Closed::ByClient)]);
        assert!(session.conn.is_closed());
    }
}

#[test]
fn a_minimum_of_4096_is_kept_to() {
    let large = || Export { blocks: BlockSizes::new(4096, 4096, MAXIMUM).unwrap(), ..disk("a") };
    let mut session = Session::open_with(large(), false, Limits::default());
    session.send(&request(READ, 0, 7, 512, 4096));
    assert_eq!(session.hear_reply().error(), EINVAL);
    session.send(&request(READ, 0, 7, 8192, 4096));
    assert_eq!(session.one_request().offset, 8192);
}

#[test]
fn a_connection_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<headtime_nbd::Connection>();
    is_send::<Event>();
}

fn open_read() -> (Session, u64) {
    let mut session = Session::open(true);
    session.read(1, 0, 512);
    let token = session.one_request().token;
    (session, token)
}

#[test]
#[should_panic(expected = "expected a request in flight, found token 1")]
fn a_reply_to_nothing_is_a_mistake_of_the_driver() {
    let (mut session, token) = open_read();
    session.reply(token + 1, Answer::Done);
}

#[test]
#[should_panic(expected = "not as long as was asked for")]
fn data_of_another_length_is_a_mistake_of_the_driver() {
    let (mut session, token) = open_read();
    session.reply(token, Answer::Data(vec![0; 511].into()));
}

#[test]
#[should_panic(expected = "expected the data of the read")]
fn a_read_without_data_is_a_mistake_of_the_driver() {
    let (mut session, token) = open_read();
    session.reply(token, Answer::Done);
}

#[test]
#[should_panic(expected = "expected an answer without data")]
fn a_flush_with_data_is_a_mistake_of_the_driver() {
    let mut session = Session::open(true);
    session.send(&request(FLUSH, 0, 1, 0, 0));
    let token = session.one_request().token;
    session.reply(token, Answer::Data(Default::default()));
}
