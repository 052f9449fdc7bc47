//! `headtime`, the only binary.

// Doc comments of commands and flags are their help, in which brackets are optional parts.
#![allow(rustdoc::broken_intra_doc_links)]

mod background;
mod cmd;
mod control_socket;
mod drive;
mod failure;
mod figures;
mod grounds;
mod log;
mod nbd_uri;
mod promises;
mod running;
mod screen;
mod words;

use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use failure::Failure;

/// A disk I/O scheduler with a model of the head's position
#[derive(Debug, Parser)]
#[command(name = "headtime", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 success, 1 a check failed, 2 bad usage or bad input, 130 stopped by a signal (Ctrl-C)."
)]
struct Cli {
    #[command(subcommand)]
    command: Cmd,
}

#[derive(Debug, Subcommand)]
enum Cmd {
    Demo(cmd::demo::Demo),
    Profiles(cmd::profiles::Profiles),
    Simulate(Box<cmd::simulate::Simulate>),
    Validate(cmd::validate::Validate),
    Admit(cmd::admit::Admit),
    Characterize(Box<cmd::characterize::Characterize>),
    Reproduce(cmd::reproduce::Reproduce),
    Load(cmd::load::Load),
    Disk(cmd::disk::Disk),
    Serve(cmd::serve::Serve),
    Scrub(cmd::scrub::Scrub),
    Backup(cmd::backup::Backup),
    Task(cmd::task::Task),
    Attach(cmd::attach::Attach),
    Detach(cmd::attach::Detach),
    Top(cmd::top::Top),
    Stream(cmd::stream::Stream),
    Destage(cmd::destage::Destage),
}

impl Cmd {
    /// The log level on stderr.
    fn logs(&self) -> log::Level {
        match self {
            Cmd::Disk(a) => a.log.level,
            Cmd::Serve(a) => a.log.level,
            Cmd::Destage(a) => a.log.level,
            _ => log::Level::Info,
        }
    }

    /// Returns whether the command handles signals itself and ends in good order: servers,
    /// background applications, and commands that must restore the terminal.
    fn ends_in_order(&self) -> bool {
        matches!(
            self,
            Cmd::Characterize(_)
                | Cmd::Disk(_)
                | Cmd::Serve(_)
                | Cmd::Scrub(_)
                | Cmd::Backup(_)
                | Cmd::Task(_)
                | Cmd::Destage(_)
                | Cmd::Stream(_)
                | Cmd::Top(_)
        )
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let _log = log::begin(log::Level::Info);
            return refused(&e);
        }
    };
    let _log = log::begin(cli.command.logs());
    // By default the kernel kills a process whose file reaches the size limit (`ulimit -f`); with a
    // handler the write fails instead, as on a full disk.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    if !cli.command.ends_in_order() {
        // The handler runs on a thread of its own, so it is not restricted to async-signal-safe
        // calls. Without a handler the program still works, but leaves temporary files behind when
        // it is stopped.
        let _ = ctrlc::set_handler(|| {
            let removed = match headtime_host::whole_file::discard_unfinished() {
                0 => "",
                1 => "; an unfinished file was removed",
                _ => "; unfinished files were removed",
            };
            // The newline ends a line with ^C or a progress bar.
            screen::last_words(&format!("\nheadtime: stopped by a signal{removed}\n"));
            std::process::exit(130);
        });
    }
    let done = match &cli.command {
        Cmd::Demo(a) => cmd::demo::run(a),
        Cmd::Profiles(a) => cmd::profiles::run(a),
        Cmd::Simulate(a) => cmd::simulate::run(a),
        Cmd::Validate(a) => cmd::validate::run(a),
        Cmd::Admit(a) => cmd::admit::run(a),
        Cmd::Characterize(a) => cmd::characterize::run(a),
        Cmd::Reproduce(a) => cmd::reproduce::run(a),
        Cmd::Load(a) => cmd::load::run(a),
        Cmd::Disk(a) => cmd::disk::run(a),
        Cmd::Serve(a) => cmd::serve::run(a),
        Cmd::Scrub(a) => cmd::scrub::run(a),
        Cmd::Backup(a) => cmd::backup::run(a),
        Cmd::Task(a) => cmd::task::run(a),
        Cmd::Attach(a) => cmd::attach::attach(a),
        Cmd::Detach(a) => cmd::attach::detach(a),
        Cmd::Top(a) => cmd::top::run(a),
        Cmd::Stream(a) => cmd::stream::run(a),
        Cmd::Destage(a) => cmd::destage::run(a),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help and version to stdout, where write errors count; anything else is bad usage.
fn refused(e: &clap::Error) -> ExitCode {
    let asked_for = matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if let Some(line) = figures::fault(e) {
        return Failure::Input(line).report();
    }
    if !asked_for {
        let _ = e.print();
        return ExitCode::from(2);
    }
    match screen::print(&e.render().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(failure),
    }
}
