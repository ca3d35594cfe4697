//! The embedded DynamoDB, served on an address of this machine for any AWS client.

pub(crate) mod access;
mod front;
mod index;

use std::{
    fs::{File, TryLockError},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::Context as _;
use dynoxide::Database;
use tokio::{sync::watch, task::JoinHandle};

use crate::listening::listen;

use access::Access;

/// Time between two deletions of expired items. The real service takes hours; a person at a laptop does not want to
/// wait.
const TIME_TO_LIVE_SWEEP: Duration = Duration::from_secs(2);

pub(crate) struct Embedded {
    /// URL that clients use.
    pub(crate) endpoint: String,
    tasks: Vec<JoinHandle<()>>,
    /// The lock file of the folder. The end of the process also unlocks it.
    _lock: Option<File>,
}

impl Embedded {
    /// Serves a database at an address to those that have access; port 0 takes a free port. The database is a file in
    /// the folder, or in memory without one.
    pub(crate) async fn start(
        address: SocketAddr,
        access: Access,
        folder: Option<&Path>,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<Self> {
        let listener = listen(address, "--port").await?;
        let lock = folder.map(lock).transpose()?;
        let database = open(folder)?;
        let endpoint = format!("http://{}", reached(listener.local_addr()?));
        let swept = database.clone();
        let access = Access { bound: Some(address.ip()), ..access };
        let mut stopped = stop.clone();
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.wait_for(|stop| *stop).await) };
            if let Err(error) = front::serve(listener, database, access, stopped).await {
                tracing::error!(%error, "the embedded database stopped");
            }
        });
        let sweeping = tokio::spawn(sweep(swept, stop));
        Ok(Self { endpoint, tasks: vec![serving, sweeping], _lock: lock })
    }

    /// Waits until the database has stopped, so that its file is closed.
    pub(crate) async fn stopped(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "the embedded database did not stop cleanly");
            }
        }
    }
}

/// The address by which this machine reaches a bound address: loopback if it is unspecified, such as 0.0.0.0.
fn reached(bound: SocketAddr) -> SocketAddr {
    let host = match bound.ip() {
        IpAddr::V4(host) if host.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(host) if host.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host => host,
    };
    SocketAddr::new(host, bound.port())
}

/// Creates the folder, and locks it: two services on one database would miss each other's writes.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let name = folder.display();
    if folder.is_file() {
        anyhow::bail!("{name} is a file: --data names a folder");
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {name}"))?;
    let file = File::create(folder.join("lock")).with_context(|| format!("cannot write in the folder {name}"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            anyhow::bail!("another `ripple dev` uses the folder {name}: stop it, or give another --data")
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock the folder {name}")),
    }
}

fn open(folder: Option<&Path>) -> anyhow::Result<Database> {
    let path = match folder {
        // A unique name, so that a second connection can open the same memory.
        None => format!("file:ripple-{:016x}?mode=memory&cache=shared", rand::random::<u64>()),
        Some(folder) => folder.join("dynamodb.sqlite").to_string_lossy().into_owned(),
    };
    let database = Database::new(&path).map_err(|error| {
        tracing::debug!(%error, "the database does not open");
        anyhow::anyhow!(
            "cannot open the database {path}: it must be a file of `ripple dev`; move it, or give another --data"
        )
    })?;
    if let Err(error) = index::add(&path) {
        tracing::warn!(%error, "the embedded database gets slower with every write: its stream has no index");
    }
    Ok(database)
}

/// Deletes expired items, as DynamoDB does.
async fn sweep(database: Database, mut stop: watch::Receiver<bool>) {
    loop {
        if tokio::time::timeout(TIME_TO_LIVE_SWEEP, stop.changed()).await.is_ok() {
            return;
        }
        let database = database.clone();
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "expired items could not be deleted");
        }
    }
}
