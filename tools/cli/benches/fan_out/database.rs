//! The process of the database: the one that `ripple dev` embeds, on a free port of the loopback address.

use std::time::Duration;

use dynoxide::{Database, server::serve_on};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

#[path = "../../src/embedded/index.rs"]
mod index;
#[path = "latency.rs"]
mod latency;

/// Serves until the process that started it is gone, with answers that come so much later.
pub(crate) async fn serve(latency: Duration) -> anyhow::Result<()> {
    let path = format!("file:fan-out-{}?mode=memory&cache=shared", std::process::id());
    let database = Database::new(&path)?;
    index::add(&path)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = listener.local_addr()?;
    tokio::spawn(serve_on(listener, database));
    if latency.is_zero() {
        println!("http://{near}");
    } else {
        let far = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", far.local_addr()?);
        tokio::spawn(latency::serve(far, near, latency));
    }
    // Nothing is ever sent; it ends with the other end of the pipe.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
