//! `headtime destage`: an export with a write-back cache in memory.

use clap::Args;
use headtime_host::systemd::Notice;
use headtime_serve::destage::Limits;
use headtime_serve::destage::driver::{Left, Upstream};
use headtime_serve::destage::server::{Destage as Cache, Setup};
use headtime_serve::net::address::Address;
use serde::Serialize;

use crate::background::Priority;
use crate::control_socket::ControlSocket;
use crate::failure::Failure;
use crate::log::{self, Logging};
use crate::running::{self, Hooks};
use crate::{figures, screen};

/// Serve an export with a write-back cache in memory, destaged in rotational gaps and idle time
///
/// Exports EXPORT of a running `headtime serve` under the same name. Writes are acknowledged when
/// they are in memory, and destaged in rotational gaps and idle time; flushes and writes with FUA
/// are acknowledged when the disk has the data. No other client may write to the export at the same
/// time: the cache would not see it. Data that was not flushed is lost if this program is killed.
#[derive(Debug, Args)]
pub struct Destage {
    /// The export, by its name in the server's configuration
    #[arg(value_name = "EXPORT")]
    export: String,
    #[command(flatten)]
    control: ControlSocket,
    /// Address to listen on: unix:PATH or tcp:HOST:PORT; may be given several times
    #[arg(long, value_name = "ADDRESS", required = true, value_parser = figures::address)]
    nbd: Vec<Address>,
    /// Memory for dirty blocks: bytes, or a number with KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = figures::memory)]
    memory: u64,
    #[command(flatten)]
    priority: Priority,
    /// Print one JSON object on stdout at exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub log: Logging,
}

/// Serves until a signal, then writes out all dirty blocks.
pub fn run(args: &Destage) -> Result<(), Failure> {
    let setup = Setup {
        upstream: Upstream {
            control: args.control.path()?.into(),
            export: args.export.clone(),
            priority: args.priority.priority,
        },
        listen: args.nbd.clone(),
        limits: Limits { memory: args.memory },
        note: log::note(),
    };
    running::enough_files(setup.sockets())?;
    log::by_a_thread();
    let cache = Cache::start(setup).map_err(Failure::input)?;
    screen::note(&format!("\"{}\" with a cache of {} MiB; Ctrl-C ends it", args.export, args.memory >> 20));
    running::say_where(&args.nbd, cache.ports(), std::iter::once(args.export.as_str()), false);
    running::tell_manager(Notice::Ready);
    let asked = cache.wait_for(running::asked_to_stop(&Hooks::default()));
    running::tell_manager(Notice::Stopping);
    let left = cache.stop().map_err(Failure::input)?;
    report(&left, args.json)?;
    asked.map_err(|e| Failure::Input(format!("signals cannot be heard: {e}")))?;
    match left.bytes {
        0 if left.flushed => Ok(()),
        0 => Err(Failure::Input(
            "everything was written, and the disk did not say that it has it: its last flush failed, or was not \
             answered"
                .into(),
        )),
        bytes if bytes == left.failed => Err(Failure::Input(format!(
            "{bytes} bytes were acknowledged, and the disk does not take them: they are lost"
        ))),
        bytes => Err(Failure::Input(format!(
            "{bytes} bytes were acknowledged and not flushed, and the server is not there to take them: they are lost"
        ))),
    }
}

#[derive(Serialize)]
struct Summary {
    accepted_bytes: u64,
    free_bytes: u64,
    promoted_bytes: u64,
    read_hits: u64,
    read_misses: u64,
    left_bytes: u64,
}

fn report(left: &Left, json: bool) -> Result<(), Failure> {
    let c = &left.counts;
    if json {
        return screen::print_json(&Summary {
            accepted_bytes: c.accepted,
            free_bytes: c.free,
            promoted_bytes: c.through,
            read_hits: c.hits,
            read_misses: c.misses,
            left_bytes: left.bytes,
        });
    }
    screen::note(&format!(
        "{} bytes taken; {} written for free, {} in the foreground (flushes, FUA, no room)",
        c.accepted, c.free, c.through
    ));
    screen::note(&format!("{} reads from the cache, {} from the disk", c.hits, c.misses));
    Ok(())
}
