"""Clients of KMS, Lambda, DynamoDB and Secrets Manager with the methods of boto3's clients that this package calls.

A client sends a request again after a transient error, as botocore's retry mode "standard" does. One deadline covers
all attempts of a call and the waits between them: attempts x (connect + read seconds). A call ends at its deadline even
if the response arrives byte by byte.
"""

# ruff: noqa: N803 - parameters have the names of boto3

from __future__ import annotations

import binascii
import io
import json
import os
import time
import zlib
from functools import partialmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcp_functions.aws import errors
from mcp_functions.aws.connection import ConnectionPool, Deadline
from mcp_functions.aws.signing import sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.connection import Response
    from mcp_functions.aws.endpoints import CallLimits, Endpoint

USER_AGENT = "mcp-functions"
LEAST_ERROR_STATUS = 300  # a redirect is an error too, because these clients follow none
FIRST_WAIT = 0.05  # seconds, the longest wait before the second attempt; then it doubles
FIRST_WAIT_THROTTLED = 1.0  # after an answer that asks for fewer requests
BINARY_FIELDS = ("CiphertextBlob", "Mac", "Plaintext")  # members of KMS's responses that hold bytes


def random_wait(failure: errors.Failure, attempt: int) -> float:
    """Return the seconds to wait after an attempt; attempts count from 1.

    The wait is random, so that many clients do not try again at the same moment. Python's own generator would repeat
    its numbers in each environment that starts from the same snapshot.
    """
    first_wait = FIRST_WAIT_THROTTLED if failure.code in errors.THROTTLED_CODES else FIRST_WAIT
    longest_wait: float = first_wait * 2 ** (attempt - 1)
    return longest_wait * int.from_bytes(os.urandom(6), "big") / 2**48  # a fraction of [0, 1)


class AwsClient:
    """Signs requests to one endpoint, and sends them again after transient errors."""

    def __init__(self, endpoint: Endpoint, limits: CallLimits) -> None:
        """Keep the endpoint and the limits; nothing is sent."""
        self._endpoint = endpoint
        self._limits = limits
        self._connections = ConnectionPool(endpoint, limits)

    def close(self) -> None:
        """Close the connections; the next call opens another one."""
        self._connections.close()

    def send(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send a request, and again after a transient error; raise the last HTTPClientError or ClientError."""
        limits = self._limits
        deadline = Deadline(limits.attempts * (limits.connect_seconds + limits.read_seconds))
        for attempt in range(1, limits.attempts):  # the last attempt follows the loop
            try:
                return self._send_once(path, headers, body, deadline)
            except (errors.ClientError, errors.HTTPClientError) as error:
                failure = errors.read_failure(error)
                if not failure.is_transient:
                    raise
                wait = random_wait(failure, attempt)
                if not deadline.allows(wait):  # no time is left for another attempt
                    raise
            time.sleep(wait)
        return self._send_once(path, headers, body, deadline)

    def _send_once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one signed request, once."""
        unsigned = {"host": self._endpoint.authority, "user-agent": USER_AGENT, **_trace_header(), **headers}
        signed = sign(path, unsigned, body, self._endpoint, time.time())
        response = self._connections.post(path, signed, body, deadline)
        checksum = response.headers.get("x-amz-crc32")  # DynamoDB sends it, as a decimal number
        if checksum and checksum != str(zlib.crc32(response.body)):
            raise errors.ConnectionClosedError  # part of the body is missing or changed
        if response.status >= LEAST_ERROR_STATUS:
            raise _client_error(response)
        return response


class LambdaClient(AwsClient):
    """Lambda: `invoke`."""

    def invoke(self, *, FunctionName: str, Payload: bytes, InvocationType: str = "RequestResponse") -> dict[str, Any]:
        """Invoke a function.

        Args:
            FunctionName: the name, with ":" and a qualifier if there is one.
            Payload: the event as JSON.
            InvocationType: "Event" does not wait for the function.

        Returns:
            `Payload`, a file with the function's response; `FunctionError` if the function failed.
        """
        headers = {"x-amz-invocation-type": InvocationType}
        name = quote(FunctionName, safe="-._~")
        response = self.send(f"/2015-03-31/functions/{name}/invocations", headers, Payload)
        result: dict[str, Any] = {"Payload": io.BytesIO(response.body)}
        if "x-amz-function-error" in response.headers:
            result["FunctionError"] = response.headers["x-amz-function-error"]
        return result


class JsonClient(AwsClient):
    """A service whose operations take and return JSON. Bytes are base64 in this JSON."""

    prefix = ""  # the service's name before an operation, in the header `x-amz-target`
    media_type = "application/x-amz-json-1.1"

    def call(self, operation: str, /, **request: object) -> dict[str, Any]:
        """Call an operation with boto3's parameters, and return its response."""
        headers = {"content-type": self.media_type, "x-amz-target": f"{self.prefix}.{operation}"}
        body = json.dumps(request, default=_base64)
        result: dict[str, Any] = json.loads(self.send("/", headers, body.encode()).body)
        for name in BINARY_FIELDS:
            if name in result:
                result[name] = binascii.a2b_base64(result[name])
        return result


class KmsClient(JsonClient):
    """KMS: `generate_data_key`, `decrypt` and `generate_mac`, with boto3's parameters."""

    prefix = "TrentService"
    generate_data_key = partialmethod(JsonClient.call, "GenerateDataKey")
    decrypt = partialmethod(JsonClient.call, "Decrypt")
    generate_mac = partialmethod(JsonClient.call, "GenerateMac")


class DynamoDbClient(JsonClient):
    """DynamoDB: `get_item`, `put_item` and `delete_item`, in DynamoDB's JSON."""

    prefix = "DynamoDB_20120810"
    media_type = "application/x-amz-json-1.0"
    get_item = partialmethod(JsonClient.call, "GetItem")
    put_item = partialmethod(JsonClient.call, "PutItem")
    delete_item = partialmethod(JsonClient.call, "DeleteItem")


class SecretsManagerClient(JsonClient):
    """Secrets Manager: `get_secret_value`."""

    prefix = "secretsmanager"
    get_secret_value = partialmethod(JsonClient.call, "GetSecretValue")


CLIENTS: dict[str, type[AwsClient]] = {
    "dynamodb": DynamoDbClient,
    "kms": KmsClient,
    "lambda": LambdaClient,
    "secretsmanager": SecretsManagerClient,
}


def _client_error(response: Response) -> errors.ClientError:
    """Read an error, whose code is in a header or in the JSON of the body. The status replaces a missing code."""
    try:
        body = json.loads(response.body)
    except ValueError:
        body = None
    details = body if isinstance(body, dict) else {}
    code = response.headers.get("x-amzn-errortype") or details.get("__type") or response.status
    # The code may be "prefix#Name:address". botocore keeps only the name.
    without_address, _colon, _address = str(code).partition(":")
    _prefix, _hash, name = without_address.rpartition("#")
    return errors.ClientError(name, response.status)


def _trace_header() -> dict[str, str]:
    """Pass Lambda's trace on: Lambda detects recursive invocations by it, and X-Ray joins the calls of a request."""
    trace = os.environ.get("_X_AMZN_TRACE_ID", "")  # Lambda sets it for each invocation
    may_be_header = trace.isascii() and trace.isprintable()
    return {"x-amzn-trace-id": trace} if trace and may_be_header else {}


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()
