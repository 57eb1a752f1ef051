"""One log line for each request.

Each room adds facts to the current request's notes (`current()`); the gateway writes them when the response is ready.
A line holds codes, this package's names, sizes and times. It never holds an argument, answer, state or principal.
"""

from __future__ import annotations

from mcp_functions.observability.lines import Logger, correlated, write_line
from mcp_functions.observability.notes import (
    PACKAGE,
    UNKNOWN,
    KmsTimer,
    Notes,
    current,
    digest,
    frames,
    is_cold,
    listener,
    progress_listener,
    restore_current,
    set_current,
    size,
    trace_id,
)

__all__ = [
    "PACKAGE", "UNKNOWN", "KmsTimer", "Logger", "Notes", "correlated", "current", "digest", "frames",
    "is_cold", "listener", "progress_listener", "restore_current", "set_current", "size", "trace_id", "write_line",
]  # fmt: skip
