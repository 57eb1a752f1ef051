"""A deployment with a front, a provider, browsers and hosts. Every request of a sign-in reaches a new process."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp_functions.local import issuer as local_issuer
from mcp_functions.local.environment import applied
from mcp_functions.local.issuer import Behaviour, Issuer
from mcp_functions.local.loopback import HttpRequest as LocalRequest
from mcp_functions.local.loopback import Loopback
from mcp_functions.oauth.function import serve_oauth
from mcp_functions.seal.kms import KmsKey
from tests.support.strict_kms import Clock, StrictKms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.oauth.safe_fetch import Network

__all__ = ["applied"]

URL = "https://mcp.example"
RESOURCE = f"{URL}/mcp"
HOST_REDIRECT = "https://host.example/callback"
LOOPBACK_REDIRECT = "http://127.0.0.1:3000/callback"
CLIENT_AT_PROVIDER = "front-of-this-stack"
SECRET = "planted-unspeakable-provider-secret"  # noqa: S105 - it may stand in no response and no log line
SCOPES = "items.read items.write"
VERIFIER = "verifier-verifier-verifier-verifier-verifier"
ADDRESS = "198.51.100.7"
REDIRECTS = (301, 302, 303, 307, 308)


class Context:
    """Lambda's context."""

    function_name = "shop_oauth"
    aws_request_id = "b5a3c9e0-0000-4000-8000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def challenge(verifier: str = VERIFIER) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass
