//! Readers of untrusted bytes: each accepts them or returns a typed error, and nothing panics. The
//! tests and the fuzzers (`fuzz/`) share this.

use std::io::Cursor;
use std::path::Path;

use headtime_disk::{Kind, Model, profile};
use headtime_sched::TaskRange;
use headtime_serve::apps::progress::Progress;
use headtime_serve::apps::units::Units;
use headtime_serve::config::Config;
use headtime_serve::control::v1::{SessionCall, StreamRequest};
use headtime_serve::internals::apps::sums::Sums;
use headtime_sim::streams;

use headtime_sim::scenario::Scenario;
use headtime_sim::traces::{ReadOptions, Reader, Recording, TraceFormat};
use prost::Message;

/// A reader of untrusted bytes.
pub type Body = fn(&[u8]);

/// Each reader, and the name of its corpus.
pub const BODIES: [(&str, Body); 25] = [
    ("config", config),
    ("scenario", scenario),
    ("streams", streams_file),
    ("stream_words", stream_words),
    ("profile", toml_profile),
    ("disksim", disksim),
    ("seek_curve", seek_curve),
    ("control", control),
    ("journal", journal),
    ("sums", sums),
    ("recording", recording),
    ("trace_plain_csv", |data| trace("plain-csv", data)),
    ("trace_disksim_validate", |data| trace("disksim-validate", data)),
    ("trace_disksim_ascii", |data| trace("disksim-ascii", data)),
    ("trace_mqsim", |data| trace("mqsim", data)),
    ("trace_blkparse", |data| trace("blkparse", data)),
    ("trace_msr_csv", |data| trace("msr-csv", data)),
    ("trace_fio_iolog", |data| trace("fio-iolog", data)),
    ("trace_systor_csv", |data| trace("systor-csv", data)),
    ("trace_tencent_csv", |data| trace("tencent-csv", data)),
    ("trace_alibaba_csv", |data| trace("alibaba-csv", data)),
    ("trace_thesios_csv", |data| trace("thesios-csv", data)),
    ("trace_spc", |data| trace("spc", data)),
    ("trace_vscsi", |data| trace("vscsi", data)),
    ("trace_any", |data| TraceFormat::ALL.iter().for_each(|(name, _)| trace(name, data))),
];

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// A rejection is one line, whatever the length of its subject.
fn one_line<E: std::fmt::Display>(refusal: &E) {
    let said = refusal.to_string();
    assert!(!said.is_empty() && said.len() < 20_000, "{} bytes: {said:.200}", said.len());
}

fn config(data: &[u8]) {
    match Config::read(&text(data), Path::new("c.toml")) {
        Ok(config) => {
            let _ = (
                config.addresses(),
                config.policy(),
                config.metrics_address(),
                config.web_address(),
                config.write_caches(),
                config.tls(),
            );
            if let Err(e) = config.exports(1 << 24, 512) {
                one_line(&e);
            }
        }
        Err(e) => one_line(&e),
    }
}

fn scenario(data: &[u8]) {
    match Scenario::parse(&text(data), "s.toml").and_then(|s| s.check().map(|()| s)) {
        Ok(s) => {
            let said = [
                s.policy().err().map(|e| e.to_string()),
                s.scheduling().err().map(|e| e.to_string()),
                s.limits().err().map(|e| e.to_string()),
                s.write_cache().err().map(|e| e.to_string()),
            ];
            said.iter().flatten().for_each(one_line);
        }
        Err(e) => one_line(&e),
    }
}

fn streams_file(data: &[u8]) {
    match streams::read("s.toml", &text(data)) {
        Ok(asked) => asked.iter().for_each(|one| _ = one.stream(512)),
        Err(e) => one_line(&e),
    }
}

fn stream_words(data: &[u8]) {
    match streams::parse(&text(data), "--stream", 1) {
        Ok(asked) => _ = asked.stream(512),
        Err(e) => one_line(&e),
    }
}

/// An accepted profile makes a valid drive.
fn drive(loaded: Result<profile::Loaded, profile::ProfileError>) {
    match loaded {
        Ok(loaded) => _ = Model::new(&loaded.profile),
        Err(e) => one_line(&e),
    }
}

fn toml_profile(data: &[u8]) {
    drive(profile::load("p.toml", &|_| Ok(text(data))));
}

fn disksim(data: &[u8]) {
    drive(profile::load("d.parv", &|_| Ok(text(data))));
}

/// A seek curve with an otherwise valid drive.
fn seek_curve(data: &[u8]) {
    const GOOD: &str = include_str!("../../../../../fuzz/corpus/disksim/constant_seek");
    let wanted = "Seek type = linear, Full seek curve = curve";
    let drive_text = GOOD.replace("Seek type = constant, Constant seek time = 5.0", wanted);
    drive(profile::load("d.parv", &|path| Ok(if path == "d.parv" { drive_text.clone() } else { text(data) })));
}

fn control(data: &[u8]) {
    if let Ok(call) = SessionCall::decode(data) {
        let again = SessionCall::decode(&call.encode_to_vec()[..]).expect("what was written can be read");
        assert_eq!(call, again);
    }
    let _ = StreamRequest::decode(data);
}

fn in_a_file(data: &[u8], what: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("f");
    std::fs::write(&path, data).expect("room");
    what(&path);
}

fn progress() -> Progress {
    let units = Units::new(vec![TaskRange { lbn: 16, count: 1000 }], 8, 1 << 20, 512).expect("units");
    Progress::new("scrub", "d", 1 << 20, 512, "data", units)
}

fn journal(data: &[u8]) {
    in_a_file(data, |path| {
        let mut progress = progress();
        match progress.resume(path) {
            Ok(_) => progress.save(path).expect("room"),
            Err(e) => {
                one_line(&e);
                assert_eq!(progress.done(), 0, "what is refused changes nothing");
            }
        }
    });
}

fn sums(data: &[u8]) {
    in_a_file(data, |path| {
        let progress = progress();
        match Sums::open(path, progress.identity(), progress.units().len()) {
            Ok((sums, _)) => (0..progress.units().len()).for_each(|n| _ = sums.get(n)),
            Err(e) => one_line(&e),
        }
    });
}

fn recording(data: &[u8]) {
    match Recording::read(Cursor::new(data), "r".into()) {
        Ok(recording) => _ = recording.length(),
        Err(e) => one_line(&e),
    }
}

fn trace(format: &str, data: &[u8]) {
    let format = TraceFormat::from_name(format).expect("a format");
    match Reader::new(Cursor::new(data), "t".into(), format, ReadOptions::default()).read_all() {
        // A flush has no count.
        Ok(records) => assert!(records.iter().all(|r| (r.count > 0) != (r.kind == Kind::Flush))),
        Err(e) => one_line(&e),
    }
}
