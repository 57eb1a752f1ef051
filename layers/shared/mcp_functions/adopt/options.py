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
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp.server.request_state import RequestStateBoundary, authenticated_principal
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette

from mcp_functions.adopt.scopes import as_list, middleware_checks
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcp.server.lowlevel import Server
    from mcp.server.request_state import RequestStateSecurity

Fate: TypeAlias = Literal["carried", "named", "refused", "unused"]

DEFAULT_TTL = 600  # of the library's own RequestStateSecurity, in seconds
# Modules of the libraries: middleware from these is no author's.
LIBRARIES = ("mcp.", "fastmcp.", "mcp_functions.")
# methods of requests that this toolkit answers itself, or that the specification has
OWN_METHODS = frozenset({
    "ping", "initialize", "server/discover", "completion/complete", "logging/setLevel", "subscriptions/listen",
    "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read",
    "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
    "tasks/get", "tasks/list", "tasks/result", "tasks/update", "tasks/cancel",
})  # fmt: skip


class Examined(NamedTuple):
    """A server that `adopt` takes."""

    server: Any  # the FastMCP, MCPServer or Server, as its author made it
    low_level: Server[Any]  # the low-level server inside it
    kind: str  # "FastMCP", "MCPServer" or "Server"


class Option(NamedTuple):
    """One row of the table: options that have the same fate for the same reason."""

    names: str  # with blanks between them
    fate: Fate
    # what happens, and why: a sentence for the page, and for the author who has set the option
    means: str
    # Returns those of the names that a server has set. A row of the fates "named" and "refused" has it.
    find: Callable[[Examined], Iterable[str]] | None = None
    kinds: tuple[str, ...] = ("FastMCP", "MCPServer", "Server")


class Notice(NamedTuple):
    """What `adopt` says about one option of a server."""

    fate: Fate
    text: str


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


def kind_of(server: object) -> str:
    """Return which of the three kinds a server is."""
    if hasattr(server, "_mcp_server"):
        return "FastMCP"
    return "MCPServer" if hasattr(server, "_lowlevel_server") else "Server"


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a library's class, by name. `**kwargs` is none: the library takes nothing through it."""
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD}


def known_parameters(kind: str) -> set[str]:
    """Return the names of the parameters of one kind that the table has."""
    return {name for option in OPTIONS if kind in option.kinds for name in option.names.split()}


UNKNOWN = "this release of mcp-functions does not know it. It is dropped, unless the library applies it to each call."


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


# ---- How each option is found


