//! `headtime`, the only binary. Without the feature `full` its only command is the demo.

// Doc comments of commands and flags are their help, in which brackets are optional parts.
#![allow(rustdoc::broken_intra_doc_links)]
#![cfg_attr(
    not(feature = "full"),
    allow(dead_code, unused_imports, reason = "the demo uses a part of what commands share")
)]

#[cfg(feature = "full")]
mod background;
mod cmd;
#[cfg(feature = "full")]
mod control_socket;
#[cfg(feature = "full")]
mod drive;
mod failure;
mod figures;
#[cfg(feature = "full")]
mod interrupt;
mod log;
#[cfg(feature = "full")]
mod nbd_uri;
#[cfg(feature = "full")]
mod promises;
#[cfg(feature = "full")]
mod running;
mod screen;
#[cfg(feature = "full")]
mod words;

use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
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
    #[cfg(feature = "full")]
    Profiles(cmd::profiles::Profiles),
    #[cfg(feature = "full")]
    Simulate(Box<cmd::simulate::Simulate>),
    #[cfg(feature = "full")]
    Sweep(cmd::sweep::Sweep),
    #[cfg(feature = "full")]
    Fleet(cmd::fleet::Fleet),
    #[cfg(feature = "full")]
    Validate(cmd::validate::Validate),
    #[cfg(feature = "full")]
    Admit(cmd::admit::Admit),
    #[cfg(feature = "full")]
    Characterize(Box<cmd::characterize::Characterize>),
    #[cfg(feature = "full")]
    Reproduce(cmd::reproduce::Reproduce),
    #[cfg(feature = "full")]
    Load(cmd::load::Load),
    #[cfg(feature = "full")]
    Replay(cmd::replay::Replay),
    #[cfg(feature = "full")]
    Disk(cmd::disk::Disk),
    #[cfg(feature = "full")]
    Fault(cmd::fault::Fault),
    #[cfg(feature = "full")]
    Serve(cmd::serve::Serve),
    #[cfg(feature = "full")]
    Scrub(cmd::scrub::Scrub),
    #[cfg(feature = "full")]
    Search(cmd::search::Search),
    #[cfg(feature = "full")]
    Backup(cmd::backup::Backup),
    #[cfg(feature = "full")]
    Copy(cmd::copy::Copy),
    #[cfg(feature = "full")]
    Reorganise(cmd::reorganise::Reorganise),
    #[cfg(feature = "full")]
    Task(cmd::task::Task),
    #[cfg(feature = "full")]
    Attach(cmd::attach::Attach),
    #[cfg(feature = "full")]
    Detach(cmd::attach::Detach),
    #[cfg(feature = "full")]
    Top(cmd::top::Top),
    #[cfg(feature = "full")]
    Stream(cmd::stream::Stream),
    #[cfg(feature = "full")]
    Destage(cmd::destage::Destage),
    #[cfg(feature = "full")]
    Completions(cmd::completions::Completions),
    #[cfg(feature = "full")]
    Manual(cmd::manual::Manual),
}

impl Cmd {
    /// The log level on stderr.
    fn logs(&self) -> log::Level {
        match self {
            #[cfg(feature = "full")]
            Cmd::Disk(a) => a.log.level,
            #[cfg(feature = "full")]
            Cmd::Serve(a) => a.log.level,
            #[cfg(feature = "full")]
            Cmd::Destage(a) => a.log.level,
            _ => log::Level::Info,
        }
    }

    /// Returns whether the command handles signals itself and ends in good order: servers,
    /// background applications, and commands that must restore the terminal.
    fn ends_in_order(&self) -> bool {
        match self {
            #[cfg(feature = "full")]
            Cmd::Characterize(_)
            | Cmd::Disk(_)
            | Cmd::Serve(_)
            | Cmd::Scrub(_)
            | Cmd::Search(_)
            | Cmd::Backup(_)
            | Cmd::Copy(_)
            | Cmd::Reorganise(_)
            | Cmd::Replay(_)
            | Cmd::Task(_)
            | Cmd::Destage(_)
            | Cmd::Fleet(_)
            | Cmd::Stream(_)
            | Cmd::Sweep(_)
            | Cmd::Top(_) => true,
            _ => false,
        }
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
        #[cfg(feature = "full")]
        Cmd::Profiles(a) => cmd::profiles::run(a),
        #[cfg(feature = "full")]
        Cmd::Simulate(a) => cmd::simulate::run(a),
        #[cfg(feature = "full")]
        Cmd::Sweep(a) => cmd::sweep::run(a),
        #[cfg(feature = "full")]
        Cmd::Fleet(a) => cmd::fleet::run(a),
        #[cfg(feature = "full")]
        Cmd::Validate(a) => cmd::validate::run(a),
        #[cfg(feature = "full")]
        Cmd::Admit(a) => cmd::admit::run(a),
        #[cfg(feature = "full")]
        Cmd::Characterize(a) => cmd::characterize::run(a),
        #[cfg(feature = "full")]
        Cmd::Reproduce(a) => cmd::reproduce::run(a),
        #[cfg(feature = "full")]
        Cmd::Load(a) => cmd::load::run(a),
        #[cfg(feature = "full")]
        Cmd::Replay(a) => cmd::replay::run(a),
        #[cfg(feature = "full")]
        Cmd::Disk(a) => cmd::disk::run(a),
        #[cfg(feature = "full")]
        Cmd::Fault(a) => cmd::fault::run(a),
        #[cfg(feature = "full")]
        Cmd::Serve(a) => cmd::serve::run(a),
        #[cfg(feature = "full")]
        Cmd::Scrub(a) => cmd::scrub::run(a),
        #[cfg(feature = "full")]
        Cmd::Search(a) => cmd::search::run(a),
        #[cfg(feature = "full")]
        Cmd::Backup(a) => cmd::backup::run(a),
        #[cfg(feature = "full")]
        Cmd::Copy(a) => cmd::copy::run(a),
        #[cfg(feature = "full")]
        Cmd::Reorganise(a) => cmd::reorganise::run(a),
        #[cfg(feature = "full")]
        Cmd::Task(a) => cmd::task::run(a),
        #[cfg(feature = "full")]
        Cmd::Attach(a) => cmd::attach::attach(a),
        #[cfg(feature = "full")]
        Cmd::Detach(a) => cmd::attach::detach(a),
        #[cfg(feature = "full")]
        Cmd::Top(a) => cmd::top::run(a),
        #[cfg(feature = "full")]
        Cmd::Stream(a) => cmd::stream::run(a),
        #[cfg(feature = "full")]
        Cmd::Destage(a) => cmd::destage::run(a),
        #[cfg(feature = "full")]
        Cmd::Completions(a) => cmd::completions::run(a, Cli::command()),
        #[cfg(feature = "full")]
        Cmd::Manual(a) => cmd::manual::run(a, Cli::command()),
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
