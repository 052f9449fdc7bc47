//! Formatting of a [`Profile`] as a profile file. It reads back as the same profile, to the
//! nanosecond and to 2^-64 revolution. The keys of each table are listed in [`super::schema`].

use std::fmt::Write;

use super::schema::{ELECTRONICS_TABLES, GEOMETRY, KNOWN, MECHANICS, NOISE, SERVICE_TIMES, TOP, Written};
use super::text::{WIDTH, text};
use super::{Electronics, NoiseSpec, Profile};

/// Returns the text of the profile file for `profile`, from which [`read`](super::read) makes the
/// same profile if [`check`](super::check) accepts it.
pub fn write(profile: &Profile) -> String {
    let mut w = Writer { out: String::new() };
    w.keys(TOP.written(profile));
    w.line("\n[sources]");
    for (key, source) in &profile.sources {
        w.line(&format!("{} = {}", text(key), text(source)));
    }
    w.table("[geometry]", GEOMETRY.written(&profile.geometry));
    w.table("[mechanics]", MECHANICS.written(&profile.mechanics));
    electronics(&mut w, "electronics", &profile.electronics);
    if profile.noise != NoiseSpec::default() {
        w.table("[noise]", NOISE.written(&profile.noise));
    }
    w.table("[known]", KNOWN.written(&profile.known));
    if let Some(rig) = &profile.rig {
        electronics(&mut w, "rig", rig);
    }
    for times in &profile.service_times {
        w.table("[[service_times]]", SERVICE_TIMES.written(times));
    }
    w.out
}

fn electronics(w: &mut Writer, name: &str, e: &Electronics) {
    for (part, written) in ELECTRONICS_TABLES {
        w.table(&format!("[{name}.{part}]"), written(e));
    }
}

struct Writer {
    out: String,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn table(&mut self, header: &str, keys: Vec<(&str, Written)>) {
        self.line(&format!("\n{header}"));
        self.keys(keys);
    }

    fn keys(&mut self, keys: Vec<(&str, Written)>) {
        for (key, value) in keys {
            match value {
                Written::Value(value) => self.line(&format!("{key} = {value}")),
                Written::List(items) => self.list(key, &items),
            }
        }
    }

    /// Writes `key = [ ... ]`, wrapped.
    fn list(&mut self, key: &str, items: &[String]) {
        let one = format!("{key} = [{}]", items.join(", "));
        if one.len() <= WIDTH {
            return self.line(&one);
        }
        self.line(&format!("{key} = ["));
        let mut line = String::from("   ");
        for item in items {
            if line.len() + item.len() + 2 > WIDTH {
                self.line(&line);
                line = String::from("   ");
            }
            write!(line, " {item},").unwrap_or_default();
        }
        self.line(&line);
        self.line("]");
    }
}
