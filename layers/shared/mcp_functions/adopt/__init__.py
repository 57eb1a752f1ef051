"""Servers written with `mcp` or `fastmcp` run as one Lambda, unchanged: `handler = serve(*adopt(server))`.

    from mcp_functions import serve
    from mcp_functions.adopt import adopt

    handler = serve(*adopt(server, replay=["transfer"]))

The server's own code lists, validates and answers. This room gives it a client to talk to: a question of a tool in
`replay` ends the round, and the next round runs the tool again from its first line. Only these modules import `mcp`.
"""

from __future__ import annotations

from mcp_functions.adopt.adoption import adopt
from mcp_functions.adopt.sealing import seal_states
from mcp_functions.adopt.steps import step

__all__ = ["adopt", "seal_states", "step"]
