//! How the program can end badly, and the exit status of each.

use std::io;
use std::process::ExitCode;

use headtime_lab::output::WriteError;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Everything was done, and a check did not pass: status 1. What failed has been printed.
    Check,
    /// Bad usage or bad input, or output that cannot be written: status 2, and one line on stderr.
    Input(String),
    /// Whoever read our output has gone: nothing to say, nobody to say it to.
    Pipe,
    /// A signal ended it, in good order: status 130.
    Stopped,
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
            Failure::Pipe => ExitCode::SUCCESS,
            Failure::Stopped => ExitCode::from(130),
            Failure::Input(why) => {
                // One line whatever the cause says: scripts and log files read it too.
                let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
                use io::Write;
                let _ = writeln!(io::stderr(), "headtime: {line}");
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
