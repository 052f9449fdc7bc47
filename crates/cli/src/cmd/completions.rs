//! `headtime completions`: completions of commands and flags for shells.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::screen;

/// Print a shell's completions of commands and flags
///
/// For the current user they belong in these files. bash:
/// ~/.local/share/bash-completion/completions/headtime; zsh: _headtime in a directory of $fpath;
/// fish: ~/.config/fish/completions/headtime.fish.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completions of `program`.
pub fn run(args: &Completions, mut program: Command) -> Result<(), Failure> {
    // Not to stdout directly: the library panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program, "headtime", &mut text);
    screen::print(&String::from_utf8_lossy(&text))
}
