"""A person who signs in: the official client's OAuth flow, with a simulated browser."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.clients import people

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.client.session import ElicitationFnT

T = TypeVar("T")

CALLBACK = "http://127.0.0.1:1/callback"


class Storage:
    """The storage that a client keeps between two runs."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class SigningIn:
    """A person at an official client.

    Attributes:
        seen: every HTTP request so far, "POST /mcp tools/call" or "POST /token refresh_token", and its status.

    """

    def __init__(self, url: str, name: str = "ann", *, restored: bool = False, document: str | None = None) -> None:
        """Sit down.

        Args:
            url: of the MCP endpoint.
            name: to sign in with.
            restored: whether something in front of API Gateway gives its header back its name.
            document: URL of the client's metadata document; without one it registers.

        """
        self.url, self.name, self._restored = url, name, restored
        self.storage = Storage()
        self.seen: list[tuple[str, int]] = []
        self._landed = ""
        self.provider = OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata(redirect_uris=[AnyUrl(CALLBACK)], client_name="test"),
            storage=self.storage,
            redirect_handler=self._open_browser,
            callback_handler=self._come_back,
            client_metadata_url=document,
        )

    @property
    def access_token(self) -> str:
        """The token that the client holds."""
        assert self.storage.tokens
        return self.storage.tokens.access_token

    def let_expire(self) -> None:
        """Let the client believe that its access token has expired."""
        self.provider.context.token_expiry_time = 1.0

    def swap_token(self, token: str) -> None:
        """Give the client another access token, of which it believes that it is good."""
        held = self.provider.context.current_tokens
        assert held
        self.provider.context.current_tokens = held.model_copy(update={"access_token": token})

    def use(self, conversation: Callable[[Client], Awaitable[T]], *, answer: ElicitationFnT | None = None) -> T:
        """Hold one conversation.

        Raises:
            MCPError: the server refused.

        """
        return people.run(self._client(answer), conversation)

    @asynccontextmanager
    async def _client(self, answer: ElicitationFnT | None) -> AsyncIterator[Client]:
        hooks: dict[str, list[Any]] = {"response": [self._note]}
        async with httpx2.AsyncClient(auth=self.provider, event_hooks=hooks) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode="2026-07-28", elicitation_callback=answer) as client:
                yield client

    async def _note(self, response: httpx2.Response) -> None:
        request = response.request
        form = parse_qs(request.content.decode()) if request.url.path == "/token" else {}
        what = request.headers.get("mcp-method") or "".join(form.get("grant_type", []))
        self.seen.append((f"{request.method} {request.url.path} {what}".strip(), response.status_code))
        if self._restored and (renamed := response.headers.get("x-amzn-remapped-www-authenticate")):
            response.headers["www-authenticate"] = renamed

    async def _open_browser(self, url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(f"{url}&{urlencode({'login_hint': self.name})}")
        assert response.status_code == 302, response.text
        self._landed = response.headers["location"]

    async def _come_back(self) -> AuthorizationCodeResult:
        assert self._landed.startswith(CALLBACK)
        brought = {name: values[0] for name, values in parse_qs(urlsplit(self._landed).query).items()}
        return AuthorizationCodeResult.model_validate_json(json.dumps(brought))
