//! The pages of a server for programs and people on this machine: metrics, and the live view.

use std::net::SocketAddr;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::{BACKGROUND_NICE, ServeError, on_own_threads};
use crate::control::service::Service as Interface;
use crate::net::address::{Address, Listening};
use crate::server::Service;
use crate::web::WebAt;
use crate::{loopback, metrics, web};

/// Listening sockets, each with its threads, which serve nothing yet.
pub(super) struct Pages {
    metrics: Option<(Runtime, Listening)>,
    web: Option<(Runtime, Listening, WebAt)>,
}

impl Pages {
    /// Listens.
    pub(super) fn listen(service: &Service) -> Result<Pages, ServeError> {
        let listen = |name, at: SocketAddr| on_own_threads(name, BACKGROUND_NICE, &Address::Tcp(at.to_string()));
        let metrics = service.metrics.map(|at| listen("headtime-metr", at)).transpose()?;
        let web = match &service.web {
            Some(at) => {
                let (own, listening) = listen("headtime-web", at.address)?;
                Some((own, listening, at.clone()))
            }
            None => None,
        };
        Ok(Pages { metrics, web })
    }

    /// Returns the ports of the metrics and of the live view.
    pub(super) fn ports(&self) -> (Option<u16>, Option<u16>) {
        let (metrics, web) = (self.metrics.as_ref(), self.web.as_ref());
        (metrics.and_then(|(_, l)| l.port()), web.and_then(|(_, l, _)| l.port()))
    }

    /// Serves until `ends` becomes true; returns the threads.
    pub(super) fn serve(self, interface: &Interface, ends: &watch::Receiver<bool>) -> Vec<Runtime> {
        let mut threads = Vec::new();
        if let Some((own, listening)) = self.metrics {
            let Interface { exports, engine, names, cached, .. } = interface.clone();
            let source = metrics::Source { exports, engine, names, cached };
            own.spawn(loopback::serve(source, listening, ends.clone()));
            threads.push(own);
        }
        if let Some((own, listening, at)) = self.web {
            own.spawn(loopback::serve(web::Source::new(at, interface.clone()), listening, ends.clone()));
            threads.push(own);
        }
        threads
    }
}
