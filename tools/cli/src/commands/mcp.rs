//! `ripple mcp`: gives the commands that only read to a client of the Model Context Protocol, such as a coding agent, on
//! standard input and output.
//!
//! *Keeps true*: no tool writes to the application's table or to a file, and none reads the real AWS unless the user
//! allowed it. A tool is a command of its own process with `--json`, so it gives what the command prints, and a client
//! can stop it.

use std::{env, ffi::OsString, process::Stdio};

use clap::{Arg, ArgAction, Command};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, ServerInitializeError},
    transport::stdio,
};
use serde_json::{Value, json};
use tokio::process::Command as Process;

use crate::{
    args::{offline::McpArgs, values::described},
    exit::Completion,
};

/// The tools, each with the command that it runs.
const TOOLS: [(&str, &[&str]); 9] = [
    ("check", &["check"]),
    ("explain", &["explain"]),
    ("why", &["why"]),
    ("audit", &["audit"]),
    ("verify", &["verify"]),
    ("parked", &["parked"]),
    ("jobs", &["jobs"]),
    ("design", &["design", "--check"]),
    ("cost", &["cost"]),
];

/// Options that no tool has: they write, or they change what is printed.
const WITHHELD: [&str; 12] = [
    "yes", "discard", "pause", "resume", "cancel", "progress", "html", "json", "explain", "check", "filters", "export",
];

/// Serves the tools until the client closes standard input.
pub(crate) async fn run(args: &McpArgs) -> anyhow::Result<Completion> {
    match (Tools { allows_aws: args.aws }).serve(stdio()).await {
        Ok(service) => {
            service.waiting().await?;
        }
        // The client left before it began.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Completion::InStep)
}

struct Tools {
    /// True if tools may read the real AWS.
    allows_aws: bool,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let instructions = "Ripple derives counts, copies and mirrors in DynamoDB tables from a manifest, ripple.toml. \
                            These tools only read: `check` a manifest, `verify` a table, `why` a value is what it is.";
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("ripple", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let ripple = described();
        let tools = TOOLS.iter().filter_map(|(name, words)| {
            let command = ripple.find_subcommand(words.first()?)?;
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let tool = Tool::new(*name, about, self.schema(command));
            Some(tool.with_annotations(ToolAnnotations::new().read_only(true)))
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let words = self.words(&request.name, &request.arguments.unwrap_or_default()).map_err(invalid)?;
        let failed = |error: std::io::Error| ErrorData::internal_error(format!("cannot run ripple: {error}"), None);
        let mut ripple = Process::new(env::current_exe().map_err(failed)?);
        let run = ripple.args(words).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::select! {
            output = run => output.map_err(failed)?,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        // A command that fails prints no object; with findings it prints one.
        Ok(match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(printed) => CallToolResult::structured(printed),
            Err(_) => {
                CallToolResult::error(vec![ContentBlock::text(String::from_utf8_lossy(&output.stderr).into_owned())])
            }
        }
        .into())
    }
}

fn invalid(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

impl Tools {
    /// The arguments that a tool takes.
    fn arguments<'a>(&self, command: &'a Command) -> impl Iterator<Item = &'a Arg> {
        let allows_aws = self.allows_aws;
        let is_allowed = move |name: &str| !WITHHELD.contains(&name) && (allows_aws || name != "aws");
        command.get_arguments().filter(move |argument| is_allowed(argument.get_id().as_str()))
    }

    fn schema(&self, command: &Command) -> JsonObject {
        let property = |argument: &Arg| {
            let about = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let form = match argument.get_action() {
                ArgAction::SetTrue => json!({ "type": "boolean", "description": about }),
                ArgAction::Append => json!({ "type": "array", "items": { "type": "string" }, "description": about }),
                _ => json!({ "type": ["string", "number"], "description": about }),
            };
            (argument.get_id().to_string(), form)
        };
        let required = self.arguments(command).filter(|argument| argument.is_required_set());
        let required: Vec<&str> = required.map(|argument| argument.get_id().as_str()).collect();
        let properties: JsonObject = self.arguments(command).map(property).collect();
        let fixed = [("type", json!("object")), ("additionalProperties", json!(false))];
        let own = [("properties", Value::from(properties)), ("required", json!(required))];
        fixed.into_iter().chain(own).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The words of the command line for a call. The command itself checks the values.
    fn words(&self, tool: &str, given: &JsonObject) -> Result<Vec<OsString>, String> {
        let names = || TOOLS.map(|(name, _)| name).join(", ");
        let (_, words) = TOOLS
            .iter()
            .find(|(name, _)| *name == tool)
            .ok_or_else(|| format!("there is no tool {tool}: the tools are {}", names()))?;
        let ripple = described();
        let command = words.first().and_then(|word| ripple.find_subcommand(word)).ok_or("there is no such command")?;
        let known: Vec<&str> = self.arguments(command).map(|argument| argument.get_id().as_str()).collect();
        if let Some(unknown) = given.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("{tool} has no argument {unknown}: its arguments are {}", known.join(", ")));
        }
        let mut words: Vec<OsString> = words.iter().chain(&["--json"]).map(OsString::from).collect();
        let mut positional = vec![OsString::from("--")];
        for argument in self.arguments(command) {
            let name = argument.get_id().as_str();
            for value in
                texts(argument, given.get(name)).map_err(|wanted| format!("{name} of {tool} must be {wanted}"))?
            {
                match (argument.get_long(), argument.get_action()) {
                    (None, _) => positional.push(value.into()),
                    (Some(long), ArgAction::SetTrue) => words.push(format!("--{long}").into()),
                    (Some(long), _) => words.push(format!("--{long}={value}").into()),
                }
            }
        }
        Ok(words.into_iter().chain(positional).collect())
    }
}

/// The texts of a value, one for each time that the command line has the argument, or what the value must be.
fn texts(argument: &Arg, value: Option<&Value>) -> Result<Vec<String>, &'static str> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (argument.get_action(), value) {
        (_, None) | (ArgAction::SetTrue, Some(Value::Bool(false))) => Ok(Vec::new()),
        (ArgAction::SetTrue, Some(Value::Bool(true))) => Ok(vec![String::new()]),
        (ArgAction::SetTrue, Some(_)) => Err("true or false"),
        (ArgAction::Append, Some(Value::Array(values))) => {
            values.iter().map(text).collect::<Option<_>>().ok_or("a list of strings")
        }
        (ArgAction::Append, Some(_)) => Err("a list of strings"),
        (_, Some(value)) => text(value).map(|text| vec![text]).ok_or("a string or a number"),
    }
}
