"""Clients of KMS, Lambda and DynamoDB with the methods of boto3's clients that this package calls.

They retry by the rules of botocore's "standard" mode. A call takes at most the time limits of all its attempts
together, even if a response arrives byte by byte.
"""

from __future__ import annotations

import binascii
import io
import json
import os
import threading
import time
import zlib
from functools import partialmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcp_functions.aws.connection import ConnectionPool
from mcp_functions.aws.deadline_socket import Deadline
from mcp_functions.aws.errors import ClientError, ConnectionClosedError, HTTPClientError
from mcp_functions.aws.signing import SigningScope, sign
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NotRequired, TypedDict, Unpack

    from mcp_functions.aws.connection import Response
    from mcp_functions.aws.endpoints import Endpoint

    class Invocation(TypedDict):
        """Parameters of Lambda's Invoke."""

        FunctionName: str
        Payload: bytes
        InvocationType: NotRequired[str]


USER_AGENT = "mcp-functions"
LEAST_ERROR_STATUS = 300
# botocore.retries.standard: TransientRetryableChecker and ThrottledRetryableChecker.
TRANSIENT_STATUSES = {500, 502, 503, 504}
TRANSIENT = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
THROTTLED = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
BINARY_FIELDS = ("CiphertextBlob", "Mac", "Plaintext")
TRANSIENT_SECONDS, THROTTLED_SECONDS = 0.05, 1.0  # longest wait before the second attempt
DYNAMODB_SECONDS = 0.025  # in place of TRANSIENT_SECONDS


def random_fraction() -> float:
    """Return a number from [0, 1). A generator's state would be the same in all environments of one snapshot."""
    return int.from_bytes(os.urandom(6), "big") / (1 << 48)


class Timing(NamedTuple):
    """The pause, the monotonic clock and the random fraction of retries."""

    sleep: Callable[[float], object]
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random_fraction


class RetryQuota:
    """Limits retries of one execution environment: if a service is down, retries make it worse."""

    CAPACITY, TRANSIENT_COST, THROTTLED_COST = 500, 14, 5

    def __init__(self) -> None:
        """Start with the full capacity."""
        self._available, self._lock = self.CAPACITY, threading.Lock()

    def acquire(self, backoff: float) -> int:
        """Reserve the cost of one retry and return it. Return 0 if too little is available."""
        cost = self.THROTTLED_COST if backoff == THROTTLED_SECONDS else self.TRANSIENT_COST
        with self._lock:
            if cost > self._available:
                return 0
            self._available -= cost
            return cost

    def release(self, amount: int) -> None:
        """Return an amount after a successful call."""
        with self._lock:
            self._available = min(self.CAPACITY, self._available + amount)


