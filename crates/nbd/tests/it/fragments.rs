//! A conversation does not depend on how the stream is fragmented.
//!
//! With a driver that answers only when it must, events and output depend on the stream alone and
//! are identical. A driver that answers at once may answer between two fragments what another
//! answers after both: events and replies are the same, but the order of replies may differ.

use crate::client::session::{MAXIMUM, disk};
use crate::client::*;
use headtime_nbd::{Answer, Connection, Errno, Event, Limits, Op, Tls};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// When a driver answers requests and sends output.
#[derive(Clone, Copy, Debug)]
enum Driver {
    /// At once.
    Eager,
    /// When no more input is taken, newest request first.
    Lazy,
}

/// What is observable from outside.
struct Seen {
    events: Vec<Event>,
    output: Vec<u8>,
    /// Lengths of the data of the replies without error, in order.
    successes: VecDeque<usize>,
    taken: usize,
}

impl Seen {
    /// Returns the server's messages, sorted because their order has no meaning.
    fn said(&self, no_zeroes: bool) -> Vec<String> {
        let mut ear = Ear::new(no_zeroes);
        ear.hear(&self.output);
        let mut lengths = self.successes.clone();
        let mut said = Vec::new();
        loop {
            let next = lengths.front().copied();
            match ear.next(&mut |_| next.expect("a reply without error to no request")).expect("clear speech") {
                None => break,
                Some(other) => {
                    if matches!(other, Said::Simple { .. } | Said::Chunk { .. }) && other.error() == 0 {
                        lengths.pop_front();
                    }
                    said.push(format!("{other:?}"));
                }
            }
        }
        assert_eq!((ear.rest(), lengths.len()), (0, 0), "half a message, or a reply that was never sent");
        said.sort_unstable();
        said
    }
}

fn limits() -> Limits {
    Limits { options: 12, option_bytes: 300, requests: 4, bytes: 16 << 10 }
}

fn run(stream: &[u8], cuts: &[usize], driver: Driver) -> Seen {
    let exports = Arc::from([disk("a"), disk("b")]);
    let mut world = World {
        conn: Connection::new(exports, Tls::Off, limits()),
        driver,
        waiting: Vec::new(),
        seen: Seen { events: Vec::new(), output: Vec::new(), successes: VecDeque::new(), taken: 0 },
    };
    let mut from = 0;
    for &to in cuts.iter().chain([&stream.len()]) {
        let mut piece = &stream[from..to];
        from = to;
        loop {
            let taken = world.conn.receive(piece);
            world.seen.taken += taken;
            piece = &piece[taken..];
            world.settle();
            if world.conn.wants_input() && !piece.is_empty() {
                continue;
            }
            if !piece.is_empty() && world.make_room() {
                continue;
            }
            break;
        }
    }
    world.conn.end_of_input();
    world.settle();
    while world.make_room() {}
    assert!(world.conn.is_closed());
    world.seen
}

struct World {
    conn: Connection,
    driver: Driver,
    waiting: Vec<(u64, Answer)>,
    seen: Seen,
}

impl World {
    fn settle(&mut self) {
        loop {
            while let Some(event) = self.conn.poll() {
                if let Event::Request(request) = &event {
                    let answer = match request.op {
                        _ if request.token % 5 == 4 => Answer::FailedAt(Errno::Io, request.offset),
                        Op::Read => Answer::Data(vec![request.token as u8; request.length as usize].into()),
                        Op::Write | Op::Flush | Op::Trim | Op::WriteZeroes => Answer::Done,
                    };
                    self.waiting.push((request.token, answer));
                }
                self.seen.events.push(event);
            }
            if matches!(self.driver, Driver::Lazy) || !self.make_room() {
                return;
            }
        }
    }

    fn send(&mut self) -> bool {
        let had = self.conn.has_output();
        while let Some(chunk) = self.conn.output() {
            self.seen.output.extend(&chunk);
        }
        had
    }

    /// Answers and sends everything; returns whether there was anything.
    fn make_room(&mut self) -> bool {
        let mut made = false;
        while let Some((token, answer)) = self.waiting.pop() {
            match &answer {
                Answer::Done => self.seen.successes.push_back(0),
                Answer::Data(data) => self.seen.successes.push_back(data.len()),
                Answer::Failed(_) | Answer::FailedAt(..) | Answer::FailedSaying(..) => {}
            }
            self.conn.reply(token, answer);
            made = true;
        }
        made |= self.send();
        if matches!(self.driver, Driver::Lazy) && made {
            self.settle();
        }
        made
    }
}

