"""The cold sign-in: one new process answers all its requests, from the front's metadata to the tokens of the host.

The provider and the browser are in the measuring process, so that no figure includes them. KMS and the provider are
reached over HTTP, without TLS.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tests.benchmarks import dialects
from tests.benchmarks.lab import Process
from tests.oauth.oauth_server import RESOURCE, OAuthServer, running_server, token_claims

if TYPE_CHECKING:
    from tests.benchmarks.lab import Item, Lab

FUNCTION = "sign_in"
METADATA = "/.well-known/oauth-authorization-server"
DECIDED = {  # by the server of the tests, and by no contender
    "MCP_AUTH_MODE",
    "MCP_JWT_AUDIENCE",
    "MCP_JWT_ISSUER",
    "MCP_OAUTH_CLIENT_ID",
    "MCP_OAUTH_RESOURCE_PARAMETER",
    "MCP_OAUTH_URL",
    "MCP_RESOURCE_URL",
    "MCP_SCOPES_SUPPORTED",
}


def took(lab: Lab, item: Item) -> tuple[int, int, int, int]:
    """Sign a person in; return the processor and wall time of the process (nanoseconds), its memory (KB), its modules.

    Raises:
        WrongAnswer: the sign-in failed.

    """
    with running_server() as server:
        variables = {name: os.environ[name] for name in DECIDED}
        entrant = item.entrant._replace(environ=(*item.entrant.environ, *variables.items()))
        began = time.monotonic_ns()
        process = Process(lab, item._replace(entrant=entrant), FUNCTION)
        try:
            _sign_in(server, process)
            wall = time.monotonic_ns() - began
            memory, modules = process.size()
            return process.cpu(), wall, memory, modules
        finally:
            process.close()


def _sign_in(server: OAuthServer, process: Process) -> None:
    def answer(event: Any, _context: object) -> dict[str, Any]:  # noqa: ANN401 - an event
        return process.once(event)

    server.process = answer
    server.clock.advance(time.time() - server.clock())  # the process has the machine's own clock
    try:
        assert server.send("GET", METADATA).status == 200
        tokens = server.get_tokens(server.new_client())
        assert token_claims(tokens["access_token"])["aud"] == RESOURCE
    except AssertionError as wrong:
        message = f"the sign-in failed: {wrong}"
        raise dialects.WrongAnswer(message) from wrong
