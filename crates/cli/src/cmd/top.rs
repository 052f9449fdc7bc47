//! `headtime top`: live view of a server.
//!
//! * this file: the flags, and the output modes
//! * [`feed`]: the connection to the server, reconnected when it is lost
//! * [`figures`]: differences between two snapshots of counters
//! * [`text`]: words and columns for the terminal and for files
//! * [`live`]: the terminal and its keys

mod feed;
mod figures;
mod live;
mod text;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::screen;
use feed::{Feed, Update};
use figures::{History, View};

/// Shows what a server is doing: exports, head time, background work, sessions
///
/// Rates are those of the last interval; distributions are since the server began. In the terminal:
/// arrows select a session, p pauses or resumes it, plus and minus change its priority, q quits. If
/// stdout is not a terminal it prints once.
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    control: ControlSocket,
    /// Milliseconds between two updates
    #[arg(long, value_name = "N", default_value = "1000", value_parser = interval)]
    interval_ms: u64,
    /// Measure one interval, print it as text, and exit
    #[arg(long)]
    once: bool,
    /// Print one JSON object, in one line, for each interval
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<u64, String> {
    let within = text.parse().ok().filter(|n| (100..=3_600_000).contains(n));
    within.ok_or_else(|| "expected 100 to 3600000".into())
}

/// Timeout for the drawing thread to restore the terminal.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Shows the view until the user or a signal stops it.
pub fn run(args: &Top) -> Result<(), Failure> {
    let every = Duration::from_millis(args.interval_ms);
    let watched = !args.json && !args.once && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    // The print modes change no terminal settings; otherwise the drawing thread restores them.
    let _ = ctrlc::set_handler(move || {
        if watched {
            stop.store(true, Ordering::Relaxed);
            // A stalled terminal may block the drawing thread.
            std::thread::sleep(RESTORE_TIMEOUT);
        }
        std::process::exit(130);
    });
    let feed = Feed::start(&args.control.path()?, every).map_err(Failure::input)?;
    if watched {
        return live::run(&feed, &stopped);
    }
    let mut history = History::default();
    while let Ok(update) = feed.updates.recv() {
        match update {
            Update::Info(info) => history.info(&info),
            Update::Lost(why) if args.once || !args.json => return Err(Failure::Input(why)),
            Update::Lost(why) => screen::note(&format!("the server is gone ({why}); waiting for it")),
            Update::Snapshot(snapshot) => {
                let Some(view) = history.view(*snapshot) else { continue };
                print(&view, args.json)?;
                if args.once || !args.json {
                    return Ok(());
                }
            }
            Update::Refused(_) => {}
        }
    }
    Err(Failure::input("the connection to the server ended"))
}

fn print(view: &View, json: bool) -> Result<(), Failure> {
    match json {
        true => screen::print(&(serde_json::to_string(view).map_err(Failure::input)? + "\n")),
        false => screen::print(&text::page(view)),
    }
}
