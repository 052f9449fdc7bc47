//! D2: actual service times.
//!
//! Reuther and Pohlack (2003), section 3.1.2 and figure 4: service times of random reads of 64 KB
//! under SATF. The load, and the number of pending requests: `headtime_sim::service`.

use headtime_disk::Dur;
use headtime_disk::profile::{self, Profile};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::streams::{Disk, Quality, Service, Stream};
use headtime_sim::service::{self, Load, Measured};

use crate::common::stream_run::one_x;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const D2: Experiment = Experiment { spec: &SPEC, steps: PAPER.len() as u64, run };

const fn within(what: &'static str) -> Check {
    Check { what, unit: "%", test: Test::AtMost(15.0) }
}

static SPEC: Spec = Spec {
    id: "D2",
    title: "Service times of random 64 KB reads",
    source: "Reuther and Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), sections 3.1.2, 4.1 and 4.4.1, figure 4, table 2",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "random reads of 64 KiB, eight always in the system, SPTF outside the drive, two at it",
    claims: &[Claim {
        id: "D2",
        claim: "service-time distribution, random 64 KB reads under SATF",
        paper: "figure 4",
        rule: "mean within 15%, same shape (each reservation time of table 2 within 15%)",
        checks: &[
            within("Ultrastar 36Z15, mean off by"),
            within("Barracuda 36ES2, mean off by"),
            within("Ultrastar 36Z15, reservation times of table 2 off by at most"),
            within("Barracuda 36ES2, reservation times of table 2 off by at most"),
        ],
        quick: true,
        note: "Figure 4 is a picture without figures. Its means, 4.21 and 7.43 ms, follow from section 4.4.1: 14.6 \
               MByte/s are 96% of what a best-effort load gets from the one drive, 8.1 are 94% from the other (a MByte \
               is 1,000 KByte of 1,024 bytes there, as table 2 adds up). Its shape is held to the ten reservation \
               times of table 2, which condition 3 makes from it: short streams of low quality hang on the mean, long \
               ones of high quality on how far times scatter. How many requests waited is not said; eight were chosen \
               because the two means together imply that on these drives, so the means alone show no more than that \
               one number serves both drives.",
    }],
    length: Length::Seconds,
    alone: false,
};

/// A drive, its best-effort bandwidth by section 4.4.1 in KByte/s (the figure at 99.9% over its
/// share), and r of table 2 in ms.
struct Paper {
    drive: &'static str,
    name: &'static str,
    best_effort: f64,
    reserved_ms: [f64; 5],
}

const PAPER: [Paper; 2] = [
    Paper {
        drive: "ultrastar36z15",
        name: "Ultrastar 36Z15",
        best_effort: 14_600.0 / 0.96,
        reserved_ms: [20.9, 77.5, 35.6, 15.8, 23.4],
    },
    Paper {
        drive: "barracuda36es2",
        name: "Barracuda 36ES2",
        best_effort: 8_100.0 / 0.94,
        reserved_ms: [36.9, 139.0, 63.5, 28.0, 41.0],
    },
];

/// Table 2's streams: requests in 500 ms, and the quality in parts per million.
const TABLE_2: [(u32, u32); 5] = [(5, 990_000), (20, 950_000), (10, 900_000), (5, 850_000), (10, 600_000)];

impl Paper {
    /// The mean time of one request of 64 KByte.
    fn mean_ms(&self) -> f64 {
        64.0 / self.best_effort * 1e3
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut means, mut reservations) = (Vec::new(), Vec::new());
    let (mut summary, mut rows, mut series) = (Vec::new(), Vec::new(), Vec::new());
    for paper in &PAPER {
        let load = Load { requests: run.length(100_000, 20_000), ..Load::reads(service::BYTES, run.seed) };
        let (disk, m) = drive(paper.drive, &load).map_err(|reason| RunError { id: SPEC.id, reason })?;
        let ours = reserved(&disk).map_err(|reason| RunError { id: SPEC.id, reason })?;
        means.push(off(m.mean.as_ms_f64(), paper.mean_ms()));
        let worst = ours.iter().zip(paper.reserved_ms).map(|(r, theirs)| off(*r, theirs)).fold(0.0, f64::max);
        reservations.push(worst);
        summary.push(figures(paper, disk.largest(), &m));
        for (((requests, ppm), ours), theirs) in TABLE_2.into_iter().zip(&ours).zip(paper.reserved_ms) {
            let quality = f64::from(ppm) / 1e4;
            let figures = [f64::from(requests), quality, theirs, *ours];
            rows.push(std::iter::once(Cell::from(paper.drive)).chain(figures.map(Cell::from)).collect());
        }
        series.push(Series { name: paper.name.into(), style: Style::Step, points: classes(&m) });
        run.progress.advance(1);
    }
    let mut f = Findings::default();
    f.figure("D2", &[means, reservations].concat());
    f.tables.push(Table {
        name: "times",
        columns: &["drive", "mean_paper_ms", "mean_ms", "median_ms", "p99_ms", "p999_ms", "longest_ms", "mb_s"],
        rows: summary,
    });
    f.tables.push(Table {
        name: "reservations",
        columns: &["drive", "requests", "quality_percent", "paper_ms", "ours_ms"],
        rows,
    });
    f.charts.push(Chart::Xy(XyChart {
        title: "How long reads of 64 KiB take under SATF".into(),
        subtitle: "Share of the reads in each fifth of a millisecond; eight always in the system, somewhere on the \
                whole drive."
            .into(),
        x: Axis::from_zero("service time, ms"),
        y: Axis::from_zero("share of reads, %"),
        series,
    }));
    Ok(f)
}

