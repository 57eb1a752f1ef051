"""What restricts the callers of a server restricts those of the adopted one.

The original answers HTTP requests in this process, with a verifier for two tokens. The adopted server gets the events
of API Gateway, which has verified the same tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from fastmcp.server.auth import MultiAuth, RemoteAuthProvider, StaticTokenVerifier, require_scopes, restrict_tag
from fastmcp.server.middleware import AuthMiddleware
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.skills import Skill
from fastmcp.skills.provider import SkillCatalogProvider
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import Completion
from pydantic import AnyHttpUrl

from mcp_functions import serve
from mcp_functions.adopt import adopt
from mcp_functions_harness.testing import Conversation
from tests.support import gateways, wire
from tests.support.gateways import JWT_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENS = {"reader": ["read"], "mover": ["read", "transfer"]}
TRANSFER = ("tools/call", {"name": "transfer", "arguments": {}})
BALANCE = ("tools/call", {"name": "balance", "arguments": {}})
LETTER = ("prompts/get", {"name": "letter", "arguments": {"to": "Bo"}})
RATES = ("resources/read", {"uri": "bank://rates"})
BRANCH = ("resources/read", {"uri": "bank://branches/4"})
HIDDEN = ("tools/call", {"name": "hidden", "arguments": {}})
COMPLETE = (
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "letter"}, "argument": {"name": "to", "value": "B"}},
)
SKILLS: tuple[str, dict[str, Any]] = ("skills/list", {})


class Verifier:
    """Knows the tokens of TOKENS."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in TOKENS:
            return None
        return AccessToken(token=token, client_id="client", scopes=TOKENS[token], subject=token)


def fill(server: Any) -> Any:  # noqa: ANN401 - of two libraries
    """Add one handler of each kind."""

    @server.tool()
    def transfer() -> str:
        return "moved"

    @server.prompt()
    def letter(to: str) -> str:
        return f"To {to}"

    @server.resource("bank://rates")
    def rates() -> str:
        return "1"

    @server.resource("bank://branches/{number}")
    def branch(number: int) -> str:
        return f"branch {number}"

    @server.completion()
    async def complete(_ref: object, _argument: object, _context: object) -> Completion:
        return Completion(values=["Bo"])

    return server


def of_fastmcp() -> FastMCP:
    verifier = StaticTokenVerifier(
        {name: {"client_id": "client", "sub": name, "scopes": scopes} for name, scopes in TOKENS.items()},
        required_scopes=["transfer"],
    )
    skill = Skill(name="review", description="Review changes.", instructions="Look twice.")
    return fill(FastMCP("bank", auth=verifier, providers=[SkillCatalogProvider([skill])]))


def of_mcpserver() -> MCPServer:
    settings = AuthSettings(
        issuer_url=AnyHttpUrl("https://id.example"), required_scopes=["transfer"], resource_server_url=None
    )
    return fill(MCPServer("bank", auth=settings, token_verifier=Verifier()))


def ask_original(server: Any, token: str, call: tuple[str, dict[str, Any]]) -> int:  # noqa: ANN401
    """Send a request to the original over HTTP; return the status of the response."""

    async def ask() -> int:
        app = server.http_app() if isinstance(server, FastMCP) else server.streamable_http_app(host="0.0.0.0")  # noqa: S104 - no port is opened
        message = wire.message(*call)
        headers = {**wire.headers(message), "accept": "application/json, text/event-stream"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1") as client,
        ):
            return int((await client.post("/mcp", json=message, headers=headers)).status_code)

    return anyio.run(ask)


