"""The contenders: a row for each, with the features that it lacks, which the tables name beside its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.benchmarks.dialects import MODERN, PLAIN

if TYPE_CHECKING:
    from tests.benchmarks.dialects import Dialect

OURS, OBSERVED, FLOOR = "mcp-functions", "mcp-functions, logs on", "floor"
AWSLABS, SDK, LOWLEVEL = "awslabs.mcp-lambda-handler 0.1.15", "mcp 2.3.0 + Mangum", "mcp 2.3.0 lowlevel"
SDK_KMS, FASTMCP = "mcp 2.3.0 + Mangum, boto3 KMS codec", "fastmcp 4.1.6 + Mangum"
SEALING = "floor, sealed"
LIGHT = "mcp-functions, a form without pydantic"
EMPTY, JSON = "python, nothing imported", "python, import json"
NOTHING = "a function that does nothing"

# LOUD includes the cost of logs in production; QUIET is compared with peers, which write no logs.
QUIET = {"AWS_LAMBDA_LOG_LEVEL": "WARNING"}
LOUD = {"AWS_LAMBDA_LOG_LEVEL": "INFO"}


class Entrant(NamedTuple):
    """One contender.

    Attributes:
        title: in tables.
        module: of contenders/; "" is an interpreter alone.
        trees: package trees from which it is imported, besides its module.
        dialect: the protocol dialect that it supports.
        environ: variables for it alone.
        peer: whether ratios compare with it.
        note: the features that it lacks.

    """

    title: str
    module: str
    trees: tuple[str, ...] = ()
    dialect: Dialect = MODERN
    environ: tuple[tuple[str, str], ...] = ()
    peer: bool = False
    note: str = ""


ENTRANTS = {
    entrant.title: entrant
    for entrant in (
        Entrant(EMPTY, ""),
        Entrant(JSON, "json"),
        Entrant(NOTHING, "nothing"),
        Entrant(
            FLOOR,
            "floor",
            ("layers",),
            note="strict, standard library; one tool, one form of call; no log, no limits, no identity",
        ),
        Entrant(SEALING, "sealing_floor", ("layers",), note="states are sealed as envelope.md says"),
        Entrant(OURS, "ours", ("layers", "boto3"), environ=tuple(QUIET.items())),
        Entrant(OBSERVED, "ours", ("layers", "boto3"), environ=tuple(LOUD.items()), note="metrics come from the logs"),
        Entrant(LIGHT, "ours_light", ("layers", "boto3"), environ=tuple(QUIET.items()), note="the form is a Literal"),
        Entrant(
            AWSLABS,
            "awslabs_handler",
            ("awslabs",),
            PLAIN,
            peer=True,
            note="revision 2024-11-05: checks no header and no argument, has no structured result, cannot ask",
        ),
        Entrant(SDK, "mcp_mangum", ("mcp",), peer=True, note="no log of requests"),
        Entrant(SDK_KMS, "mcp_mangum", ("mcp", "boto3"), peer=True, note="one wrapped key, unwrapped at start"),
        Entrant(LOWLEVEL, "mcp_lowlevel", ("mcp",), peer=True, note="arguments, answers unchecked; no adapter"),
        Entrant(FASTMCP, "fastmcp_mangum", ("fastmcp",), peer=True),
    )
}
