"""The HTTP server behind every endpoint of the harness, and the requests and responses that it passes on."""

from mcp_functions.local.loopback.messages import HOST, HttpRequest, HttpResponse, json_object, json_response
from mcp_functions.local.loopback.server import Loopback, start_server

__all__ = ["HOST", "HttpRequest", "HttpResponse", "Loopback", "json_object", "json_response", "start_server"]
