//! The report of a characterisation, as text and as JSON.

use std::path::Path;

use headtime_host::whole_file;
use headtime_probe::{Finding, Found};
use serde::Serialize;

use super::pictures;
use crate::failure::Failure;
use crate::{screen, words};

/// The content of a report.
pub struct Report<'a> {
    /// The device as given on the command line.
    pub device: &'a str,
    /// The drive's title.
    pub title: &'a str,
    /// Path of its profile.
    pub profile: &'a Path,
    /// Capacity.
    pub sectors: u64,
    /// Sector size.
    pub sector_bytes: u32,
    /// Duration in the device's own time.
    pub seconds: f64,
    /// The findings.
    pub found: &'a Found,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Json<'a> {
    device: &'a str,
    title: &'a str,
    profile: String,
    sectors: u64,
    sector_bytes: u32,
    /// In the device's own time.
    seconds: f64,
    /// Whether 95% of random reads are predicted within 150 us.
    good: bool,
    findings: Vec<Told<'a>>,
    surprises: Surprises<'a>,
}

/// A finding as printed.
#[derive(Serialize)]
struct Told<'a> {
    what: &'a str,
    value: &'a str,
    how: &'a str,
    sure: &'a str,
}

#[derive(Serialize)]
struct Surprises<'a> {
    commands: u64,
    from_cache: u64,
    slow: u64,
    unreadable_count: u64,
    /// The first hundred.
    unreadable: &'a [u64],
}

impl<'a> Told<'a> {
    fn of(finding: &'a Finding) -> Told<'a> {
        let Finding { what, value, how, sure } = finding;
        Told { what, value, how, sure }
    }
}

impl Report<'_> {
    fn json(&self) -> Json<'_> {
        let s = &self.found.surprises;
        Json {
            device: self.device,
            title: self.title,
            profile: self.profile.display().to_string(),
            sectors: self.sectors,
            sector_bytes: self.sector_bytes,
            seconds: (self.seconds * 1e3).round() / 1e3,
            good: self.found.good,
            findings: self.found.findings.iter().map(Told::of).collect(),
            surprises: Surprises {
                commands: s.commands,
                from_cache: s.from_cache,
                slow: s.slow,
                unreadable_count: s.unreadable_count,
                unreadable: &s.unreadable,
            },
        }
    }

    /// Prints one JSON object on stdout.
    pub fn print_json(&self) -> Result<(), Failure> {
        screen::print_json(&self.json())
    }

    fn head(&self) -> String {
        let bytes = words::bytes(self.sectors * u64::from(self.sector_bytes));
        let commands = self.found.surprises.commands;
        format!(
            "{}: {} sectors of {} bytes ({bytes}), {commands} commands in {}",
            self.title,
            self.sectors,
            self.sector_bytes,
            words::time(self.seconds)
        )
    }

    /// Unexpected events of the run, one per line.
    fn surprises(&self) -> Vec<String> {
        let s = &self.found.surprises;
        let mut lines = Vec::new();
        if s.from_cache > 0 {
            lines.push(format!(
                "{} answers came from the cache where the media was asked for, and were asked again",
                s.from_cache
            ));
        }
        if s.slow > 0 {
            lines.push(format!(
                "{} answers took longer than a second: recalibrations, or another program's use",
                s.slow
            ));
        }
        if s.unreadable_count > 0 {
            let first: Vec<String> = s.unreadable.iter().take(8).map(u64::to_string).collect();
            let more = if s.unreadable_count > 8 { ", ..." } else { "" };
            lines.push(format!("{} reads failed, of sectors {}{more}", s.unreadable_count, first.join(", ")));
        }
        lines
    }

    /// The report as text for a terminal.
    pub fn text(&self) -> String {
        let mut rows = vec![["what", "found", "how sure", "how"].map(String::from).to_vec()];
        for f in &self.found.findings {
            rows.push(vec![f.what.into(), f.value.clone(), f.sure.clone(), f.how.clone()]);
        }
        let mut text = format!("{}\n\n{}", self.head(), screen::columns(&rows, &[]));
        let surprises = self.surprises();
        if !surprises.is_empty() {
            text += &format!("\n{}\n", surprises.join("\n"));
        }
        text + &format!("\nProfile: {}\n", self.profile.display())
    }

    /// Writes `findings.json`, `report.md` and its pictures.
    pub fn write(&self, directory: &Path) -> Result<(), Failure> {
        whole_file::make_directory(directory)?;
        let json = serde_json::to_string_pretty(&self.json()).map_err(Failure::input)? + "\n";
        whole_file::write_whole(&directory.join("findings.json"), json.as_bytes())?;
        let mut page =
            format!("# {}\n\n{}\n\n| what | found | how sure | how |\n|---|---|---|---|\n", self.title, self.head());
        for f in &self.found.findings {
            let cells = [f.what, &f.value, &f.sure, &f.how].map(|c| c.replace('|', "\\|"));
            page += &format!("| {} |\n", cells.join(" | "));
        }
        for line in self.surprises() {
            page += &format!("\n{line}\n");
        }
        for (file, what, svg) in pictures::of(&self.found.profile) {
            whole_file::write_whole(&directory.join(file), svg.as_bytes())?;
            page += &format!("\n## {what}\n\n![{what}]({file})\n");
        }
        whole_file::write_whole(&directory.join("report.md"), page.as_bytes())?;
        Ok(())
    }
}
