//! Integration tests of `headtime-serve`: one program, one module per subject.

mod all_at_once;
mod applying;
mod apps;
mod backup;
mod cached_export;
#[path = "../../examples/client/mod.rs"]
mod client;
mod conform;
mod conformance;
mod copy;
mod copy_faults;
mod copy_pace;
mod deaf;
mod destage;
mod destaging;
mod engine_background;
mod engine_end;
mod engine_faults;
mod held_units;
mod hidden_cache;
mod large_scrub;
mod layout_copies;
mod limits;
mod parts;
mod queue_order;
mod reorganise;
mod rig;
mod scrub;
mod streams;
mod streams_and_tasks;
mod timeouts;
mod tls;
mod weights;
