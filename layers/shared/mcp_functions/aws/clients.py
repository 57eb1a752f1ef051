"""Clients of KMS, Lambda and DynamoDB with the methods of boto3's clients that this package calls.

They retry by the rules of botocore's "standard" mode. One deadline covers all attempts of a call: attempts x (connect +
read seconds). It holds even if a response arrives byte by byte.
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
TRANSIENT_CODES = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
THROTTLED_CODES = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
BINARY_FIELDS = ("CiphertextBlob", "Mac", "Plaintext")


def random_fraction() -> float:
    """Return a number from [0, 1). A generator's state would be the same in all environments of one snapshot."""
    return int.from_bytes(os.urandom(6), "big") / (1 << 48)


class Timing(NamedTuple):
    """The pause, the monotonic clock and the random fraction of retries."""

    sleep: Callable[[float], object]
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random_fraction


class RetryRule(NamedTuple):
    """How a kind of error is retried."""

    cost: int  # the part of the quota that one retry takes
    backoff_seconds: float  # the longest wait before the second attempt; it doubles for each further attempt


TRANSIENT = RetryRule(cost=14, backoff_seconds=0.05)
TRANSIENT_IN_DYNAMODB = RetryRule(cost=14, backoff_seconds=0.025)
THROTTLED = RetryRule(cost=5, backoff_seconds=1.0)


class RetryQuota:
    """Limits retries of one execution environment: if a service is down, retries make it worse."""

    CAPACITY = 500
    SUCCESS_AMOUNT = 1  # returned by a call that succeeded at once

    def __init__(self) -> None:
        """Start with the full capacity."""
        self._available = self.CAPACITY
        self._lock = threading.Lock()

    def acquire(self, amount: int) -> bool:
        """Take an amount for one retry. Return False if too little is available."""
        with self._lock:
            if amount > self._available:
                return False
            self._available -= amount
            return True

    def release(self, amount: int) -> None:
        """Return an amount after a successful call."""
        with self._lock:
            self._available = min(self.CAPACITY, self._available + amount)


