//! The control interface of a world's server, as seen by programs outside: available or not, and
//! another one after a restart.

use std::io;
use std::sync::{Arc, Mutex};

use headtime_serve::control::socket::Socket;
use headtime_serve::internals::control::rpc::over;
use headtime_serve::internals::control::service::Service;
use headtime_serve::net::Stream;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::network::{Fate, Wire, connection_in_pieces};
use super::process::Process;

/// The destination of connections; none while no server listens.
#[derive(Clone)]
pub struct Door(Arc<Mutex<Inner>>);

struct Inner {
    rng: Xoshiro256PlusPlus,
    server: Option<UnboundedSender<io::Result<Wire>>>,
    open: Vec<Fate>,
}

impl Door {
    /// Creates a door without a server. Connections transfer data in random pieces.
    pub fn new(rng: Xoshiro256PlusPlus) -> Door {
        Door(Arc::new(Mutex::new(Inner { rng, server: None, open: Vec::new() })))
    }

    /// Returns the address for programs.
    pub fn socket(&self) -> Socket {
        let door = self.clone();
        Socket::in_memory("control", move || door.connect())
    }

    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let mut inner = self.0.lock().unwrap();
        let (client, wire, fate) = connection_in_pieces(Xoshiro256PlusPlus::seed_from_u64(inner.rng.next_u64()));
        let heard = inner.server.as_ref().is_some_and(|server| server.send(Ok(wire)).is_ok());
        if !heard {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        inner.open.retain(|fate| !fate.is_cut());
        inner.open.push(fate);
        Ok(Box::new(client))
    }

    /// A server starts to listen.
    pub fn open(&self, service: Service, process: &Process) {
        let (server, connections) = unbounded_channel();
        self.0.lock().unwrap().server = Some(server);
        let connections = UnboundedReceiverStream::new(connections);
        process.spawn(over(service, connections, std::future::pending()));
    }

    /// The server ends, and all connections with it.
    pub fn shut(&self) {
        let mut inner = self.0.lock().unwrap();
        inner.server = None;
        inner.open.drain(..).for_each(|fate| fate.cut());
    }

    /// Applies a change to each connection.
    pub fn all(&self, becomes: impl Fn(&Fate)) {
        self.0.lock().unwrap().open.iter().filter(|fate| !fate.is_cut()).for_each(becomes);
    }
}
