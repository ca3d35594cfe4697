//! Traces by OpenTelemetry: each invocation is a span, with what it logs as its events.
//!
//! It is built in with the feature `otel`, and on where [`ENDPOINT`] names a collector. Spans are sent by HTTP without
//! TLS, to a collector in the function's own environment, such as a Lambda layer has. The trace is that of X-Ray, where
//! Lambda names one.
//!
//! *Keeps true*: what is exported is what is logged by this service at `info` and above, which holds no value of an item.
//! An invocation is answered when its span has been sent, since nothing runs after the answer; that it could not be sent
//! is a warning, and fails nothing.

use std::{collections::HashMap, sync::OnceLock};

use lambda_runtime::Context;
use opentelemetry::{
    propagation::TextMapPropagator as _,
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_aws::trace::XrayPropagator;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Level, Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::logging::is_ours;

/// Name of the variable with the collector's address, such as `http://localhost:4318`; the exporter reads it by itself,
/// and others of its kind. Source: OpenTelemetry, "OTLP Exporter Configuration".
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Names of the variables with the name that the service goes by: the exporter's, and Lambda's own.
const SERVICE_NAME: [&str; 2] = ["OTEL_SERVICE_NAME", "AWS_LAMBDA_FUNCTION_NAME"];

/// Name of the header that holds an id of X-Ray. Source: X-Ray developer guide, "Tracing header".
const XRAY_HEADER: &str = "x-amzn-trace-id";

/// What sends the spans, once there is a collector.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// What takes spans and events; `None` where no collector is named.
pub(crate) fn layer<S>() -> Option<impl Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    std::env::var_os(ENDPOINT)?;
    let provider = match provider() {
        Ok(provider) => PROVIDER.get_or_init(|| provider),
        Err(error) => {
            // Nothing is logged yet, and a function that counts is worth more than one that is traced.
            #[expect(clippy::print_stderr, reason = "the log is not there yet")]
            {
                eprintln!("there are no traces: {error}: set {ENDPOINT} to the address of a collector");
            }
            return None;
        }
    };
    Some(exported(provider))
}

fn provider() -> Result<SdkTracerProvider, opentelemetry_otlp::ExporterBuildError> {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build()?;
    let name = SERVICE_NAME.iter().find_map(|name| std::env::var(name).ok());
    let resource = Resource::builder().with_service_name(name.unwrap_or_else(|| "ripple".to_owned())).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

fn exported<S>(provider: &SdkTracerProvider) -> impl Layer<S> + Send + Sync + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("ripple"));
    let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
    layer.with_filter(filter_fn(|metadata: &Metadata<'_>| *metadata.level() <= Level::INFO && is_ours(metadata)))
}

/// Has the span of an invocation be part of the trace that Lambda names.
pub(crate) fn begun(span: &Span, context: &Context) {
    let header = context.xray_trace_id.iter().map(|id| (XRAY_HEADER.to_owned(), id.clone()));
    let parent = XrayPropagator::default().extract(&header.collect::<HashMap<_, _>>());
    if parent.has_active_span() {
        // Nobody takes it where there is no collector.
        drop(span.set_parent(parent));
    }
    span.set_attribute("faas.invocation_id", context.request_id.clone());
}

/// Waits until the spans that have ended are sent.
pub(crate) async fn sent() {
    let Some(provider) = PROVIDER.get() else { return };
    if let Ok(Err(error)) = tokio::task::spawn_blocking(|| provider.force_flush()).await {
        tracing::warn!(%error, "a trace was not sent");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use opentelemetry_otlp::WithExportConfig as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::{handler::Function, logging::invocation, mode::Mode};

    /// Takes one request, and gives its body.
    fn collector() -> (String, thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let taken = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
            loop {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
                if let Some(end) = end {
                    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                    if bytes.len() >= end + length.parse::<usize>().unwrap() {
                        client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                        return bytes[end..].to_vec();
                    }
                }
                let n_bytes = client.read(&mut chunk).unwrap();
                assert!(n_bytes > 0, "the request ended early");
                bytes.extend(&chunk[..n_bytes]);
            }
        });
        (url, taken)
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn an_invocation_is_a_span_of_lambdas_trace_with_what_it_logs_and_nothing_of_others() {
        let (url, taken) = collector();
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(url).build().unwrap();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
        let mut context = Context::default();
        context.request_id = "8476a536".to_owned();
        context.xray_trace_id =
            Some("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1".to_owned());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(exported(&provider)), || {
            let _entered = invocation(Function::Aggregate, &context, Mode::Apply).entered();
            tracing::info!(target: "engine::batch", records = 3, "handled a batch");
            tracing::debug!(target: "engine::batch", "below what is exported");
            tracing::info!(target: "lambda_runtime::layers", body = "Ada", "an event");
        });
        provider.force_flush().unwrap();
        let sent = taken.join().unwrap();
        let trace = [0x57, 0x59, 0xe9, 0x88, 0xbd, 0x86, 0x2e, 0x3f, 0xe1, 0xbe, 0x46, 0xa9, 0x94, 0x27, 0x27, 0x93];
        let parent = [0x53, 0x99, 0x5c, 0x3f, 0x42, 0xcd, 0x8a, 0xd8];
        assert!(contains(&sent, &trace) && contains(&sent, &parent));
        for told in ["invocation", "aggregate", "faas.invocation_id", "8476a536", "handled a batch", "records"] {
            assert!(contains(&sent, told.as_bytes()), "{told} is not there");
        }
        for untold in ["Ada", "an event", "below what is exported"] {
            assert!(!contains(&sent, untold.as_bytes()), "{untold} is there");
        }
    }
}
