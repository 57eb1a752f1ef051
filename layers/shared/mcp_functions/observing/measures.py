"""The metrics of one request. Dimensions are names of the catalog and constants of ours: no client can make one.

A metric is written when it happened: a request that went well and asked KMS nothing makes one blob, of two or three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.observing.notes import failed, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.observing.notes import Notes

Measures: TypeAlias = "dict[str, tuple[str, float]]"  # metric -> unit, value
COUNT, TIME = "Count", "Milliseconds"
ENDPOINT, NONE = "endpoint", "none"


def measured(notes: Notes, *, endpoint: bool) -> Iterator[tuple[dict[str, str], Measures]]:
    """Say what is counted of a request: for each set of dimensions, beside `service`, its metrics."""
    usual: Measures = {"Requests": (COUNT, 1.0)}
    if latency := milliseconds(notes.seconds):
        usual["Latency"] = (TIME, latency)
    if notes.flow and notes.outcome == "complete" and notes.round:
        usual["Rounds"] = (COUNT, float(notes.round))
    yield {"handler": ENDPOINT if endpoint else notes.handler or NONE}, usual
    if happened := {
        name: (unit, float(value))
        for name, unit, value in (
            ("Failed", COUNT, failed(notes)),
            ("Misconfigured", COUNT, notes.misconfigured),
            ("Crashed", COUNT, notes.outcome == "crashed"),
            ("KmsFailures", COUNT, notes.kms_failures),
            ("KmsLatency", TIME, milliseconds(notes.kms_seconds) if notes.kms_calls else 0),
            ("ColdStarts", COUNT, notes.cold_start),
        )
        if value
    }:
        yield {}, happened
    if notes.outcome == "refused":
        yield {"code": "http" if notes.code is None else str(notes.code)}, {"Refused": (COUNT, 1)}
