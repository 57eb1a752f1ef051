"""The connections of a dialect's client: events in this process, or HTTP; and the client's identity."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from mcp_functions_harness import environment
from mcp_functions_harness.testing.caller import RESOURCE
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.http.gateway import LambdaFunction

ISSUER = "https://issuer.example"


class Reply(NamedTuple):
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON-RPC messages in it, in their order."""
        if self.headers["content-type"] == "text/event-stream":
            return [json.loads(event["data"]) for event in self.events if "data" in event]
        return [json.loads(self.text)]

    @property
    def events(self) -> list[dict[str, str]]:
        """The events of a stream, the data-less ones too: a parser of a browser would drop these."""
        assert self.text.endswith("\n\n")
        blocks = self.text.removesuffix("\n\n").split("\n\n")
        return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


class Wire(Protocol):
    """Takes a POST to the server."""

    def post(self, body: object, headers: Mapping[str, str]) -> Reply:
        """Send one, and return what came back."""


class Events:
    """A function in this process, as `who` calls it: a POST is an event.

    Args:
        function: what clients reach.
        who: calls, as the authorizer says.
        fresh: whether every POST is an event for a container that has answered none before.

    Attributes:
        oauth_client: that the access token was given to.

    """

    oauth_client = "c"

    def __init__(self, function: LambdaFunction, who: str = "alice", *, fresh: bool = False) -> None:
        self.function, self._who, self._fresh = function, who, fresh

    def post(self, body: object, headers: Mapping[str, str]) -> Reply:
        text = body if isinstance(body, str) else json.dumps(body)
        claims = {
            "iss": ISSUER,
            "sub": self._who,
            "client_id": self.oauth_client,
            "aud": RESOURCE,
            "exp": "99999999999",
        }
        sent = wire.event(text, context={"authorizer": {"jwt": {"claims": claims}}}, headers=dict(headers))
        container = self.function.fresh() if self._fresh else self.function
        with environment.applied(environment.for_tokens(issuer=ISSUER, resource=RESOURCE)):
            response = container(json.loads(json.dumps(sent)), wire.Context("local_all"))
        return Reply(response["statusCode"], response["headers"], response["body"])


class Http:
    """A server at a URL, with an access token if it wants one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = urlsplit(url)
        self._signed = {"authorization": f"Bearer {token}"} if token else {}

    def post(self, body: object, headers: Mapping[str, str]) -> Reply:
        connection = HTTPConnection(self._url.netloc, timeout=60)
        try:
            text = body if isinstance(body, str) else json.dumps(body)
            connection.request("POST", self._url.path, text.encode(), {**headers, **self._signed})
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, named, response.read().decode())
        finally:
            connection.close()
