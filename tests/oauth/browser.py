"""A user's browser, and the answers of the authorization server as a browser or a host reads them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp_functions_harness.loopback import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.oauth.oauth_server import OAuthServer

ADDRESS = "198.51.100.7"  # of the browsers and hosts


@dataclass
class Answer:
    """A response of the server, as a browser or a host reads it."""

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
    def consent_request(self) -> str:
        """The sealed value in the form of the consent page."""
        field = re.search(r'name="request" value="([^"]+)"', self.body)
        assert field, self.body
        return field[1]


@dataclass
class Browser:
    """A browser. It keeps cookies, and nothing else."""

    server: OAuthServer
    cookies: dict[str, str] = field(default_factory=dict)
    address: str = ADDRESS

    def get(self, url: str) -> Answer:
        return self.keep(self.server.send("GET", url, cookies=self.cookies, address=self.address))

    def post(self, url: str, form: Mapping[str, str], **headers: str) -> Answer:
        headers = {"origin": self.server.url, **headers}
        return self.keep(
            self.server.send("POST", url, form=form, cookies=self.cookies, headers=headers, address=self.address)
        )

    def authorize(self, client_id: str, **changes: str | None) -> Answer:
        """Follow the link of a host to `/authorize`: the consent page, or a redirect."""
        return self.get(self.server.authorize_url(client_id, **changes))

    def allow(self, page: Answer, **form: str) -> Answer:
        """Press "Allow" on the consent page."""
        return self.post("/authorize", {"request": page.consent_request, "decision": "allow", **form})

    def sign_in_at_provider(self, to: str, person: str = "ann") -> str:
        """Follow the redirect to the provider, and return the URL to which the provider redirects back."""
        provider = self.server.provider
        assert to.startswith(f"{provider.url}/")
        target = f"{to.removeprefix(provider.url)}&{urlencode({'login_hint': person})}"
        answer = provider.answer(HttpRequest("GET", target, (), None))
        assert answer.status == 302, answer.body
        return dict(answer.headers)["location"]

    def keep(self, answer: Answer) -> Answer:
        """Store the cookies of an answer; "Max-Age=0" ends a cookie."""
        for cookie in answer.cookies:
            name, _, value = cookie.partition(";")[0].partition("=")
            if "Max-Age=0;" in cookie:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer
