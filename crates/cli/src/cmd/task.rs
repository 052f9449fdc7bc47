//! `headtime task`: background sessions, and reads and writes of single ranges.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::hand::{self, Reading, Writing, Written};
use headtime_serve::apps::image::{Image, beside, name_fits, remove, take_name};
use headtime_serve::apps::job::{End, Job};
use headtime_serve::apps::link::{answer, disk, in_place, look};
use headtime_serve::apps::progress::Progress;
use headtime_serve::apps::runner;
use headtime_serve::apps::scrub::{Report, Scrub};
use headtime_serve::apps::units::{Units, usual_unit};
use headtime_serve::control::client::{self, ClientError};
use headtime_serve::control::v1::change_request::Change;
use headtime_serve::control::v1::{ChangeRequest, Empty, SessionCounts, StatisticsRequest};
use serde::Serialize;
use tokio::sync::watch;

use super::scrub::list;
use crate::background::{self, Rate, Unit, Watcher};
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::figures;
use crate::screen::{self, Bar};
use crate::words::{bytes, percent, plain};

/// List background sessions, change them, or read and write ranges directly
#[derive(Debug, Args)]
pub struct Task {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    List(List),
    Read(Read),
    Write(Write),
    /// Pause a session: no task is served for it
    Pause(Which),
    /// Resume a paused session
    Resume(Which),
    /// Change a session's share of free bandwidth
    Priority(Priority),
    /// Limit the rate of a session
    Limit(Limit),
    /// Close a session; its application is notified
    Close(Which),
}

/// Show the sessions
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    server: ControlSocket,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Which {
    /// The session's number (`headtime task list`)
    #[arg(value_name = "SESSION", value_parser = figures::session)]
    session: u32,
    #[command(flatten)]
    server: ControlSocket,
}

#[derive(Debug, Args)]
struct Priority {
    #[command(flatten)]
    which: Which,
    /// 1 to 1000000
    #[arg(value_name = "N", value_parser = figures::priority)]
    priority: u32,
}

#[derive(Debug, Args)]
struct Limit {
    #[command(flatten)]
    which: Which,
    /// Highest rate in MB/s, in gaps and idle time; none: without a limit
    #[arg(value_name = "MB/S|none", value_parser = figures::limit, allow_negative_numbers = true)]
    max_mb_s: f64,
}

