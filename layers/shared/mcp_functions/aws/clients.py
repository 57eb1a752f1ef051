"""The three clients, as far as boto3's look to those who call them.

KMS and DynamoDB are asked up to three times, by the rules that boto3 calls "standard"; a function whose answer is
waited for is invoked once, whatever happens. A call takes at most the limits of all its attempts together, also where
answers come a byte at a time.
"""

from __future__ import annotations

import binascii
import json
import os
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.aws.connection import Connections, Deadline
from mcp_functions.aws.errors import ClientError, ConnectionClosedError, Unanswered
from mcp_functions.aws.signing import Scope, sign

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.aws.connection import Answer
    from mcp_functions.aws.surroundings import Target

AGENT = "mcp-functions"
BAD = 300  # and any status above it
# What boto3 calls transient, and what it calls throttling.
TRANSIENT_STATUSES = {500, 502, 503, 504}
TRANSIENT = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
THROTTLED = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
BLOBS = ("CiphertextBlob", "Plaintext")
TRANSIENT_SECONDS, THROTTLED_SECONDS = 0.05, 1.0  # to wait before the second attempt, at most
DYNAMODB_SECONDS = 0.025  # which answers sooner


def _drawn() -> float:
    """Draw from [0, 1), other than a clone of this machine would: a generator's state is part of a snapshot."""
    return int.from_bytes(os.urandom(6), "big") / (1 << 48)


