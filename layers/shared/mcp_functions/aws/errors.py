"""Errors of AWS calls: what our own clients raise, and what an error of these or of boto3's clients means.

Two rules read an error, which has a code and an HTTP status:

    is_transient    our own clients repeat the request (`clients.py`)
                    no response, a status of TRANSIENT_STATUSES, or a code of THROTTLED_CODES or TRANSIENT_CODES
    is_outage       it is nobody's mistake, and the caller's client may try again later
                    no response, a status from 500, or a code of OUTAGE_CODES; but never a code of OPERATOR_CODES

Every other error is for the operator, who has to mend something.

The classes have botocore's names. An error keeps the code of a response, and not its message, which may quote the
request.
"""

from __future__ import annotations

from mcp_functions.tuples import NamedTuple

# The same as in botocore's ThrottledRetryableChecker and TransientRetryableChecker.
THROTTLED_CODES = {
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
}  # fmt: skip
TRANSIENT_CODES = {"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
TRANSIENT_STATUSES = {500, 502, 503, 504}
# Codes of DynamoDB, KMS and S3 for an outage, whatever the HTTP status is.
OUTAGE_CODES = THROTTLED_CODES | TRANSIENT_CODES | {
    "ReplicatedWriteConflictException", "TransactionConflictException", "KMSInternalException",
    "DependencyTimeoutException", "KeyUnavailableException", "InternalError", "InternalFailure", "InternalServerError",
    "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeTooSkewed", "OperationAborted", "BadDigest",
    "IncompleteBody", "ExpiredToken", "ExpiredTokenException", "RequestExpired",
}  # fmt: skip
# Without these, is_outage would be true: boto3 could not make the request, which looks as if no response came; and KMS
# answers with a status from 500 if the key is disabled or deleted.
OPERATOR_CODES = {
    "NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ParamValidationError",
    "KMSInvalidStateException",
}  # fmt: skip
NO_RESPONSE = 0  # in place of an HTTP status, if no response arrived
BAD_REQUEST = 400  # the status of an exception that is not known and has none, so it is for the operator
SERVER_FAULT = 500  # from this status on, the fault is the server's


class Failure(NamedTuple):
    """What is known of a failed call."""

    code: str  # the code from AWS, or the name of the exception
    status: int  # the HTTP status; NO_RESPONSE without a response

    @property
    def is_transient(self) -> bool:
        """Whether our own clients repeat the request: the rule of botocore's retry mode "standard"."""
        if self.status == NO_RESPONSE or self.status in TRANSIENT_STATUSES:
            return True
        return self.code in THROTTLED_CODES or self.code in TRANSIENT_CODES

    @property
    def is_outage(self) -> bool:
        """Whether the call may succeed later; otherwise the operator has to act."""
        if self.code in OPERATOR_CODES:
            return False
        if self.status == NO_RESPONSE or self.status >= SERVER_FAULT:
            return True
        return self.code in OUTAGE_CODES


def read_failure(error: Exception) -> Failure:
    """Read an error of one of our clients, or of boto3's (by its attributes, because importing botocore is slow)."""
    name = type(error).__name__
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # a ClientError of either
        code = response.get("Error", {}).get("Code") or name
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", BAD_REQUEST)
        return Failure(str(code), status)
    package = type(error).__module__.partition(".")[0]
    # While a call runs, the only use of the system is its connection. So each OSError means that no response arrived.
    if isinstance(error, OSError) or package in ("botocore", "urllib3"):
        return Failure(name, NO_RESPONSE)
    return Failure(name, BAD_REQUEST)


class ClientError(Exception):
    """The service answered with an error.

    Attributes:
        response: the code and the status, where botocore's ClientError has them.
    """

    def __init__(self, code: str, status: int) -> None:
        """Keep the service's error code and the HTTP status."""
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
