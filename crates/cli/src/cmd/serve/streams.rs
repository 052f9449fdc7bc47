//! Streams of `headtime serve`: the figures that guarantees are based on, the output of `--check`,
//! and a configuration that is read again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use headtime_sched::streams::{Disk, Stream, StreamStatus, admit_under};
use headtime_serve::assembly::{Assembly, Guarantees};
use headtime_serve::engine::inbox::Outbox;
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::net::exports::Exports;
use headtime_serve::streams::{Grounds as Served, Live, StreamError};
use headtime_sim::promises::{Drive, Grounds, Promised, Stated};
use headtime_sim::service;

use crate::failure::Failure;
use crate::promises::{self, Shares};
use crate::screen::{self, columns};
use crate::words::{ppm, served};

/// How long to wait for an ending stream to complete its requests before the new stream of its
/// export fails.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// Polling interval of that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Gives the configured streams guarantees. Service times missing from a virtual drive's profile
/// are measured on that drive, with a note; those of a real drive can be measured only on itself.
pub fn guarantee(assembly: &mut Assembly) -> Result<Grounds, Failure> {
    let (config, wanted) = (assembly.config().clone(), assembly.streams().to_vec());
    let stated = Stated { bounds: config.scheduler.assume.as_ref(), with: "scheduler.assume" };
    let measured = config.disk.backing.is_some().then_some(config.disk.seed);
    let drive = Drive { name: &config.disk.drive, outstanding: assembly.outstanding(), measured, stated };
    let profile = assembly.profile_mut();
    let mut sizes: Vec<u64> = wanted.iter().map(|w| u64::from(w.1.sectors) * u64::from(profile.sector_bytes)).collect();
    if profile.service_times.is_empty() {
        // Streams opened at run time may have requests of this size.
        sizes.push(service::BYTES);
    }
    let mandatory = wanted.iter().find(|w| w.1.is_mandatory());
    let mandatory = mandatory.and_then(|w| config.exports.get(w.0 as usize));
    let mandatory = mandatory.map(|export| format!("the stream of export \"{}\"", export.name));
    let exhausted = config.scheduler.exhausted;
    let promised = drive.setup(profile, &sizes, exhausted, mandatory.as_deref());
    let Promised { config: setup, grounds, measured } =
        promised.map_err(|e| Failure::Input(format!("scheduler.admit: {e}")))?;
    promises::note_measured(profile, &measured);
    let served = Arc::new(Served {
        unknown: grounds.unknown,
        bounds: grounds.bounds(),
        exhausted: setup.exhausted,
        other_order: !config.scheduler.order.is_by_position(),
    });
    assembly.guarantee(Guarantees { setup, grounds: served });
    Ok(grounds)
}

