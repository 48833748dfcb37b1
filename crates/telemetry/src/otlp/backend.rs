//! Spans of the OpenTelemetry SDK.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind as OtelSpanKind, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, InstrumentationScope, Key, KeyValue, StringValue, Value};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span, SpanExporter as SpanExporterTrait};
use stepline_tracing_schema::{AttributeValue, Record, SinkError, TraceParent};
use tokio::runtime::{self, Runtime};

use super::delivery::Delivery;
use super::endpoint::Endpoint;
use super::export_queue::ExportQueue;
use crate::backend::{SpanBackend, SpanKind, SpanStart};
use crate::error::TelemetryError;
use crate::options::{OtlpProtocol, WhenFull};

/// Room for the attributes of the largest event.
const EVENT_ATTRIBUTES: usize = 16;

/// How an [`OtlpBackend`] exports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtlpOptions {
    /// When too many spans wait to be sent.
    pub(crate) when_full: WhenFull,
    /// How long the last delivery may take.
    pub(crate) shutdown_limit: Duration,
}

/// Exports spans to a collector, in the background.
#[derive(Debug)]
pub(crate) struct OtlpBackend {
    provider: SdkTracerProvider,
    tracers: Vec<(&'static str, SdkTracer)>,
    delivery: Arc<Delivery>,
    options: OtlpOptions,
    /// Drives the connections of gRPC. Our own: an export must not depend on a runtime of the program, which may be
    /// busy waiting for the export, or gone.
    _runtime: Option<PrivateRuntime>,
}

impl OtlpBackend {
    /// Makes an exporter for `endpoint`. Connects to nothing yet.
    pub(crate) fn new(endpoint: &Endpoint, options: OtlpOptions) -> Result<Self, TelemetryError> {
        let no_thread = |source| TelemetryError::Runtime { endpoint: endpoint.shown(), source };
        let runtime = PrivateRuntime::start().map_err(no_thread)?;
        let exporter = {
            let _entered = runtime.enter();
            build_exporter(endpoint)?
        };
        Self::with_exporter(exporter, endpoint.shown(), options, Some(runtime)).map_err(no_thread)
    }

    /// Makes a back end on any exporter, driven by `runtime` if it needs one.
    pub(super) fn with_exporter(
        mut exporter: impl SpanExporterTrait + 'static,
        endpoint: String,
        options: OtlpOptions,
        runtime: Option<PrivateRuntime>,
    ) -> io::Result<Self> {
        let delivery = Arc::new(Delivery::new(endpoint));
        let resource = resource();
        exporter.set_resource(&resource);
        let queue = ExportQueue::start(exporter, Arc::clone(&delivery), options.when_full)?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            // The span sink closes spans by its own budget. What is above a limit here would be lost.
            .with_max_events_per_span(u32::MAX)
            .with_span_processor(queue)
            .build();
        Ok(Self { provider, tracers: Vec::new(), delivery, options, _runtime: runtime })
    }

    /// Returns the account of this back end; it goes on after the back end has been given away.
    pub(crate) fn delivery(&self) -> Arc<Delivery> {
        Arc::clone(&self.delivery)
    }

    fn tracer(&mut self, scope: &'static str) -> SdkTracer {
        if let Some((_, tracer)) = self.tracers.iter().find(|(name, _)| *name == scope) {
            return tracer.clone();
        }
        let scope_with_version = InstrumentationScope::builder(scope).with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = self.provider.tracer_with_scope(scope_with_version);
        self.tracers.push((scope, tracer.clone()));
        tracer
    }
}

fn build_exporter(endpoint: &Endpoint) -> Result<SpanExporter, TelemetryError> {
    let exporter = match endpoint.protocol {
        OtlpProtocol::Grpc => SpanExporter::builder().with_tonic().with_endpoint(&endpoint.url).build(),
        OtlpProtocol::HttpProtobuf => SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(&endpoint.url)
            .build(),
    };
    exporter.map_err(|error| TelemetryError::Exporter { endpoint: endpoint.shown(), fault: error.to_string() })
}

/// Who speaks. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over the name `stepline`.
fn resource() -> Resource {
    const SERVICE_NAME: Key = Key::from_static_str("service.name");
    let of_environment = Resource::builder().build();
    let name = of_environment.get_ref(&SERVICE_NAME).map(Value::as_str);
    // The SDK calls a program without a name `unknown_service`, with a suffix in some versions.
    if name.is_some_and(|name| !name.starts_with("unknown_service")) {
        of_environment
    } else {
        Resource::builder().with_service_name("stepline").build()
    }
}

impl SpanBackend for OtlpBackend {
    type Span = Span;

    fn start(&mut self, start: SpanStart<'_>) -> Option<Span> {
        let tracer = self.tracer(start.scope);
        let parent = start.parent.map_or_else(Context::new, remote_context);
        let builder = tracer
            .span_builder(start.name)
            .with_kind(match start.kind {
                SpanKind::Internal => OtelSpanKind::Internal,
                SpanKind::Server => OtelSpanKind::Server,
            })
            .with_start_time(system_time(start.unix_ns))
            .with_attributes(start.attributes.iter().map(|(key, value)| key_value(key, *value)));
        let span = tracer.build_with_context(builder, &parent);
        span.is_recording().then_some(span)
    }

    fn set_attribute(&mut self, span: &mut Span, key: &'static str, value: AttributeValue<'_>) {
        span.set_attribute(key_value(key, value));
    }

    fn add_event(&mut self, span: &mut Span, record: &impl Record, unix_ns: u64) {
        let mut attributes = Vec::with_capacity(EVENT_ATTRIBUTES);
        record.for_each_attribute(|key, value| attributes.push(key_value(key, value)));
        span.add_event_with_timestamp(record.event_name(), system_time(unix_ns), attributes);
    }

    fn end(&mut self, mut span: Span, unix_ns: u64) {
        span.end_with_timestamp(system_time(unix_ns));
    }

    /// Sends what is pending, within the limit of the options.
    fn shutdown(&mut self) -> Result<(), SinkError> {
        // What comes back says less than the account.
        let _in_the_account = self.provider.shutdown_with_timeout(self.options.shutdown_limit);
        self.delivery.abandon();
        let report = self.delivery.report();
        let Some(cause) = report.cause_of_loss() else { return Ok(()) };
        let operation = format!("deliver {} of {}", report.undelivered(), report.emitted);
        Err(SinkError::new(format!("OTLP `{}`", report.endpoint), operation, cause))
    }
}

fn remote_context(parent: TraceParent) -> Context {
    Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from_bytes(parent.trace_id.to_be_bytes()),
        SpanId::from_bytes(parent.span_id.to_be_bytes()),
        if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() },
        true,
        TraceState::default(),
    ))
}

fn system_time(unix_ns: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns)
}

fn key_value(key: &'static str, value: AttributeValue<'_>) -> KeyValue {
    let value = match value {
        AttributeValue::Int(value) => Value::I64(value),
        AttributeValue::Float(value) => Value::F64(value),
        AttributeValue::Static(text) => Value::String(StringValue::from(text)),
        AttributeValue::Shared(text) => Value::String(StringValue::from(Arc::clone(text))),
    };
    KeyValue::new(key, value)
}

/// A runtime that may be dropped anywhere, also inside of another runtime.
#[derive(Debug)]
pub(super) struct PrivateRuntime(Option<Runtime>);

impl PrivateRuntime {
    fn start() -> io::Result<Self> {
        runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stepline-otlp")
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
    }

    fn enter(&self) -> Option<runtime::EnterGuard<'_>> {
        self.0.as_ref().map(Runtime::enter)
    }
}

impl Drop for PrivateRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
