"""An adopted server: an unchanged server that was written with the library `mcp` or `fastmcp`.

server = AdoptedServer(FastMCP("clinic"))
server.read_page("tools/list", {})                 a page of a list
server.answer("completion/complete", params, …)    the result of a request that cannot ask
await server.run(…)                                one request with a back channel; `one_round` runs calls with it
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp.server.request_state import RequestStateBoundary

from mcp_functions.adopt.back_channel import KIND, SilentChannel
from mcp_functions.adopt.component_scopes import read_scopes
from mcp_functions.adopt.library import find_low_level, find_outermost, kind_of
from mcp_functions.adopt.one_request import run_request
from mcp_functions.adopt.surroundings import as_caller, over_transport
from mcp_functions.handlers import event_loop
from mcp_functions.handlers.lazy_values import lazy_value
from mcp_functions.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, PROTOCOL_VERSION

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import ServerCapabilities

    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import Meta, Params, ResultObject

# The `_meta` of a request that this toolkit itself makes.
OWN_META: Meta = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: {}}


class Lifespan:
    """The lifespan of a server, a context manager that is open while it runs.

    `enter` enters it, if no earlier call did. Code that runs in the event loop cannot call that.
    """

    def __init__(self, low_level: Server[Any]) -> None:
        """Keep the server; nothing is entered."""
        self.state: object = {}  # what the lifespan yielded; {} before it is entered
        self.enter = lazy_value(self._enter)
        self._low_level = low_level

    def _enter(self) -> None:
        self.state = event_loop.enter(self._low_level.lifespan(self._low_level))


class AdoptedServer:
    """An adopted server, by its low-level `Server`.

    Attributes:
        original: the server, as its author made it.
        low_level_of_author: the low-level server inside it.
        low_level: a copy of that, which answers requests. It has the handlers, the middleware and the lifespan.
        lifespan: the lifespan, which calls enter and lists may do without.
    """

    def __init__(self, server: object) -> None:
        """Take a copy of the low-level server."""
        self.low_level_of_author = find_low_level(server)
        # FastMCP's low-level server has only a weak reference to its FastMCP. This attribute keeps the FastMCP alive.
        self.original = find_outermost(server)
        self.low_level = copy(self.low_level_of_author)
        self.lifespan = Lifespan(self.low_level)

    @cached_property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declares. A lifespan may add some, so they are read after the lists."""
        return self.low_level.get_capabilities(protocol_version=PROTOCOL_VERSION)

    def read_page(self, method: str, params: Params) -> ResultObject:
        """Read one page of a list, with every entry: at each call, the server decides whether its caller may."""
        with over_transport("stdio"):  # over others, FastMCP hides what the caller may not use
            return self._run_silently(method, params)

    def component_scopes(self) -> dict[tuple[str, str], set[str]]:
        """Return the scopes that a FastMCP server requires for each entry, by the entry's list and key."""
        if kind_of(self.original) != "FastMCP":
            return {}
        with over_transport("stdio"):  # as in `read_page`
            return event_loop.run(read_scopes(self.original))

    def answer(self, method: str, params: Params, caller: Request) -> ResultObject:
        """Answer a completion, or a request of an extension of the server, as its caller."""
        self.lifespan.enter()
        with over_transport(KIND), as_caller(caller):
            return self._run_silently(method, params)

    def _run_silently(self, method: str, params: Params) -> ResultObject:
        """Run a request during which the server can send nothing to the client."""
        sent: Params = {"_meta": OWN_META, **params}
        return event_loop.run(self.run(method, sent, SilentChannel()))

    async def run(self, method: str, params: Params, channel: SilentChannel) -> ResultObject:
        """Run one request, with the middleware that the server has now: its author may add some later.

        The middleware that seals states stays out. A state is what a handler remembers until the user answers. This
        toolkit seals it: that middleware has a key of this process alone, and another one may continue the call.
        """
        own = [each for each in self.low_level_of_author.middleware if not isinstance(each, RequestStateBoundary)]
        self.low_level.middleware = own
        return await run_request(self.low_level, method, params, channel, self.lifespan.state)
