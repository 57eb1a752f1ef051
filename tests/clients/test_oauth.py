"""The official Python client signs in as behind API Gateway, and continues although its tokens change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError

from mcp_functions_harness import Harness, catalog
from tests.clients.people import accept, text
from tests.clients.signing_in import SigningIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.client.session import ClientRequestContext, ElicitationFnT
    from mcp_types import ElicitRequestParams, ElicitResult

    from mcp_functions_harness.issuer import Issuer

FUNCTIONS = {
    "mcp": """
from pathlib import Path
from mcp_functions import serve_catalog
handler = serve_catalog(Path(__file__).with_name("catalog.json"))
""",
    "book": """
from pydantic import BaseModel
from mcp_functions import Elicit, serve, tool

class Seat(BaseModel):
    seat: str

@tool
def book(city: str, *, elicit: Elicit) -> str:
    return f"{city}, {elicit('seat', 'Where?', Seat).seat}"

handler = serve(book)
""",
    "cancel": """
from mcp_functions import serve, tool

@tool(scopes=["trips:write"])
def cancel(city: str) -> str:
    return f"{city} cancelled"

handler = serve(cancel)
""",
}
INVALID_STATE_ERROR = (-32602, "Invalid or expired requestState")
WELL_KNOWN = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("shop")
    for folder, app in FUNCTIONS.items():
        (root / "functions" / folder).mkdir(parents=True)
        (root / "functions" / folder / "app.py").write_text(app, encoding="utf-8")
    catalog.write(root / "functions", catalog.generate(root / "functions"))
    with Harness(root / "functions", state_dir=root / "state", auth="jwt") as running:
        yield running


@pytest.fixture
def issuer(harness: Harness) -> Issuer:
    assert harness.issuer
    return harness.issuer


def cancel(client: Client) -> Any:  # noqa: ANN401 - awaited by the client
    return client.call_tool("cancel", {"city": "Rome"})


def booking(between: Callable[[], None]) -> ElicitationFnT:
    """Answer the question about the seat, and do something before."""

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001
        between()
        return accept(seat="window")

    return answer


async def book(client: Client) -> Any:  # noqa: ANN401 - a result
    return await client.call_tool("book", {"city": "Rome"})


# --- the way in ---------------------------------------------------------------------------------------------------


def test_a_client_signs_in_after_a_401_without_metadata_and_completes_its_call(harness: Harness) -> None:
    ann = SigningIn(harness.url)
    assert text(ann.use(cancel)) == "Rome cancelled"
    assert ann.seen == [
        ("POST /mcp tools/call", 401),
        (f"GET {WELL_KNOWN}", 200),
        ("GET /.well-known/oauth-authorization-server", 200),
        ("POST /register", 201),
        ("POST /token authorization_code", 200),
        ("POST /mcp tools/call", 200),
        ("POST /mcp tools/list", 200),  # the client looks for an output schema
    ]
    held = ann.storage.tokens
    assert held
    assert (held.scope, held.token_type) == ("trips:write", "Bearer")
    assert held.refresh_token


def test_a_client_with_a_token_needs_no_sign_in(harness: Harness) -> None:
    ann = SigningIn(harness.url)
    ann.use(cancel)
    before = len(ann.seen)
    assert text(ann.use(cancel)) == "Rome cancelled"
    assert ann.seen[before:] == [("POST /mcp tools/call", 200), ("POST /mcp tools/list", 200)]


def test_a_client_of_one_function_finds_the_metadata_at_the_root(harness: Harness) -> None:
    ann = SigningIn(f"{harness.url}/cancel")
    assert text(ann.use(cancel)) == "Rome cancelled"
    assert [seen for seen in ann.seen if "protected-resource" in seen[0]] == [
        (f"GET {WELL_KNOWN}/cancel", 404),
        ("GET /.well-known/oauth-protected-resource", 200),
    ]


def test_a_client_under_another_name_of_this_machine_is_not_served(harness: Harness) -> None:
    with pytest.raises(ExceptionGroup) as error:
        SigningIn(harness.url.replace("127.0.0.1", "localhost")).use(cancel)
    assert error.group_contains(OAuthFlowError, match="does not match expected http://localhost")


def test_lists_need_a_token_too(harness: Harness) -> None:
    async def listed(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    ann = SigningIn(harness.url)
    assert ann.use(listed) == ["book", "cancel"]
    assert ann.seen[0] == ("POST /mcp tools/list", 401)


# --- a conversation and its tokens --------------------------------------------------------------------------------


def test_a_token_refreshed_in_mid_conversation_changes_nothing(harness: Harness) -> None:
    ann, tokens = SigningIn(harness.url), list[str]()

    def expire() -> None:
        tokens.append(ann.access_token)
        ann.let_expire()

    assert text(ann.use(book, answer=booking(expire))) == "Rome, window"
    assert ann.seen[-4:] == [
        ("POST /mcp tools/call", 200),  # which asked
        ("POST /token refresh_token", 200),
        ("POST /mcp tools/call", 200),
        ("POST /mcp tools/list", 200),
    ]
    assert ann.access_token != tokens[0]


def test_a_token_that_the_gateway_refuses_in_mid_conversation_is_replaced(harness: Harness, issuer: Issuer) -> None:
    ann = SigningIn(harness.url)
    expired = issuer.token(subject="ann", exp=1)
    assert text(ann.use(book, answer=booking(lambda: ann.swap_token(expired)))) == "Rome, window"
    assert ann.seen[-7:] == [
        ("POST /mcp tools/call", 200),  # which asked
        ("POST /mcp tools/call", 401),
        (f"GET {WELL_KNOWN}", 200),
        ("GET /.well-known/oauth-authorization-server", 200),
        ("POST /token authorization_code", 200),
        ("POST /mcp tools/call", 200),
        ("POST /mcp tools/list", 200),
    ]


def test_a_user_cannot_continue_another_users_conversation(harness: Harness) -> None:
    ann, ben = SigningIn(harness.url, "ann"), SigningIn(harness.url, "ben")
    state = start_booking(ann)
    with pytest.raises(MCPError) as error:
        ben.use(continue_booking(state), answer=booking(lambda: None))
    assert (error.value.code, error.value.message) == INVALID_STATE_ERROR
    assert text(ann.use(continue_booking(state), answer=booking(lambda: None))) == "Rome, window"


def test_a_user_cannot_continue_a_conversation_in_another_client(harness: Harness) -> None:
    desk, phone = SigningIn(harness.url, "ann"), SigningIn(harness.url, "ann")
    state = start_booking(desk)
    with pytest.raises(MCPError) as error:
        phone.use(continue_booking(state), answer=booking(lambda: None))
    assert (error.value.code, error.value.message) == INVALID_STATE_ERROR


def start_booking(person: SigningIn) -> str:
    async def first(client: Client) -> str:
        result = await client.session.call_tool("book", {"city": "Rome"}, allow_input_required=True)
        state = getattr(result, "request_state", None)
        assert isinstance(state, str)
        return state

    return person.use(first, answer=booking(lambda: None))


def continue_booking(state: str) -> Callable[[Client], Any]:
    def second(client: Client) -> Any:  # noqa: ANN401 - awaited by the client
        answers: Any = {"seat": accept(seat="window")}
        return client.session.call_tool("book", {"city": "Rome"}, input_responses=answers, request_state=state)

    return second


# --- scopes -------------------------------------------------------------------------------------------------------


def test_a_challenge_that_api_gateway_renamed_is_an_error_to_the_client(harness: Harness, issuer: Issuer) -> None:
    ann = signed_in_with(issuer.token(subject="ann"), SigningIn(harness.url))
    with pytest.raises(MCPError) as error:
        ann.use(cancel)
    assert (error.value.code, error.value.message) == (-32600, "The access token lacks a scope")
    assert error.value.data == {"reason": "insufficient_scope", "scope": "trips:write"}
    assert ann.seen == [("POST /mcp tools/call", 403)]


def test_a_restored_challenge_header_makes_the_client_request_more_scopes(harness: Harness, issuer: Issuer) -> None:
    ann = signed_in_with(issuer.token(subject="ann"), SigningIn(harness.url, restored=True))
    assert text(ann.use(cancel)) == "Rome cancelled"
    assert ann.seen == [
        ("POST /mcp tools/call", 403),
        (f"GET {WELL_KNOWN}", 200),
        ("GET /.well-known/oauth-authorization-server", 200),
        ("POST /token authorization_code", 200),
        ("POST /mcp tools/call", 200),
        ("POST /mcp tools/list", 200),
    ]
    assert ann.storage.tokens
    assert ann.storage.tokens.scope == "trips:write"


def test_the_client_requests_the_empty_scope_of_api_gateways_challenge(harness: Harness, issuer: Issuer) -> None:
    """Of a client that is refused with a token in hand: see docs/identity.md."""
    ann = SigningIn(harness.url)
    ann.use(cancel)
    ann.swap_token(issuer.token(subject="ann", exp=1))
    with pytest.raises(MCPError) as error:
        ann.use(cancel)
    assert error.value.data == {"reason": "insufficient_scope", "scope": "trips:write"}
    assert ann.storage.tokens
    assert ann.storage.tokens.scope == '""'


def signed_in_with(token: str, person: SigningIn) -> SigningIn:
    """Let a person come back with a token from before."""
    other = SigningIn(person.url, person.name)
    other.use(cancel)  # which registers a client
    assert other.storage.tokens
    person.storage.client = other.storage.client
    person.storage.tokens = other.storage.tokens.model_copy(update={"access_token": token, "scope": None})
    return person


# --- tokens that no client would get ------------------------------------------------------------------------------


def post(url: str, token: str | None) -> tuple[int, dict[str, str], Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "cancel", "arguments": {"city": "Rome"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "cancel"}
    asked = Request(url, body, headers | ({} if token is None else {"authorization": token}))  # noqa: S310 - loopback
    asked.add_header("content-type", "application/json")
    try:
        response = urlopen(asked)  # noqa: S310 - loopback
    except HTTPError as refused:
        response = refused
    with response:
        return response.status, dict(response.headers), json.loads(response.read())


SCOPE = "trips:write"


@pytest.mark.parametrize("at", ["", "/cancel"])
def test_a_valid_token_is_accepted_by_every_function(at: str, harness: Harness, issuer: Issuer) -> None:
    status, _headers, body = post(harness.url + at, f"Bearer {issuer.token(scope=SCOPE)}")
    assert (status, body["result"]["content"][0]["text"]) == (200, "Rome cancelled")


@pytest.mark.parametrize("at", ["", "/cancel"])
@pytest.mark.parametrize(
    ("changed", "description"),
    [
        ({"aud": "https://another.example/mcp"}, "the token does not have a valid audience"),
        ({"aud": None}, "the token does not have a valid audience"),
        ({"exp": 1}, "the token has expired"),
        ({"exp": None}, "the token has expired"),
        ({"nbf": 4_000_000_000}, "the token is not valid yet"),
        ({"iss": "https://another.example"}, "invalid issuer"),
    ],
)
def test_the_gateway_refuses_foreign_and_expired_tokens(
    at: str, changed: dict[str, Any], description: str, harness: Harness, issuer: Issuer
) -> None:
    before = len(harness.invocations)
    status, headers, body = post(harness.url + at, f"Bearer {issuer.token(scope=SCOPE, **changed)}")
    assert (status, body) == (401, {"message": "Unauthorized"})
    expected = f'Bearer scope="" error="invalid_token" error_description="{description}"'
    assert headers["www-authenticate"] == expected
    assert len(harness.invocations) == before


@pytest.mark.parametrize("at", ["", "/cancel"])
@pytest.mark.parametrize("header", [None, "", " "])
def test_a_request_without_a_token_gets_a_challenge_without_metadata(
    at: str, header: str | None, harness: Harness
) -> None:
    status, headers, body = post(harness.url + at, header)
    assert (status, headers["www-authenticate"], body) == (401, "Bearer", {"message": "Unauthorized"})


@pytest.mark.parametrize("at", ["", "/cancel"])
def test_an_id_token_passes_the_gateway_and_not_the_function(at: str, harness: Harness, issuer: Issuer) -> None:
    status, headers, body = post(harness.url + at, f"Bearer {issuer.token(scope=SCOPE, token_use='id')}")  # noqa: S106
    assert (status, body["error"]["message"]) == (401, "Invalid access token")
    assert "www-authenticate" not in headers
    assert headers["x-amzn-remapped-www-authenticate"].startswith('Bearer error="invalid_token", resource_metadata=')


@pytest.mark.parametrize("at", ["", "/cancel"])
def test_a_token_without_the_scope_gets_the_name_of_the_scope(at: str, harness: Harness, issuer: Issuer) -> None:
    status, headers, body = post(harness.url + at, f"Bearer {issuer.token(scope='trips:read')}")
    assert (status, body["error"]["data"]["scope"]) == (403, SCOPE)
    origin = harness.url.removesuffix("/mcp")
    assert headers["x-amzn-remapped-www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="{SCOPE}", resource_metadata="{origin}{WELL_KNOWN}"'
    )


def test_access_tokens_protect_the_unchanged_samples(tmp_path: Path) -> None:
    samples = Path(__file__).parents[2] / "functions"
    with Harness(samples, state_dir=tmp_path, auth="jwt") as running:
        ann = SigningIn(running.url)
        assert text(ann.use(lambda client: client.call_tool("add", {"a": 2, "b": 40}))) == "42"
