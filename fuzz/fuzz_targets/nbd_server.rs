//! Any bytes at all against the server side of NBD. What they mean, and what must hold, is said
//! where the ordinary tests find it, too.

#![no_main]

#[path = "../../crates/nbd/tests/fuzz_body/mod.rs"]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz_body::run(input));
