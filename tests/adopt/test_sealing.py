"""`seal_states` seals the states of an official server with KMS, so that any container continues a conversation.

`official` and `fast` make the same server with each library. Its tool `book` asks for a day: the first `call` returns a
sealed state, and the second one, with the state and ANSWER, returns a text that shows what the server remembered. Each
server that `sealed` makes is like another process: it has its own data keys.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from fastmcp import Context as FastContext
from fastmcp import FastMCP
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import modern_on_request
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from mcp_functions.adopt import seal_states
from mcp_functions.adopt.back_channel import SilentChannel
from mcp_functions.adopt.library import find_low_level
from mcp_functions.protocol.errors import TemporarilyUnavailable
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

FORM = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
CALLER: dict[str, str | None] = {"name": "ada"}  # who sends the requests; `called_by` changes it
REMEMBERED = "remembered Monday"  # the text of `book` after ANSWER
REFUSED = (-32602, "Invalid or expired requestState")
UNAVAILABLE = ("Temporarily unavailable", {"retryable": True})
ANSWER = {"when": {"action": "accept", "content": {"day": "Monday"}}}


def ask_day(ctx: Context | FastContext, times: int = 1) -> InputRequiredResult | str:
    """Ask for a day, and remember a word in the state."""
    if ctx.request_state is None:
        form = ElicitRequest(params=ElicitRequestFormParams(message="When?", requested_schema=FORM))
        return InputRequiredResult(input_requests={"when": form}, request_state="remembered" * times)
    answer: Any = (ctx.input_responses or {})["when"]
    return f"{ctx.request_state} {answer.content['day']}"


def official() -> MCPServer[Any]:
    server = MCPServer("calendar")

    @server.tool()
    async def today() -> str:
        return "Monday"

    @server.tool()
    async def book(ctx: Context, times: int = 1) -> InputRequiredResult | str:
        return ask_day(ctx, times)

    @server.tool()
    async def cancel(ctx: Context) -> InputRequiredResult | str:
        return ask_day(ctx)

    return server


def fast() -> FastMCP[Any]:
    server = FastMCP("calendar")

    @server.tool(output_schema=None)
    async def today() -> str:
        return "Monday"

    @server.tool(output_schema=None)
    async def book(ctx: FastContext, times: int = 1) -> Any:  # noqa: ANN401 - FastMCP reads it
        return ask_day(ctx, times)

    @server.tool(output_schema=None)
    async def cancel(ctx: FastContext) -> Any:  # noqa: ANN401 - FastMCP reads it
        return ask_day(ctx)

    return server


VECTORS = Path(__file__).parents[1] / "seal/vectors/envelope"
BOTH = {"mcp": official, "fastmcp": fast}
each_library = pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)


def sealed(make: Callable[[], object], **options: Any) -> object:  # noqa: ANN401 - of seal_states
    """Make a server with its own data keys, like another process of a fleet."""
    server = make()
    given = {"keys": os.environ["MCP_KMS_KEYS"].split(","), "principal": lambda _ctx: CALLER["name"]}
    seal_states(server, **{**given, **options})
    return server


def call(server: object, name: str = "book", **params: object) -> dict[str, Any]:
    """Send one request of 2026-07-28."""
    handle = modern_on_request(find_low_level(server), {})
    request = {"name": name, "arguments": {}, "_meta": META, **params}
    return asyncio.run(_send(handle, request))


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def refusal(server: object, name: str = "book", **params: object) -> MCPError:
    """Send a request that is refused, and return the error."""
    with pytest.raises(MCPError) as error:
        call(server, name, **params)
    return error.value


@contextmanager
def called_by(name: str | None) -> Iterator[None]:
    """Let another caller send the requests."""
    CALLER["name"] = name
    try:
        yield
    finally:
        CALLER["name"] = "ada"


async def _send(handle: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - of the SDK
    result: dict[str, Any] = await handle(SilentChannel(), "tools/call", request)
    return result


@each_library
def test_another_container_continues_a_conversation_of_an_adopted_server(make: Callable[[], object]) -> None:
    first = call(sealed(make))
    assert first["requestState"].startswith("ks1.")
    second = call(sealed(make), requestState=first["requestState"], inputResponses=ANSWER)
    assert text_of(second) == REMEMBERED


@each_library
def test_another_process_that_shares_only_the_kms_key_continues_a_conversation(make: Callable[[], object]) -> None:
    token = call(sealed(make))["requestState"]
    library = next(name for name, each in BOTH.items() if each is make)
    command = [sys.executable, __file__, library, token]
    root = Path(__file__).parents[2]
    ran = subprocess.run(  # noqa: S603 - this file
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, check=True
    )
    assert text_of(json.loads(ran.stdout)) == REMEMBERED


@each_library
@pytest.mark.parametrize("other", [{"caller": "bob"}, {"caller": None}, {"name": "cancel"}, {"service": "diary"}])
def test_another_person_tool_or_service_cannot_use_a_state(make: Callable[[], object], other: dict[str, Any]) -> None:
    token = call(sealed(make))["requestState"]
    server = sealed(make, **({"service": other["service"]} if "service" in other else {}))
    with called_by(other.get("caller", "ada")):
        error = refusal(server, other.get("name", "book"), requestState=token, inputResponses=ANSWER)
    assert (error.code, error.error.message) == REFUSED


@each_library
def test_a_tool_asks_a_caller_without_a_principal_only_if_its_author_allows_it(make: Callable[[], object]) -> None:
    with called_by(None):
        assert refusal(sealed(make))
        token = call(sealed(make, principal=None, anonymous=True))["requestState"]
    anyone = sealed(make, principal=None, anonymous=True)
    assert text_of(call(anyone, requestState=token, inputResponses=ANSWER)) == REMEMBERED


@pytest.mark.parametrize(
    "options",
    [{}, {"anonymous": None}, {"anonymous": True, "principal": lambda _ctx: "ada"}],
)
def test_seal_states_requires_a_principal_or_anonymous(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="anonymous=True"):
        seal_states(official(), keys=["arn:aws:kms:eu-west-1:111122223333:key/0a"], **options)


class Watched:
    """A wrapping that notes the thread and the purpose of each call."""

    def __init__(self) -> None:
        self._kms = KmsKey(os.environ["MCP_KMS_KEYS"].split(",")[0])
        self.id, self.threads, self.purposes, self.is_down = self._kms.id, set[object](), set[str](), False
        self.is_called = threading.Event()
        self.may_answer: threading.Event | None = None  # if there is one, each call waits for it

    def _note(self, context: dict[str, str]) -> None:
        self.threads.add(threading.current_thread())
        self.purposes.add(context["purpose"])
        self.is_called.set()
        if self.may_answer is not None:
            assert self.may_answer.wait(60)
        if self.is_down:
            raise TemporarilyUnavailable(reason="kms:down")

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        self._note(context)
        return self._kms.generate(context)

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        self._note(context)
        return self._kms.unwrap(wrapped, context)


@each_library
def test_kms_is_called_in_another_thread_with_the_purpose_of_the_key(make: Callable[[], object]) -> None:
    watched = Watched()
    token = call(sealed(make, keys=[watched]))["requestState"]
    call(sealed(make, keys=[watched]), requestState=token, inputResponses=ANSWER)
    assert watched.threads
    assert threading.main_thread() not in watched.threads  # asyncio.run has its loop in it
    assert watched.purposes == {"mcp-foreign-state"}


class Recorded:
    """The KMS of the published vector: it opens one data key, for its purpose and scope alone."""

    def __init__(self, vector: dict[str, str]) -> None:
        self.vector, self.id = vector, vector["key-id"]
        self.context = {name: vector[name] for name in ("purpose", "service", "stage", "generation", "born")}

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        raise NotImplementedError

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        assert (wrapped.hex(), context) == (self.vector["wrapped"], self.context)
        return bytes.fromhex(self.vector["data-key"])


def test_a_server_reads_the_published_vector_and_its_library_checks_the_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (VECTORS / "accept-foreign-state.txt").read_text(encoding="utf-8").splitlines()[1:]
    vector = dict(line.split(": ", 1) for line in lines)
    monkeypatch.setattr(time, "time", lambda: float(vector["now"]))
    monkeypatch.setattr("mcp_functions.adopt.sealing.Keyring", partial(Keyring, now=time.time))
    server = sealed(official, keys=[Recorded(vector)], principal=None, anonymous=True)
    assert text_of(call(server, requestState=vector["token"], inputResponses=ANSWER)) == REMEMBERED


def test_an_outage_of_kms_loses_no_conversation() -> None:
    token = call(sealed(official))["requestState"]
    watched = Watched()
    server = sealed(official, keys=[watched])
    watched.is_down = True
    error = refusal(server, requestState=token, inputResponses=ANSWER)
    assert (error.error.message, error.error.data) == UNAVAILABLE
    watched.is_down = False
    assert text_of(call(server, requestState=token, inputResponses=ANSWER)) == REMEMBERED


async def run_beside(kms: Watched, may_answer: threading.Event, work: Coroutine[Any, Any, object]) -> None:
    """Run some work, and let KMS answer from the same event loop: in a loop that waits for KMS, neither continues."""
    task = asyncio.ensure_future(work)
    assert await asyncio.to_thread(kms.is_called.wait, 60)
    may_answer.set()
    await task


@each_library
def test_the_event_loop_continues_while_kms_is_slow(make: Callable[[], object]) -> None:
    token = call(sealed(make))["requestState"]
    for params in ({}, {"requestState": token, "inputResponses": ANSWER}):
        slow = Watched()
        slow.may_answer = threading.Event()
        handle = modern_on_request(find_low_level(sealed(make, keys=[slow])), {})
        work = _send(handle, {"name": "book", "arguments": {}, "_meta": META, **params})
        asyncio.run(run_beside(slow, slow.may_answer, work))


@each_library
def test_a_call_that_asks_nothing_does_not_wait_for_kms(make: Callable[[], object]) -> None:
    watched = Watched()
    watched.is_down = True
    assert text_of(call(sealed(make, keys=[watched]), "today")) == "Monday"
    assert not watched.threads


@each_library
def test_a_question_that_cannot_be_sealed_may_be_asked_again(make: Callable[[], object]) -> None:
    watched = Watched()
    server = sealed(make, keys=[watched])
    watched.is_down = True
    error = refusal(server)
    assert (error.error.message, error.error.data) == UNAVAILABLE
    watched.is_down = False
    assert call(server)["requestState"].startswith("ks1.")


@each_library
def test_a_forged_state_and_a_state_of_another_call_get_the_same_error(make: Callable[[], object]) -> None:
    token = call(sealed(make))["requestState"]
    other_arguments = call(sealed(make), arguments={"times": 2})["requestState"]
    of_function = Envelope(Keyring([KmsKey(os.environ["MCP_KMS_KEYS"])], Scope("calendar", "", ""))).seal(b"{}")
    forged = (token[:-2] + ("AA" if token[-2:] != "AA" else "BB"), "", "ks1.", "v1.AAAA", of_function, other_arguments)
    for state in forged:
        error = refusal(sealed(make), requestState=state, inputResponses=ANSWER)
        assert (error.code, error.error.message) == REFUSED, state
    assert text_of(call(sealed(make), requestState=token, inputResponses=ANSWER)) == REMEMBERED


def forge(token: str, place: int) -> str:
    """Change a byte of the wrapped data key, so that a reader has to ask KMS."""
    body = bytearray(base64.urlsafe_b64decode(token[4:] + "=="))
    body[20 + place] ^= 1
    return "ks1." + base64.urlsafe_b64encode(body).decode().rstrip("=")


def test_forged_states_do_not_use_up_the_attempts_of_other_callers() -> None:
    token, server = call(sealed(official))["requestState"], sealed(official)
    with called_by("eve"):
        for place in range(8):
            assert refusal(server, requestState=forge(token, place))
    assert text_of(call(server, requestState=token, inputResponses=ANSWER)) == REMEMBERED


async def post(app: Any, address: str, **params: object) -> dict[str, Any]:  # noqa: ANN401 - of Starlette
    """Send a call of `book` over HTTP, from an address."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "book",
    }
    transport = httpx2.ASGITransport(app=app, client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        sent = {**body, "params": {"name": "book", "arguments": {}, "_meta": META, **params}}
        response = await client.post("/mcp", json=sent, headers=headers)
    answer: dict[str, Any] = json.loads(response.text.partition("data: ")[2] or response.text)
    return answer


@each_library
def test_over_http_without_principals_attempts_count_by_network(make: Callable[[], Any]) -> None:
    async def talk() -> tuple[dict[str, Any], dict[str, Any]]:
        servers = [make(), make()]
        for server in servers:
            seal_states(server, keys=os.environ["MCP_KMS_KEYS"].split(","), anonymous=True)
        apps = [app_of(server) for server in servers]
        async with apps[0].router.lifespan_context(apps[0]), apps[1].router.lifespan_context(apps[1]):
            token = (await post(apps[0], "10.0.0.1"))["result"]["requestState"]
            for place in range(8):
                forged = {"requestState": forge(token, place), "inputResponses": ANSWER}
                assert "error" in await post(apps[1], f"2001:db8:1:2::{place}", **forged)
            good = {"requestState": token, "inputResponses": ANSWER}
            return await post(apps[1], "2001:db8:1:2::99", **good), await post(apps[1], "10.0.0.1", **good)

    same_network, other_network = asyncio.run(talk())
    assert same_network["error"]["data"] == {"retryable": True}
    assert text_of(other_network["result"]) == REMEMBERED


def app_of(server: Any) -> Any:  # noqa: ANN401 - of the SDK
    """Make the ASGI application of a server, as its library does."""
    if isinstance(server, FastMCP):
        return server.http_app(stateless_http=True)
    return server.streamable_http_app(stateless_http=True)


if __name__ == "__main__":
    library, token = sys.argv[1:]
    sys.stdout.write(json.dumps(call(sealed(BOTH[library]), requestState=token, inputResponses=ANSWER)))


@pytest.mark.parametrize(("own", "seconds"), [(60, 60), (3600, 600)])
def test_the_shorter_time_of_the_policy_and_of_seal_states_counts(
    own: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> FastMCP[Any]:
        server = fast()
        policy = RequestStateSecurity(keys=["0" * 32], ttl=own)
        low_level = find_low_level(server)
        low_level.middleware[1] = RequestStateBoundary(policy, default_audience="calendar")
        return server

    server = sealed(make)
    state = call(server)["requestState"]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + seconds - 5)
    assert call(server, requestState=state, inputResponses=ANSWER)["content"][0]["text"] == REMEMBERED
    monkeypatch.setattr(time, "time", lambda: now + seconds + 5)
    with pytest.raises(MCPError) as refused:
        call(server, requestState=state, inputResponses=ANSWER)
    assert (refused.value.code, refused.value.message) == REFUSED
