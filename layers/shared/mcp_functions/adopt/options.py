"""What `adopt` does with each option of a server: the table, and the check of one server against it.

An option is an argument of `FastMCP(…)`, `MCPServer(…)` or `Server(…)`, or what an author adds to the server later. It
may say who may call, so none is dropped without a word:

    carried    the library's own code applies it to each call
    named      Lambda or this toolkit does it in another way, or not at all: a warning names it, if it is set
    refused    `adopt` raises a ValueError that names it, if it is set
    unused     it has no meaning on Lambda, and says nothing about who may call

`adopt`, `mcp-functions adopt --check` and `adopt --into` say the same sentences, because each calls `examine`. The page
docs/bring-your-server.md has the same table. An option that the table does not know is named if it may be set.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.adopt import finders, http_finders
from mcp_functions.adopt.finders import Examined
from mcp_functions.adopt.library import LIBRARIES, kind_of
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp.server.lowlevel import Server

Fate: TypeAlias = Literal["carried", "named", "refused", "unused"]
FASTMCP = ("FastMCP",)
MCPSERVER = ("MCPServer",)
UNKNOWN = "this release of mcp-functions does not know it. It is dropped, unless the library applies it to each call."


class Option(NamedTuple):
    """One row of the table: options that have the same fate for the same reason."""

    fate: Fate
    names: str  # with blanks between them
    means: str  # what happens, and why: for the page, and for the author who has set the option
    # It returns those of the names that a server has set. Rows of the fates "named" and "refused" have it.
    find: Callable[[Examined], Iterable[str]] | None = None
    kinds: tuple[str, ...] = (*FASTMCP, *MCPSERVER, "Server")


class Notice(NamedTuple):
    """What `adopt` says about one option of a server."""

    fate: Fate
    text: str


# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("carried",
        "name title description instructions version website_url icons lifespan tools resources providers transforms "
        "extensions mask_error_details strict_input_validation resource_security client_log_level on_call_tool "
        "on_get_prompt on_read_resource on_completion",
        "The library's own code applies it, as in the original."),
    Option("carried", "on_list_tools on_list_prompts on_list_resources on_list_resource_templates dereference_schemas",
        "Lists are read once, when the function loads, with every entry and without a caller. Each call is checked."),
    Option("carried", "request_state_security",
        "A ttl of less than 600 s bounds answer_within. KMS seals the states in the place of its keys."),
    Option("unused",
        "on_duplicate warn_on_duplicate_tools warn_on_duplicate_resources warn_on_duplicate_prompts dependencies "
        "debug log_level get_tool_input_schema list_page_size cache_ttl cache_scope cache_hints",
        "It has worked before adopt, or a setting of the deployment decides it."),
    Option("named", "auth token_verifier auth_server_provider",
        "The required scopes of auth become the scopes of every handler. AuthMode none refuses each call, and iam if "
        "a scope is required. AuthMode decides who a caller is: the server's own verifier, sign-in and routes do not "
        "run. Every caller may read the lists.", finders.arguments("auth", "token_verifier", "auth_server_provider")),
    Option("named", "mount",
        "It does not run, as in the original: only the outer server's auth counts.", finders.mounted_auth, FASTMCP),
    Option("named", "middleware add_middleware",
        "It runs for calls and completions. Discovery and lists do not pass it: they are read once, without a caller.",
        finders.own_middleware),
    Option("named", "RateLimitingMiddleware",
        "It counts in one process, so each Lambda has a count of its own. Limit the rate at API Gateway.",
        finders.rate_limits, FASTMCP),
    Option("refused", "RequestStateSecurity(bind_principal=…)",
        "adopt binds each state to the caller that API Gateway names, so a rule of the server's own would be "
        "dropped. Leave it out, or check the caller in the handler.", finders.own_principal),
    Option("named", "RequestStateSecurity(codec=…)",
        "It does not run: KMS seals the states.", finders.own_codec),
    Option("refused", "RequestStateBoundary",
        "adopt seals the states itself, so this subclass would not run. Put what it adds into another middleware.",
        finders.own_boundary),
    Option("carried", "require_scopes restrict_tag",
        "FastMCP checks it at each call, and its scopes are also those of the handler. AuthModes iam and none refuse "
        "the call.", kinds=FASTMCP),
    Option("named", "AuthMiddleware require_roles",
        "A check that is no scope runs at each call. It knows the caller's issuer, subject, client and scopes. The "
        "other claims of the token are not passed on, so a check of roles refuses.", finders.other_checks, FASTMCP),
    Option("named", "custom_route",
        "Only MCP is served: this route of HTTP is not.", http_finders.routes, FASTMCP + MCPSERVER),
    Option("named", "http_app streamable_http_app",
        "Only MCP is served: the middleware, routes, hosts and sign-in of an HTTP application do not run. AuthMode "
        "decides who may call. Check in the handlers what else the application requires.", http_finders.http_apps),
    Option("named", "get_http_headers get_http_request",
        "There is no HTTP request: headers are empty, as under stdio. A check that lets in a caller without a "
        "request lets in everybody.", http_finders.http_readers),
    Option("named", "session_state_store",
        "A Lambda has no session: what ctx.set_state writes ends with its call.", finders.session_store, FASTMCP),
    Option("named", "experimental_capabilities",
        "They are not declared.", finders.arguments("experimental_capabilities"), FASTMCP),
    Option("named", "tasks",
        "No Lambda runs between two requests: a tool runs in its request, and not as a task.", finders.tasks, FASTMCP),
    Option("named", "subscriptions",
        "No Lambda runs between two requests: nobody can subscribe.", finders.own_bus, MCPSERVER),
    Option("named", f"{' '.join(finders.NOT_CALLED)} add_notification_handler",
        "It is not called: the toolkit answers itself, or no Lambda runs when the client sends this.",
        finders.uncalled_handlers),
)
# fmt: on


def examine(server: object, low_level: Server[Any]) -> list[Notice]:
    """Return what `adopt` has to say about a server: refusals first."""
    examined = Examined(server, low_level, kind_of(server))
    notices: list[Notice] = []
    for option in OPTIONS:
        if option.find and examined.kind in option.kinds:
            found = list(dict.fromkeys(option.find(examined)))
            if found:
                notices.append(Notice(option.fate, f"{', '.join(found)}: {option.means}"))
    unknown = [f"{name}=…" for name in _unknown_options(examined)]
    if unknown:
        text = f"{examined.kind}({', '.join(unknown)}): {UNKNOWN}"
        notices.append(Notice("named", text))
    return sorted(notices, key=lambda notice: notice.fate != "refused")


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a library's class, by name. `**kwargs` is none: the library takes nothing through it."""
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}


def known_parameters(kind: str) -> set[str]:
    """Return the names of the parameters of one kind that the table has."""
    return {name for option in OPTIONS if kind in option.kinds for name in option.names.split()}


def _unknown_options(examined: Examined) -> Iterator[str]:
    """Find parameters of the installed library that the table does not know, and that may be set."""
    classes = [each for each in type(examined.server).__mro__ if each.__module__.startswith(LIBRARIES)]
    library_class = next(each for each in classes if each.__name__ == examined.kind)
    known = known_parameters(examined.kind)
    for name, parameter in parameters_of(library_class).items():
        if name in known:
            continue
        places = (examined.server, getattr(examined.server, "settings", None), examined.low_level)
        values = [getattr(place, each) for place in places for each in (name, f"_{name}") if hasattr(place, each)]
        # A value that is kept elsewhere cannot be read, so it may be set.
        if not values or any(value != parameter.default for value in values):
            yield name
