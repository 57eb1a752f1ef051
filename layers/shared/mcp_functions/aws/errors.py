"""Errors of AWS calls: the exceptions of our own clients, and what a failed call means.

The exceptions have botocore's names, and none keeps the service's message, which may quote the request. `read_failure`
reads them, and those of boto3. The `Failure` then answers two questions:

    is_transient    may the same request succeed at once? Our own clients repeat it.
    is_outage       may it succeed later? If not, the operator has to act.
"""

from __future__ import annotations

from mcp_functions.tuples import NamedTuple

NO_RESPONSE = 0  # in place of an HTTP status, if no response arrived
UNKNOWN_STATUS = 400  # for an error without a status: it counts as a refused request
SERVER_FAULT = 500  # from this status on, the fault is the server's


class ClientError(Exception):
    """The service answered with an error.

    Attributes:
        code: the service's error code.
        status: the HTTP status.
        response: both, where botocore's ClientError has them.
    """

    def __init__(self, code: str, status: int = UNKNOWN_STATUS) -> None:
        """Keep the code and the status."""
        super().__init__(code)
        self.code = code
        self.status = status
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


# The three tables of botocore's retry mode "standard" (ThrottledRetryableChecker and TransientRetryableChecker).
THROTTLED_CODES = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
TRANSIENT_CODES = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
TRANSIENT_STATUSES = {500, 502, 503, 504}

# Further codes of an outage, because their HTTP status may be 400.
OUTAGE_CODES = {
    # The service has an internal fault.
    "KMSInternalException", "DependencyTimeoutException", "KeyUnavailableException", "InternalError", "InternalFailure",
    "InternalServerError", "ServiceUnavailable", "ServiceUnavailableException",
    # Another write was faster.
    "ReplicatedWriteConflictException", "TransactionConflictException", "OperationAborted",
    # The request was damaged on its way.
    "BadDigest", "IncompleteBody",
    # The clock or the credentials of this Lambda are old; Lambda renews both.
    "RequestTimeTooSkewed", "ExpiredToken", "ExpiredTokenException", "RequestExpired",
}  # fmt: skip

# Never an outage, whatever the status is.
OPERATOR_CODES = {
    # boto3 could not make the request.
    "NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ParamValidationError",
    # The KMS key is disabled or deleted.
    "KMSInvalidStateException",
}  # fmt: skip


class Failure(NamedTuple):
    """A failed call of AWS."""

    code: str  # the code from AWS, or the name of the exception
    status: int  # the HTTP status; NO_RESPONSE without a response

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed at once."""
        if self.status == NO_RESPONSE or self.status in TRANSIENT_STATUSES:
            return True
        return self.code in THROTTLED_CODES or self.code in TRANSIENT_CODES

    @property
    def is_outage(self) -> bool:
        """Whether the request may succeed later; otherwise the operator has to act."""
        if self.code in OPERATOR_CODES:
            return False
        return self.is_transient or self.status >= SERVER_FAULT or self.code in OUTAGE_CODES


def read_failure(error: Exception) -> Failure:
    """Read an error of one of our clients, or of boto3's."""
    name = type(error).__name__
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # our ClientError, or botocore's
        code = response.get("Error", {}).get("Code") or name
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", UNKNOWN_STATUS)
        return Failure(str(code), status)
    # An OSError is an HTTPClientError, or an error of the connection. Botocore's classes are compared by the name of
    # their package, because its import is slow.
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, OSError) or package in ("botocore", "urllib3"):
        return Failure(name, NO_RESPONSE)
    return Failure(name, UNKNOWN_STATUS)
