//! A run of the state machine under arbitrary input, with its invariants.
//!
//! The fuzz target, the test over the corpus and a property test call [`run`]. The input encodes
//! what the client sends, its fragmentation, and when and how the driver answers, so that a fuzzer
//! plays both sides. The server's output is parsed by the client model ([`client::Ear`]), which
//! shares no code with it.
//!
//! The first byte configures the server: bits 0 and 1 are TLS (3 counts as 2), bit 2 a read-only
//! first export, bit 3 limits so tight that most requests wait, bits 4 and 5 the preceding
//! negotiation (none; `GO`; `GO` with structured replies; `EXPORT_NAME` of a client without fixed
//! newstyle). After that:
//!
//! | byte | meaning |
//! |---|---|
//! | `0` | the client sends the number of following bytes given by the next two |
//! | `1` to `0x7f` | the client sends that number of the following bytes |
//! | `0x80` to `0xbf` | a request is answered: which one in bits 0 to 3, how in bits 4 and 5 |
//! | `0xc0` to `0xcf` | the given number of output chunks is taken; zero: all |
//! | `0xd0` | the client stops sending |
//! | `0xd1` | the server shuts down |
//! | `0xd2` | TLS is established, if it was started |
//! | `0xd3` | the client sends the number of zeroes given by the next two bytes |
//! | others | nothing |

#[allow(dead_code, reason = "the fuzz target begins from the files that are made of them")]
pub mod seeds;

use super::client;
use super::client::{Ear, FIXED, GO, NO_ZEROES, STRUCTURED, Said, about, flags, option};
use headtime_nbd::{
    Answer, BlockSizes, Closed, Connection, Errno, Event, Export, Limits, OUTPUT_ROOM, Op, Request, Tls,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Longest reply to one option (two exports with short names), plus all error replies that can be
/// in flight.
const SLACK: u64 = 1024 + 128 * 100;

/// One run.
pub fn run(input: &[u8]) {
    let (&config, script) = input.split_first().unwrap_or((&0, &[]));
    let mut run = Run::begin(config);
    let mut script = script;
    while let Some((&action, rest)) = script.split_first() {
        script = rest;
        match action {
            0 => {
                let count = number(&mut script);
                run.send(cut(&mut script, count));
            }
            1..=0x7f => run.send(cut(&mut script, usize::from(action))),
            0x80..=0xbf => run.answer(usize::from(action & 15), action >> 4 & 3),
            0xc0..=0xcf => run.listen(if action == 0xc0 { usize::MAX } else { usize::from(action & 15) }),
            0xd0 => run.end_of_input(),
            0xd1 => run.shut_down(),
            0xd2 => run.tls_established(),
            0xd3 => run.send(&vec![0; number(&mut script)]),
            _ => {}
        }
    }
    run.finish();
}

fn number(script: &mut &[u8]) -> usize {
    cut(script, 2).iter().fold(0, |n, &b| n << 8 | usize::from(b))
}

fn cut<'a>(script: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (part, rest) = script.split_at(count.min(script.len()));
    *script = rest;
    part
}

/// The exports: the second is small, with few capabilities and large blocks.
fn exports(read_only: bool) -> Vec<Export> {
    let able = Export {
        name: "a".into(),
        description: "able".into(),
        size: 1 << 20,
        read_only,
        rotational: true,
        trim: true,
        write_zeroes: true,
        multi_conn: true,
        blocks: BlockSizes::new(512, 4096, 8192).unwrap(),
    };
    let plain = Export {
        name: "b".into(),
        description: String::new(),
        size: 40_000,
        read_only: false,
        rotational: false,
        trim: false,
        write_zeroes: false,
        multi_conn: false,
        blocks: BlockSizes::new(4096, 4096, 1 << 16).unwrap(),
    };
    vec![able, plain]
}

/// A connection, with the state known from outside.
struct Run {
    conn: Connection,
    limits: Limits,
    exports: Vec<Export>,
    /// Sent by the client but not yet taken.
    unsent: VecDeque<u8>,
    /// The client flags: the first bytes taken.
    first: Vec<u8>,
    ear: Option<Ear>,
    heard: Vec<u8>,
    open: Option<usize>,
    closed: bool,
    /// Length of the write whose data comes next.
    payload: Option<u32>,
    starting_tls: bool,
    input_ended: bool,
    in_flight: Vec<Request>,
    last_token: Option<u64>,
    /// Lengths of the data of the next successful replies.
    successes: VecDeque<usize>,
    /// Error replies that the driver gave, a lower bound of those received.
    failures: usize,
    errors_heard: usize,
}

