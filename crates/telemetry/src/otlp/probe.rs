//! A look at the collector before anything is sent to it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::endpoint::Endpoint;

/// Returns why no connection to the collector can be made, if so, within `limit`.
///
/// Exporters connect when they have something to send; without a look beforehand a wrong endpoint would show only at
/// the end of a run.
pub(crate) fn probe(endpoint: &Endpoint, limit: Duration) -> Option<String> {
    let (host, port) = (endpoint.host.clone(), endpoint.port);
    let (sender, outcome) = mpsc::channel();
    // On a thread, for the resolver knows no time-out. A thread that comes too late ends unheard.
    let started = thread::Builder::new().name("stepline-otlp-probe".to_owned()).spawn(move || {
        let _unheard = sender.send(connect(&host, port, limit));
    });
    match started {
        Err(error) => Some(format!("cannot start a thread to look: {error}")),
        Ok(_) => match outcome.recv_timeout(limit) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {limit:?}")),
        },
    }
}

fn connect(host: &str, port: u16, limit: Duration) -> io::Result<()> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(_) => return Ok(()),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
