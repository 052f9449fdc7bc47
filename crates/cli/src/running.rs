//! A server's life cycle, common to `headtime disk` and `headtime serve`.

use std::net::SocketAddr;
use std::time::Duration;

use headtime_host::systemd::{Notice, notify, watchdog_interval};
use headtime_sched::Scheduler;
use headtime_serve::device::Device;
use headtime_serve::engine::End;
use headtime_serve::engine::inbox::Outbox;
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::engine::snapshot::{Snapshot, Spread};
use headtime_serve::net::address::Address;
use headtime_serve::net::descriptors::Sockets;
use headtime_serve::server::{Handle, ServeError, Server, Service};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::{log, nbd_uri, screen};

/// Watchdog timeout of an engine's answer.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns whether other machines may reach an address.
fn is_open(address: &Address) -> bool {
    match address {
        Address::Unix(_) => false,
        Address::Tcp(host) => {
            let host = host.rsplit_once(':').map_or("", |h| h.0).trim_matches(['[', ']']);
            host != "localhost" && !host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}

/// Prints the URI of each export, and warns of addresses open to any host.
pub fn say_where<'a>(listen: &[Address], ports: &[u16], exports: impl Iterator<Item = &'a str> + Clone, tls: bool) {
    for address in chosen(listen, ports) {
        for name in exports.clone() {
            screen::note(&format!("clients: {}", nbd_uri::of(&address, name, tls)));
        }
        if is_open(&address) && !tls {
            screen::warn(&format!("{address}: without TLS; any host that reaches it can read and write everything"));
        }
    }
}

/// Addresses with the ports that the system chose for port 0.
fn chosen(listen: &[Address], ports: &[u16]) -> Vec<Address> {
    let mut ports = ports.iter();
    let of = |address: &Address| match address {
        Address::Tcp(host) => {
            let host = host.rsplit_once(':').map_or("", |h| h.0);
            Address::Tcp(format!("{host}:{}", ports.next().copied().unwrap_or(0)))
        }
        Address::Unix(path) => Address::Unix(path.clone()),
    };
    listen.iter().map(of).collect()
}

/// Re-reads a configuration, and notifies the server of changes.
pub type Reload = Box<dyn Fn(&Handle)>;

/// What runs beside a server, until it is dropped.
pub type Beside = Box<dyn FnOnce(Outbox<EngineMessage>) -> Result<Box<dyn std::any::Any>, Failure>>;

/// What a server does beside serving: signal handling other than termination, and checks.
#[derive(Default)]
pub struct Hooks {
    /// SIGHUP handler; `None`: SIGHUP terminates the server.
    pub reload: Option<Reload>,
    /// The server that changes, and whose engine the watchdog checks.
    pub server: Option<Handle>,
    /// Started with the server, and dropped before it ends.
    pub beside: Option<Beside>,
    /// The check fails if a completion was later than this.
    pub max_lateness: Option<Duration>,
}

/// Refuses to serve if the limit of open files is too low for the clients, and suggests a remedy.
pub fn enough_files(sockets: Sockets) -> Result<(), Failure> {
    let (needed, most) = (sockets.files(), headtime_host::process::use_all_files());
    if needed <= most {
        return Ok(());
    }
    let Sockets { nbd, clients, .. } = sockets;
    Err(Failure::Input(format!(
        "{nbd} sockets for {clients} clients each: expected a limit of {needed} open files or more, found {most} \
         (`ulimit -Hn`, LimitNOFILE= of systemd; `listen.clients` lowers what is needed)"
    )))
}

/// Runs a server until a signal (SIGINT, SIGTERM) or its engine's end, then prints its summary.
pub fn serve<S, D>(
    scheduler: S,
    device: D,
    service: Service,
    mut hooks: Hooks,
    what: &str,
    json: bool,
) -> Result<(), Failure>
where
    S: Scheduler + Send + 'static,
    D: Device + Send + 'static,
{
    // If our own exports are attached on this machine, freeing memory may depend on our writes: our
    // threads must not wait for such memory. This needs a privilege that most servers neither have
    // nor need.
    let _ = headtime_host::attach::become_flusher();
    enough_files(service.sockets())?;
    log::by_a_thread();
    let (listen, metrics) = (service.listen.clone(), service.metrics);
    let web = service.web.as_ref().map(|at| at.address);
    let tls = service.tls.as_ref().is_some_and(|t| t.1);
    let exports: Vec<String> = service.exports.specs.iter().map(|s| s.name.clone()).collect();
    let mut server = Server::start(scheduler, device, service).map_err(Failure::input)?;
    // Before the addresses are printed: whoever waits for them may use it at once. A server that
    // cannot be controlled is not the one that was asked for.
    let beside = match hooks.beside.take().map(|start| start(server.engine())).transpose() {
        Ok(beside) => beside,
        Err(failure) => {
            server.stop().map_err(Failure::input)?;
            return Err(failure);
        }
    };
    screen::note(&format!("{what}; Ctrl-C ends it"));
    say_where(&listen, server.ports(), exports.iter().map(String::as_str), tls);
    if let (Some(at), Some(port)) = (metrics, server.metrics_port()) {
        screen::note(&format!("metrics: http://{}/metrics", SocketAddr::new(at.ip(), port)));
    }
    if let (Some(at), Some(port)) = (web, server.web_port()) {
        screen::note(&format!("live view: http://{}/", SocketAddr::new(at.ip(), port)));
    }
    hooks.server = Some(server.handle());
    tell_manager(Notice::Ready);
    let stopped = server.wait_for(asked_to_stop(&hooks));
    tell_manager(Notice::Stopping);
    if let Some(Err(e)) = stopped {
        return Err(Failure::Input(format!("signals cannot be heard: {e}")));
    }
    let snapshot = server.snapshot();
    drop(beside);
    let end = server.stop().map_err(|e| match e {
        // Each export's failure was reported already. Loss of data is not certain, so this counts
        // as a failed check, not as an error.
        ServeError::CacheFailed => Failure::Check,
        e => Failure::input(e),
    })?;
    let was_late = snapshot.as_ref().zip(hooks.max_lateness).and_then(|(s, most)| too_late(&s.lateness, most));
    if let Some(s) = snapshot {
        report(&s, json)?;
    }
    match end {
        End::Drained => match was_late {
            Some(said) => {
                screen::warn(&said);
                Err(Failure::Check)
            }
            None => Ok(()),
        },
        End::GivenUp(requests) => Err(Failure::Input(format!(
            "the device did not finish: {requests} requests were given up, and were told so"
        ))),
    }
}

/// Notifies the service manager, if there is one. A failure is only a warning.
pub fn tell_manager(notice: Notice) {
    if let Err(e) = notify(notice) {
        screen::warn(&format!("{e}"));
    }
}

/// Waits for the next watchdog notice; forever without a watchdog.
async fn tick(alive: &mut Option<tokio::time::Interval>) {
    match alive {
        Some(alive) => _ = alive.tick().await,
        None => std::future::pending().await,
    }
}

/// Returns whether the engine answers within the timeout. Without an engine it returns true.
async fn answers(engine: Option<&Outbox<EngineMessage>>, within: Duration) -> bool {
    match engine {
        Some(engine) => matches!(tokio::time::timeout(within, engine.snapshot()).await, Ok(Ok(_))),
        None => true,
    }
}

/// Waits for a terminating signal; handles SIGHUP and the watchdog in the meantime.
pub async fn asked_to_stop(hooks: &Hooks) -> std::io::Result<()> {
    let (mut terminated, mut interrupted) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hung_up = signal(SignalKind::hangup())?;
    let watched = watchdog_interval().unwrap_or_else(|e| {
        screen::warn(&format!("{e}"));
        None
    });
    let mut alive = watched.map(tokio::time::interval);
    loop {
        tokio::select! {
            _ = terminated.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
            _ = hung_up.recv() => match &hooks.reload {
                None => return Ok(()),
                Some(reload) => {
                    tell_manager(Notice::Reloading);
                    if let Some(server) = &hooks.server {
                        reload(server);
                    }
                    tell_manager(Notice::Ready);
                }
            },
            // No notice is sent for a stuck engine, so the service manager can restart the server.
            () = tick(&mut alive) => match answers(hooks.server.as_ref().map(Handle::engine), ENGINE_TIMEOUT).await {
                true => tell_manager(Notice::Watchdog),
                false => screen::warn("the engine does not answer"),
            }
        }
    }
}

/// Returns what is said of a run in which completions were later than they may be.
fn too_late(lateness: &Spread, most: Duration) -> Option<String> {
    let most = most.as_micros();
    (u128::from(lateness.max_us) > most).then(|| {
        format!(
            "a completion was {} us late, more than the {most} us of --max-lateness: this machine was too slow, and \
             times of this run are not the drive's",
            lateness.max_us
        )
    })
}

#[derive(Serialize)]
struct Summary {
    seconds: f64,
    commands: u64,
    failed: u64,
    service_us: Shape,
    lateness_us: Shape,
    free_sectors: u64,
}

#[derive(Serialize)]
struct Shape {
    count: u64,
    mean: f64,
    p50: u64,
    p99: u64,
    max: u64,
}

fn shape(s: &Spread) -> Shape {
    Shape { count: s.count, mean: s.mean_us, p50: s.p50_us, p99: s.p99_us, max: s.max_us }
}

fn report(s: &Snapshot, json: bool) -> Result<(), Failure> {
    let seconds = Duration::from_nanos(s.at.0).as_secs_f64();
    if json {
        return screen::print_json(&Summary {
            seconds,
            commands: s.commands,
            failed: s.failed,
            service_us: shape(&s.service),
            lateness_us: shape(&s.lateness),
            free_sectors: s.free_sectors,
        });
    }
    screen::note(&format!("{} commands in {seconds:.0} s, {} failed", s.commands, s.failed));
    if s.lateness.count > 0 {
        let l = &s.lateness;
        screen::note(&format!(
            "completions were late by p50 {} us, p99 {} us, at most {} us",
            l.p50_us, l.p99_us, l.max_us
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_serve::engine::inbox::inbox;

    #[test]
    fn a_run_is_valid_up_to_the_lateness_that_is_allowed() {
        let late = |max_us| too_late(&Spread { max_us, ..Spread::default() }, Duration::from_millis(2));
        assert_eq!((late(0), late(2000)), (None, None));
        assert!(late(2001).unwrap().contains("2001 us late, more than the 2000 us"));
    }

    #[tokio::test]
    async fn an_engine_that_hangs_or_has_ended_does_not_count_as_alive() {
        let within = Duration::from_millis(50);
        assert!(answers(None, within).await);
        let (outbox, engine) = inbox(4, 4).unwrap();
        // The engine takes no message; later its queue is full.
        for _ in 0..6 {
            assert!(!answers(Some(&outbox), within).await);
        }
        drop(engine);
        assert!(!answers(Some(&outbox), within).await);
    }
}
