//! Command overheads of drives that are described, found by timing alone, noise on.

mod common;

use common::{DRIVES, Lab};
use headtime_probe::{overheads, seeks};

#[test]
fn overheads_are_within_30_us() {
    for name in DRIVES {
        let mut lab = Lab::of(name);
        let geometry = lab.truth.geometry.clone();
        let (found, seconds) = lab.probe(|sampler, spindle| {
            let table = seeks::measure(sampler, spindle, &geometry, &[5, 10, 50, 200]).expect("it is measured");
            let begun = sampler.now();
            let found = overheads::measure(sampler, spindle, &geometry, &table).expect("it is measured");
            (found, sampler.now().since(begun).as_secs_f64())
        });
        let (o, e) = (&lab.truth.overheads, &lab.profile.electronics);
        let us = |t: headtime_disk::time::Dur| t.0 as f64 / 1e3;
        println!("{name}: {seconds:.0} s: {found:?}");
        let off = |found: overheads::Found, is: headtime_disk::time::Dur| us(found.time) - us(is);
        let miss = off(found.read_miss, o.per_request + o.read_miss.after_read);
        let hit = found.read_hit.expect("these have caches");
        let hit = off(hit, o.per_request + o.read_hit.after_read + o.data_preparation + e.bus.arbitration);
        let completion = off(found.read_completion, o.read_completion);
        let queued = off(found.queued_read_read.expect("they take two"), o.queued.read_read);
        let block = found.read_block_ps.expect("these have caches") as f64 / e.bus.read_block_ps as f64;
        println!(
            "  miss {miss:.1} hit {hit:.1} completion {completion:.1} queued {queued:.1} us off, block {block:.3}"
        );
        assert!(miss.abs() < 30.0 && hit.abs() < 30.0 && completion.abs() < 30.0 && queued.abs() < 30.0, "{name}");
        assert!((0.9..1.1).contains(&block), "{name}");
        assert!(found.told_apart, "{name} reads ahead");
    }
}
