//! `ripple console`: serves pages about a table to a browser on this machine, until it is stopped.

use std::net::{Ipv4Addr, SocketAddr};

use console::Served;
use functions::logging;
use tokio::net::TcpListener;

use super::{
    LOG_FILTER,
    dev::{pages::design, stop_signal},
};
use crate::{
    args::console::ConsoleArgs,
    exit::{Completion, Usage, print},
    opened::{agreed, open_with_ledger},
};

pub(crate) async fn run(args: &ConsoleArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let opened = agreed(open_with_ledger(&args.connection).await?, &args.connection).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Usage(format!("cannot serve pages at {address}: {error}: give another --port")))?;
    print(&format!("console   http://{}", listener.local_addr()?));
    let stop = stop_signal()?;
    let design = design(args.connection.config.is_some(), &opened.schema, &opened.catalogue).await?;
    let served = Served { opened: opened.tables(), design, functions: None };
    tokio::select! {
        served = console::serve(served, listener) => served?,
        () = stop => {}
    }
    Ok(Completion::InStep)
}