class Answer:
    """A response of the front, as a browser or a host reads it."""

    status: int
    headers: dict[str, str]
    body: str
    cookies: list[str]

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def location(self) -> str:
        return self.headers.get("location", "")

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the redirect."""
        return dict(parse_qsl(urlsplit(self.location).query))

    @property
    def request(self) -> str:
        """The sealed value in the form of the consent page."""
        field = re.search(r'name="request" value="([^"]+)"', self.body)
        assert field, self.body
        return field[1]


@dataclass
class Browser:
    """A browser: it keeps cookies, and nothing else."""

    world: World
    jar: dict[str, str] = field(default_factory=dict)
    address: str = ADDRESS

    def get(self, url: str, **headers: str) -> Answer:
        return self._kept(self.world.send("GET", url, cookies=self.jar, headers=headers, address=self.address))

    def post(self, url: str, form: Mapping[str, str], **headers: str) -> Answer:
        sent = {"origin": self.world.url, **headers}
        answer = self.world.send("POST", url, form=form, cookies=self.jar, headers=sent, address=self.address)
        return self._kept(answer)

    def allow(self, page: Answer, **form: str) -> Answer:
        """Press "Allow" on the consent page."""
        return self.post("/authorize", {"request": page.request, "decision": "allow", **form})

    def sign_in_at_provider(self, to: str, person: str = "ann") -> str:
        """Follow the redirect to the provider, which sends the browser back; return where to."""
        parts = urlsplit(to)
        assert f"{parts.scheme}://{parts.netloc}" == self.world.provider.url
        target = f"{parts.path}?{parts.query}&{urlencode({'login_hint': person})}"
        answer = self.world.provider.answer(LocalRequest("GET", target, (), None))
        assert answer.status == 302, answer.body
        return dict(answer.headers)["location"]

    def _kept(self, answer: Answer) -> Answer:
        for cookie in answer.cookies:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.jar[name] = value
        return answer


@dataclass
class World:
    """The front and everything around it."""

    provider: Issuer
    issuer: Any  # that runs: the provider, or its double
    kms: StrictKms
    clock: Clock
    wrapping: list[KmsKey]
    network: Network | None = None
    url: str = URL
    warm: Callable[[Any, Any], Any] | None = None

    def front(self) -> Callable[[Any, Any], Any]:
        """Start a new process with an empty memory; or return the warm one."""
        if self.warm:
            return self.warm
        return serve_oauth(wrapping=self.wrapping, network=self.network, now=self.clock)

    def stay_warm(self) -> None:
        self.warm = self.front()

    def browser(self, address: str = ADDRESS) -> Browser:
        return Browser(self, address=address)

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
        response = self.front()(event, Context())
        assert SECRET not in json.dumps(response)
        return Answer(response["statusCode"], response["headers"], response["body"], response.get("cookies", []))

    def register(self, *redirects: str, **metadata: object) -> dict[str, Any]:
        """Register a client, as a host does."""
        wanted = {"redirect_uris": list(redirects or (HOST_REDIRECT,)), "client_name": "Desk", **metadata}
        answer = self.send("POST", "/register", body=wanted)
        assert answer.status == 201, answer.body
        return answer.json

    def authorize_url(self, client_id: str, **changed: str | None) -> str:
        """Return the URL to which a host sends the browser."""
        parameters = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": HOST_REDIRECT,
            "state": "host-state",
            "scope": "items.read",
            "code_challenge": challenge(),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changed,
        }
        return f"/authorize?{urlencode({name: value for name, value in parameters.items() if value is not None})}"

    def code(
        self, client_id: str, browser: Browser | None = None, person: str = "ann", **changed: str | None
    ) -> Answer:
        """Go through consent and sign-in; return the redirect to the host."""
        browser = browser or self.browser()
        answer = browser.get(self.authorize_url(client_id, **changed))
        if answer.status == 200:
            answer = browser.allow(answer)
        assert answer.status == 303, answer.body
        return browser.get(browser.sign_in_at_provider(answer.location, person))

    def redeem(
        self, client_id: str, code: str | None, headers: Mapping[str, str] | None = None, /, **changed: str | None
    ) -> Answer:
        """Redeem a code, as a host does."""
        form = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "redirect_uri": HOST_REDIRECT,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
            **changed,
        }
        return self.post("/token", form, headers)

    def refresh(self, client_id: str, token: str, **changed: str | None) -> Answer:
        """Refresh, as a host does."""
        form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token, "resource": RESOURCE}
        return self.post("/token", {**form, **changed})

    def revoke(self, client_id: str, token: str) -> Answer:
        return self.post("/revoke", {"client_id": client_id, "token": token})

    def post(self, path: str, form: Mapping[str, str | None], headers: Mapping[str, str] | None = None) -> Answer:
        return self.send("POST", path, form={k: v for k, v in form.items() if v is not None}, headers=headers)

    def tokens(self, client_id: str, person: str = "ann", **changed: str | None) -> dict[str, Any]:
        """Sign in from the first request to the tokens."""
        redirect = changed.get("redirect_uri") or HOST_REDIRECT
        code = self.code(client_id, None, person=person, **changed).parameters["code"]
        answer = self.redeem(client_id, code, redirect_uri=redirect)
        assert answer.status == 200, answer.body
        return answer.json


def claims(token: str) -> dict[str, Any]:
    """Read the claims of a token."""
    part = token.split(".")[1]
    payload: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return payload


@contextmanager
def running(
    changes: Mapping[str, str] | None = None,
    *,
    behaviour: Behaviour | None = None,
    network: Network | None = None,
    secret: str = "",
    make: Callable[[str, Clock], Any] | None = None,
) -> Iterator[World]:
    """Run a provider, and set the environment of the front's function."""
    changes = changes or {}
    clock, kms = Clock(), StrictKms()
    arn = kms.create_key()
    with ExitStack() as stack:
        loopback = stack.enter_context(Loopback(max_body=local_issuer.MAX_REQUEST))
        known = {CLIENT_AT_PROVIDER: (f"{changes.get('MCP_OAUTH_URL') or URL}/callback",)}
        own = behaviour or Behaviour()
        own = replace(own, redirect_uris=known, secrets={CLIENT_AT_PROVIDER: secret} if secret else {})
        provider = Issuer(loopback.url, RESOURCE, now=clock, behaviour=own)
        doubled = make(loopback.url, clock) if make else provider
        loopback.start(doubled.answer)
        variables = {
            "MCP_STACK": "shop",
            "MCP_AUTH_MODE": "oauth",
            "MCP_KMS_KEYS": arn,
            "MCP_JWT_ISSUER": loopback.url,
            "MCP_JWT_AUDIENCE": RESOURCE,
            "MCP_RESOURCE_URL": RESOURCE,
            "MCP_OAUTH_URL": URL,
            "MCP_OAUTH_CLIENT_ID": CLIENT_AT_PROVIDER,
            "MCP_OAUTH_RESOURCE_PARAMETER": "resource",
            "MCP_SCOPES_SUPPORTED": SCOPES,
            "MCP_SERVER_NAME": "Shop",
            **changes,
        }
        stack.enter_context(applied(variables))
        wrapping = [KmsKey(arn, lambda: kms)]
        yield World(provider, doubled, kms, clock, wrapping, network, changes.get("MCP_OAUTH_URL") or URL)
