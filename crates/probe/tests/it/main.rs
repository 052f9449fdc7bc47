//! Integration tests of `headtime-probe`: one program, one module per subject.

mod characterize;
mod common;
mod disksim_drives;
mod drawn;
mod habits;
mod hostile;
mod journal;
mod layouts;
mod map;
mod noisy;
mod overheads;
mod seeks;
mod settling;
mod spindle;
mod verify;
mod writes;
