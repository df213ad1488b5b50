"""OpenTelemetry traces, off unless an endpoint is configured; the packages come with ``engram[otel]``.

A span is a request, a batch of verdicts, a job, or a stage of one of these. While traces are off a span costs one
look at a variable.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from engram.context.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

Attributes = Mapping[str, str | int | float | bool]
FLUSH_SECONDS = 5
_tracer: "Tracer | None" = None


def start(endpoint: str, role: str, version: str) -> Callable[[], None]:
    """Send spans to ``endpoint``, an OTLP receiver over HTTP; returns what ends that and sends what is left.

    OpenTelemetry's own variables, such as ``OTEL_TRACES_SAMPLER``, say which traces are sent; by default all are.

    Args:
        role: the kind of process.

    Raises:
        ConfigurationError: the packages are not installed.
    """
    global _tracer  # noqa: PLW0603 - one for the process, as its log is
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError("ENGRAM_OTLP_ENDPOINT needs the extra engram[otel] to be installed.") from error
    named = {"service.name": "engram", "service.version": version, "engram.role": role}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    address = endpoint.rstrip("/") + "/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address, timeout=FLUSH_SECONDS)))
    _tracer = provider.get_tracer("engram", version)

    def stop() -> None:
        global _tracer  # noqa: PLW0603
        _tracer = None
        provider.shutdown()

    return stop


@contextmanager
def _open_span(tracer: "Tracer", name: str, attributes: Attributes) -> "Iterator[Span]":
    # What failed is told by its kind alone: messages may quote what callers sent.
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            _record_failure(span, type(error).__name__)
            raise


def span(name: str, attributes: Attributes | None = None) -> "AbstractContextManager[Span | None]":
    """A span for the block, below the one around it; None while traces are off."""
    return nullcontext() if _tracer is None else _open_span(_tracer, name, attributes or {})


@contextmanager
def request(method: str, headers: Mapping[str, str]) -> "Iterator[Span | None]":
    """The span of a request, below the caller's if its ``traceparent`` names one."""
    if _tracer is None:
        yield None
        return
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    token = context.attach(TraceContextTextMapPropagator().extract(headers))
    try:
        with _tracer.start_as_current_span(
            method, kind=trace.SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ) as opened:
            yield opened
    finally:
        context.detach(token)


def record_answer(opened: "Span | None", method: str, route: str, status: int, request_id: str) -> None:
    """Name a request's span by what came of it."""
    if opened is None:
        return
    opened.update_name(f"{method} {route}")
    seen: dict[str, Any] = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "engram.request_id": request_id,
    }
    opened.set_attributes(seen)
    if status >= 500:
        _record_failure(opened, str(status))


def _record_failure(opened: "Span", kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    opened.set_status(Status(StatusCode.ERROR, kind))
    opened.set_attribute("error.type", kind)
