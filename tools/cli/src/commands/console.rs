//! `ripple console`: serves pages about a table to a browser on this machine, until it is stopped.

use std::net::Ipv4Addr;

use console::{ConsoleWrites, Served};
use design::Design;
use functions::logging;

use super::{LOG_FILTER, dev::stop_signal};
use crate::{
    args::ConsoleArgs,
    exit::{Completion, print},
    listening::listen,
    opened::{agreed, open_to_write, open_with_ledger},
};

pub(crate) async fn run(args: &ConsoleArgs) -> anyhow::Result<Completion> {
    logging::readable(LOG_FILTER);
    let connection = &args.writing.connection;
    let opened =
        if args.allow_writes { open_to_write(&args.writing).await? } else { open_with_ledger(connection).await? };
    let opened = agreed(opened, connection).await?;
    let listener = listen((Ipv4Addr::LOCALHOST, args.port).into(), "--port").await?;
    print(&format!("console   http://{}", listener.local_addr()?));
    let stop = stop_signal()?;
    let design = Design::declared((*opened.schema).clone(), (*opened.catalogue).clone());
    let writes = if args.allow_writes {
        ConsoleWrites::Allowed { place: connection.aws.then(|| opened.place()) }
    } else {
        let more = if connection.aws { " --yes" } else { "" };
        ConsoleWrites::Refused { allowed_by: format!("start it with --allow-writes{more}") }
    };
    let served = Served { opened: opened.tables(), design, writes, functions: None };
    tokio::select! {
        served = console::serve(served, listener) => served?,
        () = stop => {}
    }
    Ok(Completion::InStep)
}
