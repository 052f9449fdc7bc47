//! Untrusted files and messages: every input of the fuzzers' corpora, and mutations of it.
//!
//! `HEADTIME_FUZZ_SECONDS=N` (`make fuzz`) mutates inputs of each reader for N seconds, from a seed
//! of its own or `HEADTIME_SEED`. An input that fails is written to `target/fuzz`; give it a name
//! that states the fact, and add it to the corpus.

mod bodies;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bodies::{BODIES, Body};
use headtime_testkit::profiles::rng;
use rand_core::Rng;

/// Mutated inputs for each reader by default.
const DEFAULT_INPUTS: u64 = 1_500;
/// Inputs do not grow beyond this.
const MAX_INPUT_BYTES: usize = 64 << 10;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = if name == "trace_any" { "trace_plain_csv" } else { name };
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn every_input_of_the_corpora_is_taken_or_refused() {
    for (name, body) in BODIES {
        let inputs = corpus(name);
        assert!(inputs.len() >= 2, "{name}");
        inputs.iter().for_each(|input| body(input));
    }
}

/// Returns a mutation of one of the inputs.
fn changed(inputs: &[Vec<u8>], rng: &mut impl Rng) -> Vec<u8> {
    let mut chance = |of: usize| rng.next_u64() as usize % of.max(1);
    let mut data = inputs[chance(inputs.len())].clone();
    for _ in 0..1 + chance(6) {
        let at = chance(data.len() + 1);
        match chance(8) {
            0 if at < data.len() => data[at] ^= 1 << chance(8),
            1 if at < data.len() => data[at] = chance(256) as u8,
            2 => _ = data.drain(at..(at + chance(64)).min(data.len())),
            3 => {
                let other = &inputs[chance(inputs.len())];
                let from = chance(other.len() + 1);
                let piece = other[from..(from + chance(200)).min(other.len())].to_vec();
                data.splice(at..at, piece);
            }
            4 => {
                let numbers = ["0", "-1", "18446744073709551615", "1e308", "0.0000001", "nan", "4294967296", "\"\""];
                data.splice(at..at, numbers[chance(numbers.len())].bytes());
            }
            5 => {
                // Replace a digit, and duplicate a line.
                if let Some(digit) = data.iter_mut().skip(at).find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + chance(10) as u8;
                }
                let line = data.split(|b| *b == b'\n').nth(chance(8)).map(|l| [l, b"\n"].concat());
                data.splice(at..at, line.unwrap_or_default());
            }
            6 => data.truncate(at),
            _ => data.extend(std::iter::repeat_n(b"[{\"=,\n\0 "[chance(8)], chance(300))),
        }
        data.truncate(MAX_INPUT_BYTES);
    }
    data
}

fn fuzz(name: &str, body: Body, seed: u64, goes_on: &mut dyn FnMut(u64) -> bool) -> u64 {
    let (inputs, mut rng, mut done) = (corpus(name), rng(seed), 0);
    while goes_on(done) {
        let input = changed(&inputs, &mut rng);
        if catch_unwind(|| body(&input)).is_err() {
            let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("fuzz");
            let path = dir.join(format!("{name}-{seed}-{done}"));
            let kept = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, &input));
            panic!("{name} fails with what is in {} ({kept:?})", path.display());
        }
        done += 1;
    }
    done
}

#[test]
fn changed_inputs_are_taken_or_refused() {
    let number = |name: &str| std::env::var(name).ok().map(|n| n.parse::<u64>().expect("a number"));
    let Some(seconds) = number("HEADTIME_FUZZ_SECONDS") else {
        BODIES.iter().for_each(|(name, body)| _ = fuzz(name, *body, 1, &mut |done| done < DEFAULT_INPUTS));
        return;
    };
    let seed = number("HEADTIME_SEED").unwrap_or_else(|| std::process::id().into());
    for (name, body) in BODIES {
        let until = Instant::now() + Duration::from_secs(seconds);
        let done = fuzz(name, body, seed, &mut |_| Instant::now() < until);
        println!("{name}: {done} inputs (seed {seed}), none failed");
    }
}
