"""The page on observability: its sample, tables and queries are the code's, its code runs."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from functions.summarize_year import app as summarize_year
from mcp_functions.observability import Notes
from mcp_functions.observability.lines import all_fields
from mcp_functions_harness import template
from mcp_functions_harness.lambdas.functions import Function
from mcp_functions_harness.lambdas.own_variables import running_function
from mcp_functions_harness.terminal.function_output import FunctionStream
from mcp_functions_harness.terminal.log_lines import shown_text
from mcp_functions_harness.terminal.outputs import TextOutput
from mcp_functions_harness.testing import Conversation
from tests.docs import powertools
from tests.docs.pages import ROOT, Page
from tests.support import filters, wire

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Page.named("observability.md")
FORMATS = {"level", "message", "timestamp", "service", "logger"}  # beside what a request's line says
SHAPED = {
    "method": "tools/call",
    "outcome": "complete",
    "tool_error": True,
    "correlation_id": "JKJaXmPLvHcESHA=",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
}
ALL = Notes()
vars(ALL).update(dict.fromkeys(Notes.__annotations__, 1) | SHAPED | {"flow": "a conversation", "jti": b"a state"})
PROMPT = Notes()
vars(PROMPT).update(vars(ALL) | {"method": "prompts/get"})
FIELDS = {**all_fields(ALL), **all_fields(PROMPT)}


def rows(heading: str) -> list[list[str]]:
    section = PAGE.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_fields_lists_all_fields_of_a_line() -> None:
    named = {name for row in rows("Fields") for name in re.findall(r"`([\w.]+)`", row[0])}
    assert named == set(FIELDS)


def test_the_sample_line_of_the_page_has_the_fields_of_a_log_line() -> None:
    sample = json.loads(PAGE.code("json"))
    assert sample.keys() - FORMATS <= set(FIELDS)
    assert [name for name in sample if name not in FORMATS] == [name for name in FIELDS if name in sample]


def test_the_queries_name_existing_fields_of_a_line() -> None:
    words = set(re.findall(r"\b[a-z]+_[a-z]+\b", PAGE.code("text"))) - {"count_distinct", "input_required"}
    assert words <= set(FIELDS)
    for name in ("outcome", "handler", "code", "reason", "flow", "round", "jti"):
        assert name in PAGE.code("text")


def test_the_table_of_metrics_matches_the_templates_filters_and_alarms() -> None:
    resources = [one for one in template.read(ROOT / "template.yaml")["Resources"].values() if "Properties" in one]
    counted = {
        metric["MetricName"] for one in resources for metric in one["Properties"].get("MetricTransformations", ())
    }
    assert {row[0].strip("`"): row[1] for row in rows("Metrics")} == {
        name: "yes" if name in filters.alarm_metrics() else "" for name in counted
    }


def test_serve_shows_messages_without_metrics() -> None:
    line = {"logger": "mcp_functions", "message": "refused: -32602 expired", "outcome": "refused"}
    assert shown_text(json.dumps(line)) == "refused: -32602 expired"
    assert shown_text(json.dumps({**line, "message": "answered: complete"})) is None
    assert shown_text(json.dumps({"_aws": {"CloudWatchMetrics": []}})) is None
    for own in ("a text", '{"logger": "mine", "message": "x"}', "[1]", "7"):
        assert shown_text(own) == own


def test_serve_shows_the_messages_of_the_toolkit_written_by_a_powertools_logger() -> None:
    out = io.StringIO()
    name = running_function.set("add")
    with redirect_stdout(FunctionStream(TextOutput(out).write_log, out)):  # around what `serve` runs in its own process
        logger = powertools.logger()
        logger.info("refused: -32602 expired", extra={"logger": "mcp_functions"})
        logger.info("answered: complete", extra={"logger": "mcp_functions"})
        logger.warning("mine", extra={"order": 7, "parts": ["a"]})
    running_function.reset(name)
    refused, mine = out.getvalue().splitlines()
    assert refused == "  add  refused: -32602 expired"
    assert mine == '  add  WARNING mine order=7 parts=["a"]'


# ---- Powertools: the page's code, on and in handlers

_services = count()


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> powertools.Trace:
    return powertools.traced(monkeypatch)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> powertools.Store:
    return powertools.stored(monkeypatch)


@pytest.fixture
def page(
    monkeypatch: pytest.MonkeyPatch,
    trace: powertools.Trace,  # noqa: ARG001 - the page's code finds it
    store: powertools.Store,  # noqa: ARG001 - likewise
) -> dict[str, Any]:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"page-{next(_services)}")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")  # as it is with an AlarmTopic
    ran = PAGE.run()
    ran["metrics"].clear_metrics()  # Powertools keeps what was counted for the whole process, and other tests count too
    return ran


def call(handler: Callable[..., Any], tool: str, **arguments: object) -> str:
    """Call a tool as Lambda calls what stands around it, and return its text."""
    about = {"requestId": "JKJaXmPLvHcESHA=", "domainName": "shop.example"}
    event = wire.event(wire.message("tools/call", {"name": tool, "arguments": arguments}), context=about)
    response = handler(event, wire.Context("local_order"))
    return str(json.loads(response["body"])["result"]["content"][0]["text"])


def test_a_handler_logs_and_counts_with_powertools(page: dict[str, Any]) -> None:
    out = io.StringIO()
    page["logger"].registered_handler.setStream(out)
    with redirect_stdout(out):
        assert call(page["handler"], "order", item="tea", quantity=2) == "2 of tea are on their way."
    mine, ours, blob = map(json.loads, out.getvalue().splitlines())
    assert (mine["message"], mine["correlation_id"]) == ("ordered", "JKJaXmPLvHcESHA=")
    assert mine["function_request_id"] == ours["function_request_id"] == wire.Context().aws_request_id
    assert (ours["message"], ours["handler"], ours["correlation_id"]) == (
        "answered: complete",
        "order",
        "JKJaXmPLvHcESHA=",
    )
    assert blob["Orders"] == [1.0]


def test_the_tools_of_a_decorated_handler_are_found(page: dict[str, Any]) -> None:
    for name, tool in (("handler", "order"), ("traced", "order"), ("settling", "settle"), ("noting", "order")):
        found = Function("shop", page[name]).handlers
        assert [handler.name for handler in found] == [tool]
    assert Conversation(page["handler"]).call(item="tea", quantity=2).text == "2 of tea are on their way."
    assert Conversation(summarize_year.handler, fresh=True).call(year=2026).text.startswith("468 tickets")


def test_a_tracer_captures_a_handler(page: dict[str, Any], trace: powertools.Trace) -> None:
    assert call(page["traced"], "order", item="tea", quantity=2) == "2 of tea are on their way."
    assert trace.segments == ["## handler"]


def test_a_tool_reads_a_secret(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = powertools.secrets(monkeypatch, "warehouse-token", "s3cr3t")
    told = {Conversation(page["serve"](page["count_stock"])).call(item="tea").text for _ in range(2)}
    assert told == {"3 (asked with 6 characters of token)"}
    assert asked == ["warehouse-token"]  # and no second time: it is kept


def test_a_function_with_powertools_idempotency_runs_once_in_all_conversations(
    page: dict[str, Any], store: powertools.Store
) -> None:
    told = [call(page["settling"], "settle", invoice=number) for number in ("A-1", "A-1", "A-2")]
    assert told == ["receipt for A-1", "receipt for A-1", "receipt for A-2"]
    assert len(store.records) == 2
    assert store.reads == 1  # of what the first conversation had left


def test_a_handler_takes_an_event_as_a_data_class(page: dict[str, Any]) -> None:
    out = io.StringIO()
    page["logger"].registered_handler.setStream(out)
    assert call(page["noting"], "order", item="tea", quantity=2) == "2 of tea are on their way."
    assert [json.loads(line)["domain"] for line in out.getvalue().splitlines()] == ["shop.example"] * 2
