//! Idle processors kept out of sleep states.
//!
//! An idle processor sleeps, the deeper the longer it is idle, and takes some tens of microseconds
//! to wake up, more on a virtual machine. A completion reaches its waiting thread later by that
//! varying time. While a latency limit is requested (the kernel's `pm_qos_interface` document),
//! idle processors poll for work instead, which costs power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::sys::Sys;

/// File in `/dev` for the request, which holds while the file is open.
const DEVICE: &str = "cpu_dma_latency";

/// Request that processors stay awake, held until dropped.
#[derive(Debug)]
pub struct Awake(#[allow(dead_code, reason = "open is all that it has to be")] File);

impl Awake {
    /// Requests a wake-up latency of zero.
    ///
    /// # Errors
    /// The process lacks the permission, which normally only root has, or the kernel has no such
    /// file.
    pub fn hold(sys: &Sys) -> io::Result<Awake> {
        let mut file = OpenOptions::new().write(true).open(sys.dev.join(DEVICE))?;
        // The wake-up latency in microseconds, a native-endian 32-bit number.
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(Awake(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_latency_of_zero_is_requested_and_a_missing_device_is_reported() {
        let root = Scratch::new("awake");
        let sys = Sys::below(root.path());
        assert_eq!(Awake::hold(&sys).expect_err("it is not there").kind(), io::ErrorKind::NotFound);
        let asked = root.file("dev/cpu_dma_latency", "");
        let awake = Awake::hold(&sys).expect("it can be written");
        assert_eq!(std::fs::read(&asked).expect("it is there"), [0; 4]);
        drop(awake);
    }
}
