"""Errors of AWS calls, with botocore's names. `read_failure` reads the errors of our clients and of botocore's.

An error keeps the code of an answer but not its message, because a message may quote the request.
"""

from __future__ import annotations

from mcp_functions.tuples import NamedTuple

# botocore repeats a request after these errors (its ThrottledRetryableChecker and TransientRetryableChecker).
THROTTLED_CODES = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
TRANSIENT_CODES = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
TRANSIENT_STATUSES = {500, 502, 503, 504}
# Codes of DynamoDB, KMS and S3 for an outage, whatever the HTTP status is.
OUTAGE = THROTTLED_CODES | {
    "ReplicatedWriteConflictException", "TransactionConflictException", "KMSInternalException",
    "DependencyTimeoutException", "KeyUnavailableException", "InternalError", "InternalFailure", "InternalServerError",
    "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout", "RequestTimeoutException",
    "RequestTimeTooSkewed", "OperationAborted", "BadDigest", "IncompleteBody", "ExpiredToken", "ExpiredTokenException",
    "RequestExpired",
}  # fmt: skip
# botocore sent no request, or the KMS key is in a state that only the operator can change.
NO_OUTAGE = {
    "NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ParamValidationError",
    "KMSInvalidStateException",
}  # fmt: skip
NO_RESPONSE = 0  # in place of an HTTP status, if no response arrived
BAD_REQUEST = 400  # the status of an error that names none: only the operator can mend it
SERVER_FAULT = 500  # the least status that blames the server


class Failure(NamedTuple):
    """A failed call."""

    code: str  # the code from AWS, or the name of the exception
    status: int  # the HTTP status; NO_RESPONSE without one

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed a moment later."""
        has_transient_code = self.code in THROTTLED_CODES or self.code in TRANSIENT_CODES
        return has_transient_code or self.status == NO_RESPONSE or self.status in TRANSIENT_STATUSES

    @property
    def is_outage(self) -> bool:
        """Whether the call may succeed later; otherwise the operator has to act."""
        if self.code in NO_OUTAGE:
            return False
        return self.code in OUTAGE or self.status == NO_RESPONSE or self.status >= SERVER_FAULT


def read_failure(error: Exception) -> Failure:
    """Read an exception of either client; botocore makes its exceptions at run time."""
    name = type(error).__name__
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", BAD_REQUEST)
        return Failure(str(response.get("Error", {}).get("Code") or name), status)
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, OSError) or package in ("botocore", "urllib3"):
        return Failure(name, NO_RESPONSE)
    return Failure(name, BAD_REQUEST)


class ClientError(Exception):
    """The service answered with an error.

    Attributes:
        response: code and status in botocore's shape.
    """

    def __init__(self, code: str, status: int) -> None:
        """Write `response` from the service's error code and the HTTP status."""
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HTTPClientError(OSError):
    """No complete response arrived."""


class ConnectTimeoutError(HTTPClientError):
    """The connection was not accepted in time; the request was not sent."""


class EndpointConnectionError(HTTPClientError):
    """The connection was refused or the host is unknown; the request was not sent."""


class SSLError(HTTPClientError):
    """The server's certificate is not trusted; the request was not sent."""


class ReadTimeoutError(HTTPClientError):
    """The request was sent, and the response did not arrive in time."""


class ConnectionClosedError(HTTPClientError):
    """The connection ended after part of the request was sent."""
