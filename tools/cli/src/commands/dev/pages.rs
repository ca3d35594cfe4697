//! The console of `ripple dev`: pages beside the database, with the flow of the functions that run in this process.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use aws_sdk_dynamodb::types::TableDescription;
use console::flow::Flow;
use engine::batch::Handled;
use functions::{config::Config, handler::Function};
use operate::tables::Deployment;
use store::dynamo::DynamoStore;
use stream::progress::Invocation;
use tokio::net::TcpListener;

use crate::{
    args::console::PORT,
    lines::Lines,
    opened::deployment,
    service::{Plan, Witness},
};

/// The console, about to serve.
pub(super) struct Pages {
    /// Where it is.
    pub(super) address: SocketAddr,
    listener: TcpListener,
    opened: Deployment<DynamoStore>,
    /// Nothing where the functions run in another process.
    flow: Option<Arc<Flow>>,
}

impl Pages {
    /// Listens for the console at its usual port, or at any that is free when another program has that.
    pub(super) async fn open(
        plan: &Plan<'_>,
        config: &Config,
        tables: &[TableDescription],
        lines: Lines,
    ) -> io::Result<(Told, Self)> {
        let at = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let listener = match at(PORT).await {
            Ok(listener) => listener,
            Err(_) => at(0).await?,
        };
        let flow = Arc::new(Flow::new(&plan.schema, &plan.catalogue));
        let told = Told { lines, flow: Arc::clone(&flow) };
        let flow = plan.functions.is_none().then_some(flow);
        let declared = (&plan.schema, &plan.catalogue);
        let tables: Vec<&TableDescription> = tables.iter().collect();
        let opened = deployment(declared, &plan.store, config, &tables, &plan.streams, false);
        Ok((told, Self { address: listener.local_addr()?, listener, opened, flow }))
    }

    /// Serves until the listener fails, and gives why.
    pub(super) async fn serve(self) -> anyhow::Error {
        match console::serve(self.opened, self.flow, self.listener).await {
            Ok(()) => anyhow::anyhow!("the console ended"),
            Err(error) => error.into(),
        }
    }
}

/// Tells the terminal and the console what the functions do.
pub(super) struct Told {
    pub(super) lines: Lines,
    pub(super) flow: Arc<Flow>,
}

impl Witness for Told {
    fn handled(&self, function: Function, handled: &Handled, elapsed: Duration) {
        self.flow.take_in(&function.to_string(), handled, elapsed);
        self.lines.handled(function, handled, elapsed);
    }

    fn invoked(&self, invocation: &Invocation) {
        self.lines.invoked(invocation);
    }

    fn responds(&self, is_so: bool) {
        self.lines.responds(is_so);
    }

    fn trouble(&self, line: &str) {
        self.lines.trouble(line);
    }
}
