//! Integration tests of `headtime-nbd`: one program, one module per subject.

mod client;
mod corpus;
mod fragments;
mod fuzz_body;
mod limits;
mod negotiation;
mod transmission;
