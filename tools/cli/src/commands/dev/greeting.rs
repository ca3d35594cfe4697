//! What `ripple dev` prints when it is ready: its addresses, the place of its data, and what to paste into another terminal.

use std::net::SocketAddr;

use aws_sdk_dynamodb::types::TableDescription;
use functions::config::Config;
use serde_json::{Map, Value, json};

use super::{Start, options, unfilled};
use crate::{
    args::{Dev, manifest::SHIPPED},
    events::Audience,
};

pub(super) struct Greeting<'a> {
    pub(super) args: &'a Dev,
    pub(super) config: &'a Config,
    pub(super) tables: &'a [TableDescription],
    pub(super) endpoint: &'a str,
    pub(super) pages: SocketAddr,
    pub(super) variables: &'a [(&'static str, String)],
}

impl Greeting<'_> {
    /// Says that the service is ready, after what may be missing, or how its manifest has changed.
    pub(super) fn print(&self, audience: Audience, start: Start, to_fill: &[String], difference: &str) {
        if start == Start::Changed {
            let line = || format!("a new version of the functions runs: it {difference}");
            return audience.print(line, "changed", || json!({ "difference": difference }));
        }
        if !to_fill.is_empty() {
            audience.problem(&unfilled(to_fill, &options(self.args, self.endpoint)));
        }
        audience.print(|| self.lines(), "ready", || self.names());
    }

    fn tables(&self) -> Vec<&str> {
        self.tables.iter().filter_map(TableDescription::table_name).collect()
    }

    /// The names of the object `ready`.
    fn names(&self) -> Value {
        let set = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone().into());
        let variables: Map<String, Value> = self.variables.iter().map(set).collect();
        json!({
            "endpoint": self.endpoint, "console": format!("http://{}", self.pages), "tables": self.tables(),
            "ledger": self.config.ledger_table, "data": self.args.data, "variables": variables,
        })
    }

    fn lines(&self) -> String {
        let tables = self.tables();
        let mut lines = vec![
            format!("endpoint  {}", self.endpoint),
            format!("console   http://{}", self.pages),
            format!("table     {}", tables.join(", ")),
            format!("ledger    {}", self.config.ledger_table),
        ];
        lines.extend(self.args.manifest.config.is_none().then(|| format!("manifest  {SHIPPED}")));
        match (&self.args.endpoint, &self.args.data) {
            (Some(_), _) => {}
            (None, Some(folder)) => lines.push(format!("data      in the folder {}", folder.display())),
            (None, None) => lines.push("data      in memory, gone when this ends: --data DIR keeps it".to_owned()),
        }
        if self.args.observe {
            lines.push("observing: nothing is written, and each line below is what would be".to_owned());
        }
        lines.push("for clients in another terminal:".to_owned());
        let set = |(name, value): &(&str, String)| format!("{name}={value}");
        // One line for the address, one for each pair that goes together.
        let (address, pairs) = self.variables.split_at(1);
        for together in [address].into_iter().chain(pairs.chunks(2)) {
            lines.push(format!("  export {}", together.iter().map(set).collect::<Vec<_>>().join(" ")));
        }
        lines.push("then, for example:".to_owned());
        let table = tables.first().copied().unwrap_or(&self.config.table);
        lines.push(format!("  AWS CLI     aws dynamodb scan --table-name {table}"));
        lines.push(format!("  Python      boto3.resource(\"dynamodb\").Table(\"{table}\").scan()"));
        lines.push(format!("  JavaScript  await new DynamoDB().scan({{ TableName: \"{table}\" }})"));
        lines.push("ready".to_owned());
        lines.join("\n")
    }
}
