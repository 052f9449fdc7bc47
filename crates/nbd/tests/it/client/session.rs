//! A connection between the server and the client model.

use super::{ABORT, ACK, Ear, FIXED, GO, NO_ZEROES, READ, STRUCTURED, Said, about, flags, option, request};
use headtime_nbd::{Answer, BlockSizes, Connection, Event, Export, Limits, Request, Tls};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const SIZE: u64 = 1 << 20;
pub const MAXIMUM: u32 = 64 << 10;

/// An export with all capabilities.
pub fn disk(name: &str) -> Export {
    Export {
        name: name.into(),
        description: format!("disk {name}"),
        size: SIZE,
        read_only: false,
        rotational: true,
        trim: true,
        write_zeroes: true,
        multi_conn: true,
        blocks: BlockSizes::new(512, 4096, MAXIMUM).unwrap(),
    }
}

/// A connection between the server and the client model.
pub struct Session {
    pub conn: Connection,
    pub ear: Ear,
    /// Length of each read, by cookie.
    reads: BTreeMap<u64, usize>,
    events: Vec<Event>,
    /// Lengths of the admitted writes' data.
    pub payloads: Vec<u32>,
}

impl Session {
    /// Creates a connection before the client flags.
    pub fn new(exports: Vec<Export>, tls: Tls, limits: Limits) -> Session {
        let conn = Connection::new(Arc::from(exports), tls, limits);
        Session { conn, ear: Ear::new(true), reads: BTreeMap::new(), events: Vec::new(), payloads: Vec::new() }
    }

    /// Creates a connection to the default server and sends the client flags.
    pub fn greeted() -> Session {
        Session::greeted_with(vec![disk("a"), disk("b")], Tls::Off, Limits::default())
    }

    /// The same with another server.
    pub fn greeted_with(exports: Vec<Export>, tls: Tls, limits: Limits) -> Session {
        let mut session = Session::new(exports, tls, limits);
        session.send(&flags(FIXED | NO_ZEROES));
        assert_eq!(session.hear(), [Said::Greeting { flags: 3 }]);
        session
    }

    /// Opens the first export of the default server.
    pub fn open(structured: bool) -> Session {
        Session::open_with(disk("a"), structured, Limits::default())
    }

    /// The same with another export.
    pub fn open_with(export: Export, structured: bool, limits: Limits) -> Session {
        let mut session = Session::greeted_with(vec![export], Tls::Off, limits);
        if structured {
            session.send(&option(STRUCTURED, b""));
        }
        session.send(&option(GO, &about("", &[])));
        assert_eq!(session.events(), [Event::Opened { export: 0 }]);
        let last = session.hear().pop();
        assert_eq!(last, Some(Said::Option { option: GO, kind: ACK, data: vec![] }));
        session
    }

    /// Sends all bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.offer(bytes), bytes.len(), "not everything was taken");
    }

    /// Sends the bytes that the server takes; returns their number.
    pub fn offer(&mut self, bytes: &[u8]) -> usize {
        let taken = self.conn.receive(bytes);
        self.poll();
        taken
    }

    /// Sends a read.
    pub fn read(&mut self, cookie: u64, offset: u64, length: u32) {
        self.reads.insert(cookie, length as usize);
        self.send(&request(READ, 0, cookie, offset, length));
    }

    /// Takes and parses all output.
    pub fn hear(&mut self) -> Vec<Said> {
        while let Some(chunk) = self.conn.output() {
            self.ear.hear(&chunk);
        }
        self.poll();
        let mut said = Vec::new();
        let reads = &mut self.reads;
        while let Some(next) = self.ear.next(&mut |cookie| reads.remove(&cookie).unwrap_or(0)).expect("understandable")
        {
            said.push(next);
        }
        assert_eq!(self.ear.rest(), 0, "half a message");
        said
    }

    /// Returns the reply to the only request answered.
    pub fn hear_reply(&mut self) -> Said {
        let mut said = self.hear();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    /// Returns the events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns the only request received.
    pub fn one_request(&mut self) -> Request {
        let events = self.events();
        let [Event::Request(request)] = &events[..] else { panic!("one request expected, found {events:?}") };
        request.clone()
    }

    /// Answers a request.
    pub fn reply(&mut self, token: u64, answer: Answer) {
        self.conn.reply(token, answer);
        self.poll();
    }

    /// Verifies that the stream is in sync: disconnects in negotiation, otherwise reads.
    pub fn assert_in_step(&mut self) {
        if self.conn.is_negotiating() {
            self.send(&option(ABORT, b""));
            assert_eq!(self.hear().pop(), Some(Said::Option { option: ABORT, kind: ACK, data: vec![] }));
            return;
        }
        self.read(u64::MAX, 512, 512);
        let request = self.one_request();
        assert_eq!((request.offset, request.length), (512, 512));
        self.reply(request.token, Answer::Data(vec![0; 512].into()));
        let reply = self.hear_reply();
        assert_eq!((reply.cookie(), reply.error()), (u64::MAX, 0));
    }

    fn poll(&mut self) {
        while let Some(event) = self.conn.poll() {
            match event {
                Event::Payload { length } => self.payloads.push(length),
                event => self.events.push(event),
            }
        }
    }
}
