"""What is told of each request: one line in the log, and metrics if they are wanted.

Whoever learns something writes it down (`current()`); the gateway tells it once, when the answer stands. Codes, names
of ours, sizes and times: no argument, answer, state or principal, and no word that a client chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.observing import lines
from mcp_functions.observing.notes import (
    UNKNOWN,
    Notes,
    correlation,
    current,
    digest,
    is_cold,
    kms,
    noting,
    size,
    trace,
    where,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "UNKNOWN", "Notes", "Observer", "correlation", "current", "digest", "is_cold", "kms", "noting", "observer",
    "redacted", "size", "tell", "trace", "where",
]  # fmt: skip

Observer: TypeAlias = "Callable[[Notes], None]"

TRUE = {"1", "y", "yes", "t", "true", "on"}  # as Powertools reads it

tell = lines.tell


def observer(environ: Mapping[str, str], *, endpoint: bool = False) -> Observer:
    """Choose who is told of requests, as the environment says. Powertools is imported here, at init, or never.

    Args:
        environ: the environment, as `os.environ`.
        endpoint: whether this is the front door, whose metrics go under a name of their own.

    """
    asked, lambdas = lines.level(environ, "POWERTOOLS_LOG_LEVEL"), lines.level(environ, "AWS_LAMBDA_LOG_LEVEL")
    level = max(asked or 0, lambdas or 0)  # "keep Logger and ALC log level in sync": the stricter one holds
    if asked:
        lines.log.setLevel(level)
    wanted = _measures(environ)
    if not wanted and not (asked and level <= lines.INFO):
        return tell  # Lambda's own formatter writes the same fields, if its LogFormat is JSON
    try:
        from mcp_functions.observing import powertools  # noqa: PLC0415 - 40 ms, and only if somebody reads it
    except ImportError:
        return tell  # outside our layers: the same lines, and no metrics
    service = environ.get("POWERTOOLS_SERVICE_NAME") or environ.get("MCP_STACK") or "mcp-functions"
    if 0 < level <= lines.INFO:
        powertools.write_lines(service, level)
    return powertools.measuring(service, endpoint=endpoint) if wanted else tell


def redacted(text: str, *values: object) -> str:
    """Hide in a text every string and number that stands in some values, and every name in their inner objects."""
    from mcp_functions.observing import redacting  # noqa: PLC0415 - only for a mistake of an author's

    return redacting.redacted(text, *values)


def _measures(environ: Mapping[str, str]) -> bool:
    # POWERTOOLS_DEV turns metrics off too, unless they are turned on by name
    disabled = environ.get("POWERTOOLS_METRICS_DISABLED") or environ.get("POWERTOOLS_DEV", "")
    return bool(environ.get("POWERTOOLS_METRICS_NAMESPACE")) and disabled.lower() not in TRUE
