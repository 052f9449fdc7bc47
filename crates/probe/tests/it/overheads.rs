//! Command overheads of known drives, found by timing alone, with noise.

use crate::common::{DRIVES, Lab};
use headtime_disk::Dur;
use headtime_disk::profile::builtin;
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
        let us = |t: headtime_disk::Dur| t.0 as f64 / 1e3;
        println!("{name}: {seconds:.0} s: {found:?}");
        let off = |found: overheads::Found, is: headtime_disk::Dur| us(found.time) - us(is);
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

#[test]
fn buses_that_are_slower_than_the_media_and_taken_again_are_found() {
    for (name, block_ns, reselect_us, watermark) in [
        ("atlas10k", 106_000, 0, 0),
        ("atlas10k", 50_000, 150, 750),
        ("cheetah36es", 25_000, 0, 500),
        ("cheetah36es", 3_200, 190, 0),
    ] {
        let mut profile = builtin(name).expect("a built-in drive");
        let e = &mut profile.electronics;
        e.bus.read_block_ps = block_ns * 1_000;
        e.bus.hold_for_reads = true;
        e.overheads.reselect = Dur::from_us(reselect_us);
        e.cache.read_watermark_permille = watermark;
        let mut lab = Lab::new(profile);
        let geometry = lab.truth.geometry.clone();
        let found = lab.probe(|sampler, spindle| {
            let table = seeks::measure(sampler, spindle, &geometry, &[5, 10, 50, 200]).expect("it is measured");
            overheads::measure(sampler, spindle, &geometry, &table).expect("it is measured")
        });
        println!("{name}: {found:?}");
        let block = found.read_block_ps.expect("it has a cache") as f64 / 1e3 / block_ns as f64;
        assert!((0.97..1.03).contains(&block), "{name}: {block}");
        assert!(found.watermark_permille.abs_diff(watermark) <= 60, "{name}: {}", found.watermark_permille);
        // On a slow bus reselection is part of the overhead after the media, with no effect of its
        // own.
        let behind = found.reselect.0 as f64 / 1e3 + found.read_completion.time.0 as f64 / 1e3;
        let o = &lab.truth.overheads;
        let is = (o.reselect + o.data_preparation + o.read_completion).0 as f64 / 1e3;
        assert!((behind - is).abs() < 30.0, "{name}: {behind} and {is}");
        let alone = found.reselect.0 as f64 / 1e3 - reselect_us as f64;
        assert!(block_ns > 5_000 || alone.abs() < 30.0, "{name}: {alone}");
    }
}
