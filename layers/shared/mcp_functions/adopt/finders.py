"""Find which options an author has set: arguments, middleware, seals of states, handlers and tasks.

Each function returns what a warning or a refusal names. Most of these have no public name in the libraries.
"""

# ruff: noqa: SLF001 - the libraries have no public name for what is read here

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.request_state import authenticated_principal

from mcp_functions.adopt.component_scopes import as_list, middleware_checks
from mcp_functions.adopt.library import boundaries, components, fastmcp_servers, is_of_library
from mcp_functions.protocol.constants import EXTENSION_TASKS
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.lowlevel import Server

NOT_ONLY_FOR_CALLS = (  # hooks of FastMCP's middleware
    "__call__", "on_message", "on_request", "on_notification", "on_initialize", "on_discover", "on_list_tools",
    "on_list_resources", "on_list_resource_templates", "on_list_prompts",
)  # fmt: skip
# The arguments with functions for requests and notifications that no Lambda passes on, and their methods.
NOT_CALLED = {
    "on_ping": "ping",
    "on_set_logging_level": "logging/setLevel",
    "on_subscribe_resource": "resources/subscribe",
    "on_unsubscribe_resource": "resources/unsubscribe",
    "on_subscriptions_listen": "subscriptions/listen",
    "on_roots_list_changed": "notifications/roots/list_changed",
    "on_progress": "notifications/progress",
}


class Examined(NamedTuple):
    """A server that `adopt` takes."""

    server: Any  # the FastMCP, MCPServer or Server, as its author made it
    low_level: Server[Any]  # the low-level server inside it
    kind: str  # "FastMCP", "MCPServer" or "Server"


def arguments(*names: str) -> Callable[[Examined], Iterator[str]]:
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


def own_principal(examined: Examined) -> Iterator[str]:
    """Find a function of the author's that names the caller of a state."""
    for boundary in boundaries(examined.low_level):
        principal = getattr(boundary, "principal", boundary._security.bind_principal)
        if principal not in (None, authenticated_principal):
            yield "RequestStateSecurity(bind_principal=…)"


def own_codec(examined: Examined) -> Iterator[str]:
    """Find a codec of the author's for states."""
    boundary = next(boundaries(examined.low_level), None)
    if boundary and not is_of_library(boundary._security.codec):
        yield "RequestStateSecurity(codec=…)"


def own_boundary(examined: Examined) -> Iterator[str]:
    """Find a subclass of the middleware that seals states."""
    for boundary in boundaries(examined.low_level):
        if not is_of_library(boundary):
            yield type(boundary).__name__


def own_middleware(examined: Examined) -> Iterator[str]:
    """Find middleware whose code also runs for lists and discovery in the original."""
    for middleware in examined.low_level.middleware:
        if not is_of_library(middleware):
            named = middleware if hasattr(middleware, "__qualname__") else type(middleware)
            yield str(named.__qualname__).rpartition(".")[2]
    for server in fastmcp_servers(examined.server):
        for middleware in server.middleware:
            own = type(middleware)
            base = next((each for each in own.__mro__ if each.__module__.startswith("fastmcp.")), object)
            hooks = [name for name in NOT_ONLY_FOR_CALLS if getattr(own, name, None) is not getattr(base, name, None)]
            if own is not base and hooks and "RateLimiting" not in base.__name__:
                yield f"{own.__name__}.{', '.join(hooks)}"


def rate_limits(examined: Examined) -> Iterator[str]:
    """Find FastMCP's middleware that limits the rate, and subclasses of it."""
    for server in fastmcp_servers(examined.server):
        for middleware in server.middleware:
            if any("RateLimiting" in each.__name__ for each in type(middleware).__mro__):
                yield type(middleware).__name__


def mounted_auth(examined: Examined) -> Iterator[str]:
    """Find the `auth` of mounted servers."""
    for server in list(fastmcp_servers(examined.server))[1:]:
        if server.auth:
            yield f"FastMCP(auth=…) of the mounted server {server.name}"


def other_checks(examined: Examined) -> Iterator[str]:
    """Find checks of FastMCP that are no scopes."""
    for server in fastmcp_servers(examined.server):
        for component in components(server):
            if any(not hasattr(check, "required_scopes") for check in as_list(component.auth)):
                yield f"auth=… of {component.name}"
        if any(not hasattr(check, "required_scopes") for check in middleware_checks(server)):
            yield f"AuthMiddleware(auth=…) of {server.name}"


def uncalled_handlers(examined: Examined) -> Iterator[str]:
    """Find functions for requests and notifications that no Lambda passes on."""
    low_level = examined.low_level
    for name, method in NOT_CALLED.items():
        entry = low_level.get_request_handler(method) or low_level.get_notification_handler(method)
        # An author may give a low-level server the library's own function for subscriptions.
        is_given = examined.kind == "Server" and name == "on_subscriptions_listen"
        if entry and (is_given or not is_of_library(entry.handler)):
            yield name
    for method in low_level._notification_handlers:
        if method not in NOT_CALLED.values():
            yield f"add_notification_handler({method!r})"


def session_store(examined: Examined) -> Iterator[str]:
    """Find a store of the author's. FastMCP itself makes a MemoryStore at the first use."""
    store = examined.server._state_storage
    if store is not None and type(store).__name__ != "MemoryStore":
        yield "FastMCP(session_state_store=…)"


def own_bus(examined: Examined) -> Iterator[str]:
    """Find a bus of the author's for subscriptions."""
    bus = getattr(examined.server, "_subscriptions", None)
    if bus is not None and not is_of_library(bus):
        yield "MCPServer(subscriptions=…)"


def tasks(examined: Examined) -> Iterator[str]:
    """Find what may run as a task."""
    for server in fastmcp_servers(examined.server):
        if server._support_tasks_by_default:
            yield "FastMCP(tasks=True)"
        if EXTENSION_TASKS in server._extensions:
            yield f"the extension {EXTENSION_TASKS}"
        for component in components(server):
            if component.task_config.supports_tasks() and not server._support_tasks_by_default:
                yield f"task=… of {component.name}"
