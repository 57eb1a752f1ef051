"""AWS Signature Version 4 for a POST without a query string. The tests compare it with botocore's signer."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "AWS4-HMAC-SHA256"
# SigV4, "Create a canonical request": headers that a proxy may change are sent but not signed.
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})


class Credentials(NamedTuple):
    """An access key. Its `repr` shows no secret."""

    key_id: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        """Show the key's id without its secret."""
        return f"Credentials({self.key_id})"


class SigningScope(NamedTuple):
    """The region, service and time (unix seconds) for which a signature is valid."""

    region: str
    service: str
    at: float


def sign(
    path: str, headers: Mapping[str, str], body: bytes, credentials: Credentials, scope: SigningScope
) -> dict[str, str]:
    """Return the headers of a POST with the headers that sign it.

    Args:
        path: the percent-encoded path of the URL.
        headers: the headers, with names in lower case, `host` among them.
        body: the bytes that are sent.
        credentials: the access key.
        scope: the region, service and time of the signature.
    """
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(scope.at))
    day = timestamp[:8]
    sent = {**headers, "x-amz-date": timestamp}
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    signed = sorted(sent.keys() - UNSIGNED)
    names = ";".join(signed)
    lines = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in signed)
    # SigV4 encodes the path once more: in an encoded path only the percent signs change.
    request = "\n".join(("POST", path.replace("%", "%25"), "", lines, names, hashlib.sha256(body).hexdigest()))
    credential_scope = f"{day}/{scope.region}/{scope.service}/aws4_request"
    text = "\n".join((ALGORITHM, timestamp, credential_scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(_signing_key(credentials.secret, day, scope), text.encode(), "sha256").hexdigest()
    sent["authorization"] = (
        f"{ALGORITHM} Credential={credentials.key_id}/{credential_scope}, SignedHeaders={names}, Signature={signature}"
    )
    return sent


def _signing_key(secret: str, day: str, scope: SigningScope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
