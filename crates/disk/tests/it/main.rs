//! Integration tests of `headtime-disk`: one program, one module per subject.

mod disksim_load;
mod disksim_maps;
mod disksim_responses;
mod drive_against_slow;
mod drive_behaviour;
mod drive_random;
mod drive_write_cache;
mod geometry_faults;
mod geometry_hand_checks;
mod geometry_large;
mod geometry_properties;
mod profile_builtin;
mod profile_disksim;
mod profile_known;
mod profile_limits;
mod profile_round_trip;
mod profile_toml;
