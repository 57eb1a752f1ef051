"""What is told of each request: one line in the log.

Whoever learns something writes it down (`current()`); the gateway tells it once, when the answer stands. Codes, names
of ours, sizes and times: no argument, answer, state or principal, and no word that a client chose.
"""

from __future__ import annotations

from mcp_functions.observability.lines import Logger, correlated, tell
from mcp_functions.observability.notes import (
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

__all__ = [
    "PACKAGE", "UNKNOWN", "Logger", "Notes", "correlated", "correlation", "current", "digest", "frames", "is_cold",
    "kms", "listener", "put_back", "size", "take", "tell", "trace",
]  # fmt: skip
