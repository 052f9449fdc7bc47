//! Data and chance of the tests.

use std::ops::Range as Span;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

use super::SECTOR;
use crate::write_cache::Traffic;

/// Bytes, for clients identified by numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::write_cache) struct Plain;

impl Traffic for Plain {
    type Data = Vec<u8>;
    type Ticket = u64;
    type Fault = &'static str;

    fn len(data: &Vec<u8>) -> u64 {
        data.len() as u64
    }
    fn part(data: &Vec<u8>, bytes: Span<usize>) -> Vec<u8> {
        data[bytes].to_vec()
    }
    fn copy(data: &Vec<u8>, bytes: Span<usize>) -> Vec<u8> {
        data[bytes].to_vec()
    }
    fn join(parts: &[&Vec<u8>]) -> Vec<u8> {
        parts.iter().flat_map(|p| p.iter().copied()).collect()
    }
}

/// A seeded generator.
pub(super) struct Chance(SplitMix64);

impl Chance {
    pub(super) fn seeded(seed: u64) -> Chance {
        Chance(SplitMix64::seed_from_u64(seed))
    }
    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Returns the number of the write that a sector's data is from.
pub(super) fn stamp(sector: &[u8]) -> u64 {
    u64::from_le_bytes(sector[..8].try_into().expect("eight bytes"))
}

pub(super) fn data(stamp: u64, count: u64) -> Vec<u8> {
    let mut sector = vec![0; SECTOR as usize];
    sector[..8].copy_from_slice(&stamp.to_le_bytes());
    sector.repeat(count as usize)
}
