//! Integration tests of `headtime-lab`: one program, one module per subject.

mod claims;
mod status;