/// Measures a drive, and makes a disk for admission from the result, with one X for all requests as
/// in the paper.
fn drive(name: &str, load: &Load) -> Result<(Disk, Measured), String> {
    let profile = profile::builtin(name).map_err(|e| e.to_string())?;
    let m = service::measure(&profile, load).map_err(|e| e.to_string())?;
    let profile = Profile { service_times: vec![m.times.clone()], ..profile };
    Ok((one_x(&SPEC, &profile, load.waiting).map_err(|e| e.to_string())?, m))
}

/// The reservation times of table 2's streams, all five admitted together, ms.
fn reserved(disk: &Disk) -> Result<Vec<f64>, String> {
    let stream = |(requests, ppm)| {
        let quality = Quality::from_ppm(ppm).map_err(|e| e.to_string())?;
        Stream::new(requests, Dur::from_ms(500), quality, disk.largest().sectors).map_err(|e| e.to_string())
    };
    let streams = TABLE_2.into_iter().map(stream).collect::<Result<Vec<_>, _>>()?;
    let admitted = headtime_sched::streams::admit(disk, &streams).map_err(|e| e.to_string())?;
    Ok(admitted.reservations.iter().flatten().map(|r| r.as_ms_f64()).collect())
}

/// The relative deviation of two figures, in percent.
fn off(ours: f64, theirs: f64) -> f64 {
    100.0 * (ours / theirs - 1.0).abs()
}

fn figures(paper: &Paper, x: &Service, m: &Measured) -> Vec<Cell> {
    let ms = |ppm| Cell::from(x.times.most().quantile(ppm).as_ms_f64());
    let (ours, longest) = (m.mean.as_ms_f64().into(), m.longest.as_ms_f64().into());
    let mb_s = m.bytes_per_second(512) / 1e6;
    vec![paper.drive.into(), paper.mean_ms().into(), ours, ms(500_000), ms(990_000), ms(999_000), longest, mb_s.into()]
}

/// The histogram in classes visible at this width: start in ms, and share in %.
fn classes(m: &Measured) -> Vec<(f64, f64)> {
    const CLASS: Dur = Dur::from_us(200);
    let mut shares: Vec<u64> = Vec::new();
    for (bin, count) in m.times.counts() {
        // A bin's times end with it.
        let class = ((u64::from(bin) * m.times.bin.0 - 1) / CLASS.0) as usize;
        if shares.len() <= class {
            shares.resize(class + 1, 0);
        }
        shares[class] += u64::from(count);
    }
    shares.push(0);
    let of = m.times.samples as f64;
    let point = |(i, n): (usize, &u64)| ((i as u64 * CLASS.0) as f64 / 1e6, 100.0 * *n as f64 / of);
    shares.iter().enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_means_are_those_that_the_note_says() {
        for paper in &PAPER {
            let said = format!("{:.2}", paper.mean_ms());
            assert!(SPEC.claims[0].note.contains(&said), "{}: {said}", paper.drive);
        }
    }

    #[test]
    fn every_read_is_in_one_class_of_the_picture() {
        let (_, m) = drive("ultrastar36z15", &Load { requests: 2_000, ..Load::reads(service::BYTES, 1) }).unwrap();
        let points = classes(&m);
        let sum: f64 = points.iter().map(|p| p.1).sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
        let mean: f64 = points.iter().map(|p| (p.0 + 0.1) * p.1 / 100.0).sum();
        assert!((mean - m.mean.as_ms_f64()).abs() < 0.02, "{mean}, {}", m.mean);
    }
}
