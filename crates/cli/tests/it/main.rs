//! Integration tests of `headtime`: one program, one module per subject.

mod characterize;
mod commands;
mod common;
mod documents;
mod guarantees;
mod inputs;
mod output;
mod profiles_compare;
mod qualities;
mod studies;
mod usage;
