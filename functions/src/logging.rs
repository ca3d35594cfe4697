//! Structured logs: JSON in Lambda, text on a terminal. No value of an attribute is ever logged.
//!
//! *Keeps true*: every line of an invocation has the ids of the invocation in its span. Other crates may log whole
//! requests and events below `info`, so those lines are dropped, whatever `RUST_LOG` says. A panic is logged with its
//! place, and with its message only if the message is a constant in the code.

use std::{
    io::{IsTerminal, stderr, stdout},
    panic::{PanicHookInfo, set_hook},
};

use lambda_runtime::Context;
use tracing::{Level, Metadata, Span};
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt as _, ParseError, Targets, filter_fn},
    fmt::MakeWriter,
    layer::{Filter, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use crate::{config::Mode, handler::Function};

/// Variable with the log levels by target. Stable.
pub const LOG_LEVELS: &str = "RUST_LOG";

/// Log levels if [`LOG_LEVELS`] is not set. The templates set the same.
pub const DEFAULT_FILTER: &str = "info,aws_config=warn,aws_smithy_runtime=warn,hyper=warn,lambda_runtime=warn";

/// Our own crates, whose log lines contain no values.
const OURS: [&str; 10] =
    ["catalogue", "derive", "engine", "keys", "manifest", "queries", "ripple", "functions", "store", "stream"];

/// Logs JSON to standard output, where Lambda collects it. Only the first call in a process has an effect.
pub fn json() {
    let _is_first = registry(as_json(stdout, asked(DEFAULT_FILTER)));
}

/// Logs text to standard error, with the levels of `default` if `RUST_LOG` is not set. Only the first call in a process
/// has an effect.
pub fn readable(default: &str) {
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_target(false)
        // With internal errors logged, a line that cannot be written would panic if standard error is closed.
        .log_internal_errors(false);
    let _is_first = registry(layer.with_filter(filter(asked(default))));
}

/// Uses [`json`] in Lambda, and [`readable`] elsewhere.
pub fn for_function() {
    set_hook(Box::new(log_panic));
    if std::env::var_os("AWS_EXECUTION_ENV").is_some() || std::env::var_os("LAMBDA_TASK_ROOT").is_some() {
        json();
    } else {
        readable(DEFAULT_FILTER);
    }
}

/// The span of an invocation. The filter lets it pass at every level, so that each line has its ids. An observing function adds
/// its mode, so that its lines cannot be mistaken for those of a writing one.
pub(crate) fn invocation(function: Function, context: &Context, mode: Mode) -> Span {
    let mode = (mode == Mode::Observe).then(|| mode.to_string());
    let (request_id, xray_trace_id) = (&context.request_id, context.xray_trace_id.as_deref());
    tracing::error_span!("invocation", %function, request_id, xray_trace_id, mode)
}

fn registry(layer: impl Layer<Registry> + Send + Sync) -> bool {
    tracing_subscriber::registry().with(layer).try_init().is_ok()
}

fn as_json<W>(writer: W, asked: Targets) -> impl Layer<Registry> + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false).with_target(false);
    layer.with_writer(writer).with_filter(filter(asked))
}

/// The levels of `RUST_LOG`, or `default` if it is not set or not a list of levels by target.
fn asked(default: &str) -> Targets {
    let variable = std::env::var(LOG_LEVELS).ok();
    variable.and_then(|text| targets(&text).ok()).or_else(|| targets(default).ok()).unwrap_or_default()
}

/// Parses levels by target, such as `warn,engine=debug`. An empty entry would mean every level of every target, so it
/// is skipped.
///
/// The more capable filter of `tracing-subscriber`, which also reads spans and fields, would add a regular expression
/// engine to every build.
fn targets(text: &str) -> Result<Targets, ParseError> {
    let entries: Vec<&str> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.is_empty() { "error".parse() } else { entries.join(",").parse() }
}

/// A filter with these levels, but without lines that may contain values. The errors of the functions pass always: the
/// span of an invocation, a panic, and why a function does not start.
fn filter<S>(asked: Targets) -> impl Filter<S> + Send + Sync {
    let is_own_error =
        |metadata: &Metadata<'_>| *metadata.level() == Level::ERROR && metadata.target().starts_with("functions");
    asked.or(filter_fn(is_own_error)).and(filter_fn(holds_no_value))
}

fn holds_no_value(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::INFO || is_ours(metadata)
}

/// True if one of our crates logs it.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    OURS.contains(&metadata.target().split("::").next().unwrap_or_default())
}

/// Logs the place of a panic. A message that was formatted at run time may contain a value.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(ToString::to_string);
    tracing::error!(at, message_in_code = panic.payload().downcast_ref::<&'static str>(), "panicked");
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use serde_json::{Value, json};

    use super::*;

    /// Collects the lines.
    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The logged lines at these levels.
    fn logged(asked: &str, say: impl FnOnce()) -> Vec<Value> {
        let kept = Captured::default();
        let writer = kept.clone();
        let layer = as_json(move || writer.clone(), targets(asked).unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), say);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn every_line_of_an_invocation_has_its_ids_however_little_is_asked_for() {
        let mut context = Context::default();
        context.request_id = "8476a536".to_owned();
        context.xray_trace_id = Some("Root=1-5759e988".to_owned());
        for asked in ["error", "engine=debug"] {
            let lines = logged(asked, || {
                let _entered = invocation(Function::Aggregate, &context, Mode::Apply).entered();
                tracing::error!(target: "engine::park", event_id = "e1", "parked");
                tracing::info!(target: "store::dynamo", "is not asked for");
            });
            let [line] = lines.as_slice() else { panic!("{asked}: {lines:?}") };
            assert_eq!((&line["message"], &line["event_id"]), (&json!("parked"), &json!("e1")));
            let ids = ["function", "request_id", "xray_trace_id"].map(|name| line["span"][name].clone());
            assert_eq!(ids, ["aggregate", "8476a536", "Root=1-5759e988"], "{asked}");
        }
    }

    #[test]
    fn an_error_of_the_functions_is_logged_whatever_is_asked_for() {
        let lines = logged("engine=debug", || {
            tracing::error!(target: "functions::lambda", "does not start");
            tracing::warn!(target: "functions::lambda", "is not asked for");
        });
        assert_eq!(lines.iter().map(|line| &line["message"]).collect::<Vec<_>>(), ["does not start"]);
    }

    #[test]
    fn what_other_crates_say_below_info_is_left_out_though_it_is_asked_for() {
        let lines = logged("trace", || {
            tracing::trace!(target: "lambda_runtime::layers", body = "Ada", "raw JSON event received from Lambda");
            tracing::debug!(target: "engines", "Ada");
            tracing::info!(target: "aws_config", "theirs");
            tracing::trace!(target: "engine::look", "ours");
        });
        let lines_of_messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(lines_of_messages, ["theirs", "ours"]);
    }

    #[test]
    fn a_list_of_levels_may_have_spaces_and_empty_entries_which_mean_nothing() {
        let enabled = |text: &str| {
            let targets = targets(text).unwrap();
            let is_enabled = |target: &str, level| targets.would_enable(target, &level);
            [
                is_enabled("engine::park", Level::DEBUG),
                is_enabled("hyper", Level::INFO),
                is_enabled("hyper", Level::ERROR),
            ]
        };
        assert_eq!(enabled("warn,engine=debug"), [true, false, true]);
        assert_eq!(enabled(" warn , engine=DEBUG,"), [true, false, true]);
        assert_eq!(enabled("engine=off,info"), [false, true, true]);
        assert_eq!(enabled(""), [false, false, true]);
        assert!(targets("engine=loud").is_err());
    }
}