/// The output of `--check`: the streams, their figures, and the remaining capacity.
pub fn said(assembly: &Assembly, standings: &[StreamStatus], grounds: &Grounds) -> Result<String, Failure> {
    let Some(Guarantees { setup, .. }) = assembly.guarantees() else { return Ok(String::new()) };
    let exports = assembly.exports();
    let head = ["stream", "requests", "period", "quality", "bytes", "w", "reserved in each period"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(standings.iter().map(|s| {
        let name = exports.specs.get(s.owner as usize).map_or_else(String::new, |e| e.name.clone());
        let stream = &s.stream;
        let worst = setup.disk.service_of(stream).map_or(0.0, |of| of.worst.as_ms_f64());
        vec![
            format!("    {name}"),
            stream.requests.to_string(),
            format!("{} ms", stream.period.as_ms_f64()),
            ppm(u64::from(stream.quality.ppm())),
            (u64::from(stream.sectors) * u64::from(exports.sector_bytes)).to_string(),
            format!("{worst:.2} ms"),
            match s.reservation {
                Some(r) => format!("{:.2} ms", r.as_ms_f64()),
                None => {
                    let each = worst + setup.disk.blocking_of(stream).as_ms_f64();
                    let all = f64::from(stream.requests) * each;
                    format!("{}: {all:.2} ms at worst", served(stream.is_mandatory()))
                }
            },
        ]
    }));
    rows[0][0] = "    stream".into();
    let most = u64::from(setup.worsts.most_sectors()) * u64::from(exports.sector_bytes);
    let streams: Vec<Stream> = standings.iter().map(|s| s.stream).collect();
    let admitted = admit_under(&setup.disk, setup.exhausted, &streams).map_err(Failure::input)?;
    let load = Shares::admitted(&setup.disk, &streams, &admitted, setup.exhausted);
    let rows = columns(&rows, &[1, 2, 3, 4, 5]);
    let mut text = format!("{rows}    {load}; its requests may have at most {most} bytes\n");
    for bound in grounds.bounds() {
        text += &format!("    w rests on a stated bound: {bound}\n");
    }
    let unknown = grounds.unknown_words();
    if !unknown.is_empty() {
        text += &format!("    no stream can be mandatory: the profile does not know {}\n", unknown.join(", "));
    }
    Ok(text)
}

/// Applies the streams of a re-read configuration: closes removed streams and opens new or changed
/// ones, if the whole set is admitted; otherwise nothing changes.
#[derive(Clone, Debug)]
pub struct Reloading {
    disk: Arc<Disk>,
    exports: Exports,
    grounds: Arc<Served>,
    /// The streams of the last configuration.
    last: Arc<Mutex<Vec<(u32, Stream)>>>,
}

impl Reloading {
    /// Starts from the streams of the first configuration; `None` if exports cannot be streams.
    pub fn of(assembly: &Assembly) -> Option<Reloading> {
        let Guarantees { setup, grounds } = assembly.guarantees()?;
        let (disk, exports, grounds) = (Arc::new(setup.disk.clone()), assembly.exports().clone(), Arc::clone(grounds));
        Some(Reloading { disk, exports, grounds, last: Arc::new(Mutex::new(assembly.streams().to_vec())) })
    }

    /// Applies the streams in a thread of its own, and notes the result.
    pub fn begin_to_take_over(self, engine: &Outbox<EngineMessage>, wanted: Vec<(u32, Stream)>) {
        let live = Live::new(engine.clone(), Arc::clone(&self.disk), self.exports.clone());
        let live = live.on(Arc::clone(&self.grounds));
        let thread = std::thread::Builder::new().name("headtime-streams".into());
        if let Err(e) = thread.spawn(move || self.take_over(&live, &wanted)) {
            screen::note(&format!("streams are as they were: {e}"));
        }
    }

    /// Blocks on the admission test and on ending streams.
    fn take_over(&self, live: &Live, wanted: &[(u32, Stream)]) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == wanted {
            return;
        }
        match self.change(live, &last, wanted) {
            // Streams that failed to open are retried at the next reload.
            Ok(failed) => *last = wanted.iter().filter(|w| !failed.contains(w)).copied().collect(),
            Err(why) => screen::note(&format!("streams are as they were: {why}")),
        }
    }

    /// Returns the streams that were admitted but failed to open.
    fn change(
        &self,
        live: &Live,
        last: &[(u32, Stream)],
        wanted: &[(u32, Stream)],
    ) -> Result<Vec<(u32, Stream)>, String> {
        let name = |export: u32| self.exports.specs[export as usize].name.clone();
        let gone = last.iter().filter(|l| !wanted.contains(l)).map(|l| l.0);
        let gone: Vec<u32> = gone.collect();
        let new: Vec<(u32, Stream)> = wanted.iter().filter(|w| !last.contains(w)).copied().collect();
        let asked = live.ask_instead(&gone, &new);
        asked.map_err(|(at, why)| match new.get(at) {
            Some((export, _)) => format!("export \"{}\", stream: {why}", name(*export)),
            None => why.to_string(),
        })?;
        for export in gone {
            // An error means that the stream is already closed.
            if live.close(export).is_ok() {
                screen::note(&format!("export \"{}\": no stream any more", name(export)));
            }
        }
        let mut failed = Vec::new();
        for (export, stream) in new {
            let by = Instant::now() + ENDS_WITHIN;
            let opened = loop {
                match live.open(export, stream) {
                    // The export's previous stream still has requests, or its reservation is not
                    // released yet.
                    Err(StreamError::NotOpened(_) | StreamError::NotEnded | StreamError::Refused { .. })
                        if Instant::now() < by =>
                    {
                        std::thread::sleep(POLL_INTERVAL)
                    }
                    other => break other,
                }
            };
            match opened {
                Ok(_) => screen::note(&format!("export \"{}\": a stream now", name(export))),
                Err(why) => {
                    screen::note(&format!("export \"{}\", stream: {why}", name(export)));
                    failed.push((export, stream));
                }
            }
        }
        Ok(failed)
    }
}
