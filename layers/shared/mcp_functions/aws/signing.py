"""AWS Signature Version 4 for a POST without a query string. The tests compare it with botocore's signer."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.endpoints import Endpoint

ALGORITHM = "AWS4-HMAC-SHA256"
# SigV4, "Create a canonical request": headers that a proxy may change are sent but not signed.
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})


def sign(path: str, headers: Mapping[str, str], body: bytes, endpoint: Endpoint, at: float) -> dict[str, str]:
    """Return the headers of a POST with the headers that sign it.

    Args:
        path: the percent-encoded path of the URL.
        headers: the headers, with names in lower case, `host` among them.
        body: the bytes that are sent.
        endpoint: the service, its region and the access key.
        at: the time of the signature, in unix seconds.
    """
    credentials = endpoint.credentials
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    scope = (timestamp[:8], endpoint.region, endpoint.service, "aws4_request")
    sent = {**headers, "x-amz-date": timestamp}
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    signed = sorted(sent.keys() - UNSIGNED)
    names = ";".join(signed)
    lines = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in signed)
    # SigV4 encodes the path once more: in an encoded path only the percent signs change.
    request = "\n".join(("POST", path.replace("%", "%25"), "", lines, names, hashlib.sha256(body).hexdigest()))
    text = "\n".join((ALGORITHM, timestamp, "/".join(scope), hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{credentials.key_id}/{'/'.join(scope)}"
    sent["authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return sent
