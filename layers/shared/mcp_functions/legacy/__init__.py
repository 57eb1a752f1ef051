"""Clients of 2025 use the same functions through this translation layer; no server keeps a session.

A request of an earlier revision becomes one of 2026-07-28. Its result is translated back as far as possible.
A session is a sealed token. A question ends the response body, and its answer arrives as a separate request.
The path of 2026-07-28 does not import this package, so deleting these files removes the feature.
"""

from __future__ import annotations

from mcp_functions.legacy.runner import ModernServer
from mcp_functions.legacy.server import LegacyServer

__all__ = ["LegacyServer", "ModernServer"]
