"""The OpenID Connect provider behind the authorization server under test: the local issuer, with changed answers."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions_harness.issuer import Issuer


@dataclass
class Provider:
    """The OpenID Connect provider that signs users in.

    Attributes:
        issuer: answers the requests.
        change_answer: changes a JSON answer; it gets the path, the answer and the issuer.
        secret: what the server must send to get tokens; "" if it needs no secret.
        refusal: the status and the JSON that every POST gets; None: the issuer answers.
        requests: all requests, the oldest first.
    """

    issuer: Issuer
    change_answer: Callable[[str, dict[str, Any], Issuer], None] | None = None
    secret: str = ""
    refusal: tuple[int, dict[str, Any]] | None = None
    requests: list[HttpRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.issuer.url

    def answer(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        if request.method == "POST" and self.refusal:
            return json_response(*self.refusal)
        if request.target == "/token" and self.secret not in _sent_secret(request):
            return json_response(401, {"error": "invalid_client"})
        answer = self.issuer.answer(request)
        if self.change_answer is None or not answer.body.startswith(b"{"):
            return answer
        content = json.loads(answer.body)
        self.change_answer(request.target.partition("?")[0], content, self.issuer)
        return json_response(content.pop("status", answer.status), content)


def _sent_secret(request: HttpRequest) -> str:
    """Return the client id and the secret of the header Authorization, or "" without that header."""
    return base64.b64decode(request.header("authorization").removeprefix("Basic ")).decode()
