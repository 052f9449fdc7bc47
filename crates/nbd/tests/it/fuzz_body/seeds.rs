//! Hand-written seeds: each reaches a state that random bytes hardly reach.

use super::super::client::*;

/// A script for [`super::run`].
struct Script(Vec<u8>);

const OPEN: u8 = 1 << 4;
const OPEN_STRUCTURED: u8 = 2 << 4;
const OPEN_OF_OLD: u8 = 3 << 4;
const TLS_OFFERED: u8 = 1;
const TLS_REQUIRED: u8 = 2;
const READ_ONLY: u8 = 4;
const TIGHT_LIMITS: u8 = 8;

const FAIL: u8 = 2;
const FAIL_AT: u8 = 3;

impl Script {
    fn new(config: u8) -> Script {
        Script(vec![config])
    }

    fn bytes(mut self, bytes: &[u8]) -> Script {
        self.0.push(0);
        self.0.extend((bytes.len() as u16).to_be_bytes());
        self.0.extend(bytes);
        self
    }

    fn pieces(mut self, bytes: &[u8], length: u8) -> Script {
        for piece in bytes.chunks(length.into()) {
            self.0.push(piece.len() as u8);
            self.0.extend(piece);
        }
        self
    }

    fn zeroes(mut self, count: u16) -> Script {
        self.0.push(0xd3);
        self.0.extend(count.to_be_bytes());
        self
    }

    fn act(mut self, action: u8) -> Script {
        self.0.push(action);
        self
    }

    fn answer(self, which: u8, how: u8) -> Script {
        self.act(0x80 | how << 4 | which)
    }

    fn listen(self) -> Script {
        self.act(0xc0)
    }

    fn options(self, options: &[Vec<u8>]) -> Script {
        self.bytes(&flags(FIXED | NO_ZEROES)).bytes(&options.concat())
    }
}

