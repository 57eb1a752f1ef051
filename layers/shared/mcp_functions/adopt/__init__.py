"""Servers written with `mcp` or `fastmcp` run as one Lambda, unchanged: `handler = serve(*adopt(server))`.

    from mcp_functions import serve
    from mcp_functions.adopt import adopt

    handler = serve(*adopt(server, replay=["transfer"]))

The server's own code lists, validates and answers. This package gives it a client to talk to. A round is one request
of a call: a question of a tool in `replay` ends the round, and the next round runs the tool again from its first line.

    adoption       `adopt`: `lists` reads the server's lists, and each entry becomes one of the `handlers`
    options        the table of a server's options: what adoption carries, names and refuses
    finders        which of them an author has set; also `http_finders`
    scopes         the scopes that a server requires of its callers; also `component_scopes`
    server         an adopted server; `one_request` and `one_round` run requests with its own code
    back_channel   what the server sends to its client meanwhile; `questions` has the rules of its questions
    surroundings   what a server reads beside a request: its caller, for example
    library        the parts of `mcp` and `fastmcp` that this package reads
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
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from mcp_functions.adopt.sealing import seal_states

        return seal_states