def is_of_library(thing: object) -> bool:
    """Tell whether a function, or the class of an object, is one of the libraries, and not of an author."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return str(named.__module__).startswith(LIBRARIES)


def _arguments(*names: str) -> Callable[[Examined], Iterable[str]]:
    """Find arguments that are set: the server keeps each as an attribute, some with an underscore before the name."""

    def find(examined: Examined) -> Iterator[str]:
        server = examined.server
        found = []
        for name in names:
            value = getattr(server, name, None) or getattr(server, f"_{name}", None)
            value = value or getattr(getattr(server, "settings", None), name, None)
            if value:
                found.append(f"{name}=…")
        if found:
            yield f"{examined.kind}({', '.join(found)})"

    return find


def state_policy(low_level: Server[Any]) -> RequestStateSecurity | None:
    """Return how a server seals its states, if it does."""
    for middleware in low_level.middleware:
        if isinstance(middleware, RequestStateBoundary):
            return middleware._security  # noqa: SLF001 - it has no public name
    return None


def _own_principal(examined: Examined) -> Iterator[str]:
    for middleware in examined.low_level.middleware:
        if isinstance(middleware, RequestStateBoundary):
            # as above
            principal = getattr(middleware, "principal", middleware._security.bind_principal)  # noqa: SLF001
            if principal not in (None, authenticated_principal):
                yield "RequestStateSecurity(bind_principal=…)"


def _own_codec(examined: Examined) -> Iterator[str]:
    policy = state_policy(examined.low_level)
    if policy and not is_of_library(policy.codec):
        yield "RequestStateSecurity(codec=…)"


def _own_boundary(examined: Examined) -> Iterator[str]:
    for middleware in examined.low_level.middleware:
        if isinstance(middleware, RequestStateBoundary) and not is_of_library(middleware):
            yield type(middleware).__name__


def _own_middleware(examined: Examined) -> Iterator[str]:
    """Find middleware whose code also runs for lists and discovery in the original."""
    for middleware in examined.low_level.middleware:
        if not is_of_library(middleware):
            named = middleware if hasattr(middleware, "__qualname__") else type(middleware)
            yield str(named.__qualname__).rpartition(".")[2]
    for server in fastmcp_servers(examined):
        for middleware in server.middleware:
            own = type(middleware)
            base = next((each for each in own.__mro__ if each.__module__.startswith("fastmcp.")), object)
            is_rate_limit = "RateLimiting" in base.__name__
            hooks = [name for name in NOT_ONLY_FOR_CALLS if getattr(own, name, None) is not getattr(base, name, None)]
            if own is not base and hooks and not is_rate_limit:
                yield f"{own.__name__}.{', '.join(hooks)}"


# The hooks of FastMCP's middleware that do not run for calls alone.
NOT_ONLY_FOR_CALLS = (
    "__call__", "on_message", "on_request", "on_notification", "on_initialize", "on_discover", "on_list_tools",
    "on_list_resources", "on_list_resource_templates", "on_list_prompts",
)  # fmt: skip


def _rate_limits(examined: Examined) -> Iterator[str]:
    for server in fastmcp_servers(examined):
        for middleware in server.middleware:
            if any("RateLimiting" in each.__name__ for each in type(middleware).__mro__):
                yield type(middleware).__name__


def fastmcp_servers(examined: Examined) -> Iterator[Any]:
    """Return a FastMCP server, and those that are mounted into it."""
    waiting = [examined.server] if examined.kind == "FastMCP" else []
    seen: list[object] = []
    while waiting:
        server = waiting.pop()
        if any(server is each for each in seen):
            continue
        seen.append(server)
        yield server
        for provider in server.providers:
            mounted = getattr(_unwrapped(provider), "server", None)
            if hasattr(mounted, "_mcp_server"):
                waiting.append(mounted)


def _unwrapped(provider: Any) -> Any:  # noqa: ANN401 - of FastMCP
    """Return a provider without its wrappers, which add a namespace or a transform."""
    while hasattr(provider, "_inner"):
        provider = provider._inner  # noqa: SLF001 - it has no public name
    return provider


def _mounted_auth(examined: Examined) -> Iterator[str]:
    for server in list(fastmcp_servers(examined))[1:]:
        if server.auth:
            yield f"FastMCP(auth=…) of the mounted server {server.name}"


def _routes(examined: Examined) -> Iterator[str]:
    routes = getattr(examined.server, "_custom_starlette_routes", [])
    if examined.kind == "FastMCP":
        # it has no public name
        routes = examined.server._get_additional_http_routes()  # noqa: SLF001
    for route in routes:
        yield f"custom_route({getattr(route, 'path', '')!r})"


def _http_apps(examined: Examined) -> Iterator[str]:
    """Find HTTP applications around the server: of this server, or in a variable of an author's module."""
    if getattr(examined.low_level, "_session_manager", None) is not None:
        yield "streamable_http_app(…)"
    for module, variable, value in _variables_of_authors():
        if _holds_http_app(value):
            yield f"the HTTP application {variable} of {module}"


def _http_readers(examined: Examined) -> Iterator[str]:
    """Find code that reads the HTTP request: a function of FastMCP in an author's module, or middleware of `mcp`."""
    for module, variable, value in _variables_of_authors():
        name = getattr(value, "__name__", "")
        if name in HTTP_READERS and is_of_library(value):
            yield f"{variable} of {module}"
    for middleware in examined.low_level.middleware:
        function: Any = middleware if inspect.isroutine(middleware) else type(middleware).__call__
        code = getattr(function, "__code__", None)  # partial() has none
        if code and not is_of_library(middleware) and "request" in code.co_names:
            yield f"the request that {function.__qualname__} reads"


# What an author imports from FastMCP to read the HTTP request.
HTTP_READERS = frozenset({"get_http_request", "get_http_headers", "CurrentRequest", "CurrentHeaders"})


def _variables_of_authors() -> Iterator[tuple[str, str, object]]:
    """Return the variables of all modules that are neither of Python nor installed, with their modules' names."""
    for name, module in list(sys.modules.items()):
        is_of_author = name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith(LIBRARIES)
        if is_of_author and "site-packages" not in str(getattr(module, "__file__", None)):
            for variable, value in list(getattr(module, "__dict__", {}).items()):
                yield name.rpartition(".")[2], variable, value


def _holds_http_app(value: object, depth: int = 3) -> bool:
    """Tell whether a value is an HTTP application, or has one in an attribute, as middleware around it does."""
    if isinstance(value, Starlette | StreamableHTTPSessionManager):
        return True
    if depth == 0 or isinstance(value, type | ModuleType) or hasattr(value, "__get__") or is_of_library(value):
        return False
    return any(_holds_http_app(each, depth - 1) for each in list(getattr(value, "__dict__", {}).values()))