class AwsClient:
    """Signs requests to one endpoint, and sends them again after transient errors."""

    backoff_seconds = TRANSIENT_SECONDS

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        connect_seconds: float,
        read_seconds: float,
        attempts: int = 3,
        timing: Timing | None = None,
    ) -> None:
        """Keep the limits, as in `make_client`; nothing is sent."""
        self._endpoint, self._attempts, self._timing = endpoint, attempts, timing or Timing(time.sleep)
        self._connections = ConnectionPool(
            endpoint.host, endpoint.port, tls=endpoint.tls, connect_seconds=connect_seconds, read_seconds=read_seconds
        )
        self._seconds = attempts * (connect_seconds + read_seconds)  # for all attempts and the waits between them
        self._quota = RetryQuota()

    def close(self) -> None:
        """Close connections; the next call opens another."""
        self._connections.close()

    def send(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send a request, and again after a transient error.

        Raises:
            HTTPClientError, ClientError: of the last attempt.
        """
        cost, deadline = 0, Deadline.after(self._seconds, self._timing.clock)
        for attempt in range(1, self._attempts + 1):
            try:
                response = self.send_once(path, headers, body, deadline)
            except (ClientError, HTTPClientError) as error:
                cost = self._wait(error, attempt, deadline)
                if cost == 0:
                    raise
            else:
                self._quota.release(cost or 1)
                return response
        raise AssertionError  # the last attempt raises or returns

    def send_once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one signed request, once.

        Raises:
            HTTPClientError: no complete response arrived.
            ClientError: the response is an error.
        """
        endpoint = self._endpoint
        sent = {"host": endpoint.authority, "user-agent": USER_AGENT, **_trace_header(), **headers}
        scope = SigningScope(endpoint.region, endpoint.service, time.time())
        response = self._connections.post(path, sign(path, sent, body, endpoint.credentials, scope), body, deadline)
        if response.status >= LEAST_ERROR_STATUS:
            raise _client_error(response)
        return response

    def _wait(self, error: ClientError | HTTPClientError, attempt: int, deadline: Deadline) -> int:
        """Wait before the next attempt and return its cost of the quota. 0: there is no next attempt."""
        backoff = _backoff(error, self.backoff_seconds)
        if backoff is None or attempt == self._attempts:
            return 0
        seconds = self._timing.random() * backoff * 2 ** (attempt - 1)
        if self._timing.clock() + seconds >= deadline.ends:
            return 0
        cost = self._quota.acquire(backoff)
        if cost:
            self._timing.sleep(seconds)
        return cost


class LambdaClient(AwsClient):
    """Lambda: `invoke`."""

    def invoke(self, **request: Unpack[Invocation]) -> dict[str, Any]:
        """Invoke a function.

        Args:
            request: `FunctionName`, with ":" and a qualifier if there is one; `Payload`, the event as JSON;
                `InvocationType`, "RequestResponse" if left out, or "Event", which does not wait for the function.

        Returns:
            `Payload`, a file with the function's response; `FunctionError` if the function failed.

        Raises:
            HTTPClientError: no complete response arrived.
            ClientError: Lambda answered with an error.
        """
        kind = request.get("InvocationType", "RequestResponse")
        headers = {} if kind == "RequestResponse" else {"x-amz-invocation-type": kind}
        name = quote(request["FunctionName"], safe="-._~")
        response = self.send(f"/2015-03-31/functions/{name}/invocations", headers, request["Payload"])
        result: dict[str, Any] = {"Payload": io.BytesIO(response.body)}
        if "x-amz-function-error" in response.headers:
            result["FunctionError"] = response.headers["x-amz-function-error"]
        return result


class KmsClient(AwsClient):
    """KMS: `generate_data_key`, `decrypt` and `generate_mac`, with boto3's parameters."""

    def _call(self, operation: str, /, **request: object) -> dict[str, Any]:
        plain = {name: _base64(value) if isinstance(value, bytes) else value for name, value in request.items()}
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"TrentService.{operation}"}
        result: dict[str, Any] = json.loads(self.send("/", headers, json.dumps(plain).encode()).body)
        return {name: binascii.a2b_base64(value) if name in BINARY_FIELDS else value for name, value in result.items()}

    generate_data_key = partialmethod(_call, "GenerateDataKey")
    decrypt = partialmethod(_call, "Decrypt")
    generate_mac = partialmethod(_call, "GenerateMac")


class DynamoDbClient(AwsClient):
    """DynamoDB: `get_item`, `put_item` and `delete_item`, in DynamoDB's JSON."""

    backoff_seconds = DYNAMODB_SECONDS

    def _call(self, operation: str, /, **request: object) -> dict[str, Any]:
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}"}
        result: dict[str, Any] = json.loads(self.send("/", headers, json.dumps(request).encode()).body)
        return result

    get_item = partialmethod(_call, "GetItem")
    put_item = partialmethod(_call, "PutItem")
    delete_item = partialmethod(_call, "DeleteItem")

    def send_once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one request, and compare the checksum of its response."""
        response = super().send_once(path, headers, body, deadline)
        checksum = response.headers.get("x-amz-crc32")
        if checksum and checksum != str(zlib.crc32(response.body)):
            raise ConnectionClosedError  # part of the body is missing or changed
        return response


CLIENTS: dict[str, type[AwsClient]] = {"dynamodb": DynamoDbClient, "kms": KmsClient, "lambda": LambdaClient}


def _backoff(error: ClientError | HTTPClientError, transient: float) -> float | None:
    """Return the longest wait before the second attempt, in seconds. None: the error is final."""
    if isinstance(error, HTTPClientError):
        return transient
    if error.code in THROTTLED:
        return THROTTLED_SECONDS
    return transient if error.code in TRANSIENT or error.status in TRANSIENT_STATUSES else None


def _client_error(response: Response) -> ClientError:
    """Read an error: its code, from a header or from the body, and the sealed item that failed a condition."""
    try:
        body = json.loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    code = response.headers.get("x-amzn-errortype") or body.get("__type") or body.get("code") or body.get("Code")
    name = str(code or response.status).partition(":")[0].rpartition("#")[2]
    item = body.get("Item")
    return ClientError(name, response.status, item if isinstance(item, dict) else None)


def _trace_header() -> dict[str, str]:
    """Pass Lambda's trace on: Lambda detects recursive invocations by it, and X-Ray joins the calls of a request."""
    trace = os.environ.get("_X_AMZN_TRACE_ID", "")  # another one for each invocation
    if not os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        return {}
    return {"x-amzn-trace-id": trace} if trace and trace.isascii() and trace.isprintable() else {}


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()
