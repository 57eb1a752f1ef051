"""http://127.0.0.1:PORT/mcp for clients that cannot sign: each request is sent on with the signature of an IAM user."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness.api_gateway.api import MAX_BODY
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback

ANSWER_SECONDS = 40  # API Gateway gives up after 30
NOT_COPIED = {"connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"}
SERVICE = "execute-api"
Target = tuple[str, int] | None  # the host and port of the emulator; None: AWS itself


class Caller(NamedTuple):
    """Who signs requests, and the Region of the API."""

    credentials: Credentials
    region: str


def make_user(iam: Any, name: str, statement: JSONObject) -> Credentials:  # noqa: ANN401
    """Make a user of IAM with a policy of one statement, and an access key: the emulator's root is not checked."""
    iam.create_user(UserName=name)
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="may", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


@contextmanager
def signing(
    target: Target,
    endpoint: str,
    caller: Caller | None,
    *,
    port: int = 0,
    before: Callable[[bytes], object] = lambda _body: None,
) -> Iterator[str]:
    """Serve the API at the root of a port (0: any free one) for a block, and yield the URL for MCP clients.

    Requests are signed by the caller, if there is one, for the host of the stack's output `endpoint`. `before` gets the
    body of each request before it is sent.
    """
    address = urlsplit(endpoint)

    def answer(request: HttpRequest) -> HttpResponse:
        before(request.body or b"")
        # A request that has credentials, for example a token, gets no signature.
        signs = caller if not request.header("authorization") else None
        return forward(target, address.netloc, _signed(request, address.netloc, signs) if signs else request)

    with Loopback(port=port, max_body=MAX_BODY) as server:
        server.start(answer)
        yield f"{server.url}{address.path}"


def forward(target: Target, host: str, request: HttpRequest) -> HttpResponse:
    """Send a request for a host to the emulator, or without one to the host itself, and return the response."""
    body = request.body or b""
    made = HTTPConnection(*target) if target else HTTPSConnection(host)
    made.timeout = ANSWER_SECONDS
    with closing(made) as connection:
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in [("Host", host), *_copied(request.headers), ("x-forwarded-proto", "https")]:
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return HttpResponse(response.status, tuple(_copied(response.getheaders())), response.read())


def _signed(request: HttpRequest, host: str, caller: Caller) -> HttpRequest:
    asked = AWSRequest(request.method, f"https://{host}{request.target}", data=request.body or b"")
    SigV4Auth(caller.credentials, SERVICE, caller.region).add_auth(asked)
    return replace(request, headers=(*request.headers, *asked.headers.items()))


def _copied(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in NOT_COPIED]
