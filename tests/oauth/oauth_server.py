"""The authorization server under test, with the provider that it sends users to, and with hosts.

A host (the application of an MCP client) registers, and gets a client id. The host sends a browser to `/authorize`. The
user consents, signs in at the provider, and the browser brings a code to the host's redirect. The host redeems the code
at `/token`. `OAuthServer` does a host's part, and `Browser` the user's. Each request reaches a process with an empty
memory, unless a test calls `keep_process`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from mcp_functions.oauth.function import serve_oauth
from mcp_functions.seal.kms import KmsKey
from mcp_functions_harness import issuer as local_issuer
from mcp_functions_harness.environment import applied as changed_settings
from mcp_functions_harness.loopback import Loopback
from tests.oauth.browser import ADDRESS, Answer, Browser
from tests.oauth.provider import Provider
from tests.support.issuers import make_issuer
from tests.support.strict_kms import Clock, StrictKms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.oauth.documents import Network
    from mcp_functions_harness.issuer import Issuer

__all__ = ["changed_settings"]

URL = "https://mcp.example"
RESOURCE = f"{URL}/mcp"
HOST_REDIRECT = "https://host.example/callback"
LOOPBACK_REDIRECT = "http://127.0.0.1:3000/callback"
CLIENT_AT_PROVIDER = "front-of-this-stack"
SECRET = "planted-unspeakable-provider-secret"  # noqa: S105 - it may stand in no response and no log line
SCOPES = "items.read items.write"
VERIFIER = "verifier-verifier-verifier-verifier-verifier"  # PKCE needs at least 43 characters


class Context:
    """Lambda's context."""

    function_name = "shop_oauth"
    aws_request_id = "b5a3c9e0-0000-4000-8000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def pkce_challenge() -> str:
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass
class OAuthServer:
    """The server under test.

    Attributes:
        process: the process that answers every request; None: each request reaches a new one.
    """

    provider: Provider
    kms: StrictKms
    clock: Clock
    wrapping_keys: list[KmsKey]
    network: Network | None
    url: str
    process: Callable[[Any, Any], Any] | None = None

    def start_process(self) -> Callable[[Any, Any], Any]:
        """Start a new process with an empty memory; or return the one to keep."""
        return self.process or serve_oauth(wrapping=self.wrapping_keys, network=self.network, now=self.clock)

    def keep_process(self) -> None:
        self.process = self.start_process()

    def new_browser(self, address: str = ADDRESS) -> Browser:
        return Browser(self, address=address)

    def authorize(self, client_id: str, **changes: str | None) -> Answer:
        """Follow the link of a host to `/authorize`, in a new browser."""
        return self.new_browser().authorize(client_id, **changes)

    def send(  # noqa: PLR0913 - the parts of an HTTP request
        self,
        method: str,
        url: str,
        *,
        form: Mapping[str, str] | str | None = None,
        body: object = None,
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        address: str = ADDRESS,
    ) -> Answer:
        parts = urlsplit(url)
        sent = {"host": "mcp.example", **(headers or {})}
        text = form if isinstance(form, str) else urlencode(form or {})
        if form is not None:
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
            text = base64.b64encode(text.encode()).decode()  # as API Gateway does with a form
        if body is not None:
            sent.setdefault("content-type", "application/json")
            text = body if isinstance(body, str) else json.dumps(body)
        event = {
            "version": "2.0",
            "rawPath": parts.path,
            "rawQueryString": parts.query,
            "headers": {name.replace("_", "-"): value for name, value in sent.items()},
            "requestContext": {
                "domainName": "mcp.example",
                "http": {"method": method, "sourceIp": address},
                "requestId": "id=",
            },
            "isBase64Encoded": form is not None,
            **({"cookies": [f"{name}={value}" for name, value in cookies.items()]} if cookies else {}),
            **({"body": text} if text else {}),
        }
        response = self.start_process()(event, Context())
        assert SECRET not in json.dumps(response)
        return Answer(response["statusCode"], response["headers"], response["body"], response.get("cookies", []))

    def register(self, *redirects: str, **metadata: object) -> dict[str, Any]:
        """Register a client, as a host does."""
        wanted = {"redirect_uris": list(redirects or (HOST_REDIRECT,)), "client_name": "Desk", **metadata}
        answer = self.send("POST", "/register", body=wanted)
        assert answer.status == 201, answer.body
        return answer.json

    def new_client(self, *redirects: str, **metadata: object) -> str:
        """Register a client, and return its id."""
        return str(self.register(*redirects, **metadata)["client_id"])

    def authorize_url(self, client_id: str, **changes: str | None) -> str:
        """Return the URL to which a host sends the browser."""
        parameters = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": HOST_REDIRECT,
            "state": "host-state",
            "scope": "items.read",
            "code_challenge": pkce_challenge(),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changes,
        }
        return f"/authorize?{urlencode({name: value for name, value in parameters.items() if value is not None})}"

    def sign_in(self, client_id: str, person: str = "ann", **changes: str | None) -> Answer:
        """Consent and sign in, in a new browser; return the redirect to the host."""
        browser = self.new_browser()
        answer = browser.authorize(client_id, **changes)
        if answer.status == 200:
            answer = browser.allow(answer)
        assert answer.status == 303, answer.body
        return browser.get(browser.sign_in_at_provider(answer.location, person))

    def get_code(self, client_id: str, person: str = "ann", **changes: str | None) -> str:
        """Consent and sign in; return the code that the host gets."""
        return self.sign_in(client_id, person, **changes).parameters["code"]

    def get_tokens(self, client_id: str, person: str = "ann", **changes: str | None) -> dict[str, Any]:
        """Consent, sign in and redeem the code; return the answer of `/token`."""
        redirect = changes.get("redirect_uri") or HOST_REDIRECT
        answer = self.redeem(client_id, self.get_code(client_id, person, **changes), redirect_uri=redirect)
        assert answer.status == 200, answer.body
        return answer.json

    def redeem(
        self, client_id: str, code: str | None, headers: Mapping[str, str] | None = None, /, **changes: str | None
    ) -> Answer:
        """Redeem a code, as a host does."""
        form = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": HOST_REDIRECT,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
            **changes,
        }
        return self.post("/token", form, headers)

    def refresh(self, client_id: str, token: str, **changes: str | None) -> Answer:
        """Refresh, as a host does."""
        form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token, "resource": RESOURCE}
        return self.post("/token", {**form, **changes})

    def revoke(self, client_id: str, token: str) -> Answer:
        return self.post("/revoke", {"client_id": client_id, "token": token})

    def post(self, path: str, form: Mapping[str, str | None], headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("POST", path, form={k: v for k, v in form.items() if v is not None}, headers=headers)


def token_claims(token: str) -> dict[str, Any]:
    """Read the claims of a token."""
    part = token.split(".")[1]
    payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return payload


@contextmanager
def running_server(
    settings: Mapping[str, str] | None = None,
    *,
    network: Network | None = None,
    secret: str = "",
    asks_for_user: bool = False,
    change_answer: Callable[[str, dict[str, Any], Issuer], None] | None = None,
) -> Iterator[OAuthServer]:
    """Run a provider, and set the environment of the server's function.

    Args:
        settings: environment variables, in place of the usual ones.
        network: how the server reaches sites other than the provider.
        secret: of the server as a client of the provider.
        asks_for_user: whether a page of the provider asks who signs in.
        change_answer: see `Provider`.
    """
    settings = settings or {}
    url = settings.get("MCP_OAUTH_URL") or URL
    clock, kms = Clock(), StrictKms()
    key = kms.create_key()
    with ExitStack() as stack:
        loopback = stack.enter_context(Loopback(max_body=local_issuer.MAX_REQUEST))
        redirect_uris = {CLIENT_AT_PROVIDER: (f"{url}/callback",)}
        issuer = make_issuer(
            loopback.url, RESOURCE, now=clock, redirect_uris=redirect_uris, asks_for_user=asks_for_user
        )
        provider = Provider(issuer, change_answer, secret)
        loopback.start(provider.answer)
        variables = {
            "MCP_STACK": "shop",
            "MCP_AUTH_MODE": "oauth",
            "MCP_KMS_KEYS": key,
            "MCP_JWT_ISSUER": loopback.url,
            "MCP_JWT_AUDIENCE": RESOURCE,
            "MCP_RESOURCE_URL": RESOURCE,
            "MCP_OAUTH_URL": URL,
            "MCP_OAUTH_CLIENT_ID": CLIENT_AT_PROVIDER,
            "MCP_OAUTH_RESOURCE_PARAMETER": "resource",
            "MCP_SCOPES_SUPPORTED": SCOPES,
            "MCP_SERVER_NAME": "Shop",
            **settings,
        }
        stack.enter_context(changed_settings(variables))
        yield OAuthServer(provider, kms, clock, [KmsKey(key, lambda: kms)], network, url)