def ask_adopted(server: object, token: str, call: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Send the same request to the adopted server, with a token that API Gateway has verified."""
    event = wire.event(wire.message(*call))
    if token:
        scope = " ".join(TOKENS[token])
        event = gateways.by_jwt(event, iss=JWT_SETTINGS["MCP_JWT_ISSUER"], sub=token, scope=scope)
    response: dict[str, Any] = serve(*adopt(server))(event, wire.Context("local_all"))
    return response


@pytest.fixture
def jwt_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in JWT_SETTINGS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("jwt_mode")
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (make, call)
        for make in (of_fastmcp, of_mcpserver)
        for call in (TRANSFER, LETTER, RATES, BRANCH, HIDDEN, COMPLETE, SKILLS)
        if make is of_fastmcp or call is not SKILLS
    ],
)
def test_a_scope_of_the_whole_server_is_required_for_each_request(
    make: Callable[[], Any], call: tuple[str, dict[str, Any]]
) -> None:
    assert ask_original(make(), "reader", call) in (401, 403)  # a verifier of FastMCP refuses such a token
    refused = ask_adopted(make(), "reader", call)
    assert refused["statusCode"] == 403
    assert 'error="insufficient_scope", scope="transfer"' in refused["headers"]["www-authenticate"]
    assert ask_original(make(), "", call) == 401
    assert ask_adopted(make(), "", call)["statusCode"] == 500  # API Gateway itself refuses a request without a token
    assert ask_adopted(make(), "mover", call)["statusCode"] == ask_original(make(), "mover", call)


def verifier(scopes: list[str]) -> StaticTokenVerifier:
    tokens: dict[str, dict[str, Any]] = {
        name: {"client_id": "client", "sub": name, "scopes": scopes} for name, scopes in TOKENS.items()
    }
    return StaticTokenVerifier(tokens, required_scopes=scopes)


def remote(verifier: StaticTokenVerifier, **more: Any) -> RemoteAuthProvider:  # noqa: ANN401 - of the library
    servers = [AnyHttpUrl("https://id.example")]
    return RemoteAuthProvider(verifier, authorization_servers=servers, base_url="https://mcp.example", **more)


def of_mcpserver_with_a_verifier_of_fastmcp() -> MCPServer:
    settings = AuthSettings(issuer_url=AnyHttpUrl("https://id.example"), resource_server_url=None)
    return MCPServer("bank", auth=settings, token_verifier=verifier(["transfer"]))


@pytest.mark.usefixtures("jwt_mode")
@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda: FastMCP("bank", auth=MultiAuth(verifiers=verifier(["transfer"]))), 403),
        (lambda: FastMCP("bank", auth=MultiAuth(server=remote(verifier(["transfer"])))), 403),
        (lambda: FastMCP("bank", auth=remote(verifier(["transfer"]), required_scopes=["read"])), 403),
        (of_mcpserver_with_a_verifier_of_fastmcp, 403),
        (
            lambda: FastMCP(
                "bank", auth=MultiAuth(verifiers={"a": verifier(["transfer"]), "b": verifier(["read", "transfer"])})
            ),
            403,
        ),
        # A token of the reader comes from the second source.
        (
            lambda: FastMCP("bank", auth=MultiAuth(verifiers={"a": verifier(["transfer"]), "b": verifier(["read"])})),
            200,
        ),
    ],
)
def test_a_scope_that_a_verifier_inside_auth_requires_is_required(make: Callable[[], Any], status: int) -> None:
    assert (ask_original(fill_tool(make()), "reader", TRANSFER) == 200) == (status == 200)
    assert ask_adopted(fill_tool(make()), "reader", TRANSFER)["statusCode"] == status
    assert "moved" in ask_adopted(fill_tool(make()), "mover", TRANSFER)["body"]


def fill_tool(server: Any) -> Any:  # noqa: ANN401 - of two libraries
    @server.tool()
    def transfer() -> str:
        return "moved"

    return server


def test_a_subclass_of_authmiddleware_without_auth_runs_at_each_call() -> None:
    class OfReaders(AuthMiddleware):
        def __init__(self) -> None:
            """Take no checks."""

        async def on_call_tool(self, context: Any, call_next: Any) -> Any:  # noqa: ANN401 - of FastMCP
            del context, call_next
            raise PermissionError

    server = fill_tool(FastMCP("bank", middleware=[OfReaders()]))
    assert "moved" not in str(Conversation(serve(*adopt(server))).call().body)


@pytest.mark.parametrize("make", [of_fastmcp, of_mcpserver])
@pytest.mark.parametrize("mode", ["none", "iam"])
def test_a_mode_without_tokens_refuses_a_server_that_requires_scopes_and_names_its_option(
    make: Callable[[], Any], mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", mode)
    event = wire.event(wire.message(*TRANSFER))
    if mode == "iam":
        event = gateways.by_iam(event, "ann")
    response = serve(*adopt(make()))(event, wire.Context("local_all"))
    assert response["statusCode"] == 500
    assert "moved" not in response["body"]
    assert f"{type(make()).__name__}(auth=…)" in caplog.text


def test_a_server_that_requires_a_token_and_no_scope_is_refused_in_the_mode_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", "none")
    server = fill(FastMCP("bank", auth=StaticTokenVerifier({})))
    response = serve(*adopt(server))(wire.event(wire.message(*TRANSFER)), wire.Context("local_all"))
    assert response["statusCode"] == 500
    assert "FastMCP(auth=…) lets in only callers with an access token" in caplog.text


def own_scopes(how: str) -> FastMCP:
    """Make a server that requires a scope for one tool, and none for the other."""
    checks: dict[str, Any] = {
        "tool": {"auth": require_scopes("transfer")},
        "list": {"auth": [require_scopes("transfer"), lambda _context: True]},
        "tag": {"tags": {"danger"}},
        "mounted": {"auth": require_scopes("transfer")},
    }
    middleware = [AuthMiddleware(auth=restrict_tag("danger", scopes=["transfer"]))] if how == "tag" else []
    inner = FastMCP("inner", middleware=middleware)

    @inner.tool(**checks[how])
    def transfer() -> str:
        return "moved"

    @inner.tool
    def balance() -> str:
        return "100"

    if how != "mounted":
        return inner
    outer = FastMCP("outer")
    outer.mount(inner)
    return outer


@pytest.mark.usefixtures("jwt_mode")
@pytest.mark.parametrize("how", ["tool", "list", "tag", "mounted"])
def test_a_scope_of_one_tool_is_required_for_this_tool(how: str) -> None:
    refused = ask_adopted(own_scopes(how), "reader", TRANSFER)
    assert "moved" not in refused["body"]
    assert refused["statusCode"] == 403
    assert 'scope="transfer"' in refused["headers"]["www-authenticate"]
    assert "moved" in ask_adopted(own_scopes(how), "mover", TRANSFER)["body"]
    assert "100" in ask_adopted(own_scopes(how), "reader", BALANCE)["body"]


@pytest.mark.parametrize("how", ["tool", "tag"])
@pytest.mark.parametrize("mode", ["none", "iam"])
def test_a_mode_without_tokens_refuses_only_the_tool_that_requires_a_scope(
    how: str, mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MCP_AUTH_MODE", mode)
    handler = serve(*adopt(own_scopes(how)))
    statuses = []
    for call in (TRANSFER, BALANCE):
        event = wire.event(wire.message(*call))
        statuses.append(handler(gateways.by_iam(event, "ann") if mode == "iam" else event, wire.Context("local_all")))
    assert [response["statusCode"] for response in statuses] == [500, 200]
    assert "auth=require_scopes('transfer') of transfer" in caplog.text


@pytest.mark.usefixtures("jwt_mode")
def test_only_the_scope_that_each_version_of_a_tool_requires_is_required_before_fastmcp_chooses() -> None:
    server = FastMCP("versions")

    @server.tool(name="transfer", version="2", auth=require_scopes("transfer"))
    def second() -> str:
        return "second"

    @server.tool(name="transfer", version="1")
    def first() -> str:
        return "first"

    assert "first" in ask_adopted(server, "reader", TRANSFER)["body"]
    assert "second" in ask_adopted(server, "mover", TRANSFER)["body"]


@pytest.mark.usefixtures("jwt_mode")
def test_a_check_of_fastmcp_that_is_no_scope_runs_at_each_call() -> None:
    server = FastMCP("checks")

    @server.tool(auth=lambda context: context.token is not None and context.token.subject == "mover")
    def transfer() -> str:
        return "moved"

    assert "moved" not in ask_adopted(server, "reader", TRANSFER)["body"]
    assert "moved" in ask_adopted(server, "mover", TRANSFER)["body"]


@pytest.mark.usefixtures("jwt_mode")
def test_a_cached_result_of_fastmcp_reaches_no_other_caller() -> None:
    server = FastMCP("cache", middleware=[ResponseCachingMiddleware()])

    @server.tool
    async def transfer(ctx: FastContext) -> str:
        del ctx
        token = get_access_token()
        return f"of {token.subject if token else 'nobody'}"

    handler = serve(*adopt(server))
    results = [Conversation(handler, principal=who).call().text for who in ("ada", "bob", "ada")]
    assert results == ["of ada", "of bob", "of ada"]


@pytest.mark.usefixtures("jwt_mode")
def test_a_completion_knows_its_caller() -> None:
    server = MCPServer("bank")

    @server.prompt()
    def letter(to: str) -> str:
        return f"To {to}"

    @server.completion()
    async def complete(_ref: object, _argument: object, _context: object) -> Completion:
        token = get_access_token()
        return Completion(values=[str(token.subject)] if token and "transfer" in token.scopes else [])

    assert '["mover"]' in ask_adopted(server, "mover", COMPLETE)["body"]
    assert '"values":[]' in ask_adopted(server, "reader", COMPLETE)["body"]


def test_middleware_that_is_added_after_adopt_runs() -> None:
    server = MCPServer("late")

    @server.tool()
    def transfer(ctx: Context) -> str:
        del ctx
        return "moved"

    handler = serve(*adopt(server))

    async def refuse(ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 - of the library
        if ctx.method == "tools/call":
            raise PermissionError
        return await call_next(ctx)

    server.middleware.append(refuse)
    assert "moved" not in str(Conversation(handler).call().body)
