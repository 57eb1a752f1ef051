"""AWS Signature Version 4 (SigV4) for a POST without a query string. The tests compare it with botocore's signer.

canonical request   method, path, query, headers with values, names of the headers, SHA-256 of the body
string to sign      algorithm, time, scope, SHA-256 of the canonical request
key                 the secret key, then one HMAC for each part of the scope: date, region, service, "aws4_request"
signature           HMAC of the string to sign with the key
"""

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
    all_headers = {**headers, "x-amz-date": timestamp}
    if credentials.token:
        all_headers["x-amz-security-token"] = credentials.token
    signed = sorted(all_headers.keys() - UNSIGNED)
    names = ";".join(signed)
    lines = ""
    for name in signed:
        value = " ".join(all_headers[name].split())  # SigV4: one space in the place of several
        lines += f"{name}:{value}\n"
    # SigV4 encodes the path once more: in an encoded path only the percent signs change.
    encoded_path = path.replace("%", "%25")
    canonical_request = "\n".join(("POST", encoded_path, "", lines, names, _sha256(body)))
    string_to_sign = "\n".join((ALGORITHM, timestamp, "/".join(scope), _sha256(canonical_request.encode())))
    key = f"AWS4{credentials.secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, string_to_sign.encode(), "sha256").hex()
    credential = f"{credentials.key_id}/{'/'.join(scope)}"
    all_headers["authorization"] = f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    return all_headers


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
