//! The process of the database: the one that `ripple dev` embeds, on a free port of the loopback address.

use dynoxide::{Database, server::serve_on};
use tokio::{io::AsyncReadExt as _, net::TcpListener};

#[path = "../../src/embedded/index.rs"]
mod index;

/// Serves until the process that started it is gone.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let path = format!("file:fan-out-{}?mode=memory&cache=shared", std::process::id());
    let database = Database::new(&path)?;
    index::add(&path)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    tokio::spawn(serve_on(listener, database));
    // Nothing is ever sent; it ends with the other end of the pipe.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
