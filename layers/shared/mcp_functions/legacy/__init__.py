"""The legacy era: clients of 2025 over the same functions, with nothing that remembers them.

A translation over the modern core: a request of an earlier revision becomes one of 2026-07-28, and what comes back is
told as far as that revision knows it. A session is a sealed token; a question is an event that ends the body, and its
answer comes as a request of its own. The modern path does not import this package: deleting it is deleting files.
"""

from __future__ import annotations

from mcp_functions.legacy.door import Legacy

__all__ = ["Legacy"]
