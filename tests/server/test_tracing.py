# SPDX-License-Identifier: Apache-2.0
"""Triton's spans, and those of the rows inside them, at a collector of OpenTelemetry."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ct2_triton.client import SyncTranslationClient
from ct2_triton.errors import InvalidCallError
from ct2_triton.prepare import PrepareOptions, prepare
from ct2_triton.serve import TritonServer
from support.collector import Collector
from support.servers import ServerStack

pytestmark = pytest.mark.server

SENTENCE = "The ticket office opens at 5:45."
SENT = {"source": "en", "targets": "de"}
CLIENT_SPAN = "b7ad6b7169203331"
ROWS_TOLD = 8


@dataclass
class Span:
    """A span and what is nested in it, in the order of their starts."""

    name: str
    parent: str
    start_ns: int
    end_ns: int
    events: list[str]
    children: list[Span] = field(default_factory=list)

    def shape(self) -> Any:
        """Gives its name, or its name with those inside it."""
        return (
            (self.name, [child.shape() for child in self.children]) if self.children else self.name
        )

    def __getitem__(self, name: str) -> Span:
        (found,) = [child for child in self.children if child.name == name]
        return found

    def check_times(self) -> None:
        """Holds that no child begins before it or ends after it."""
        for child in self.children:
            assert self.start_ns <= child.start_ns <= child.end_ns <= self.end_ns, (self, child)
            child.check_times()


class Traces:
    """A server that tells a collector about the requests that ask for it."""

    def __init__(self, server: TritonServer, collector: Collector, repository: Path) -> None:
        self.server = server
        self.collector = collector
        self.repository = repository

    def client(self, model: str, trace_id: str | None = None) -> SyncTranslationClient:
        """Makes a client whose requests belong to a trace, or to none."""
        metadata = {} if trace_id is None else {"traceparent": traceparent(trace_id)}
        return SyncTranslationClient(
            self.server.grpc_url, model, repository=self.repository, metadata=metadata
        )

    def of(self, model: str, ask: Callable[[SyncTranslationClient], object]) -> Span:
        """Asks a model in a trace of the client's, and gives the span of the request."""

        def send(trace_id: str) -> None:
            with self.client(model, trace_id) as client:
                ask(client)

        return self.spans_of(send)

    def spans_of(self, send: Callable[[str], object]) -> Span:
        """Sends a request of a trace, and gives the span of the request."""
        spans: dict[str, Span] = {}
        for record in self.collector.spans_of(send):
            times = (int(record[f"{edge}TimeUnixNano"]) for edge in ("start", "end"))
            events = [event["name"] for event in record["events"]]
            spans[record["spanId"]] = Span(record["name"], record["parentSpanId"], *times, events)
        for span in sorted(spans.values(), key=lambda span: span.start_ns):
            if span.parent in spans:
                spans[span.parent].children.append(span)
        (root,) = [span for span in spans.values() if span.parent not in spans]
        assert (root.name, root.parent) == ("InferRequest", CLIENT_SPAN)
        root.check_times()
        return root


def traceparent(trace_id: str) -> str:
    """Gives the header of W3C that names a trace and the client's span."""
    return f"00-{trace_id}-{CLIENT_SPAN}-01"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traces]:
    """The demo by ids, as text and as a stream, and one that runs in calls."""
    repository = tmp_path_factory.mktemp("traces")
    prepare(PrepareOptions("demo", repository, io="stream"))
    prepare(PrepareOptions("demo", repository, "in-calls", settings={"decoding": "calls"}))
    with Collector() as collector, ServerStack() as stack:
        settings = (
            "mode=opentelemetry",
            "rate=0",  # only requests with a traceparent
            "level=TIMESTAMPS",
            f"opentelemetry,url=http://{collector.address}/v1/traces",
            "opentelemetry,bsp_schedule_delay=50",
        )
        arguments = [f"--trace-config={setting}" for setting in settings]
        yield Traces(stack.start(repository, server_arguments=arguments), collector, repository)


def translate(client: SyncTranslationClient) -> None:
    client.translate(SENTENCE, **SENT)


def test_a_row_waits_is_encoded_and_decoded(traces: Traces) -> None:
    model = traces.of("demo", translate)["demo"]
    row = model["row"]
    assert row.shape() == ("row", ["queue", "encode", "decode"])
    assert "row 0" in row.events
    assert sorted(child.name for child in model.children) == ["compute", "row"]
    queue, encode, decode = row.children
    assert queue.end_ns <= encode.start_ns
    assert encode.end_ns <= decode.start_ns
    assert encode.end_ns > encode.start_ns
    assert decode.end_ns > decode.start_ns
    assert model["compute"].start_ns <= encode.start_ns


