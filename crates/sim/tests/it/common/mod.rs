//! A drive of realistic size for tests and benchmarks: one zone, figures similar to those of a
//! Quantum Atlas 10K.

use headtime_disk::Dur;
use headtime_disk::profile::{ByLast, FirmwareOrder, HeadOrder, Layout, Overheads, Profile, QueueSpec, Skew};
use headtime_testkit::profiles::{plain_cache, plain_profile, rng, small_geometry};

/// Seek times of reads: distance in cylinders, and us.
const SEEK: [(u32, u64); 12] = [
    (1, 1_245),
    (4, 1_378),
    (10, 1_531),
    (20, 1_620),
    (50, 1_863),
    (100, 2_011),
    (200, 2_600),
    (1_000, 3_600),
    (2_000, 4_500),
    (4_000, 6_100),
    (7_000, 8_300),
    (10_041, 10_800),
];

/// Returns a drive of 10,042 cylinders with 6 surfaces, 280 sectors per track, 10,025 rpm, without
/// noise, with a queue of 16 commands and SPTF.
pub fn drive(layout: Layout) -> Profile {
    let mut rng = rng(1);
    let mut p = plain_profile(small_geometry(Layout::HeadFirst(HeadOrder::Forward), 6, &mut rng), &mut rng);
    p.name = "atlas-like".into();
    p.geometry.layout = layout;
    p.geometry.cylinders = 10_042;
    p.geometry.zones.truncate(1);
    let zone = &mut p.geometry.zones[0];
    zone.last_cylinder = 10_041;
    zone.sectors_per_track = vec![280];
    zone.offset = matches!(layout, Layout::HeadFirst(_)).then_some(Skew::ZERO);
    zone.track_skew = Skew::Sectors(58);
    zone.cylinder_skew = Skew::Sectors(83);
    p.mechanics.rpm = (10_025, 1);
    p.mechanics.seek = SEEK.map(|(d, us)| (d, Dur::from_us(us))).to_vec();
    p.mechanics.write_settle_ns = 400_000;
    p.mechanics.head_switch = Dur::from_us(876);
    p.mechanics.read_on_arrival = false;
    let us = |n| ByLast { after_read: Dur::from_us(n), after_write: Dur::from_us(n) };
    p.electronics.overheads = Overheads {
        read_hit: us(180),
        read_miss: us(200),
        write_hit: us(190),
        write_miss: us(220),
        ..Overheads::default()
    };
    p.electronics.bus.read_block_ps = 6_400_000;
    p.electronics.bus.write_block_ps = 6_400_000;
    p.electronics.cache = plain_cache();
    p.electronics.cache.segments = 10;
    p.electronics.cache.segment_sectors = 374;
    p.electronics.queue = QueueSpec { depth: 16, order: FirmwareOrder::Sptf, ..QueueSpec::default() };
    p
}

/// Returns a head-first drive, as usual at that time.
pub fn head_first() -> Profile {
    drive(Layout::HeadFirst(HeadOrder::Forward))
}
