"""Proposals to MCP that were not released, for clients that ask for one with an experimental capability.

A dialect is one proposal ("SEP"), in a module `sep_<number>.py`. The setting MCP_DIALECTS enables it. It translates:

    a request                    `answer`: translated, answered in the released revision, and translated back
    answers without a request    `continue_call`: becomes a call of the released revision, which continues

Such answers come with a token: the folder of the function that asked, a dot, and sealed data that only this function
opens. A front door, which forwards requests to the functions, reads the folder. A request in which the client asks for
no dialect is answered in the released revision.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import DialectContext, declaration
from mcp_functions.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    RESUME_METHOD,
)
from mcp_functions.protocol.errors import InvalidRequestState, MethodNotFound, Misconfigured, StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_functions.dialects.dialect import Dialect
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.protocol.wire_types import JSONValue

__all__ = ["DialectContext", "FrontDoorDialects", "FunctionDialects", "load"]


class FunctionDialects(NamedTuple):
    """The dialects of a function that has handlers."""

    dialects: list[Dialect]
    context: DialectContext

    def answer(self, request: Request) -> AnyResult:
        """Answer a request in the first dialect that its client asks for, or in the released revision."""
        for dialect in self.dialects:
            if declaration(request, dialect.name) is not None:
                try:
                    return dialect.answer(self.context, request)
                except StateTooLarge as error:
                    return turn_state.too_large(self.context, request, error)
        return self.context.answer_current(request)

    def continue_call(self, http: HttpRequest, body: JSONValue) -> Continuation | None:
        """Return the request that a body continues, or None; InvalidRequestState if its token is not ours."""
        for dialect in self.dialects:
            token = dialect.read_token(http, body)
            if token is not None:
                return dialect.continue_call(self.context, http, body, token)
        return None


class FrontDoorDialects(NamedTuple):
    """The dialects of a front door, which opens no token: it reads only the folder with which a token begins."""

    dialects: list[Dialect]
    catalog: Catalog  # which function has which tool, prompt or resource
    answer_current: Callable[[Request], AnyResult]  # answers a request of the released revision
    forward: Callable[[str, Request], ForwardedResponse]  # sends one to the function in a folder

    def answer(self, request: Request) -> AnyResult:
        """Answer a request, or forward it."""
        if request.message["id"] is None:  # `_message_to_forward` made it, and no client
            return self.forward(request.params["function"], request)
        for dialect in self.dialects:
            task_id = dialect.read_task_id(request)
            if task_id is not None:
                if not self.catalog.get("tasks"):
                    raise MethodNotFound
                from mcp_functions.tasks import task_requests

                return self.forward(task_requests.function_of(self.catalog, task_id), request)
        return self.answer_current(request)

    def continue_call(self, http: HttpRequest, body: JSONValue) -> Continuation | None:
        """Return a message for the function that continues a body, or None; InvalidRequestState if it is unknown."""
        for dialect in self.dialects:
            token = dialect.read_token(http, body)
            if token is not None:
                return self._message_to_forward(http, token)
        return None

    def _message_to_forward(self, http: HttpRequest, token: str) -> Continuation:
        """Return a message with the id null, which `answer` forwards to the function that made a token."""
        folder, _dot, _sealed = token.partition(".")
        known_folders = {known for folders in self.catalog["functions"].values() for known in folders.values()}
        if folder not in known_folders:
            raise InvalidRequestState(reason="unknown_function")
        meta = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: {}}
        params = {"function": folder, "_meta": meta}
        message: Any = {"jsonrpc": "2.0", "id": None, "method": RESUME_METHOD, "params": params}
        return http._replace(headers={**http.headers, "mcp-method": RESUME_METHOD}), message


def load(names: Iterable[str]) -> list[Dialect]:
    """Return the dialects that MCP_DIALECTS names; Misconfigured if a name is unknown."""
    modules = sorted(found.name for found in iter_modules(__path__) if found.name.startswith("sep_"))
    known_names = [module.replace("_", "-") for module in modules]
    dialects: list[Dialect] = []
    for name in names:
        if name not in known_names:
            raise Misconfigured(reason=f"MCP_DIALECTS names {name!r}: there are {', '.join(known_names)}")
        module = name.replace("-", "_")
        dialects.append(import_module(f"{__name__}.{module}").DIALECT)
    return dialects