def _handler_arguments(examined: Examined) -> Iterator[str]:
    """Find functions for requests and notifications that no Lambda passes on."""
    low_level = examined.low_level
    for name, method in NOT_CALLED.items():
        entry = low_level.get_request_handler(method) or low_level.get_notification_handler(method)
        # An author may give a low-level server the library's own function for subscriptions.
        is_given = examined.kind == "Server" and name == "on_subscriptions_listen"
        if entry and (is_given or not is_of_library(entry.handler)):
            yield name
    for method in low_level._notification_handlers:  # noqa: SLF001 - it has no public name
        if method not in NOT_CALLED.values():
            yield f"add_notification_handler({method!r})"


NOT_CALLED = {
    "on_ping": "ping",
    "on_set_logging_level": "logging/setLevel",
    "on_subscribe_resource": "resources/subscribe",
    "on_unsubscribe_resource": "resources/unsubscribe",
    "on_subscriptions_listen": "subscriptions/listen",
    "on_roots_list_changed": "notifications/roots/list_changed",
    "on_progress": "notifications/progress",
}


def _session_store(examined: Examined) -> Iterator[str]:
    store = examined.server._state_storage  # noqa: SLF001 - it has no public name
    # FastMCP makes a MemoryStore at the first use
    if store is not None and type(store).__name__ != "MemoryStore":
        yield "FastMCP(session_state_store=…)"


def _own_bus(examined: Examined) -> Iterator[str]:
    bus = getattr(examined.server, "_subscriptions", None)
    if bus is not None and not is_of_library(bus):
        yield "MCPServer(subscriptions=…)"


def _tasks(examined: Examined) -> Iterator[str]:
    for server in fastmcp_servers(examined):
        if server._support_tasks_by_default:  # noqa: SLF001 - it has no public name
            yield "FastMCP(tasks=True)"
        # it has no public name
        if "io.modelcontextprotocol/tasks" in server._extensions:  # noqa: SLF001
            yield "the extension io.modelcontextprotocol/tasks"
        for component in components(server):
            # as above
            if component.task_config.supports_tasks() and not server._support_tasks_by_default:  # noqa: SLF001
                yield f"task=… of {component.name}"


def components(server: Any) -> Iterator[Any]:  # noqa: ANN401 - a FastMCP
    """Return the tools, prompts and resources that a FastMCP server, or a provider in it, itself has."""
    for provider in server.providers:
        yield from getattr(_unwrapped(provider), "_components", {}).values()


def _other_checks(examined: Examined) -> Iterator[str]:
    """Find checks of FastMCP that are no scopes."""
    for server in fastmcp_servers(examined):
        for component in components(server):
            if any(not hasattr(check, "required_scopes") for check in as_list(component.auth)):
                yield f"auth=… of {component.name}"
        if any(not hasattr(check, "required_scopes") for check in middleware_checks(server)):
            yield f"AuthMiddleware(auth=…) of {server.name}"


