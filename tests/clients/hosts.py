"""People at hosts: the official clients, which sign in at the front by registration or by a metadata document."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from mcp import Client, MCPError

from tests.clients.people import accept
from tests.clients.signing_in import SigningIn
from tests.conformance import node
from tests.support import consent

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp_types import ElicitRequestParams, ElicitResult

SCRIPT = Path(__file__).with_name("sign_in.mjs")
BOOK: dict[str, Any] = {"name": "book", "arguments": {"city": "Rome"}}
SEAT = {"seat": {"action": "accept", "content": {"seat": "window"}}}


class Host(Protocol):
    """A person at a host. Its conversation is a booking that asks for a seat."""

    pages: list[str]  # of consent, as the browser saw them

    def begin(self) -> str:
        """Ask for the booking; return the sealed state of the question."""

    def go_on(self, state: str) -> str:
        """Answer the question; return the text of the result, or "code: message" of the error."""

    def swap_token(self, token: str) -> None:
        """Replace the access token by one that the server will refuse."""

    def seen(self) -> list[str]:
        """Return the requests since the last call of this."""

    @property
    def access_token(self) -> str:
        """The access token that the client holds."""

    def close(self) -> None:
        """Leave."""


class _AtTheFront(SigningIn):
    """The official Python client with a browser that shows pages."""

    pages: list[str]

    async def _open_browser(self, url: str) -> None:
        landed = await anyio.to_thread.run_sync(consent.sign_in, url, self.name)
        self.pages.append(landed.page)
        self._landed = landed.url


class Python:
    """A person at the official Python client."""

    def __init__(self, url: str, name: str, document: str) -> None:
        self._client = _AtTheFront(url, name, document=document or None)
        self.pages = self._client.pages = []

    def begin(self) -> str:
        async def first(client: Client) -> str:
            result = await client.session.call_tool(**BOOK, allow_input_required=True)
            return str(getattr(result, "request_state", ""))

        return self._client.use(first, answer=_never)

    def go_on(self, state: str) -> str:
        async def second(client: Client) -> Any:  # noqa: ANN401 - a result
            answers: Any = {"seat": accept(seat="window")}
            return await client.session.call_tool(**BOOK, input_responses=answers, request_state=state)

        try:
            return str(self._client.use(second, answer=_never).content[0].text)
        except MCPError as refused:
            return f"{refused.code}: {refused.message}"

    def swap_token(self, token: str) -> None:
        self._client.swap_token(token)
        self._client.let_expire()

    def seen(self) -> list[str]:
        seen = [what for what, _status in self._client.seen]
        self._client.seen.clear()
        return seen

    @property
    def access_token(self) -> str:
        return self._client.access_token

    def close(self) -> None:
        """Leave; nothing runs."""


async def _never(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    raise NotImplementedError(context, params)


class TypeScript:
    """A person at the official TypeScript client."""

    def __init__(self, url: str, name: str, document: str) -> None:
        self._name = name
        self._seen: list[str] = []
        self.access_token = ""
        self.pages: list[str] = []
        command = [str(node.needed()), str(SCRIPT), url, document]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def begin(self) -> str:
        return str(self._called(**BOOK)["requestState"])

    def go_on(self, state: str) -> str:
        said = self._called(**BOOK, inputResponses=SEAT, requestState=state)
        return str(said["error"] if "error" in said else said["content"][0]["text"])

    def swap_token(self, token: str) -> None:
        self._do(swap=token)

    def seen(self) -> list[str]:
        seen, self._seen = self._seen, []
        return seen

    def close(self) -> None:
        self._running.communicate(timeout=30)

    def _called(self, **params: object) -> dict[str, Any]:
        said: dict[str, Any] = self._do(call=params)["said"]
        return said

    def _do(self, **command: object) -> dict[str, Any]:
        answer = self._exchange(command)
        while "open" in answer:
            landed = consent.sign_in(answer["open"], self._name)
            self.pages.append(landed.page)
            answer = self._exchange({"landed": landed.url})
        self._seen += answer["seen"]
        self.access_token = answer["tokens"]["access_token"]
        return answer

    def _exchange(self, line: object) -> dict[str, Any]:
        assert self._running.stdin
        assert self._running.stdout
        self._running.stdin.write(f"{json.dumps(line)}\n")
        self._running.stdin.flush()
        answer: dict[str, Any] = json.loads(self._running.stdout.readline())
        return answer


HOSTS: dict[str, type[Python | TypeScript]] = {"Python": Python, "TypeScript": TypeScript}