impl Run {
    fn begin(config: u8) -> Run {
        let tls = [Tls::Off, Tls::Offered, Tls::Required, Tls::Required][usize::from(config & 3)];
        let limits = match config & 8 {
            0 => Limits::default(),
            _ => Limits { options: 20, option_bytes: 64, requests: 2, bytes: 4096 },
        };
        let exports = exports(config & 4 != 0);
        let mut run = Run {
            conn: Connection::new(Arc::from(exports.clone()), tls, limits),
            limits,
            exports,
            unsent: VecDeque::new(),
            first: Vec::new(),
            ear: None,
            heard: Vec::new(),
            open: None,
            closed: false,
            payload: None,
            starting_tls: false,
            input_ended: false,
            in_flight: Vec::new(),
            last_token: None,
            successes: VecDeque::new(),
            failures: 0,
            errors_heard: 0,
        };
        let go = option(GO, &about("a", &[]));
        match config >> 4 & 3 {
            0 => {}
            1 => run.send(&[flags(FIXED | NO_ZEROES), go].concat()),
            2 => run.send(&[flags(FIXED | NO_ZEROES), option(STRUCTURED, b""), go].concat()),
            _ => run.send(&[flags(0), option(client::EXPORT_NAME, b"b")].concat()),
        }
        run
    }

    fn send(&mut self, bytes: &[u8]) {
        if !self.input_ended {
            self.unsent.extend(bytes);
        }
        self.deliver();
    }

    /// Passes input to the connection, which must take some whenever `wants_input` is true.
    fn deliver(&mut self) {
        self.settle();
        // Between STARTTLS and TLS, one byte may be passed and must close the connection.
        let plain = self.starting_tls && !self.unsent.is_empty();
        while !self.unsent.is_empty() && (self.conn.wants_input() || plain) {
            let bytes = self.unsent.make_contiguous();
            let taken = self.conn.receive(bytes);
            assert!(taken <= bytes.len());
            let missing = 4 - self.first.len().min(4);
            self.first.extend(&bytes[..taken.min(missing)]);
            self.unsent.drain(..taken);
            self.settle();
            if plain {
                assert!(taken == 0 && self.closed, "plain bytes after STARTTLS were taken");
                return;
            }
            assert!(taken > 0 || self.closed, "it wanted input, and took none");
        }
    }

    /// Polls, and checks the invariants.
    fn settle(&mut self) {
        while let Some(event) = self.conn.poll() {
            assert!(!self.closed, "an event after the last one: {event:?}");
            match event {
                Event::Opened { export } => {
                    assert!(self.open.is_none(), "opened twice");
                    assert!(export < self.exports.len());
                    self.open = Some(export);
                }
                Event::Payload { length } => {
                    assert!(self.payload.replace(length).is_none(), "two writes at once");
                }
                Event::Request(request) => {
                    assert_eq!(request.op == Op::Write, self.payload.is_some(), "its data was not announced");
                    assert!(self.payload.take().is_none_or(|length| u64::from(length) == request.length));
                    self.request(request);
                }
                Event::StartTls => self.starting_tls = true,
                Event::Closed(closed) => {
                    if let Closed::Protocol(violation) = &closed {
                        assert!(!violation.to_string().is_empty());
                    }
                    assert!(closed != Closed::EndOfInput || self.input_ended);
                    self.closed = true;
                }
            }
        }
        assert_eq!(self.conn.in_flight(), self.in_flight.len());
        assert!(self.in_flight.len() <= self.limits.requests as usize);
        let longest = self.exports.iter().map(|e| u64::from(e.blocks.maximum)).max().unwrap();
        let most = self.limits.bytes.max(longest) + u64::from(self.limits.option_bytes) + OUTPUT_ROOM as u64 + SLACK;
        assert!(self.conn.held_bytes() <= most, "{} bytes are held, {most} allowed", self.conn.held_bytes());
        assert!(!self.closed || !self.conn.wants_input());
        let over = self.closed && self.in_flight.is_empty() && !self.conn.has_output();
        assert_eq!(self.conn.is_closed(), over);
        assert_eq!(self.conn.is_negotiating(), self.open.is_none() && !self.closed);
        let stuck = !self.conn.wants_input() && self.in_flight.is_empty() && !self.conn.has_output();
        assert!(!stuck || self.closed || self.starting_tls, "it waits for nothing that could happen");
    }

    fn request(&mut self, request: Request) {
        let export = &self.exports[self.open.expect("requests come to an open export")];
        assert!(self.last_token < Some(request.token), "a token twice");
        self.last_token = Some(request.token);
        let Request { op, offset, length, fua, no_hole, ref data, .. } = request;
        assert_eq!(data.len() as u64, if op == Op::Write { length } else { 0 });
        assert!(offset.checked_add(length).is_some_and(|end| end <= export.size));
        let minimum = u64::from(export.blocks.minimum);
        assert!(offset % minimum == 0 && length % minimum == 0);
        assert!(op == Op::Flush || length > 0);
        assert!(!matches!(op, Op::Read | Op::Write) || length <= export.blocks.maximum.into());
        assert!(matches!(op, Op::Read | Op::Flush) || !export.read_only);
        assert!(op != Op::Trim || export.trim);
        assert!(op != Op::WriteZeroes || export.write_zeroes);
        assert!(!fua || !matches!(op, Op::Read | Op::Flush));
        assert!(!no_hole || op == Op::WriteZeroes);
        self.in_flight.push(request);
    }

