"""JSON-RPC errors of an adopted server: an exception of its library becomes one of this toolkit, with the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.runner import modern_error_data

from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError


class AdoptedError(McpError):
    """A JSON-RPC error of an adopted server, as its own library writes it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the code, which differs from error to error, beside the message."""
        super().__init__(message, data)
        self.code = code


def read_error(error: MCPError | ValidationError) -> AdoptedError:
    """Write the JSON-RPC error of an exception, as the server's own library does."""
    written = modern_error_data(error)
    return AdoptedError(written.code, written.message, written.data)
