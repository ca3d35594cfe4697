//! A database that is further away: what it answers comes later, as over a network, and takes nobody's processor time.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Bytes that are handed on at once.
const CHUNK_BYTES: usize = 64 * 1_024;

/// Hands connections on to the database, and holds each answer back for so long.
pub(crate) async fn serve(listener: TcpListener, database: SocketAddr, latency: Duration) -> std::io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(database).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        // A connection has one request at a time, so the first bytes behind a request begin its answer.
        let is_asked = Arc::new(AtomicBool::new(false));
        tokio::spawn(asks(from_client, to_server, Arc::clone(&is_asked)));
        tokio::spawn(answers(from_server, to_client, is_asked, latency));
    }
}

async fn asks(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_asked: Arc<AtomicBool>) -> std::io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            return to.shutdown().await;
        }
        is_asked.store(true, Ordering::Release);
        to.write_all(&chunk).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_asked: Arc<AtomicBool>,
    latency: Duration,
) -> std::io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            return to.shutdown().await;
        }
        if is_asked.swap(false, Ordering::AcqRel) {
            tokio::time::sleep(latency).await;
        }
        to.write_all(&chunk).await?;
    }
}
