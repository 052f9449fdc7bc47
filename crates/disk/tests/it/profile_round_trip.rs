//! Profiles with random figures: what is written reads back the same.

use headtime_disk::profile::{
    self, ByLast, ExtraDisconnect, HeadOrder, Known, Late, Layout, Prefetch, Profile, Run, SectorAddress, ServiceLoad,
    ServiceTimes, Skew, Slip, SpareUnit,
};
use headtime_disk::{Angle, Dur};
use proptest::prelude::*;

use crate::profile_toml::{read, small};

fn skew() -> impl Strategy<Value = Skew> {
    prop_oneof![
        (0u32..40).prop_map(Skew::Sectors),
        any::<u64>().prop_map(|a| Skew::Turn(Angle(a))),
        (0u64..360, 360u64..9999).prop_map(|(a, b)| Skew::Turn(Angle::fraction(a, b))),
    ]
}

prop_compose! {
    /// The small drive with nearly everything else changed.
    fn changed()(
        title in "[ -~äß°\n\t]{0,40}",
        rpm in (60u64..=50_000, 1u64..1000).prop_map(|(a, b)| (a * b + 7, b)),
        seek_first in any::<Option<(bool, bool)>>(),
        skews in [skew(), skew(), skew()],
        settle in -100_000_000i64..100_000_000,
        times in proptest::collection::vec(0u64..1_000_000_000, 24),
        flags in proptest::collection::vec(any::<bool>(), 24),
        counts in proptest::collection::vec(1u32..256, 12),
        unit in 0u32..3,
        prefetch in 0u32..5,
        histogram in proptest::collection::vec(prop_oneof![3 => Just(0u32), 1 => 1u32..100_000], 1..300),
    ) -> Profile {
        let mut p = small();
        p.title = title.clone();
        p.synthesised = flags[0].then_some(title);
        p.year = flags[1].then_some(1990);
        // A ratio that is not in lowest terms is kept, too.
        p.mechanics.rpm = if rpm.0 <= 60_000 * rpm.1 { rpm } else { (7200, 1) };
        p.mechanics.write_settle_ns = settle;
        p.mechanics.head_switch = Dur(times[0] / 10);
        p.mechanics.read_on_arrival = flags[2];
        p.mechanics.write_on_arrival = flags[3];
        p.mechanics.keep_passing = flags[4];
        p.mechanics.write_seek = flags[5].then(|| vec![(1, Dur(times[1] / 4)), (4, Dur(times[1].max(times[2]) / 4))]);
        p.stated_sectors = None;
        let z = &mut p.geometry.zones[0];
        (z.offset, z.track_skew, z.cylinder_skew) = (Some(skews[0]), skews[1], skews[2]);
        z.sparing.unit = [SpareUnit::Zone, SpareUnit::Track, SpareUnit::Cylinders(2)][unit as usize];
        z.sparing.at_front = flags[6];
        z.sparing.slips_are_extra = flags[7];
        if let Some((tracks_alternate, surfaces_alternate)) = seek_first {
            p.geometry.layout = Layout::SeekFirst { group_tracks: counts[0], tracks_alternate, surfaces_alternate };
            z.slips = vec![
                Slip::Sector(SectorAddress { cylinder: 1, surface: 1, sector: counts[1] % 90 }),
                Slip::Track { cylinder: 3, surface: 0 },
            ];
            z.sparing.spares = if z.sparing.slips_are_extra { 3 } else { 210 };
            z.sparing.unit = SpareUnit::Zone;
            z.sectors_per_track = if flags[8] { vec![100, 90] } else { vec![100] };
            z.offset = if flags[9] { None } else { z.offset };
            z.last_cylinder = 5;
        } else {
            z.sparing.slips_push_skew = flags[8] && unit > 0;
            let orders = [HeadOrder::Forward, HeadOrder::AlternatingInZone, HeadOrder::AlternatingOnDisk];
            p.geometry.layout = Layout::HeadFirst(orders[counts[2] as usize % 3]);
            z.defects = if flags[9] && unit == 0 && !flags[6] { vec![(7, 999)] } else { vec![] };
        }
        let e = &mut p.electronics;
        e.bus.read_block_ps = times[3];
        e.bus.never_disconnect = flags[10];
        e.bus.arbitration = Dur(times[4]);
        e.overheads.write_hit = ByLast { after_read: Dur(times[5]), after_write: Dur(times[6]) };
        e.overheads.read_disconnect = ByLast { after_read: Dur(times[7]), after_write: Dur(times[7]) };
        e.overheads.queued.write_read = Dur(times[8]);
        e.overheads.minimum_seek = Dur(times[9]);
        let extra = ExtraDisconnect { between: Dur(times[10]), ..ExtraDisconnect::default() };
        e.overheads.extra_disconnect = flags[11].then_some(extra);
        e.cache.prefetch = [
            Prefetch::None,
            Prefetch::TrackAhead,
            Prefetch::ToTrackEnd(counts[3]),
            Prefetch::ToCylinderEnd(counts[4]),
            Prefetch::Sectors(counts[5]),
        ][prefetch as usize];
        e.cache.keep_delivered = flags[12];
        e.cache.watermark_by_request = flags[13];
        e.cache.read_hits_on_written = flags[14];
        e.cache.writes_update_segments = flags[13];
        e.cache.write_watermark_permille = counts[6];
        e.cache.write_segments = counts[7];
        e.cache.write_burst_sectors = counts[8];
        e.queue.depth = counts[9];
        // A figure stated to be unknown must have no value.
        p.known = Known::default();
        p.known.late = (counts[0] % 2 == 0).then(|| Late { reads: 2_000, by_turns: vec![12; counts[0] as usize % 5] });
        p.noise.seek_sd = Dur(times[11]);
        p.noise.seek_max = Dur(times[11].max(times[12]));
        p.noise.settle_retry_ppm = counts[10];
        p.noise.settle_retry_turns = 1;
        p.noise.settle_retry_again_ppm = (counts[10] > 0 && flags[14]).then_some(counts[11]);
        p.noise.speed_error_ppb = -(times[13] as i64) / 10;
        p.noise.recalibrate_every = Dur(times[14] * 1000 + 1);
        p.noise.recalibrate_takes = Dur(times[14]);
        if flags[15] {
            p.rig = None;
        }
        let histogram: Vec<u32> = std::iter::once(0).chain(histogram).collect();
        let runs = Run::of(&histogram);
        if !runs.is_empty() {
            let samples = histogram.iter().map(|&n| u64::from(n)).sum();
            let bin = Dur(times[15] + 1);
            let load = ServiceLoad {
                words: p.title.clone() + "x",
                reads_ppm: counts[11] * 3_000,
                waiting: counts[0] + counts[1],
                candidates: counts[0].max(1),
                order: "satfuf:500".into(),
                outstanding: counts[1],
            };
            p.service_times = vec![ServiceTimes { sectors: counts[2], load, samples, bin, runs }];
        }
        p
    }
}

proptest! {
    #[test]
    fn whatever_is_written_reads_back_the_same(p in changed()) {
        let text = profile::write(&p);
        match read(&text) {
            Ok(back) => prop_assert_eq!(back.profile, p),
            Err(e) => prop_assert!(false, "{}\n{}", e, text),
        }
    }
}
