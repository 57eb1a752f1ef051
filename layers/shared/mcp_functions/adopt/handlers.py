"""The tools, prompts and resources of an adopted server, as handlers of this toolkit.

Each handler has an entry of the server's lists, and passes its requests to the server. One more handler of each kind
has no entry, and the name `UNLISTED_KEY`. It serves the names that the lists leave out.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from mcp_functions import observability
from mcp_functions.adopt.one_request import AdoptedError
from mcp_functions.adopt.one_round import run_round
from mcp_functions.adopt.questions import AdoptedQuestions
from mcp_functions.handlers.base import Handler
from mcp_functions.handlers.catalog import UNLISTED_KEY
from mcp_functions.protocol import header_parameters
from mcp_functions.protocol.errors import DeveloperError, InternalError, InvalidParams, McpError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_functions.adopt.server import AdoptedServer
    from mcp_functions.protocol.messages import Request
    from mcp_functions.protocol.wire_types import ListEntry, Params, ResultObject
    from mcp_functions.rounds.round import Round

UNLISTED_NAME = "what is not listed"  # a handler without an entry, in errors and in the log


@contextmanager
def _hidden_exceptions(missing: Sequence[str] = ()) -> Iterator[None]:
    """Hide the text of an exception that a server raises, as its own library would. The log gets the place in the code.

    If the request lacks required arguments, these are the reason.
    """
    try:
        yield
    except McpError:
        raise
    except Exception as error:  # noqa: BLE001 - the server's own code may raise anything
        if missing:
            # "Missing required arguments: -32602 (Invalid params)" (MCP 2026-07-28, Prompts, Error Handling)
            raise AdoptedError(InvalidParams.code, f"Missing required arguments: {', '.join(missing)}") from None
        observability.current().add_crash(error)
        raise AdoptedError(InternalError.code, "Internal server error") from None


class AdoptedHandler(Handler[..., Any]):
    """One entry of an adopted server's lists; or, without an entry, all names that a list leaves out."""

    method: ClassVar[str]  # the method of the requests that call the handler
    key_field: ClassVar[str] = "name"  # the member of the entry by which requests name the handler
    needs_state = True
    passes_on = True
    replays = False  # whether it may ask in the middle of its work, and then runs again

    def __init__(self, server: AdoptedServer, entry: ListEntry) -> None:
        """Read the entry, which is empty for names that the list leaves out. `adopt` sets its own options."""
        self._server = server
        self._entry = entry.copy()
        self.key = str(entry.get(self.key_field, UNLISTED_KEY))
        self.name = str(entry.get("name", UNLISTED_KEY))
        self.is_listed = bool(entry)
        # Errors and the log do not quote a name that is not listed: the client may have made it up.
        self.name_in_errors = self.name if entry else UNLISTED_NAME
        self.logs = server.capabilities.logging is not None
        self.has_completers = server.capabilities.completions is not None
        self.header_arguments = header_parameters.find(entry.get("inputSchema", {}))

    def describe(self) -> ListEntry:
        """Return the handler's entry, as the server lists it; empty without one."""
        return self._entry.copy()

    def call(self, params: Params, round_: Round | None) -> ResultObject:
        """Run one round of a request."""
        if round_ is None:  # dispatch makes a round for each handler that `needs_round`
            raise DeveloperError("an adopted handler runs in a round")
        questions = AdoptedQuestions(round_, self.name_in_errors, replays=self.replays)
        with _hidden_exceptions(self._missing_arguments(params)):
            return run_round(self._server, self.method, params, questions)

    def _missing_arguments(self, params: Params) -> list[str]:
        """Return the required arguments that a request lacks. The entry of a prompt names them."""
        given = params.get("arguments") or {}
        arguments = self._entry.get("arguments", ())
        return [each["name"] for each in arguments if each.get("required") and each["name"] not in given]

    def pass_on(self, request: Request) -> ResultObject:
        """Answer a completion, or a request of an extension of the server."""
        with _hidden_exceptions():
            return self._server.answer(request.method, request.params, request)


class AdoptedTool(AdoptedHandler):
    """A tool of an adopted server."""

    kind = "tool"
    method = "tools/call"


class AdoptedPrompt(AdoptedHandler):
    """A prompt of an adopted server."""

    kind = "prompt"
    method = "prompts/get"


class AdoptedResource(AdoptedHandler):
    """A resource of an adopted server."""

    kind = "resource"
    method = "resources/read"
    key_field = "uri"


class AdoptedTemplate(AdoptedResource):
    """A URI template of an adopted server."""

    kind = "resource_template"
    key_field = "uriTemplate"
