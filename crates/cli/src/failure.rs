//! The ways in which the program can fail, and their exit statuses.

use std::process::ExitCode;

use headtime_host::whole_file::WriteError;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// A check did not pass: status 1. The result has been printed.
    Check,
    /// Bad usage or bad input, or output that cannot be written: status 2, and one line on stderr.
    Input(String),
    /// Orderly stop after a signal: status 130. All output has been written.
    Stopped,
    /// The reader of stdout has closed the pipe: nothing more is printed.
    Pipe,
}

impl Failure {
    /// Builds `Input` from anything that can be printed.
    pub fn input(why: impl std::fmt::Display) -> Failure {
        Failure::Input(why.to_string())
    }

    /// Prints the message and returns the exit status.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Check => ExitCode::from(1),
            Failure::Stopped => ExitCode::from(130),
            Failure::Pipe => ExitCode::SUCCESS,
            Failure::Input(why) => {
                // Always one line, for scripts and log files.
                let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
                tracing::error!("{line}");
                ExitCode::from(2)
            }
        }
    }
}

impl From<WriteError> for Failure {
    fn from(e: WriteError) -> Failure {
        Failure::input(e)
    }
}