/// The seeds, by name.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let go = option(GO, &about("a", &[0, 1, 2, 3]));
    let starttls = option(STARTTLS, b"");
    let structured = option(STRUCTURED, b"");
    let reads = |count: u64| -> Vec<u8> { (0..count).flat_map(|i| request(READ, 0, i, i * 512, 512)).collect() };
    let conversation = [
        request(READ, 0, 1, 0, 512),
        write(FUA, 2, 512, &[7; 512]),
        request(FLUSH, 0, 3, 0, 0),
        request(TRIM, FUA, 4, 0, 4096),
        request(ZEROES, NO_HOLE, 5, 4096, 4096),
        request(READ, DF, 6, 8192, 1024),
        request(DISC, 0, 7, 0, 0),
    ]
    .concat();
    let wrong = [
        request(READ, 0, 1, 1 << 20, 512),
        write(0, 2, 1 << 20, &[7; 512]),
        request(READ, 0, 3, 100, 512),
        request(READ, 0, 4, 0, 0),
        request(READ, 0, 5, 0, 8704),
        request(CACHE, 0, 6, 0, 512),
        request(STATUS, 0, 7, 0, 512),
        request(ZEROES, FAST_ZERO, 8, 0, 512),
        request(FLUSH, 0, 9, 512, 0),
        write(1 << 7, 10, 0, &[7; 512]),
        request(READ, DF, 11, 0, 512),
    ]
    .concat();
    let seeds = [
        (
            "options_of_every_kind",
            Script::new(0).options(&[
                option(LIST, b""),
                option(INFO, &about("b", &[1, 2, 3])),
                option(INFO, &about("nobody", &[])),
                option(LIST_META, &contexts("a", &["base:"])),
                structured.clone(),
                option(SET_META, &contexts("a", &["base:allocation", "x"])),
                option(99, b"what"),
                starttls.clone(),
                go.clone(),
                reads(1),
            ]),
        ),
        (
            "options_in_single_bytes",
            Script::new(0).pieces(&[flags(FIXED), option(LIST, b""), go.clone(), reads(2)].concat(), 1),
        ),
        (
            "options_malformed",
            Script::new(0).options(&[
                option(LIST, b"x"),
                option(GO, b"\xff\xff\xff\xff"),
                option(GO, b"\0\0\0\x01\xff\0\0"),
                structured.clone(),
                option(SET_META, b"\0\0\0\x01a\xff\xff\xff\xff"),
                go.clone(),
            ]),
        ),
        ("options_too_many", Script::new(TIGHT_LIMITS).options(&vec![option(LIST, b""); 22])),
        ("option_too_long", Script::new(TIGHT_LIMITS).options(&[option(GO, &[0; 200]), go.clone()])),
        ("option_name_too_long", Script::new(TIGHT_LIMITS).options(&[option(EXPORT_NAME, &[b'a'; 65])])),
        ("abort", Script::new(0).options(&[option(ABORT, b"bye"), go.clone()])),
        ("export_name_padded", Script::new(0).bytes(&flags(FIXED)).bytes(&option(EXPORT_NAME, b"")).bytes(&reads(1))),
        ("export_name_unknown", Script::new(0).options(&[option(EXPORT_NAME, b"c")])),
        ("client_of_old_lists", Script::new(0).bytes(&flags(0)).bytes(&option(LIST, b""))),
        ("client_flags_unknown", Script::new(0).bytes(&flags(7))),
        (
            "tls_then_open",
            Script::new(TLS_REQUIRED)
                .options(&[option(LIST, b""), structured.clone(), starttls.clone()])
                .act(0xd2)
                .bytes(&[starttls.clone(), structured.clone(), go.clone()].concat())
                .bytes(&conversation),
        ),
        ("tls_injected", Script::new(TLS_OFFERED).options(&[starttls.clone(), go.clone()]).act(0xd2)),
        ("tls_injected_later", Script::new(TLS_OFFERED).options(std::slice::from_ref(&starttls)).bytes(&go).act(0xd2)),
        ("tls_required_export_name", Script::new(TLS_REQUIRED).options(&[option(EXPORT_NAME, b"a")])),
        ("simple_conversation", Script::new(OPEN).bytes(&conversation).answer(2, 0).answer(0, 0).listen()),
        (
            "structured_conversation",
            Script::new(OPEN_STRUCTURED).bytes(&conversation).answer(5, 0).answer(1, 0).listen(),
        ),
        ("structured_in_pieces", Script::new(OPEN_STRUCTURED).pieces(&conversation, 13)),
        (
            "conversation_that_waits",
            Script::new(OPEN_STRUCTURED | TIGHT_LIMITS)
                .bytes(&conversation)
                .answer(1, 0)
                .act(0xc1)
                .answer(0, 0)
                .act(0xc1),
        ),
        (
            "failures",
            Script::new(OPEN_STRUCTURED)
                .bytes(&reads(4))
                .answer(0, FAIL)
                .answer(0, FAIL_AT)
                .answer(1, FAIL_AT)
                .listen(),
        ),
        ("failures_simple", Script::new(OPEN).bytes(&reads(3)).answer(0, FAIL).answer(0, FAIL_AT).listen()),
        ("wrong_requests", Script::new(OPEN).bytes(&wrong).bytes(&reads(1))),
        ("wrong_requests_structured", Script::new(OPEN_STRUCTURED | TIGHT_LIMITS).bytes(&wrong).bytes(&reads(1))),
        ("wrong_requests_unread", Script::new(OPEN_STRUCTURED).bytes(&request(99, 0, 1, 0, 0).repeat(800))),
        ("read_only", Script::new(OPEN | READ_ONLY).bytes(&conversation)),
        ("plain_export_of_old", Script::new(OPEN_OF_OLD).bytes(&conversation).bytes(&request(READ, 0, 9, 0, 36_864))),
        ("write_skipped", Script::new(OPEN).bytes(&request(WRITE, 0, 1, 0, 60_000)).zeroes(60_000).bytes(&reads(1))),
        ("write_too_long", Script::new(OPEN).bytes(&request(WRITE, 0, 1, 0, (64 << 20) + 8193))),
        ("write_large", Script::new(OPEN_OF_OLD).bytes(&request(WRITE, 0, 1, 0, 36_864)).zeroes(30_000).zeroes(6_864)),
        (
            "write_larger_than_the_limit",
            Script::new(OPEN | TIGHT_LIMITS)
                .bytes(&reads(1))
                .bytes(&request(WRITE, 0, 2, 0, 8192))
                .answer(0, 0)
                .listen()
                .zeroes(8192),
        ),
        (
            "shut_down_in_a_write",
            Script::new(OPEN_STRUCTURED)
                .bytes(&reads(2))
                .bytes(&write(0, 2, 0, &[1; 512])[..100])
                .act(0xd1)
                .zeroes(440)
                .bytes(&conversation),
        ),
        (
            "shut_down_in_options",
            Script::new(0).bytes(&flags(FIXED)).act(0xd1).bytes(&go).bytes(&option(EXPORT_NAME, b"")),
        ),
        ("end_in_a_write", Script::new(OPEN).bytes(&reads(2)).bytes(&write(0, 2, 0, &[1; 512])[..100]).act(0xd0)),
        ("end_while_waiting", Script::new(OPEN | TIGHT_LIMITS).bytes(&reads(3)).act(0xd0).answer(0, 0)),
        ("request_magic_wrong", Script::new(OPEN).bytes(&reads(1)).bytes(&[0x25; 28])),
        ("leaving_early", Script::new(OPEN).bytes(&reads(3)).bytes(&request(DISC, 0, 0, 0, 0)).bytes(&reads(1))),
    ];
    seeds.into_iter().map(|(name, script)| (name, script.0)).collect()
}