def test_a_row_in_a_call_has_one_span_for_both(traces: Traces) -> None:
    row = traces.of("in-calls", translate)["in-calls"]["row"]
    assert row.shape() == ("row", ["queue", "call"])
    assert row["call"].end_ns > row["call"].start_ns


def test_a_long_text_tells_its_first_rows(traces: Traces) -> None:
    text = " ".join(f"Platform {number} is closed." for number in range(ROWS_TOLD + 3))
    request = traces.of("demo-text", lambda client: client.translate(text, **SENT))
    rows = [child for child in request["demo-text"].children if child.name == "row"]
    assert [row.shape() for row in rows] == [("row", ["queue", "encode", "decode"])] * ROWS_TOLD
    named = [[event for event in row.events if event.startswith("row ")] for row in rows]
    assert sorted(named) == [[f"row {number}"] for number in range(ROWS_TOLD)]


def test_a_stream_tells_its_row(traces: Traces) -> None:
    request = traces.of("demo", lambda client: list(client.stream_text(SENTENCE, **SENT)))
    assert request["demo-stream"]["row"].shape() == ("row", ["queue", "encode", "decode"])


def test_each_call_of_a_client_names_its_own_trace(traces: Traces) -> None:
    def headers(trace_id: str) -> dict[str, str]:
        return {"Traceparent": traceparent(trace_id)}

    with traces.client("demo", secrets.token_hex(16)) as client:
        unary = traces.spans_of(lambda it: client.translate(SENTENCE, **SENT, metadata=headers(it)))
        assert unary["demo"]["row"]
        rows = traces.spans_of(
            lambda it: list(client.stream([SENTENCE], **SENT, metadata=headers(it)))
        )
        assert rows["demo"]["row"]
        text = traces.spans_of(
            lambda it: list(client.stream_text(SENTENCE, **SENT, metadata=headers(it)))
        )
        assert text["demo-stream"]["row"]


def test_headers_that_grpc_cannot_send_are_refused(traces: Traces) -> None:
    with traces.client("demo") as client:
        with pytest.raises(InvalidCallError, match="metadata has the name 'a b'; it must be of"):
            client.translate(SENTENCE, **SENT, metadata={"a b": "c"})
        with pytest.raises(InvalidCallError, match=r"metadata has 'a\\nb' for 'c'; it must be a"):
            client.translate(SENTENCE, **SENT, metadata={"c": "a\nb"})
        client.translate(SENTENCE, **SENT)


def test_a_call_joins_the_span_in_which_the_caller_is(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CT2_MODEL_REPOSITORY", str(traces.repository))
    otel = pytest.importorskip("opentelemetry.trace")
    page = Path(__file__).resolve().parents[2] / "docs" / "monitoring.md"
    (example,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    flags = otel.TraceFlags(otel.TraceFlags.SAMPLED)

    def send(trace_id: str) -> None:
        caller = otel.SpanContext(
            int(trace_id, 16), int(CLIENT_SPAN, 16), is_remote=False, trace_flags=flags
        )
        with otel.use_span(otel.NonRecordingSpan(caller)):
            exec(example.replace("localhost:8001", traces.server.grpc_url), {})  # noqa: S102

    assert traces.spans_of(send)["demo"]["row"]["decode"]


def test_text_and_several_servers_pass_the_trace_on(traces: Traces) -> None:
    def send(trace_id: str) -> None:
        with SyncTranslationClient([traces.server.grpc_url] * 2, "demo-text") as client:
            client.translate(SENTENCE, **SENT, metadata={"traceparent": traceparent(trace_id)})

    assert traces.spans_of(send)["demo-text"]["row"]


def test_what_is_not_traced_is_not_told(traces: Traces) -> None:
    def send(trace_id: str) -> None:
        with traces.client("demo") as client:
            translate(client)
        with traces.client("demo", trace_id) as client:
            translate(client)

    assert traces.spans_of(send)["demo"]["row"]
    requests = [span for span in traces.collector.spans if span["name"] == "InferRequest"]
    assert {span["parentSpanId"] for span in requests} == {CLIENT_SPAN}