/// Read ranges in rotational gaps and idle time
#[derive(Debug, Args)]
struct Read {
    #[command(flatten)]
    server: ControlSocket,
    /// First sector and number of sectors; may be given several times
    #[arg(long, value_name = "LBN+COUNT", required = true, value_parser = background::range)]
    range: Vec<TaskRange>,
    /// Output file for the data, ranges concatenated in ascending order [default: the data is read
    /// and dropped]
    #[arg(short, long, value_name = "FILE", value_parser = figures::output())]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    overwrite: bool,
    #[command(flatten)]
    rate: Rate,
    #[command(flatten)]
    unit: Unit,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Write ranges in rotational gaps and idle time; parts superseded by newer writes of other clients
/// are left out
#[derive(Debug, Args)]
struct Write {
    #[command(flatten)]
    server: ControlSocket,
    /// First sector and number of sectors; may be given several times
    #[arg(long, value_name = "LBN+COUNT", required = true, value_parser = background::range)]
    range: Vec<TaskRange>,
    /// Input file, ranges concatenated in ascending order
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    priority: background::Priority,
    #[command(flatten)]
    unit: Unit,
    /// Write as foreground work instead of waiting for gaps
    #[arg(long)]
    promote: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Task) -> Result<(), Failure> {
    match &args.what {
        What::List(a) => show(a),
        What::Read(a) => read(a),
        What::Write(a) => write(a),
        What::Pause(w) => change(w, Change::Suspended(true)),
        What::Resume(w) => change(w, Change::Suspended(false)),
        What::Priority(p) => change(&p.which, Change::Priority(p.priority)),
        What::Limit(l) => change(&l.which, Change::MaxMbS(l.max_mb_s)),
        What::Close(w) => change(w, Change::Close(Empty {})),
    }
}

#[derive(Serialize)]
struct Row {
    session: u32,
    name: String,
    priority: u32,
    suspended: bool,
    max_mb_s: Option<f64>,
    tasks: u64,
    done_bytes: u64,
    wanted_bytes: u64,
}

fn show(args: &List) -> Result<(), Failure> {
    let control = args.server.path()?;
    let sessions = background::run(async |stop| {
        let asking = async {
            let mut control = client::connect(&control).await?;
            let once = control.statistics(StatisticsRequest { every_ms: 0 }).await.map_err(ClientError::from)?;
            let snapshot = once.into_inner().message().await.map_err(ClientError::from)?;
            Ok::<Vec<SessionCounts>, AppError>(snapshot.unwrap_or_default().sessions)
        };
        answer(&control, &stop, asking).await
    })?;
    let rows = sessions.map_err(background::failure)?.into_iter().map(|s| Row {
        session: s.session,
        name: s.name,
        priority: s.priority,
        suspended: s.suspended,
        max_mb_s: s.max_mb_s,
        tasks: s.tasks,
        done_bytes: s.done_bytes,
        wanted_bytes: s.wanted_bytes,
    });
    let rows: Vec<Row> = rows.collect();
    if args.json {
        return screen::print_json(&serde_json::json!({ "sessions": rows }));
    }
    if rows.is_empty() {
        return screen::print("no session is open\n");
    }
    let mut lines = vec![["session", "name", "priority", "done", "wanted", "tasks", ""].map(String::from).to_vec()];
    lines.extend(rows.iter().map(|r| {
        vec![
            r.session.to_string(),
            plain(&r.name),
            r.priority.to_string(),
            bytes(r.done_bytes),
            bytes(r.wanted_bytes),
            r.tasks.to_string(),
            [r.suspended.then(|| "paused".into()), r.max_mb_s.map(|mb| format!("at most {mb:.3} MB/s"))]
                .into_iter()
                .flatten()
                .collect::<Vec<String>>()
                .join(", "),
        ]
    }));
    screen::print(&screen::columns(&lines, &[0, 2, 3, 4, 5]))
}

fn change(which: &Which, change: Change) -> Result<(), Failure> {
    let path = which.server.path()?;
    let changed = background::run(async |stop| {
        let asking = async {
            let mut control = client::connect(&path).await?;
            let request = ChangeRequest { session: which.session, change: Some(change) };
            control.change(request).await.map_err(ClientError::from)?;
            Ok::<(), AppError>(())
        };
        answer(&path, &stop, asking).await
    })?;
    changed.map_err(background::failure)
}

fn read(args: &Read) -> Result<(), Failure> {
    let job = args.rate.job(args.server.path()?, "task read")?;
    let done = background::run(async move |stop| reading(args, job, stop).await)?;
    let (report, end) = done.map_err(background::failure)?;
    if args.json {
        screen::print_json(&report)?;
    } else {
        let c = &report.read;
        let mut text = format!("read {} in {:.1} s, {:.2} MB/s", bytes(c.bytes), c.seconds, c.mb_s());
        text += if c.complete { "\n" } else { ", not to the end\n" };
        text += &super::scrub::cost(c.promoted_bytes, c.bytes);
        text += &list("unreadable", &c.unreadable);
        screen::print(&text)?;
    }
    match end {
        End::Stopped => {
            if args.output.is_some() {
                screen::note("stopped; nothing of it is kept");
            }
            Err(Failure::Stopped)
        }
        End::Complete if report.is_clean() => Ok(()),
        End::Complete => Err(Failure::Check),
    }
}

async fn reading(args: &Read, job: Job, stop: watch::Receiver<bool>) -> Result<(Report, End), AppError> {
    if let Some(path) = &args.output {
        name_fits(path)?;
    }
    let (_, info) = answer(&job.control, &stop, look(&job.control)).await?;
    args.range.iter().try_for_each(|range| in_place(&info, range))?;
    let wanted = args.range.iter().map(|r| r.count).fold(0, u64::saturating_add);
    let unit = args.unit.unit.unwrap_or_else(|| usual_unit(wanted, info.sector_bytes));
    let units = Units::new(args.range.clone(), unit, info.sectors, info.sector_bytes)?;
    let sector_bytes = u64::from(info.sector_bytes);
    // The file gets its name when it is complete; the temporary name differs from that of an
    // unfinished backup.
    let names = args.output.as_ref().map(|path| (beside(path, ".reading"), path));
    if let Some((part, path)) = names.as_ref().filter(|_| !args.overwrite)
        && let Some(there) = [*path, part].into_iter().find(|path| path.exists())
    {
        return Err(AppError::Exists(there.clone()));
    }
    let out = match &names {
        Some((part, _)) => Some(Image::anew(part, units.sectors() * sector_bytes, || Ok(()))?),
        None => None,
    };
    let mut progress =
        Progress::new("task read", &disk(&info), info.sectors, info.sector_bytes, "ranges", units.clone());
    let mut sink = Reading { out, units, sector_bytes };
    let mut watcher = Watcher::new("read", progress.bytes().1);
    let end = runner::run(&job, &mut progress, &mut sink, &mut |s| watcher.see(s), stop).await;
    let end = match (end, &sink.out) {
        (Ok(End::Complete), Some(out)) => out.sync().map(|()| End::Complete),
        (end, _) => end,
    };
    match (&end, &names) {
        (Ok(End::Complete), Some((part, path))) => {
            if let Err(e) = take_name(part, path) {
                remove(part)?;
                return Err(e);
            }
        }
        (_, Some((part, _))) => remove(part)?,
        (_, None) => {}
    }
    let end = end?;
    Ok((Report::new(&info, &progress, &Scrub::default()), end))
}

fn write(args: &Write) -> Result<(), Failure> {
    let writing = Writing {
        control: args.server.path()?.into(),
        priority: args.priority.priority,
        ranges: args.range.clone(),
        unit: args.unit.unit,
        input: args.input.clone(),
        promote: args.promote,
    };
    let done = background::run(async |stop| {
        let mut bar = None;
        let mut watch = |done, total| bar.get_or_insert_with(|| Bar::with_message(total, "write")).reach(done);
        hand::write(&writing, &mut watch, stop).await
    })?;
    let done: Written = done.map_err(background::failure)?;
    if args.json {
        screen::print_json(&done)?;
    } else {
        screen::print(&written(&done))?;
    }
    match done {
        Written { complete: false, .. } => Err(Failure::Stopped),
        Written { failed_bytes: 0, .. } => Ok(()),
        Written { .. } => Err(Failure::Check),
    }
}

fn written(w: &Written) -> String {
    let mut text = format!("written: {}\n", bytes(w.written_bytes));
    let all = w.written_bytes + w.superseded_bytes + w.failed_bytes;
    if w.superseded_bytes > 0 {
        let part = percent(w.superseded_bytes, all);
        text += &format!("left out, since others wrote there: {} ({part:.1}%)\n", bytes(w.superseded_bytes));
    }
    if w.failed_bytes > 0 {
        text += &format!("could not be written: {}\n", bytes(w.failed_bytes));
    }
    text
}
