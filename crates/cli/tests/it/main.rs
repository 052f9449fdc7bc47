//! Integration tests of `headtime`: one program, one module per subject.

mod characterize;
mod commands;
mod common;
mod documents;
mod guarantees;
mod inputs;
mod manual;
mod output;
mod profiles_compare;
mod qualities;
mod studies;
#[path = "../../../host/tests/support/mod.rs"]
mod support;
mod usage;
