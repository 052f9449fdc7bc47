//! Replays the fuzzer's corpus, and runs random mutations of it without a fuzzer.

#![allow(clippy::disallowed_methods, reason = "the corpus is files; the crate itself opens none")]

use crate::fuzz_body;
use crate::fuzz_body::seeds::seeds;
use proptest::prelude::*;
use std::path::PathBuf;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nbd_server")
}

#[test]
fn every_input_of_the_corpus_holds_what_must_always_hold() {
    let mut inputs: Vec<_> = std::fs::read_dir(corpus()).expect("the corpus").map(|e| e.unwrap().path()).collect();
    inputs.sort();
    assert!(inputs.len() >= seeds().len(), "only {} inputs in {}", inputs.len(), corpus().display());
    for input in inputs {
        // Captured output, shown only on failure; the last line names the input.
        println!("{}", input.display());
        fuzz_body::run(&std::fs::read(&input).unwrap());
    }
}

#[test]
fn the_seeds_in_the_corpus_are_those_that_are_written_down() {
    for (name, bytes) in seeds() {
        let found = std::fs::read(corpus().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(found == bytes, "{name} differs: `cargo test -p headtime-nbd corpus:: -- --ignored` writes it");
    }
}

#[test]
#[ignore = "it writes into the source tree"]
fn write_the_seeds() {
    std::fs::create_dir_all(corpus()).unwrap();
    for (name, bytes) in seeds() {
        std::fs::write(corpus().join(name), bytes).unwrap();
    }
}

/// A mutation, as a fuzzer makes them.
#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (at(), 1..40usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (at(), 1..60usize).prop_map(|(at, count)| Change::Repeat(at, count)),
    ]
}

fn apply(change: Change, input: &mut Vec<u8>) {
    match change {
        Change::Set(at, byte) => {
            let at = at.index(input.len());
            input[at] = byte;
        }
        Change::Insert(at, bytes) => {
            let at = at.index(input.len());
            input.splice(at..at, bytes);
        }
        Change::Remove(at, count) => {
            // The first byte stays, so that the input is never empty.
            let from = at.index(input.len()).max(1).min(input.len());
            let to = (from + count).min(input.len());
            input.drain(from..to);
        }
        Change::Repeat(at, count) => {
            let from = at.index(input.len());
            let to = (from + count).min(input.len());
            input.extend_from_within(from..to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_at_all_hold_what_must_always_hold(input in prop::collection::vec(any::<u8>(), 0..2000)) {
        fuzz_body::run(&input);
    }

    #[test]
    fn changed_conversations_hold_what_must_always_hold(
        seed in prop::sample::select(seeds()),
        changes in prop::collection::vec(change(), 1..8),
    ) {
        let mut input = seed.1;
        changes.into_iter().for_each(|change| apply(change, &mut input));
        fuzz_body::run(&input);
    }
}