    /// Answers the request at this index among those in flight, if there are any.
    fn answer(&mut self, which: usize, how: u8) {
        if self.in_flight.is_empty() {
            return;
        }
        let request = self.in_flight.remove(which % self.in_flight.len());
        let answer = match how {
            2 => Answer::Failed(Errno::Io),
            3 => Answer::FailedAt(Errno::NoSpc, request.offset + which as u64 * 512),
            _ if request.op == Op::Read => Answer::Data(vec![request.token as u8; request.length as usize].into()),
            _ => Answer::Done,
        };
        match &answer {
            Answer::Done => self.successes.push_back(0),
            Answer::Data(data) => self.successes.push_back(data.len()),
            Answer::Failed(_) | Answer::FailedAt(..) | Answer::FailedSaying(..) => self.failures += 1,
        }
        self.conn.reply(request.token, answer);
        self.deliver();
    }

    fn listen(&mut self, most: usize) {
        for _ in 0..most {
            let Some(chunk) = self.conn.output() else {
                assert!(!self.conn.has_output());
                break;
            };
            assert!(!chunk.is_empty());
            self.heard.extend(&chunk);
            // Not only after the last chunk: taking output may have made room for an event.
            self.settle();
        }
        self.understand();
        self.deliver();
    }

    fn understand(&mut self) {
        // Whether padding follows an export depends on the client flags.
        if self.first.len() < 4 {
            return;
        }
        let no_zeroes = u32::from(self.first[3]) & NO_ZEROES != 0;
        let ear = self.ear.get_or_insert_with(|| Ear::new(no_zeroes));
        ear.hear(&std::mem::take(&mut self.heard));
        loop {
            let next = self.successes.front().copied();
            let said = ear.next(&mut |_| next.expect("a reply without error to no request"));
            let Some(said) = said.expect("a server that speaks clearly") else { break };
            match &said {
                Said::Greeting { .. } | Said::Option { .. } | Said::Export { .. } => {}
                Said::Simple { data, .. } | Said::Chunk { data, .. } if said.error() == 0 => {
                    let expected = self.successes.pop_front().expect("a reply without error to no request");
                    // A data chunk begins with its offset.
                    let place = if matches!(said, Said::Chunk { kind: 1, .. }) { 8 } else { 0 };
                    assert_eq!(data.len() - place, expected);
                    let mut content = data[place..].iter();
                    let first = content.next();
                    assert!(content.all(|b| Some(b) == first), "data of two requests in one reply");
                }
                Said::Simple { .. } | Said::Chunk { .. } => self.errors_heard += 1,
            }
        }
    }

    fn end_of_input(&mut self) {
        // A driver passes all input before its end.
        if self.unsent.is_empty() {
            self.input_ended = true;
            self.conn.end_of_input();
            self.settle();
        }
    }

    fn shut_down(&mut self) {
        self.conn.shut_down();
        self.deliver();
    }

    fn tls_established(&mut self) {
        if self.starting_tls {
            self.listen(usize::MAX);
            self.conn.tls_established();
            self.starting_tls = false;
            if let Some(ear) = &mut self.ear {
                ear.tls_established();
            }
            self.deliver();
        }
    }

    /// Answers everything, takes all output, and checks that the connection ends.
    fn finish(&mut self) {
        // All input is taken unless the connection was closed.
        loop {
            let (unsent, answers) = (self.unsent.len(), !self.in_flight.is_empty());
            self.answer(0, 0);
            self.listen(usize::MAX);
            // Taking output may admit requests that waited in the connection.
            if !answers && self.in_flight.is_empty() && self.unsent.len() == unsent {
                break;
            }
        }
        assert!(self.in_flight.is_empty());
        assert!(self.unsent.is_empty() || self.closed || self.starting_tls);
        self.unsent.clear();
        self.end_of_input();
        self.listen(usize::MAX);
        assert!(self.closed && self.conn.is_closed());
        assert!(self.successes.is_empty(), "a reply was never sent");
        assert!(self.failures <= self.errors_heard, "an error reply was never sent");
        assert_eq!(self.ear.as_ref().map_or(0, Ear::rest), 0, "half a message");
        assert_eq!(self.conn.held_bytes(), 0, "bytes are held for no request");
    }
}
