//! `headtime manual`: the help of all commands as pages for `man`.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use headtime_host::whole_file;

use crate::failure::Failure;
use crate::figures;

/// Write the help of all commands as pages for `man`, one file each: headtime.1, headtime-serve.1
/// and so on
#[derive(Debug, Args)]
pub struct Manual {
    /// The directory for the pages; created if it does not exist
    #[arg(short, long, value_name = "DIR", value_parser = figures::output())]
    output: PathBuf,
}

/// Writes the pages of `program` and of its commands.
pub fn run(args: &Manual, mut program: Command) -> Result<(), Failure> {
    whole_file::make_directory(&args.output)?;
    // Gives each command its full name, and the options that all of them have.
    program.build();
    write(&args.output, &program)
}

fn write(directory: &Path, command: &Command) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let mut page = Vec::new();
    // Without a date: the same version gives the same bytes.
    Man::new(command.clone()).render(&mut page).map_err(Failure::input)?;
    whole_file::write_whole(&directory.join(format!("{name}.1")), &page)?;
    // `help` is no command of its own: its pages would be those of the others.
    command.get_subcommands().filter(|c| c.get_name() != "help").try_for_each(|c| write(directory, c))
}
