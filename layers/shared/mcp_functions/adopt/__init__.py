"""Servers written with `mcp` or `fastmcp` run as one Lambda, unchanged: `handler = serve(*adopt(server))`.

    from mcp_functions import serve
    from mcp_functions.adopt import adopt

    handler = serve(*adopt(server, replay=["transfer"]))

The server's own code lists, validates and answers. This package gives it a client to talk to. A round is one request
of a call: a question of a tool in `replay` ends the round, and the next round runs the tool again from its first line.

    adoption       `adopt` reads the server's lists, and makes a handler of each entry
    options        the table of a server's options: what adoption carries, names and refuses
    scopes         the scopes that FastMCP requires for single tools, prompts and resources
    handlers       the handlers; each passes its requests to the server
    server         gives one request to the server's own code
    back_channel   what the server sends to its client meanwhile: questions, progress and log messages
    library        the parts of `mcp` and `fastmcp` that this package reads and sets
    steps          `step` for work that must run once
    sealing        `seal_states`, for a server that stays on containers

Only these modules import `mcp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.adopt.adoption import adopt
from mcp_functions.adopt.steps import step

if TYPE_CHECKING:
    from mcp_functions.adopt.sealing import seal_states

__all__ = ["adopt", "seal_states", "step"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import `seal_states` at its first use: an adopted server does not need it."""
        if name != "seal_states":
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from mcp_functions.adopt.sealing import seal_states

        return seal_states