class Caller:
    """Signs and sends to one target."""

    def __init__(self, target: Target, *, connect_seconds: float, read_seconds: float) -> None:
        """Remember the target; nothing is sent."""
        self._target = target
        self._connections = Connections(target, connect_seconds=connect_seconds, read_seconds=read_seconds)

    def post(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
        """Send one signed request, once.

        Raises:
            Unanswered: there is no answer.
            ClientError: the answer is a refusal.

        """
        known = {"host": self._target.name, "user-agent": AGENT, **_traced(), **headers}
        scope = Scope(self._target.region, self._target.service, time.time())
        sent = sign(path, known, body, self._target.credentials(), scope)
        answer = self._connections.post(path, sent, body, deadline)
        if answer.status >= BAD:
            raise _refused(answer)
        return answer

    def close(self) -> None:
        """Close connections; the next call opens another."""
        self._connections.close()


class Patient(Caller):
    """Asks again, where that may help."""

    transient = TRANSIENT_SECONDS

    def __init__(  # noqa: PLR0913 - limits, and what tests turn
        self,
        target: Target,
        *,
        connect_seconds: float,
        read_seconds: float,
        attempts: int = 3,
        sleep: Callable[[float], None] | None = None,
        rand: Callable[[], float] = _drawn,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember the limits; nothing is sent. `clock` counts seconds, and only ever forward."""
        super().__init__(target, connect_seconds=connect_seconds, read_seconds=read_seconds)
        self._attempts, self._sleep, self._rand, self._clock = attempts, sleep or time.sleep, rand, clock
        self._seconds = attempts * (connect_seconds + read_seconds)  # for all attempts and the waits between them
        self._quota = Quota()

    def insist(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send one request, and again if nobody answered, or not now.

        Raises:
            Unanswered, ClientError: of the last attempt.

        """
        taken, deadline = 0, Deadline.after(self._seconds, self._clock)
        for attempt in range(1, self._attempts + 1):
            try:
                answer = self._once(path, headers, body, deadline)
            except (ClientError, Unanswered) as error:
                scale = _scale(error, self.transient)
                if scale is None or attempt == self._attempts:
                    raise
                wait = self._rand() * scale * 2 ** (attempt - 1)
                if self._clock() + wait >= deadline.ends or not (taken := self._quota.take(scale)):
                    raise
                self._sleep(wait)
            else:
                self._quota.give(taken or 1)
                return answer
        raise AssertionError  # the last attempt raises or returns

    def _once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
        return self.post(path, headers, body, deadline)


class Invoker(Patient):
    """Lambda, as far as `invoke` goes: once, unless its user knows that twice does no harm."""

    def invoke(
        self,
        *,
        FunctionName: str,  # noqa: N803 - as boto3 names them
        Payload: bytes,  # noqa: N803
        InvocationType: str = "RequestResponse",  # noqa: N803
    ) -> dict[str, Any]:
        """Invoke a function and wait for its answer, or ("Event") for Lambda's that it will.

        Args:
            FunctionName: its name, with ":" and a qualifier if it is not the newest code that is meant.
            Payload: the event, as JSON.
            InvocationType: as Lambda's API names it.

        Raises:
            Unanswered: there is no answer.
            ClientError: Lambda refused.

        """
        how = {} if InvocationType == "RequestResponse" else {"x-amz-invocation-type": InvocationType}
        answer = self.insist(f"/2015-03-31/functions/{_quoted(FunctionName)}/invocations", how, Payload)
        error = answer.headers.get("x-amz-function-error")
        return {"Payload": Read(answer.body), **({} if error is None else {"FunctionError": error})}


class Read(NamedTuple):
    """A body that has been read."""

    content: bytes

    def read(self) -> bytes:
        """Return it."""
        return self.content


class Kms(Patient):
    """KMS, as far as `generate_data_key` and `decrypt` go."""

    def generate_data_key(self, **arguments: object) -> dict[str, Any]:
        """Ask for a new data key."""
        return self._ask("GenerateDataKey", arguments)

    def decrypt(self, **arguments: object) -> dict[str, Any]:
        """Ask for what was wrapped."""
        return self._ask("Decrypt", arguments)

    def _ask(self, operation: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        said = {name: _encoded(value) if isinstance(value, bytes) else value for name, value in arguments.items()}
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": f"TrentService.{operation}"}
        answer: dict[str, Any] = json.loads(self.insist("/", headers, json.dumps(said).encode()).body)
        return {name: binascii.a2b_base64(value) if name in BLOBS else value for name, value in answer.items()}


class DynamoDb(Patient):
    """DynamoDB, in its own JSON."""

    transient = DYNAMODB_SECONDS

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for one operation.

        Args:
            operation: as DynamoDB's API names it, e.g. "GetItem".
            request: in DynamoDB's JSON.

        Raises:
            Unanswered: there is no answer.
            ClientError: DynamoDB refused; `response` holds the item in the way, if it was asked for.

        """
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"DynamoDB_20120810.{operation}"}
        answer: dict[str, Any] = json.loads(self.insist("/", headers, json.dumps(request).encode()).body)
        return answer

    def _once(self, path: str, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> Answer:
        answer = self.post(path, headers, body, deadline)
        if (checksum := answer.headers.get("x-amz-crc32")) and checksum != str(zlib.crc32(answer.body)):
            raise ConnectionClosedError  # it was cut, or changed: as good as none
        return answer


class Quota:
    """What a container may spend on repeating itself: where a service is down, everybody who insists makes it worse."""

    FULL, TRANSIENT, THROTTLED = 500, 14, 5

    def __init__(self) -> None:
        """Begin with all of it."""
        self._left, self._lock = self.FULL, threading.Lock()

    def take(self, scale: float) -> int:
        """Take what one repetition costs; 0 if there is not enough left."""
        cost = self.THROTTLED if scale == THROTTLED_SECONDS else self.TRANSIENT
        with self._lock:
            if cost > self._left:
                return 0
            self._left -= cost
            return cost

    def give(self, amount: int) -> None:
        """Give some back, after an answer."""
        with self._lock:
            self._left = min(self.FULL, self._left + amount)


def _scale(error: ClientError | Unanswered, transient: float) -> float | None:
    """Say how long to wait at first, in seconds; None: asking again would not help."""
    if isinstance(error, Unanswered):
        return transient
    code, status = error.code, error.status
    if code in THROTTLED:
        return THROTTLED_SECONDS
    return transient if code in TRANSIENT or status in TRANSIENT_STATUSES else None


def _refused(answer: Answer) -> ClientError:
    """Read an error: its code, from a header or from the body, and the item in the way, which is ours and sealed."""
    try:
        said = json.loads(answer.body)
    except ValueError:
        said = {}
    known = said if isinstance(said, dict) else {}
    code = answer.headers.get("x-amzn-errortype") or known.get("__type") or known.get("code") or known.get("Code")
    item = known.get("Item")
    named = str(code or answer.status).partition(":")[0].rpartition("#")[2]
    return ClientError(named, answer.status, item if isinstance(item, dict) else None)


def _traced() -> dict[str, str]:
    """Hand Lambda's trace on: by it Lambda sees functions that call each other in a circle, and X-Ray one request."""
    trace = os.environ.get("_X_AMZN_TRACE_ID")  # set anew for each invocation
    known = trace and os.environ.get("AWS_LAMBDA_FUNCTION_NAME") and trace.isascii() and trace.isprintable()
    return {"x-amzn-trace-id": trace} if trace and known else {}


def _encoded(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def _quoted(name: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - http.client has imported it

    return quote(name, safe="-._~")
