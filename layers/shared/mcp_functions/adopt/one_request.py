"""Runs one request with a low-level server in this process: the library answers as if it had come over the network.

The request is one of 2026-07-28, where a server may have its own way to ask. A back channel takes the place of the
connection: it gets what the server sends to the client meanwhile (`back_channel`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from mcp_functions.protocol.constants import META_CLIENT_CAPABILITIES, META_CLIENT_INFO, PROTOCOL_VERSION
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from mcp_functions.adopt.back_channel import SilentChannel
    from mcp_functions.protocol.wire_types import Params, ResultObject


class AdoptedError(McpError):
    """A JSON-RPC error of an adopted server, as its own library writes it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the code, which differs from error to error, beside the message."""
        super().__init__(message=message, data=data)
        self.code = code


async def run_request(
    low_level: Server[Any], method: str, params: Params, channel: SilentChannel, lifespan_state: object
) -> ResultObject:
    """Return the result of a request, whose params have a `_meta`; AdoptedError if the server answers with an error."""
    client_info = params["_meta"].get(META_CLIENT_INFO)
    capabilities = params["_meta"].get(META_CLIENT_CAPABILITIES)
    connection = Connection.from_envelope(PROTOCOL_VERSION, client_info, capabilities, outbound=channel)
    try:
        result = await serve_one(
            low_level, channel, method, params, connection=connection, lifespan_state=lifespan_state
        )
    except (MCPError, ValidationError) as error:
        written = modern_error_data(error)  # the JSON-RPC error, as the library writes it
        raise AdoptedError(written.code, written.message, written.data) from None
    return cast("ResultObject", result)