class AwsClient:
    """Signs requests to one endpoint, and sends them again after transient errors."""

    transient_rule = TRANSIENT

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
        self._endpoint = endpoint
        self._attempts = attempts
        self._timing = timing or Timing(time.sleep)
        self._seconds = attempts * (connect_seconds + read_seconds)  # for all attempts and the waits between them
        self._quota = RetryQuota()
        self._connections = ConnectionPool(
            endpoint.host, endpoint.port, tls=endpoint.tls, connect_seconds=connect_seconds, read_seconds=read_seconds
        )

    def close(self) -> None:
        """Close connections; the next call opens another."""
        self._connections.close()

    def send(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send a request, and again after a transient error.

        Raises:
            HTTPClientError, ClientError: the error of the last attempt.
        """
        deadline = Deadline.after(self._seconds, self._timing.clock)
        amount = RetryQuota.SUCCESS_AMOUNT
        for attempt in range(1, self._attempts + 1):
            try:
                response = self.send_once(path, headers, body, deadline)
            except (ClientError, HTTPClientError) as error:
                rule = self._retry_rule(error)
                if rule is None or attempt == self._attempts or not self._wait(rule, attempt, deadline):
                    raise
                amount = rule.cost
            else:
                self._quota.release(amount)
                return response
        raise AssertionError  # the last attempt raises or returns

    def send_once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Response:
        """Send one signed request, once.

        Raises:
            HTTPClientError: no complete response arrived.
            ClientError: the response is an error.
        """
        endpoint = self._endpoint
        unsigned = {"host": endpoint.authority, "user-agent": USER_AGENT, **_trace_header(), **headers}
        scope = SigningScope(endpoint.region, endpoint.service, time.time())
        signed = sign(path, unsigned, body, endpoint.credentials, scope)
        response = self._connections.post(path, signed, body, deadline)
        if response.status >= LEAST_ERROR_STATUS:
            raise _client_error(response)
        return response

    def _retry_rule(self, error: ClientError | HTTPClientError) -> RetryRule | None:
        """Return how an error is retried; None if it is final."""
        if isinstance(error, HTTPClientError):
            return self.transient_rule
        if error.code in THROTTLED_CODES:
            return THROTTLED
        if error.code in TRANSIENT_CODES or error.status in TRANSIENT_STATUSES:
            return self.transient_rule
        return None

    def _wait(self, rule: RetryRule, attempt: int, deadline: Deadline) -> bool:
        """Wait before the next attempt. Return False if the deadline or the quota leaves no room for it."""
        seconds = self._timing.random() * rule.backoff_seconds * 2 ** (attempt - 1)
        if self._timing.clock() + seconds >= deadline.ends:
            return False
        if not self._quota.acquire(rule.cost):
            return False
        self._timing.sleep(seconds)
        return True


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
        invocation_type = request.get("InvocationType", "RequestResponse")
        headers = {}
        if invocation_type != "RequestResponse":
            headers["x-amz-invocation-type"] = invocation_type
        name = quote(request["FunctionName"], safe="-._~")
        response = self.send(f"/2015-03-31/functions/{name}/invocations", headers, request["Payload"])
        result: dict[str, Any] = {"Payload": io.BytesIO(response.body)}
        if "x-amz-function-error" in response.headers:
            result["FunctionError"] = response.headers["x-amz-function-error"]
        return result


class KmsClient(AwsClient):
    """KMS: `generate_data_key`, `decrypt` and `generate_mac`, with boto3's parameters."""

    def _call(self, operation: str, /, **request: object) -> dict[str, Any]:
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"TrentService.{operation}"}
        body = json.dumps(request, default=_base64)
        result: dict[str, Any] = json.loads(self.send("/", headers, body.encode()).body)
        binary = {name: binascii.a2b_base64(result[name]) for name in BINARY_FIELDS if name in result}
        return {**result, **binary}

    generate_data_key = partialmethod(_call, "GenerateDataKey")
    decrypt = partialmethod(_call, "Decrypt")
    generate_mac = partialmethod(_call, "GenerateMac")


class DynamoDbClient(AwsClient):
    """DynamoDB: `get_item`, `put_item` and `delete_item`, in DynamoDB's JSON."""

    transient_rule = TRANSIENT_IN_DYNAMODB

    def _call(self, operation: str, /, **request: object) -> dict[str, Any]:
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}"}
        response = self.send("/", headers, json.dumps(request).encode())
        result: dict[str, Any] = json.loads(response.body)
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


class SecretsManagerClient(AwsClient):
    """Secrets Manager: `get_secret_value`."""

    def get_secret_value(self, **request: str) -> dict[str, Any]:
        """Read a secret, with boto3's parameters."""
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue"}
        result: dict[str, Any] = json.loads(self.send("/", headers, json.dumps(request).encode()).body)
        return result


CLIENTS: dict[str, type[AwsClient]] = {
    "dynamodb": DynamoDbClient,
    "kms": KmsClient,
    "lambda": LambdaClient,
    "secretsmanager": SecretsManagerClient,
}


def _client_error(response: Response) -> ClientError:
    """Read an error: its code from a header or the body, and the table's item that failed a write's condition."""
    try:
        body = json.loads(response.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    code = response.headers.get("x-amzn-errortype") or body.get("__type") or body.get("code") or body.get("Code")
    name = str(code or response.status).partition(":")[0].rpartition("#")[2]  # "prefix#Name:address" has all parts
    item = body.get("Item")
    return ClientError(name, response.status, item if isinstance(item, dict) else None)


def _trace_header() -> dict[str, str]:
    """Pass Lambda's trace on: Lambda detects recursive invocations by it, and X-Ray joins the calls of a request."""
    if not os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        return {}
    trace = os.environ.get("_X_AMZN_TRACE_ID", "")  # Lambda sets it for each invocation
    is_header_value = trace.isascii() and trace.isprintable()
    return {"x-amzn-trace-id": trace} if trace and is_header_value else {}


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()
