//! Integration tests of `headtime-sim`: one program, one module per subject.

mod admission;
mod against_the_drive;
mod arrivals;
mod background;
mod beside_a_scan;
mod beside_streams;
mod common;
mod documentation;
mod filling_storm;
mod hostile_traces;
mod in_order;
mod in_order_depth;
mod joint;
mod other_cache;
mod promoted;
mod recordings;
mod simulation;
mod startup_recorded;
mod stragglers;
mod stream_qualities;
mod streams;
mod validation;
mod write_cache;
mod write_policy;
