//! Integration tests of `headtime-host`: one program, one module per subject.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod attaching;
mod devices;
