//! Arbitrary bytes to the server side of NBD. Their meaning and the invariants are in `fuzz_body`,
//! which the ordinary tests use too.

#![no_main]

#[path = "../../crates/nbd/tests/it/client/mod.rs"]
mod client;
#[path = "../../crates/nbd/tests/it/fuzz_body/mod.rs"]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_body::run(input));
