"""Responses of a scripted service, and the outcome of a call: for the tests of the clients of AWS."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.aws.errors import Failure, read_failure
from tests.support.http_servers import ScriptedResponse

if TYPE_CHECKING:
    from mcp_functions.aws.endpoints import Endpoint

SECRET = "hunter2"  # noqa: S105 - what must not come through
ARN = "arn:aws:kms:eu-west-1:111122223333:key/0a"
LAMBDA = {
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": "session",
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
DATA_KEY = json.dumps({"KeyId": ARN, "Plaintext": "a2V5", "CiphertextBlob": "d3JhcHBlZA=="}).encode()
KEY_RESPONSE = ScriptedResponse(body=DATA_KEY)
ANSWERED = ("answered", 200)


def endpoint_at(service: str, url: str) -> Endpoint:
    """Return the endpoint of a service at a URL, for one of our clients."""
    endpoint = aws.find_endpoint({**LAMBDA, f"AWS_ENDPOINT_URL_{service.upper()}": url}, service)
    assert endpoint is not None
    return endpoint


def error(status: int, code: str, *, header: bool = False) -> ScriptedResponse:
    """Make an error of AWS, whose code is in a header or in the body."""
    body = json.dumps({"message": SECRET, **({} if header else {"__type": code})}).encode()
    return ScriptedResponse(status, body, {"x-amzn-errortype": f"{code}:http://internal/"} if header else {})


def outcome(client: Any, operation: str = "decrypt", **arguments: object) -> tuple[str, int] | Failure:  # noqa: ANN401
    """Call a client of ours or of boto3; return `ANSWERED`, or the code and the status of the failure."""
    try:
        getattr(client, operation)(**arguments or {"KeyId": ARN, "CiphertextBlob": b"x"})
    except Exception as raised:  # noqa: BLE001 - of both clients
        return read_failure(raised)
    finally:
        client.close()
    return ANSWERED
