"""The page on observability: each of its claims names a test, and its sample, tables and queries are the code's."""

from __future__ import annotations

import json
import re

from mcp_functions.local import cli
from mcp_functions.observing import Notes
from mcp_functions.observing.measures import measured
from mcp_functions.observing.notes import fields
from tests.docs.pages import NOT_RUN, Page, every_test

PAGE = Page.named("observability.md")
FORMATS = {"level", "message", "timestamp", "service", "logger"}  # beside what a request's line says
SHAPED = {
    "outcome": "complete",
    "tool_error": True,
    "correlation_id": "JKJaXmPLvHcESHA=",
    "request_id": "c8fb0cc7-f475-4ff7-b695-c2c2a0109d79",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
ALL = Notes.of(**dict.fromkeys(Notes.__annotations__, 1) | SHAPED | {"flow": "a conversation", "jti": b"a state"})


def rows(heading: str) -> list[list[str]]:
    section = PAGE.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.sub(r"<!--.*?-->", "", line).strip("|").split("|")] for line in lines]


def test_every_claim_of_this_page_is_proved_or_said_to_be_unproven() -> None:
    assert [claim for claim in PAGE.unproven if NOT_RUN not in claim and not _leads(claim)] == []
    assert PAGE.dead_links == []
    assert sorted(PAGE.proofs - every_test()) == []


def _leads(claim: str) -> bool:
    return claim.endswith(("?", ".)")) or claim.startswith(("What a deployment says", "A field that is not"))


def test_the_table_of_fields_is_what_a_line_can_say() -> None:
    named = {name for row in rows("Fields") for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(fields(ALL))


def test_the_sample_is_a_line() -> None:
    sample = json.loads(PAGE.code("json"))
    assert sample.keys() - FORMATS <= set(fields(ALL))
    assert [name for name in sample if name not in FORMATS] == [name for name in fields(ALL) if name in sample]


def test_the_queries_ask_for_what_a_line_says() -> None:
    words = set(re.findall(r"\b[a-z]+_[a-z]+\b", PAGE.code("text"))) - {"count_distinct", "input_required"}
    assert words <= set(fields(ALL))
    for name in ("outcome", "handler", "code", "reason", "flow", "round", "jti"):
        assert name in PAGE.code("text")


def test_the_table_of_metrics_is_what_is_measured() -> None:
    everything = [
        Notes.of(
            outcome="complete", round=2, flow="x", status=200, seconds=1, cold_start=True, kms_calls=1, kms_seconds=1
        ),
        Notes.of(outcome="crashed", status=500, misconfigured=True, kms_failures=1),
        Notes.of(outcome="refused", status=400, code=-32602),
    ]
    found = {
        (name, unit, ", ".join(f"`{dimension}`" for dimension in dimensions))
        for notes in everything
        for dimensions, measures in measured(notes, endpoint=False)
        for name, (unit, _value) in measures.items()
    }
    assert {(row[0].strip("`"), row[1], row[2]) for row in rows("Metrics")} == {
        (name, unit, "" if dimension == "``" else dimension) for name, unit, dimension in found
    }


def test_a_person_reads_what_the_toolkit_says_and_no_metrics() -> None:
    line = {"logger": "mcp_functions", "message": "refused: -32602 expired", "outcome": "refused"}
    assert cli._readable(json.dumps(line)) == "refused: -32602 expired"  # noqa: SLF001 - what `serve` shows of a line
    assert cli._readable(json.dumps({**line, "message": "answered: complete"})) is None  # noqa: SLF001
    assert cli._readable(json.dumps({"_aws": {"CloudWatchMetrics": []}})) is None  # noqa: SLF001
    for own in ("START RequestId: x", '{"logger": "mine", "message": "x"}', "[1]", "7"):
        assert cli._readable(own) == own  # noqa: SLF001
