"""A service of moto, asked directly without moto's web server, in AWS's JSON protocol."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.local.environment import REGION
from mcp_functions.local.loopback import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moto.core.responses import BaseResponse

OK = 200


class Protocol(NamedTuple):
    """How a service writes its operations: its host's name, the prefix of X-Amz-Target, and the version of the JSON."""

    service: str
    target: str
    version: str

    def ask(self, responses: type[BaseResponse], operation: str, request: Mapping[str, Any]) -> tuple[int, str]:
        """Call one operation of moto's `responses`; return the status and the JSON text of the answer."""
        from moto.core.request import Request  # noqa: PLC0415 - moto takes half a second to import

        headers = {"X-Amz-Target": f"{self.target}{operation}", "Content-Type": self._content_type}
        url = f"https://{self.service}.{REGION}.amazonaws.com/"
        status, _headers, body = responses.dispatch(Request.from_primitives("POST", url, headers, json.dumps(request)))
        return int(status), str(body)

    def response(self, status: int, body: str) -> HttpResponse:
        """Make an HTTP response of a JSON text."""
        headers = (("content-type", self._content_type), ("x-amzn-requestid", str(uuid.uuid4())))
        return HttpResponse(status, headers, body.encode())

    @property
    def _content_type(self) -> str:
        return f"application/x-amz-json-{self.version}"
