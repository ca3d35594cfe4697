//! The console of `ripple dev`: pages beside the database, with the flow of the functions that run in this process.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use aws_sdk_dynamodb::types::TableDescription;
use console::{
    ConsoleWrites, Served,
    flow::{Flow, unanswered::UnansweredInvocation},
    step::StepGate,
};
use derive::{catalogue::Catalogue, schema::Schema};
use design::{
    Design,
    shipped::{self, ShippedError},
};
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
    design: Design,
    /// Nothing where the functions run in another process.
    flow: Option<Arc<Flow>>,
}

impl Pages {
    /// Listens for the console at its usual port, or at any that is free when another program has that.
    pub(super) async fn open(
        plan: &Plan<'_>,
        design: Design,
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
        Ok((told, Self { address: listener.local_addr()?, listener, opened, design, flow }))
    }

    /// Serves until the listener fails, and gives why.
    pub(super) async fn serve(self, gate: Arc<StepGate<DynamoStore>>) -> anyhow::Error {
        let Self { opened, design, flow, listener, .. } = self;
        let writes = ConsoleWrites::Allowed { place: None };
        let served = Served { opened, design, writes, functions: flow.map(|flow| (flow, gate)) };
        match console::serve(served, listener).await {
            Ok(()) => anyhow::anyhow!("the console ended"),
            Err(error) => error.into(),
        }
    }
}

/// The design of a table. Only the shipped one has samples that somebody wrote.
pub(crate) async fn design(
    has_manifest: bool,
    schema: &Arc<Schema>,
    catalogue: &Arc<Catalogue>,
) -> Result<Design, ShippedError> {
    let (schema, catalogue) = ((**schema).clone(), (**catalogue).clone());
    if has_manifest {
        return Ok(Design::declared(schema, catalogue));
    }
    // Derivations may be switched off.
    Ok(Design { catalogue, ..shipped::design().await? })
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

    fn unanswered(&self, function: Function, unanswered: &UnansweredInvocation, elapsed: Duration) {
        self.flow.take_in_unanswered(&function.to_string(), unanswered, elapsed);
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
