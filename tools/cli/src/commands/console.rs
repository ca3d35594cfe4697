//! The console: `ripple console` serves pages about a table to a browser on this machine, until it is stopped, and
//! `ripple dev` serves them beside its functions.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use aws_sdk_dynamodb::types::TableDescription;
use console::{
    ConsoleWrites, Served,
    flow::{Flow, entry::UnansweredInvocation},
    step::StepGate,
};
use design::Design;
use engine::batch::Handled;
use functions::{
    config::{Config, Mode},
    handler::Function,
    logging,
};
use operate::tables::Deployment;
use store::dynamo::DynamoStore;
use stream::progress::Invocation;
use tokio::net::TcpListener;

use crate::{
    args::{ConsoleArgs, Dev, PORT},
    commands::{LOG_FILTER, dev::stop_signal},
    exit::{Completion, listen, print},
    lines::Lines,
    opened::{agreed, deployment, open_to_write, open_with_ledger},
    service::{Plan, Witness},
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

// ---- The console of `ripple dev` ----

/// The console, before it serves its pages.
pub(super) struct Pages {
    /// The address of the console.
    pub(super) address: SocketAddr,
    listener: TcpListener,
    mode: Mode,
    opened: Deployment<DynamoStore>,
    design: Design,
    /// `None` if the functions run in another process.
    flow: Option<Arc<Flow>>,
}

impl Pages {
    /// Listens on the given port; by default on the console's, or on any free port if another program uses that one.
    pub(super) async fn open(
        args: &Dev,
        plan: &Plan<'_>,
        design: Design,
        config: &Config,
        tables: &[TableDescription],
        lines: Lines,
    ) -> anyhow::Result<(Reporter, Self)> {
        let at = |port| listen((Ipv4Addr::LOCALHOST, port).into(), "--console-port");
        let listener = match (args.console_port, at(args.console_port.unwrap_or(PORT)).await) {
            (None, Err(_)) => at(0).await?,
            (_, listened) => listened?,
        };
        let flow = Arc::new(Flow::new(&plan.schema, &plan.catalogue));
        let reporter = Reporter { lines, flow: Arc::clone(&flow) };
        // A person who steps through records writes.
        let flow = (plan.functions.is_none() && plan.mode == Mode::Apply).then_some(flow);
        let declared = (&plan.schema, &plan.catalogue);
        let tables: Vec<&TableDescription> = tables.iter().collect();
        let opened = deployment(declared, &plan.store, config, &tables, &plan.streams, false);
        Ok((reporter, Self { address: listener.local_addr()?, listener, mode: plan.mode, opened, design, flow }))
    }

    /// Serves until the listener fails. Returns the reason.
    pub(super) async fn serve(self, gate: Arc<StepGate<DynamoStore>>) -> anyhow::Error {
        let Self { opened, design, flow, listener, mode, .. } = self;
        let writes = match mode {
            Mode::Apply => ConsoleWrites::Allowed { place: None },
            Mode::Observe => ConsoleWrites::Refused { allowed_by: "start `ripple dev` without --observe".to_owned() },
        };
        let served = Served { opened, design, writes, functions: flow.map(|flow| (flow, gate)) };
        match console::serve(served, listener).await {
            Ok(()) => anyhow::anyhow!("the console ended"),
            Err(error) => error.into(),
        }
    }
}

/// Reports the work of the functions to the terminal and the console.
pub(super) struct Reporter {
    lines: Lines,
    flow: Arc<Flow>,
}

impl Witness for Reporter {
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

    fn filtered_out(&self, record: &str) {
        self.lines.filtered_out(record);
    }

    fn responds(&self, is_so: bool) {
        self.lines.responds(is_so);
    }

    fn trouble(&self, line: &str) {
        self.lines.trouble(line);
    }
}
