//! Tables and charts of whole scans, as in Thereska 2003 figures 5 to 7.

use headtime_disk::Time;
use headtime_plot::{Axis, Chart, Series, Style, XyChart};

use super::Scan;
use crate::experiment::{Cell, Findings, Table};

/// A scan with its name.
pub(crate) type Named<'a> = (String, &'a Scan);

/// Adds the end of each zone, the progress of the scans, and charts of both.
pub(crate) fn add(f: &mut Findings, figure: &str, scans: &[Named<'_>]) {
    f.tables.push(zones(scans));
    f.tables.push(totals(scans));
    f.charts.push(zone_chart(figure, scans));
    f.charts.push(progress_chart(scans));
}

fn zones(scans: &[Named<'_>]) -> Table {
    let rows = scans.iter().flat_map(|(name, scan)| {
        let nearly = scan.scan.zones_nearly_at().iter().map(|t| t.map_or(f64::INFINITY, Time::as_secs_f64));
        scan.zones().into_iter().zip(nearly).enumerate().map(move |(zone, (last, nearly))| {
            vec![Cell::from(name.as_str()), Cell::from((zone + 1) as f64), Cell::from(nearly), Cell::from(last)]
        })
    });
    Table {
        name: "zones",
        columns: &["algorithm", "zone_outermost_first", "99_percent_s", "last_block_s"],
        rows: rows.collect(),
    }
}

fn totals(scans: &[Named<'_>]) -> Table {
    let rows = scans.iter().map(|(name, scan)| {
        let at = |percent| scan.scan.percent_at(percent).map_or(f64::INFINITY, Time::as_secs_f64);
        let fragments = scan.scan.fragments().map_or(f64::NAN, |f| f.stretches as f64);
        let report = scan.stats.freeblock.clone().unwrap_or_default();
        vec![
            Cell::from(name.as_str()),
            Cell::from(scan.seconds()),
            Cell::from(at(50.0)),
            Cell::from(at(90.0)),
            Cell::from(at(99.0)),
            Cell::from(fragments),
            Cell::from(scan.scan.waits() as f64),
            Cell::from(scan.loss()),
            Cell::from(report.searches as f64),
            Cell::from((report.commands + report.merged) as f64),
        ]
    });
    Table {
        name: "scans",
        columns: &[
            "algorithm",
            "scan_s",
            "half_s",
            "nine_tenths_s",
            "99_percent_s",
            "fragments_at_nine_tenths",
            "blocks_without_a_gap",
            "foreground_loss_percent",
            "searches",
            "freeblock_requests",
        ],
        rows: rows.collect(),
    }
}

fn zone_chart(figure: &str, scans: &[Named<'_>]) -> Chart {
    let series = scans.iter().map(|(name, scan)| Series {
        name: name.clone(),
        style: Style::Marked,
        points: scan.zones().into_iter().enumerate().map(|(zone, s)| ((zone + 1) as f64, s)).collect(),
    });
    Chart::Xy(XyChart {
        title: "Time to pick up the last block of each zone".into(),
        subtitle: format!("As the paper's figure {figure}; the disk is never idle. Zone 1 is the outermost."),
        x: Axis::linear("zone"),
        y: Axis::from_zero("s"),
        series: series.collect(),
    })
}

fn progress_chart(scans: &[Named<'_>]) -> Chart {
    let series = scans.iter().map(|(name, scan)| {
        let all = scan.scan.curve().last().map_or(1, |p| p.1) as f64;
        let points = scan.scan.curve().iter().map(|(t, sectors)| (t.as_secs_f64(), 100.0 * *sectors as f64 / all));
        Series { name: name.clone(), style: Style::Line, points: points.collect() }
    });
    Chart::Xy(XyChart {
        title: "Progress of the scan".into(),
        subtitle: "How much of the disk has been read for free.".into(),
        x: Axis::from_zero("s"),
        y: Axis::range("%", 0.0, 100.0),
        series: series.collect(),
    })
}
