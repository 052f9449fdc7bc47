//! The tests with real clients.

mod applications;
mod attacks;
mod behaviour;
mod control_attacks;
mod copies;
mod crash;
mod devices;
mod kills_clients;
mod kills_destage;
mod live_view;
mod nbd_client;
mod power;
mod rates;
mod recording;
mod reorganised;
mod segments;
mod servers;
mod streams;
mod test_disk;
mod tools;
mod verified;
mod watching;

use servers::*;
