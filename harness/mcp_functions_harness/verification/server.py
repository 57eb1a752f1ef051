"""The server that is verified, as its callers use it: over HTTP, with the user's credentials or without any."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from mcp_functions.protocol.constants import EXTENSION_TASKS
from mcp_functions.protocol.wire_types import ClientCapabilities, JSONRPCMessage, Params
from mcp_functions.settings import AuthMode
from mcp_functions_harness.api_gateway.api import METADATA
from mcp_functions_harness.client import messages
from mcp_functions_harness.client.http import Request, Response, send
from mcp_functions_harness.client.tasks import TaskClient
from mcp_functions_harness.loopback import json_object
from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.verification.options import Access
from mcp_functions_harness.verification.report import Failed, Skipped

# The HTTP status that a caller without credentials gets in each mode.
STATUSES: dict[AuthMode, int] = {"none": 200, "jwt": 401, "oauth": 401, "iam": 403}
REGION = re.compile(r"\.execute-api\.([a-z0-9-]+)\.")  # the Region in a URL of API Gateway
CAPABILITIES: ClientCapabilities = {**messages.EVERYTHING, "extensions": {EXTENSION_TASKS: {}}}


@dataclass(eq=False)
class Server(TaskClient):
    """The endpoint, and the functions beneath it.

    Attributes:
        mode: how the API knows who calls; `find_mode` finds it out.
        token: the access token for the modes jwt and oauth; None if the user gave none.
        session: signs requests in the mode iam; it may have no credentials.
        request_id: API Gateway's id of the last request; "" if it gave none.
    """

    capabilities: ClientCapabilities = field(default_factory=lambda: CAPABILITIES, kw_only=True)
    mode: AuthMode = field(default="none", kw_only=True)
    token: str | None = field(default=None, kw_only=True, repr=False)
    session: boto3.Session | None = field(default=None, kw_only=True)
    request_id: str = field(default="", init=False)

    def find_mode(self) -> None:
        """Find out the mode, which the endpoint shows to a caller without credentials.

        Raises:
            Failed: the endpoint does not answer as an MCP server of this toolkit.
        """
        response = self.discover_anonymously()
        if response.status == STATUSES["iam"]:
            self.mode = "iam"
        elif response.status == STATUSES["jwt"]:
            # In the mode oauth the resource document names the server itself as the issuer of tokens.
            document = json_object(self.get_document(self.metadata_urls[0]).body)
            resource = urlsplit(str(document.get("resource")))
            is_issuer = document.get("authorization_servers") == [f"{resource.scheme}://{resource.netloc}"]
            self.mode = "oauth" if is_issuer else "jwt"
        elif response.status != STATUSES["none"] or response.result is None:
            raise Failed(f"{self.url} is no MCP endpoint of 2026-07-28: {response}")

    def exchange(
        self, method: str, params: Params, folder: str = "", header_parameters: Sequence[tuple[str, str]] = ()
    ) -> Response:
        """Send a request to the endpoint, or to the function of a folder, with the user's credentials.

        The params are without `_meta`. For `header_parameters` see `messages.header_parameters`.

        Raises:
            Skipped: the mode needs credentials, and there are none.
        """
        message = messages.message(method, params, next(self._ids), self.capabilities)
        return self._send_to(folder, message, header_parameters)

    def _send(self, message: JSONRPCMessage, header_parameters: Sequence[tuple[str, str]]) -> Response:
        return self._send_to("", message, header_parameters)

    def _send_to(self, folder: str, message: JSONRPCMessage, header_parameters: Sequence[tuple[str, str]]) -> Response:
        url = self.url_of(folder)
        return self.send(url, self._with_credentials(url, messages.write(message, header_parameters)))

    def discover_anonymously(self, folder: str = "") -> Response:
        """Call `server/discover` without credentials."""
        message = messages.message("server/discover", {}, next(self._ids), self.capabilities)
        return self.send(self.url_of(folder), messages.write(message))

    def get_document(self, url: str) -> Response:
        """Get a document without credentials."""
        return self.send(url, Request(b"", method="GET"))

    def send(self, url: str, request: Request) -> Response:
        """Send an HTTP request as it is."""
        response = send(url, request, seconds=self.timeout)
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

    def _with_credentials(self, url: str, request: Request) -> Request:
        if self.mode == "none":
            return request
        if self.mode != "iam":
            if not self.token:
                raise Skipped("callers need an access token: set MCP_FUNCTIONS_TOKEN, or pass --token")
            return messages.with_header(request, "Authorization", f"Bearer {self.token}")
        credentials = self.session.get_credentials() if self.session else None
        if self.session is None or credentials is None:
            raise Skipped("callers sign their requests, and there are no AWS credentials here")
        region_in_url = REGION.search(urlsplit(url).hostname or "")
        region = region_in_url[1] if region_in_url else self.session.region_name
        if region is None:
            raise Skipped("callers sign for a Region, which this URL does not name: pass --region")
        signed = AWSRequest(request.method, url, data=request.body, headers=dict(request.headers))
        SigV4Auth(credentials, "execute-api", region).add_auth(signed)
        return replace(request, headers=tuple(signed.headers.items()))


def make_session(access: Access) -> boto3.Session:
    """Return a session of boto3.

    Raises:
        Problem: there is no such profile.
    """
    try:
        return boto3.Session(profile_name=access["profile"], region_name=access["region"])
    except BotoCoreError as error:
        raise Problem(first_line(error)) from error
