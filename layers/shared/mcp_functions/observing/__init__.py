"""What is told of each request: one line in the log, and metrics if they are wanted.

Whoever learns something writes it down (`current()`); the gateway tells it once, when the answer stands. Codes, names
of ours, sizes and times: no argument, answer, state or principal, and no word that a client chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mcp_functions.observing import lines
from mcp_functions.observing.notes import (
    PACKAGE,
    UNKNOWN,
    Notes,
    correlation,
    current,
    digest,
    frames,
    is_cold,
    kms,
    listener,
    put_back,
    size,
    take,
    trace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "PACKAGE", "UNKNOWN", "Notes", "Observer", "correlation", "current", "digest", "frames", "is_cold", "kms",
    "listener", "observer", "put_back", "size", "take", "tell", "trace",
]  # fmt: skip

Observer: TypeAlias = "Callable[[Notes], None]"

TRUE = {"1", "y", "yes", "t", "true", "on"}  # as Powertools reads it

tell = lines.tell


def observer(environ: Mapping[str, str], *, endpoint: bool = False) -> Observer:
    """Choose who is told of requests, as the environment says.

    The variables are those of Powertools for AWS Lambda, and mean the same.

    Args:
        environ: the environment, as `os.environ`.
        endpoint: whether this is the front door, whose metrics go under a name of their own.

    """
    asked, lambdas = lines.level(environ, "POWERTOOLS_LOG_LEVEL"), lines.level(environ, "AWS_LAMBDA_LOG_LEVEL")
    level = max(asked or 0, lambdas or 0)  # "keep Logger and ALC log level in sync": the stricter one holds
    if asked:
        lines.log.setLevel(level)
    namespace = _namespace(environ)
    written = level if (asked or namespace) and level <= lines.INFO else 0
    if not namespace and not written:
        return tell  # Lambda's own formatter writes the same fields, if its LogFormat is JSON
    from mcp_functions.observing import writing  # noqa: PLC0415 - only if somebody reads it

    service = environ.get("POWERTOOLS_SERVICE_NAME") or environ.get("MCP_STACK") or "mcp-functions"
    return writing.observer(service, written, namespace, endpoint=endpoint)


def _namespace(environ: Mapping[str, str]) -> str:
    """Say where metrics go; "" if there are none."""
    # POWERTOOLS_DEV turns metrics off too, unless they are turned on by name
    disabled = environ.get("POWERTOOLS_METRICS_DISABLED") or environ.get("POWERTOOLS_DEV", "")
    return "" if disabled.lower() in TRUE else environ.get("POWERTOOLS_METRICS_NAMESPACE", "")
