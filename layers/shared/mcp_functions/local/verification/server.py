"""The server that is verified, as its callers use it: over HTTP, with the user's credentials or without any."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from mcp_functions.attack import messages
from mcp_functions.attack.client import Client, Request, Response
from mcp_functions.local.api_gateway.api import METADATA
from mcp_functions.local.loopback import json_object
from mcp_functions.local.problems import first_line, stop
from mcp_functions.local.verification.report import Failed, Skipped
from mcp_functions.protocol.constants import EXTENSION_TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcp_functions.settings import AuthMode

    AddCredentials = Callable[[str, Request], Request]  # takes the URL and the request

SECONDS = 30  # longest wait for a response; API Gateway has given up then
# the HTTP status that a caller without credentials gets in each mode
STATUSES: dict[AuthMode, int] = {"none": 200, "jwt": 401, "oauth": 401, "iam": 403}
REGION = re.compile(r"\.execute-api\.([a-z0-9-]+)\.")  # the Region in a URL of API Gateway
CAPABILITIES: dict[str, Any] = messages.EVERYTHING | {"extensions": {EXTENSION_TASKS: {}}}


@dataclass
class Server:
    """The endpoint, and the functions beneath it.

    Attributes:
        url: the URL of the endpoint, "https://…/mcp".
        add_credentials: adds the user's credentials to a request, or raises Skipped if there are none. None: the server
            needs no credentials.
        request_id: API Gateway's id of the last request; "" if it gave none.
    """

    url: str
    add_credentials: AddCredentials | None = None
    request_id: str = ""
    _ids: Iterator[int] = field(default_factory=lambda: count(1))  # the ids of JSON-RPC requests

    def call(
        self,
        method: str,
        params: Mapping[str, Any],
        folder: str = "",
        *,
        header_parameters: Iterable[tuple[str, str]] = (),
    ) -> Response:
        """Call a method with the user's credentials.

        Args:
            method: the method of the protocol, e.g. "tools/call".
            params: the method's params without `_meta`.
            folder: the function's folder; "" for the endpoint.
            header_parameters: each argument that a header repeats, and the header (`x-mcp-header` of the schema).
        """
        message = messages.message(method, params, next(self._ids), CAPABILITIES)
        return self.send_message(message, folder, header_parameters)

    def send_message(
        self, message: Mapping[str, Any], folder: str, header_parameters: Iterable[tuple[str, str]]
    ) -> Response:
        """Send a JSON-RPC request with the user's credentials; the parameters are those of `call`."""
        url = self.url_of(folder)
        request = messages.write(message, header_parameters)
        if self.add_credentials:
            request = self.add_credentials(url, request)
        return self.send(url, request)

    def discover_anonymously(self, folder: str = "") -> Response:
        """Call `server/discover` without credentials."""
        message = messages.message("server/discover", {}, next(self._ids), CAPABILITIES)
        return self.send(self.url_of(folder), messages.write(message))

    def get(self, url: str) -> Response:
        """Get a document without credentials."""
        return self.send(url, Request(b"", method="GET"))

    def send(self, url: str, request: Request) -> Response:
        """Send an HTTP request as it is."""
        response = Client(url, {}, requests=1, seconds=SECONDS).send(request).response
        self.request_id = response.headers.get("apigw-requestid", self.request_id)
        return response

    def url_of(self, folder: str) -> str:
        """Return the URL of a function; for "", the URL of the endpoint."""
        return f"{self.url}/{folder}" if folder else self.url

    @property
    def metadata_urls(self) -> list[str]:
        """The two URLs of the document that names the issuer of tokens (RFC 9728): for the path, and for the host."""
        address = urlsplit(self.url)
        root = f"{address.scheme}://{address.netloc}{METADATA}"
        return [root + address.path, root]


def session(region: str | None, profile: str | None) -> boto3.Session:
    """Return a session of boto3.

    Raises:
        Problem: there is no such profile.
    """
    try:
        return boto3.Session(profile_name=profile, region_name=region)
    except BotoCoreError as error:
        stop(first_line(error), after=error)


def connect(url: str, token: str | None, session: boto3.Session) -> tuple[Server, AuthMode]:
    """Find out the server's mode; return the server with the user's credentials for this mode, and the mode.

    Args:
        url: the URL of the endpoint; a URL of API Gateway names its Region.
        token: an access token; None if the user gave none.
        session: may have AWS credentials and a Region.

    Raises:
        Failed: the endpoint does not answer as an MCP server of this toolkit.
    """
    server = Server(url)
    mode = _find_mode(server)
    if mode in {"jwt", "oauth"}:
        server.add_credentials = _bearer(token)
    if mode == "iam":
        region_in_url = REGION.search(urlsplit(url).hostname or "")
        server.add_credentials = _signature(session, region_in_url[1] if region_in_url else session.region_name)
    return server, mode


def _find_mode(server: Server) -> AuthMode:
    """Return the mode that the endpoint shows to a caller without credentials."""
    response = server.discover_anonymously()
    if response.status == STATUSES["none"] and response.result is not None:
        return "none"
    if response.status == STATUSES["iam"]:
        return "iam"
    if response.status != STATUSES["jwt"]:
        raise Failed(message=f"{server.url} is no MCP endpoint of 2026-07-28: {response}")
    return "oauth" if _names_front(server) else "jwt"


def _names_front(server: Server) -> bool:
    """Whether the resource document names the server itself as the issuer: so the mode is oauth."""
    document = json_object(server.get(server.metadata_urls[0]).body)
    resource = urlsplit(str(document.get("resource")))
    return document.get("authorization_servers") == [f"{resource.scheme}://{resource.netloc}"]


def _bearer(token: str | None) -> AddCredentials:
    def add(_url: str, request: Request) -> Request:
        if not token:
            raise Skipped(message="callers need an access token: set MCP_FUNCTIONS_TOKEN, or pass --token")
        return messages.with_header(request, "Authorization", f"Bearer {token}")

    return add


def _signature(session: boto3.Session, region: str | None) -> AddCredentials:
    def sign(url: str, request: Request) -> Request:
        credentials = session.get_credentials()
        if credentials is None:
            raise Skipped(message="callers sign their requests, and there are no AWS credentials here")
        if region is None:
            raise Skipped(message="callers sign for a Region, which this URL does not name: pass --region")
        signed = AWSRequest(request.method, url, data=request.body, headers=dict(request.headers))
        SigV4Auth(credentials, "execute-api", region).add_auth(signed)
        return replace(request, headers=tuple(signed.headers.items()))

    return sign
