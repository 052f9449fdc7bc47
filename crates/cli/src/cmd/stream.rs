//! `headtime stream`: the streams of a running server, and whether it could admit more.

use std::path::Path;

use clap::{Args, Subcommand};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::link::answer;
use headtime_serve::control::client::{self, ClientError, ClientStatus, Control};
use headtime_serve::control::v1::{
    self, CloseStreamRequest, StatisticsRequest, StreamCounts, StreamReply, StreamRequest,
};
use headtime_sim::streams::{self, Asked};
use serde::Serialize;

use crate::background;
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use headtime_sched::streams::Forecast;

use crate::promises::Shares;
use crate::screen::{self, columns};
use crate::words::{plain, ppm, served};

/// Show the streams of a server, test whether another would be admitted, open and close them
///
/// The server's configuration must have scheduler.admit = "das". `headtime admit` answers the same
/// question for a drive without a server.
#[derive(Debug, Args)]
pub struct Stream {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show the streams, their results, and the remaining capacity
    List(List),
    /// Test whether a stream would be admitted; nothing changes
    Ask(Ask),
    /// Make an export a stream, if it is admitted
    Open(Open),
    /// Make a stream an ordinary export; requests already accepted keep their guarantee
    Close(Close),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    server: ControlSocket,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Ask {
    /// requests=5,period=500ms,quality=99%,size=64k; a quality of 100% is mandatory
    #[arg(value_name = "STREAM")]
    stream: String,
    #[command(flatten)]
    server: ControlSocket,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Open {
    /// The export
    #[arg(value_name = "EXPORT")]
    export: String,
    #[command(flatten)]
    ask: Ask,
}

#[derive(Debug, Args)]
struct Close {
    /// The export
    #[arg(value_name = "EXPORT")]
    export: String,
    #[command(flatten)]
    server: ControlSocket,
}

/// Runs the command.
pub fn run(args: &Stream) -> Result<(), Failure> {
    match &args.what {
        What::List(a) => list(a),
        What::Ask(a) => asked(a, None),
        What::Open(a) => asked(&a.ask, Some(&a.export)),
        What::Close(a) => {
            let export = a.export.clone();
            called(&a.server.path()?, async move |control| {
                control.close_stream(CloseStreamRequest { export }).await.map(|_| ())
            })
        }
    }
}

/// Sends one call to the server.
fn called<T>(path: &Path, question: impl AsyncFnOnce(&mut Control) -> Result<T, ClientStatus>) -> Result<T, Failure> {
    let said = background::run(async |stop| {
        let asking = async {
            let mut control = client::connect(path).await?;
            let said = question(&mut control).await.map_err(ClientError::from)?;
            Ok::<T, AppError>(said)
        };
        answer(path, &stop, asking).await
    })?;
    said.map_err(background::failure)
}

/// Converts a parsed stream to a message.
fn message(asked: &Asked) -> Result<v1::Stream, Failure> {
    let bytes = u32::try_from(asked.bytes);
    let bytes = bytes
        .map_err(|_| Failure::input(format!("size: expected at most {} bytes, found {}", u32::MAX, asked.bytes)))?;
    let kinds = headtime_serve::control::streams::kinds(asked.kinds).into();
    let (requests, quality_ppm) = (asked.requests, asked.quality.ppm());
    Ok(v1::Stream { requests, period_ns: asked.period.0, quality_ppm, bytes, kinds, blocked_by: asked.blocked_by })
}

fn load(r: &StreamReply) -> Shares {
    let forecast =
        Forecast { per_1000_s: r.best_effort_per_1000_s, best_effort_ppm: r.left_ppm, ..Forecast::default() };
    Shares::of(r.worst_ppm, r.expected_ppm, Some(forecast))
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[derive(Serialize)]
struct Reserved<'a> {
    /// None: the stream of the query.
    export: Option<&'a str>,
    /// None: mandatory, or served as mandatory.
    reservation_ms: Option<f64>,
}

fn asked(args: &Ask, export: Option<&String>) -> Result<(), Failure> {
    let stream = streams::parse(&args.stream, "STREAM", 1).map_err(Failure::input)?;
    let request = StreamRequest { export: export.cloned(), stream: Some(message(&stream)?) };
    let opens = export.is_some();
    let reply = called(&args.server.path()?, async move |control| {
        let said = if opens { control.open_stream(request).await } else { control.ask_stream(request).await };
        said.map(|r| r.into_inner())
    })?;
    if args.json {
        let reserved = reply.reserved.iter();
        let reserved: Vec<Reserved<'_>> = reserved
            .map(|r| Reserved { export: r.export.as_deref(), reservation_ms: r.reservation_ns.map(ms) })
            .collect();
        screen::print_json(&serde_json::json!({
            "admitted": reply.admitted,
            "why_not": (!reply.admitted).then_some(&reply.why_not),
            "nearest": (!reply.admitted).then(|| serde_json::json!({
                "requests": reply.nearest_requests,
                "quality": reply.nearest_quality_ppm.map(|q| f64::from(q) / 1e6),
                "period_ms": reply.nearest_period_ns.map(ms),
            })),
            "worst_ms": reply.admitted.then(|| ms(reply.worst_ns)),
            "bounds": reply.admitted.then_some(&reply.bounds),
            "reserved": reserved,
            "load": reply.admitted.then(|| load(&reply)),
        }))?;
    } else {
        screen::print(&words(&reply, opens, stream.quality.is_mandatory()))?;
    }
    if reply.admitted { Ok(()) } else { Err(Failure::Check) }
}

/// Formats a reply. `mandatory`: the stream of the query is mandatory.
fn words(reply: &StreamReply, opens: bool, mandatory: bool) -> String {
    if !reply.admitted {
        return format!("No. {}.\n", reply.why_not);
    }
    let of = |ns: Option<u64>| ns.map_or("mandatory, or served as that".into(), |ns| format!("{:.2} ms", ms(ns)));
    let mut text = match reply.reserved.last().map(|r| r.reservation_ns) {
        Some(Some(r)) => format!("Yes. {:.2} ms of each period are reserved for it", ms(r)),
        _ if mandatory => "Yes. It is mandatory".into(),
        _ => format!("Yes. It is served {}: all of its requests are done in time", served(false)),
    };
    text += &format!("; one of its requests takes {:.2} ms at its worst.\n", ms(reply.worst_ns));
    let others = reply.reserved.len().saturating_sub(1);
    if others > 0 {
        let each = reply.reserved[..others].iter();
        let each = each.map(|r| format!("{}: {}", r.export.as_deref().unwrap_or("(unnamed)"), of(r.reservation_ns)));
        let tense = if opens { "have now" } else { "would have" };
        text += &format!("The others {tense}: {}.\n", each.collect::<Vec<_>>().join(", "));
    }
    text += &format!("All together: {}.\n", load(reply));
    // The guarantee of a stream with a reservation does not depend on the worst case.
    let is_mandatory = reply.reserved.last().is_some_and(|r| r.reservation_ns.is_none());
    if is_mandatory && !reply.bounds.is_empty() {
        let bounds: Vec<String> = reply.bounds.iter().map(|b| plain(b)).collect();
        text += &format!("This rests on stated bounds: {}.\n", bounds.join(", "));
    }
    text
}

#[derive(Serialize)]
struct Row {
    export: String,
    requests: u32,
    period_ms: f64,
    quality: f64,
    bytes: u32,
    reservation_ms: Option<f64>,
    closing: bool,
    asked: u64,
    in_time: u64,
    late: u64,
    given_up: u64,
    deferred: u64,
}

fn row(s: &StreamCounts) -> Row {
    let asked = s.stream.unwrap_or_default();
    Row {
        export: plain(&s.export),
        requests: asked.requests,
        period_ms: ms(asked.period_ns),
        quality: f64::from(asked.quality_ppm) / 1e6,
        bytes: asked.bytes,
        reservation_ms: s.reservation_ns.map(ms),
        closing: s.closing,
        asked: s.asked,
        in_time: s.in_time,
        late: s.late,
        given_up: s.given_up,
        deferred: s.deferred,
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        vec![
            if self.closing { format!("{} (ends)", self.export) } else { self.export.clone() },
            self.requests.to_string(),
            format!("{} ms", self.period_ms),
            ppm((self.quality * 1e6).round() as u64),
            self.bytes.to_string(),
            self.reservation_ms.map_or(served(self.quality == 1.0).into(), |r| format!("{r:.2} ms")),
            self.asked.to_string(),
            self.in_time.to_string(),
            self.late.to_string(),
            self.given_up.to_string(),
        ]
    }
}

fn list(args: &List) -> Result<(), Failure> {
    let (snapshot, reply) = called(&args.server.path()?, async |control| {
        let load = control.ask_stream(StreamRequest::default()).await?.into_inner();
        let mut once = control.statistics(StatisticsRequest { every_ms: 0 }).await?.into_inner();
        Ok((once.message().await?.unwrap_or_default(), load))
    })?;
    let rows: Vec<Row> = snapshot.streams.iter().map(row).collect();
    let overdue = snapshot.overdue;
    if args.json {
        return screen::print_json(&serde_json::json!({ "streams": rows, "overdue": overdue, "load": load(&reply) }));
    }
    let mut text = String::new();
    if rows.is_empty() {
        text += "no export is a stream\n";
    } else {
        let head =
            ["stream", "requests", "period", "quality", "bytes", "reserved", "asked", "in time", "late", "given up"];
        let mut lines = vec![head.map(String::from).to_vec()];
        lines.extend(rows.iter().map(Row::cells));
        text += &columns(&lines, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
    text += &format!("All together: {}.\n", load(&reply));
    if overdue > 0 {
        text +=
            &format!("The drive took longer than its worst case {overdue} times: what is promised does not hold.\n");
    }
    screen::print(&text)
}