OPTIONS: tuple[Option, ...] = (
    Option(
        "name title description instructions version website_url icons lifespan tools resources providers "
        "transforms extensions mask_error_details strict_input_validation resource_security client_log_level "
        "on_call_tool on_get_prompt on_read_resource on_completion",
        "carried",
        "The library's own code applies it, as in the original.",
    ),
    Option(
        "on_list_tools on_list_prompts on_list_resources on_list_resource_templates dereference_schemas",
        "carried",
        "Lists are read once, when the function loads, with every entry and without a caller. Each call is checked.",
    ),
    Option(
        "request_state_security",
        "carried",
        "A ttl of less than 600 s bounds answer_within. KMS seals the states in the place of its keys.",
    ),
    Option(
        "on_duplicate warn_on_duplicate_tools warn_on_duplicate_resources warn_on_duplicate_prompts "
        "dependencies debug log_level get_tool_input_schema list_page_size cache_ttl cache_scope cache_hints",
        "unused",
        "It has worked before adopt, or a setting of the deployment decides it.",
    ),
    Option(
        "auth token_verifier auth_server_provider",
        "named",
        "The required scopes of auth become the scopes of every handler. AuthMode none refuses each call, and iam if "
        "a scope is required. AuthMode decides who a caller is: the server's own verifier, sign-in and routes do not "
        "run. Every caller may read the lists.",
        _arguments("auth", "token_verifier", "auth_server_provider"),
    ),
    Option(
        "mount",
        "named",
        "It does not run, as in the original: only the outer server's auth counts.",
        _mounted_auth,
        ("FastMCP",),
    ),
    Option(
        "middleware add_middleware",
        "named",
        "It runs for calls and completions. Discovery and lists do not pass it: they are read once, without a caller.",
        _own_middleware,
    ),
    Option(
        "RateLimitingMiddleware",
        "named",
        "It counts in one process, so each Lambda has a count of its own. Limit the rate at API Gateway.",
        _rate_limits,
        ("FastMCP",),
    ),
    Option(
        "RequestStateSecurity(bind_principal=…)",
        "refused",
        "adopt binds each state to the caller that API Gateway names, so a rule of the server's own would be dropped. "
        "Leave it out, or check the caller in the handler.",
        _own_principal,
    ),
    Option(
        "RequestStateSecurity(codec=…)",
        "named",
        "It does not run: KMS seals the states.",
        _own_codec,
    ),
    Option(
        "RequestStateBoundary",
        "refused",
        "adopt seals the states itself, so this subclass would not run. Put what it adds into another middleware.",
        _own_boundary,
    ),
    Option(
        "require_scopes restrict_tag",
        "carried",
        "FastMCP checks it at each call, and its scopes are also those of the handler. AuthModes iam and none refuse "
        "the call.",
        kinds=("FastMCP",),
    ),
    Option(
        "AuthMiddleware require_roles",
        "named",
        "A check that is no scope runs at each call. It knows the caller's issuer, subject, client and scopes. The "
        "other claims of the token are not passed on, so a check of roles refuses.",
        _other_checks,
        ("FastMCP",),
    ),
    Option(
        "custom_route",
        "named",
        "Only MCP is served: this route of HTTP is not.",
        _routes,
        ("FastMCP", "MCPServer"),
    ),
    Option(
        "http_app streamable_http_app",
        "named",
        "Only MCP is served: the middleware, routes, hosts and sign-in of an HTTP application do not run. AuthMode "
        "decides who may call. Check in the handlers what else the application requires.",
        _http_apps,
    ),
    Option(
        "get_http_headers get_http_request",
        "named",
        "There is no HTTP request: headers are empty, as under stdio. A check that lets in a caller without a request "
        "lets in everybody.",
        _http_readers,
    ),
    Option(
        "session_state_store",
        "named",
        "A Lambda has no session: what ctx.set_state writes ends with its call.",
        _session_store,
        ("FastMCP",),
    ),
    Option(
        "experimental_capabilities",
        "named",
        "They are not declared.",
        _arguments("experimental_capabilities"),
        ("FastMCP",),
    ),
    Option(
        "tasks",
        "named",
        "No Lambda runs between two requests: a tool runs in its request, and not as a task.",
        _tasks,
        ("FastMCP",),
    ),
    Option(
        "subscriptions",
        "named",
        "No Lambda runs between two requests: nobody can subscribe.",
        _own_bus,
        ("MCPServer",),
    ),
    Option(
        f"{' '.join(NOT_CALLED)} add_notification_handler",
        "named",
        "It is not called: the toolkit answers itself, or no Lambda runs when the client sends this.",
        _handler_arguments,
    ),
)


# ---- What the rest of this package asks


def required_scopes(server: Any) -> list[str]:  # noqa: ANN401 - of three libraries
    """Return the scopes that the `auth` of a server requires of every caller, in the order of its author."""
    verifier = getattr(server, "_token_verifier", None)  # of an MCPServer, beside its settings
    return list(dict.fromkeys([*_scopes_of(_auth(server)), *_scopes_of(verifier)]))


def _scopes_of(auth: object, outer: tuple[object, ...] = ()) -> list[str]:
    """Return the scopes that a verifier requires, with those of the verifiers that it calls."""
    if any(auth is each for each in outer):  # a verifier may know the provider that calls it
        return []
    outer = (*outer, auth)
    scopes = list(getattr(auth, "required_scopes", None) or ())
    # MultiAuth takes a token that one of its verifiers takes, so only what all of them require is required.
    sources = [_scopes_of(source, outer) for source in getattr(auth, "_sources", ())]
    if sources:
        scopes += [scope for scope in sources[0] if all(scope in source for source in sources)]
    else:
        for part in getattr(auth, "__dict__", {}).values():
            scopes += _scopes_of(part, outer) if hasattr(part, "verify_token") else []
    return list(dict.fromkeys(scopes))


def restriction(server: object) -> str:
    """Return the name of the option that lets in only callers with an access token; "" if every caller may come in."""
    return f"{kind_of(server)}(auth=…)" if _auth(server) else ""


def _auth(server: Any) -> object:  # noqa: ANN401 - of three libraries
    return getattr(server, "auth", None) or getattr(getattr(server, "settings", None), "auth", None)


def answer_bound(low_level: Server[Any]) -> int | None:
    """Return the seconds after which the server itself refuses a state; None if its author has not shortened them."""
    policy = state_policy(low_level)
    if policy is None or policy.ttl >= DEFAULT_TTL:
        return None
    return max(1, int(policy.ttl))


def extension_methods(low_level: Server[Any]) -> list[str]:
    """Return the methods of requests that only the server's extensions have, as `skills/list`."""
    # it has no public name
    methods: Mapping[str, object] = low_level._request_handlers  # noqa: SLF001
    return sorted(set(methods) - OWN_METHODS)
