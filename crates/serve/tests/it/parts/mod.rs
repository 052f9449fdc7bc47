//! Parts of a server for tests in tokio's time: the engine's queue, a control service, and messages
//! of an NBD client.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io;
use std::sync::Arc;

use headtime_serve::engine::inbox::{Inbox, Outbox};
use headtime_serve::engine::messages::EngineMessage;
use headtime_serve::internals::control::caches::Cached;
use headtime_serve::internals::control::layouts::Layouts;
use headtime_serve::internals::control::service::Service;
use headtime_serve::net::budget::Budget;
use headtime_serve::net::exports::Exports;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Forwards messages to a task, without a thread.
pub fn bridged(told: Inbox<EngineMessage>) -> UnboundedReceiver<EngineMessage> {
    let (send, tellings) = unbounded_channel();
    tokio::task::spawn_local(async move {
        loop {
            while let Some(message) = told.take() {
                let _ = send.send(message);
            }
            told.prepare_park();
            match told.take() {
                Some(message) => _ = send.send(message),
                None => told.notified().await,
            }
            told.unpark();
        }
    });
    tellings
}

/// Returns the control service of a server whose exports `cached` have write caches.
pub fn service(
    exports: &Exports,
    engine: &Outbox<EngineMessage>,
    budget: &Budget,
    sectors: u64,
    cached: &[u32],
) -> Service {
    Service {
        disk: "a disk".into(),
        disk_id: "one".into(),
        sectors,
        exports: exports.clone(),
        fills: true,
        engine: engine.clone(),
        budget: budget.clone(),
        names: Arc::default(),
        streams: None,
        cached: Cached::new(cached.iter().copied()),
        layouts: Layouts::default(),
        cache: None,
    }
}

/// Opens an export; returns its size in bytes.
pub async fn negotiate(stream: &mut DuplexStream, export: &str) -> io::Result<u64> {
    stream.read_exact(&mut [0; 18]).await?;
    // Fixed newstyle, no zeros; NBD_OPT_EXPORT_NAME.
    let mut hello = 3u32.to_be_bytes().to_vec();
    hello.extend_from_slice(b"IHAVEOPT");
    hello.extend_from_slice(&1u32.to_be_bytes());
    hello.extend_from_slice(&(export.len() as u32).to_be_bytes());
    hello.extend_from_slice(export.as_bytes());
    stream.write_all(&hello).await?;
    let mut opened = [0; 10];
    stream.read_exact(&mut opened).await?;
    Ok(u64::from_be_bytes(opened[..8].try_into().expect("eight bytes")))
}

/// Returns the header of a request.
pub fn request(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
    request.extend_from_slice(&flags.to_be_bytes());
    request.extend_from_slice(&kind.to_be_bytes());
    request.extend_from_slice(&cookie.to_be_bytes());
    request.extend_from_slice(&offset.to_be_bytes());
    request.extend_from_slice(&length.to_be_bytes());
    request
}