fn an_option() -> impl Strategy<Value = Vec<u8>> {
    let name = || prop::sample::select(vec!["", "a", "b", "nobody"]);
    prop_oneof![
        Just(option(LIST, b"")),
        Just(option(STRUCTURED, b"")),
        name().prop_map(|name| option(INFO, &about(name, &[1, 2, 3]))),
        name().prop_map(|name| option(SET_META, &contexts(name, &["base:allocation"]))),
        (0..400usize).prop_map(|length| option(99, &vec![1; length])),
        (0..20usize).prop_map(|length| option(GO, &vec![0xff; length])),
        // Without STARTTLS: the bytes that follow it belong to TLS or close the connection, which
        // depends on the fragmentation.
    ]
}

fn a_request() -> impl Strategy<Value = Vec<u8>> {
    let flags = || prop::sample::select(vec![0, 0, 0, FUA, DF, NO_HOLE, FAST_ZERO, 1 << 9]);
    let place = || prop_oneof![4 => (0..2048u64).prop_map(|block| block * 512), 1 => any::<u64>()];
    let length = || prop_oneof![4 => (0..20u32).prop_map(|blocks| blocks * 512), 1 => 0..2 * MAXIMUM];
    let command = prop::sample::select(vec![READ, READ, FLUSH, TRIM, CACHE, ZEROES, STATUS, 77]);
    prop_oneof![
        3 => (command, flags(), 0..9u64, place(), length()).prop_map(|(c, f, n, o, l)| request(c, f, n, o, l)),
        2 => (flags(), 0..9u64, place(), length()).prop_map(|(f, n, o, l)| write(f, n, o, &vec![n as u8; l as usize])),
        1 => (0..9u64).prop_map(|n| request(FLUSH, 0, n, 0, 0)),
    ]
}

prop_compose! {
    /// A conversation, which may end within a message.
    fn a_conversation()(
        client_flags in prop::sample::select(vec![3, 3, 3, 1, 0, 4]),
        options in prop::collection::vec(an_option(), 0..8),
        opens in prop::sample::select(vec![
            option(GO, &about("a", &[3])),
            option(EXPORT_NAME, b"b"),
            option(ABORT, b""),
        ]),
        requests in prop::collection::vec(a_request(), 0..20),
        leaves in any::<bool>(),
        noise in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
    ) -> Vec<u8> {
        let leaving = if leaves { request(DISC, 0, 0, 0, 0) } else { vec![] };
        let mut stream = [flags(client_flags), options.concat(), opens, requests.concat(), leaving].concat();
        if let Some((at, byte)) = noise {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream
    }
}

/// Positions at which a stream is cut: uneven, so that headers, payloads and single bytes are
/// split.
fn cuts(length: usize, wanted: &[(prop::sample::Index, u8)]) -> Vec<usize> {
    let mut cuts: Vec<usize> = Vec::new();
    for (at, run) in wanted {
        let at = at.index(length);
        // A few cuts one byte apart.
        cuts.extend((at..at + usize::from(run % 40)).filter(|&cut| cut <= length));
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn compare(stream: &[u8], cuts: &[usize], driver: Driver) {
    let (whole, pieces) = (run(stream, &[], driver), run(stream, cuts, driver));
    assert_eq!((&whole.events, whole.taken), (&pieces.events, pieces.taken));
    let no_zeroes = u32::from(stream[3]) & NO_ZEROES != 0;
    assert_eq!(whole.said(no_zeroes), pieces.said(no_zeroes));
    if matches!(driver, Driver::Lazy) {
        assert_eq!(whole.output, pieces.output);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_pieces_of_a_conversation_make_no_difference(
        stream in a_conversation(),
        wanted in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        driver in prop::sample::select(vec![Driver::Eager, Driver::Lazy]),
    ) {
        compare(&stream, &cuts(stream.len(), &wanted), driver)
    }
}

#[test]
fn single_bytes_make_no_difference() {
    let stream = [
        flags(FIXED | NO_ZEROES),
        option(LIST, b""),
        option(STRUCTURED, b""),
        option(99, &[0; 400]),
        option(GO, &about("a", &[1, 2, 3])),
        write(FUA, 1, 512, &[1; 2048]),
        request(READ, DF, 2, 0, 8192),
        write(0, 3, 100, &[1; 100]),
        request(READ, 0, 4, 0, 16 << 10),
        request(DISC, 0, 5, 0, 0),
    ]
    .concat();
    let every_byte: Vec<usize> = (0..stream.len()).collect();
    for driver in [Driver::Eager, Driver::Lazy] {
        let whole = run(&stream, &[], driver);
        assert_eq!(whole.taken, stream.len());
        assert_eq!(whole.events.len(), 6, "opened, data to come, three requests, closed: {:?}", whole.events);
        compare(&stream, &every_byte, driver);
    }
}
