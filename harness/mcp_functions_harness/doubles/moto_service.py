"""Calls a service of moto, a library that imitates AWS, without moto's web server.

    POST https://kms.us-east-1.amazonaws.com/
    X-Amz-Target: TrentService.Decrypt
    Content-Type: application/x-amz-json-1.1
    {"CiphertextBlob": "…"}

This is AWS's JSON protocol, which KMS and DynamoDB use.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions_harness.environment import REGION
from mcp_functions_harness.loopback import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moto.core.responses import BaseResponse

OK = 200


class Protocol(NamedTuple):
    """The differences between the services in this protocol."""

    service: str  # the first part of the host name
    target: str  # what X-Amz-Target has before the operation, with the dot
    version: str  # the version in the content type

    def ask(self, responses: type[BaseResponse], operation: str, request: Mapping[str, Any]) -> tuple[int, str]:
        """Call one operation of moto's `responses`; return the HTTP status, and the body, which is JSON."""
        from moto.core.request import Request

        headers = {"X-Amz-Target": f"{self.target}{operation}", "Content-Type": self._content_type}
        url = f"https://{self.service}.{REGION}.amazonaws.com/"
        status, _headers, body = responses.dispatch(Request.from_primitives("POST", url, headers, json.dumps(request)))
        return int(status), str(body)

    def error(self, status: int, code: str, message: str) -> HttpResponse:
        """Make the response of an error."""
        return self.response(status, json.dumps({"__type": code, "message": message}))

    def response(self, status: int, body: str) -> HttpResponse:
        """Make an HTTP response of a JSON text."""
        headers = (("content-type", self._content_type), ("x-amzn-requestid", str(uuid.uuid4())))
        return HttpResponse(status, headers, body.encode())

    @property
    def _content_type(self) -> str:
        return f"application/x-amz-json-{self.version}"
