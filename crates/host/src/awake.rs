//! Processors that stay awake.
//!
//! A processor that has nothing to do sleeps, the deeper the longer, and takes some tens of
//! microseconds to get up, more on a virtual machine: whoever waits for a disk hears of its answer
//! that much later, now more and now less. While the kernel is told that this is too much (its
//! `pm_qos_interface` document), idle processors keep looking for work instead, which costs power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::sys::Sys;

/// Where in `/dev` the kernel is told: it holds as long as the file is open.
const DEVICE: &str = "cpu_dma_latency";

/// Processors are awake until this is dropped.
#[derive(Debug)]
pub struct Awake(#[allow(dead_code, reason = "open is all that it has to be")] File);

impl Awake {
    /// Keeps them awake.
    ///
    /// # Errors
    /// Only root may, as a rule; or this kernel does not know of it.
    pub fn hold(sys: &Sys) -> io::Result<Awake> {
        let mut file = OpenOptions::new().write(true).open(sys.dev.join(DEVICE))?;
        // Microseconds that it may take to get up, as the kernel's own 32 bits.
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(Awake(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn no_microsecond_is_asked_for_and_where_nobody_can_be_asked_that_is_said() {
        let root = Scratch::new("awake");
        let sys = Sys::below(root.path());
        assert_eq!(Awake::hold(&sys).expect_err("it is not there").kind(), io::ErrorKind::NotFound);
        let asked = root.file("dev/cpu_dma_latency", "");
        let awake = Awake::hold(&sys).expect("it can be written");
        assert_eq!(std::fs::read(&asked).expect("it is there"), [0; 4]);
        drop(awake);
    }
}
