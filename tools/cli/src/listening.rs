//! Listens on a port that an option names.

use std::{io::ErrorKind, net::SocketAddr};

use tokio::net::TcpListener;

use crate::exit::Usage;

/// Listens at an address; port 0 takes a free port. The option names the port in the error.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Usage> {
    let port = address.port();
    TcpListener::bind(address).await.map_err(|error| {
        Usage(match error.kind() {
            ErrorKind::AddrInUse => format!("port {port} is in use: stop what uses it, or give another {option}"),
            _ => format!("cannot listen on {address}: {error}: give another {option}"),
        })
    })
}
