"""A free port, for programs that cannot listen on port 0."""

from __future__ import annotations

import socket


def find_free_port() -> int:
    """Return a port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
