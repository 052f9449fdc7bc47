//! How the program can end badly, and the exit status of each.

use std::process::ExitCode;

use headtime_lab::output::WriteError;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Everything was done, and a check did not pass: status 1. What failed has been printed.
    Check,
    /// Bad usage or bad input, or output that cannot be written: status 2, and one line on stderr.
    Input(String),
    /// A signal asked it to stop, and it did so in good order: status 130. What is to be said has
    /// been.
    Stopped,
    /// Whoever read our output has gone: nothing to say, nobody to say it to.
    Pipe,
}

impl Failure {
    /// Bad usage or input, from anything that can be printed.
    pub fn input(why: impl std::fmt::Display) -> Failure {
        Failure::Input(why.to_string())
    }

    /// Says what is to be said, and gives the status to leave with.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Check => ExitCode::from(1),
            Failure::Stopped => ExitCode::from(130),
            Failure::Pipe => ExitCode::SUCCESS,
            Failure::Input(why) => {
                // One line whatever the cause says: scripts and log files read it too.
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
