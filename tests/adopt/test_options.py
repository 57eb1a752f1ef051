"""Each option of a server is carried, named or refused; the table of `adopt.options` says which.

A new parameter in a new release of a library turns the first test red.
"""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from fastmcp import FastMCP
from fastmcp.server import dependencies
from fastmcp.server.auth import StaticTokenVerifier, require_roles, require_scopes
from fastmcp.server.middleware import AuthMiddleware, Middleware
from fastmcp.server.middleware.rate_limiting import RateLimitingMiddleware
from fastmcp.server.providers import LocalProvider
from key_value.aio.stores.memory import MemoryStore
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp_types import EmptyResult, ListToolsResult, NotificationParams, Tool
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from mcp_functions import serve
from mcp_functions.adopt import adopt, options, seal_states
from mcp_functions_harness.testing import Conversation
from tests.adopt import gates
from tests.adopt.talking import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.auth.provider import AccessToken

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
KEYS = ["0" * 32]
CLASSES: dict[str, type] = {"FastMCP": FastMCP, "MCPServer": MCPServer, "Server": Server}
# Names in the table that are no parameters: what an author adds, calls or makes besides.
ADDED = {
    "mount", "add_middleware", "RateLimitingMiddleware", "RequestStateBoundary", "custom_route", "http_app",
    "streamable_http_app", "get_http_headers", "get_http_request",
    "add_notification_handler", "RequestStateSecurity(bind_principal=…)",
    "RequestStateSecurity(codec=…)", "require_scopes", "restrict_tag", "AuthMiddleware", "require_roles",
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
def test_the_table_has_each_parameter_of_the_class(kind: str) -> None:
    assert set(options.parameters_of(CLASSES[kind])) - options.known_parameters(kind) == set()


def test_the_table_has_no_name_that_no_class_has() -> None:
    parameters = {name for each in CLASSES.values() for name in options.parameters_of(each)}
    names = [name for option in options.OPTIONS for name in option.names.split()]
    assert set(names) - parameters == ADDED
    assert len(names) == len(set(names))


def test_an_option_that_changes_something_can_be_found() -> None:
    for option in options.OPTIONS:
        assert (option.find is not None) == (option.fate in ("named", "refused"))


def said_about(server: object, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level("WARNING", "mcp_functions"):
        adopt(server)
    return [message.partition(":")[0] for message in caplog.messages]


@pytest.mark.parametrize("name", ["bank", "library", "clinic"])
def test_nothing_is_said_about_a_server_whose_options_are_carried(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert said_about(load(name), caplog) == []


class Verifier:
    async def verify_token(self, _token: str) -> AccessToken | None:
        return None


class Bus(InMemorySubscriptionBus):
    """A bus of an author."""


class Store(MemoryStore):
    """A store of an author."""


class Codec(AESGCMRequestStateCodec):
    """A codec of an author."""


class Gate(Middleware):
    async def on_initialize(self, context: Any, call_next: Any) -> Any:  # noqa: ANN401 - of FastMCP
        return await call_next(context)


class OfCalls(Middleware):
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:  # noqa: ANN401 - of FastMCP
        return await call_next(context)


async def answer(_ctx: object, _params: object) -> EmptyResult:
    return EmptyResult()


async def notified(_ctx: object, _params: object) -> None:
    return None


async def gate(ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 - of the library
    return await call_next(ctx)


async def api_key(ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 - of the library
    if ctx.request is not None and ctx.request.headers.get("x-api-key") != "key":
        raise PermissionError
    return await call_next(ctx)


class Keys:
    async def check(self, ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 - of the library
        return await call_next(ctx) if ctx.request is None or ctx.request.headers else None

    async def __call__(self, ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 - of the library
        return await call_next(ctx) if ctx.request is None or ctx.request.headers else None


def with_settings(**more: Any) -> MCPServer:  # noqa: ANN401 - of the library
    settings = AuthSettings(issuer_url=AnyHttpUrl("https://id.example"), resource_server_url=None)
    return MCPServer("s", auth=settings, **more)


def with_route(server: Any) -> Any:  # noqa: ANN401 - of two libraries
    @server.custom_route("/health", methods=["GET"])
    async def health(_request: object) -> object:
        return None

    return server


def with_tool(**more: Any) -> FastMCP:  # noqa: ANN401 - of the library
    server = FastMCP("s")

    @server.tool(**more)
    async def t() -> str:
        return "done"

    return server


def mounted(child: FastMCP) -> FastMCP:
    server = FastMCP("outer")
    server.mount(child, namespace="inner")
    return server


def with_notification_handler(server: Server[Any]) -> Server[Any]:
    server.add_notification_handler("notifications/own", NotificationParams, notified)
    return server


def with_app(server: MCPServer) -> MCPServer:
    server.streamable_http_app(host="0.0.0.0")  # noqa: S104 - no port is opened
    return server


FASTMCP_WITH_AUTH = FastMCP("s", auth=StaticTokenVerifier({}))
NAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "auth of FastMCP": (lambda: FastMCP("s", auth=StaticTokenVerifier({})), "FastMCP(auth=…)"),
    "auth of MCPServer": (
        lambda: with_settings(token_verifier=Verifier()),
        "MCPServer(auth=…, token_verifier=…)",
    ),
    "the low-level server of a FastMCP": (
        lambda: FASTMCP_WITH_AUTH._mcp_server,  # noqa: SLF001 - as an author may write it
        "FastMCP(auth=…)",
    ),
    "the low-level server of an MCPServer": (
        lambda: with_settings(token_verifier=Verifier())._lowlevel_server,  # noqa: SLF001 - as above
        "MCPServer(auth=…, token_verifier=…)",
    ),
    "auth of a mounted server": (
        lambda: mounted(FastMCP("child", auth=StaticTokenVerifier({}))),
        "FastMCP(auth=…) of the mounted server child",
    ),
    "middleware of FastMCP": (lambda: FastMCP("s", middleware=[Gate()]), "Gate.on_initialize"),
    "middleware of a mounted server": (
        lambda: mounted(FastMCP("child", middleware=[Gate()])),
        "Gate.on_initialize",
    ),
    "middleware of MCPServer": (lambda: MCPServer("s", middleware=[gate]), "gate"),
    "a rate limit": (lambda: FastMCP("s", middleware=[RateLimitingMiddleware()]), "RateLimitingMiddleware"),
    "a codec": (
        lambda: FastMCP("s", request_state_security=RequestStateSecurity(codec=Codec(KEYS))),
        "RequestStateSecurity(codec=…)",
    ),
    "a route": (lambda: with_route(FastMCP("s")), "custom_route('/health')"),
    "a route of MCPServer": (lambda: with_route(MCPServer("s")), "custom_route('/health')"),
    "a route of a mounted server": (lambda: mounted(with_route(FastMCP("child"))), "custom_route('/health')"),
    "an HTTP application": (lambda: with_app(MCPServer("s")), "streamable_http_app(…)"),
    "a session store": (lambda: FastMCP("s", session_state_store=Store()), "FastMCP(session_state_store=…)"),
    "experimental capabilities": (
        lambda: FastMCP("s", experimental_capabilities={"x": {}}),
        "FastMCP(experimental_capabilities=…)",
    ),
    "tasks": (lambda: FastMCP("s", tasks=True), "FastMCP(tasks=True)"),
    "the task of a tool": (lambda: with_tool(task=True), "task=… of t"),
    "a check that is no scope": (
        lambda: with_tool(auth=require_roles("admin", extract=lambda claims: claims["roles"])),
        "auth=… of t",
    ),
    "a check of all that is no scope": (
        lambda: FastMCP("s", middleware=[AuthMiddleware(auth=lambda context: context.token is not None)]),
        "AuthMiddleware(auth=…) of s",
    ),
    "a bus": (lambda: MCPServer("s", subscriptions=Bus()), "MCPServer(subscriptions=…)"),
    "on_ping": (lambda: Server("s", on_ping=answer), "on_ping"),
    "on_set_logging_level": (lambda: Server("s", on_set_logging_level=answer), "on_set_logging_level"),
    "on_subscribe_resource": (lambda: Server("s", on_subscribe_resource=answer), "on_subscribe_resource"),
    "on_unsubscribe_resource": (lambda: Server("s", on_unsubscribe_resource=answer), "on_unsubscribe_resource"),
    "on_subscriptions_listen": (
        lambda: Server("s", on_subscriptions_listen=answer),  # type: ignore[arg-type]  # only its name is read
        "on_subscriptions_listen",
    ),
    "on_roots_list_changed": (lambda: Server("s", on_roots_list_changed=notified), "on_roots_list_changed"),
    "on_progress": (lambda: Server("s", on_progress=notified), "on_progress"),
    "a notification": (
        lambda: with_notification_handler(Server("s")),
        "add_notification_handler('notifications/own')",
    ),
}


@pytest.mark.parametrize(("make", "name"), NAMED.values(), ids=NAMED)
def test_an_option_that_changes_on_lambda_is_named(
    make: Callable[[], Any], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert said_about(make(), caplog) == [name]


def test_a_scope_of_a_tool_is_carried(caplog: pytest.LogCaptureFixture) -> None:
    assert said_about(with_tool(auth=require_scopes("write")), caplog) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: api_key, ["api_key", "the request that api_key reads"]),
        (lambda: Keys().check, ["check", "the request that Keys.check reads"]),
        (Keys, ["Keys", "the request that Keys.__call__ reads"]),
        (lambda: partial(api_key), ["partial"]),
    ],
)
def test_middleware_that_reads_the_http_request_is_named(
    make: Callable[[], Any], said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert said_about(MCPServer("s", middleware=[make()]), caplog) == said


def test_a_check_in_a_provider_is_named(caplog: pytest.LogCaptureFixture) -> None:
    provider = LocalProvider()

    @provider.tool(auth=lambda context: context.token is not None)
    def t() -> str:
        return "done"

    assert said_about(FastMCP("s", providers=[provider]), caplog) == ["auth=… of t"]


def test_middleware_that_only_sees_calls_is_carried(caplog: pytest.LogCaptureFixture) -> None:
    assert said_about(FastMCP("s", middleware=[OfCalls()]), caplog) == []


def test_an_http_application_around_the_server_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("shop_site")
    module.app = Starlette()  # type: ignore[attr-defined]  # as an author's module has it
    monkeypatch.setitem(sys.modules, "shop_site", module)
    assert said_about(FastMCP("s"), caplog) == ["the HTTP application app of shop_site"]


class ApiKey:
    """HTTP middleware of an author."""

    def __init__(self, app: object) -> None:
        self.app = app


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("app", lambda server: ApiKey(server.http_app()), "the HTTP application app of shop_site"),
        ("app", lambda server: ApiKey(ApiKey(server.http_app())), "the HTTP application app of shop_site"),
        (
            "manager",
            lambda server: StreamableHTTPSessionManager(app=server._mcp_server),  # noqa: SLF001 - as an author has it
            "the HTTP application manager of shop_site",
        ),
        ("headers", lambda _server: dependencies.get_http_headers, "headers of shop_site"),
        ("get_http_request", lambda _server: dependencies.get_http_request, "get_http_request of shop_site"),
        ("server", lambda server: server, None),
    ],
)
def test_http_around_the_server_is_named_in_an_authors_module(
    variable: str,
    value: Callable[[FastMCP], object],
    said: str | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = FastMCP("s")
    module = ModuleType("shop_site")
    setattr(module, variable, value(server))
    monkeypatch.setitem(sys.modules, "shop_site", module)
    assert said_about(server, caplog) == ([said] if said else [])


class OwnBoundary(RequestStateBoundary):
    """Checks more than the library does."""


def with_boundary() -> Server[Any]:
    server = Server[Any]("s")
    server.middleware.append(OwnBoundary(RequestStateSecurity.ephemeral(), default_audience="s"))
    return server


def own_principal(_ctx: object) -> str:
    return "me"


def with_principal() -> RequestStateSecurity:
    return RequestStateSecurity(keys=KEYS, bind_principal=own_principal)


def sealed(server: MCPServer) -> MCPServer:
    seal_states(server, keys=["arn:aws:kms:eu-west-1:111122223333:key/0a"], principal=own_principal)
    return server


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: FastMCP("s", request_state_security=with_principal()), "bind_principal"),
        (lambda: MCPServer("s", request_state_security=with_principal()), "bind_principal"),
        (lambda: sealed(MCPServer("s")), "bind_principal"),
        (with_boundary, "OwnBoundary"),
    ],
)
def test_an_option_that_would_be_dropped_is_refused_by_name(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        adopt(make())


@pytest.mark.parametrize("principal", [{}, {"bind_principal": None}])
def test_a_policy_with_keys_of_its_own_is_taken(principal: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    policy = RequestStateSecurity(keys=KEYS, **principal)
    assert said_about(FastMCP("s", request_state_security=policy), caplog) == []


@pytest.mark.parametrize(("ttl", "chosen", "seconds"), [(60, 600, 60), (60, 30, 30), (600, 900, 900), (3600, 600, 600)])
def test_the_ttl_of_a_policy_bounds_the_time_for_an_answer(ttl: int, chosen: int, seconds: int) -> None:
    done: list[str] = []
    server = gates.two_ways(done)
    policy = RequestStateSecurity(keys=KEYS, ttl=ttl)
    server._lowlevel_server.middleware[1] = RequestStateBoundary(policy, default_audience="s")  # noqa: SLF001
    handler = serve(*adopt(server, answer_within=chosen))
    talk = Conversation(handler).call("two_ways")
    late = talk.later(seconds=seconds + 1).accept(sure=True)
    assert late.error["message"] == "Invalid or expired requestState"
    assert done == []
    assert "deleted" in Conversation(handler).call("two_ways").later(seconds=seconds - 5).accept(sure=True).text


class Later(FastMCP):
    """FastMCP of a later release, with parameters that this release does not know."""


@pytest.mark.parametrize(("value", "said"), [("default", []), ("set", ["FastMCP(tenant=…)"])])
def test_an_option_that_the_table_does_not_know_is_named_if_it_is_set(
    value: str, said: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = FastMCP.__init__

    def later(self: FastMCP, name: str | None = None, *, tenant: str = "default", **more: Any) -> None:  # noqa: ANN401
        before(self, name, **more)
        self._tenant = tenant  # type: ignore[attr-defined]  # as the library would keep it

    monkeypatch.setattr(FastMCP, "__init__", later)
    assert said_about(FastMCP("s", tenant=value), caplog) == said


def test_an_unknown_option_that_cannot_be_read_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Server.__init__

    def later(self: Server[Any], name: str, *, tenant: str = "", **more: Any) -> None:  # noqa: ANN401
        del tenant
        before(self, name, **more)

    monkeypatch.setattr(Server, "__init__", later)
    assert said_about(Server("s"), caplog) == ["Server(tenant=…)"]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_the_options_of_fastmcp_that_are_carried_work(strict: bool, masked: bool) -> None:  # noqa: FBT001 - of pytest
    server = FastMCP("s", strict_input_validation=strict, mask_error_details=masked)

    @server.tool
    def double(number: int) -> int:
        if number < 0:
            message = "a secret"
            raise ValueError(message)
        return number * 2

    handler = serve(*adopt(server))
    assert Conversation(handler).call(number="2").result["isError"] == strict
    assert ("a secret" in Conversation(handler).call(number=-1).text) == (not masked)


def test_a_list_of_a_low_level_server_is_read_once_and_its_call_is_checked_each_time() -> None:
    async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="t", input_schema={"type": "object"})])

    handlers = adopt(Server("s", on_list_tools=list_tools))
    assert [handler.key for handler in handlers] == ["t", "*"]
