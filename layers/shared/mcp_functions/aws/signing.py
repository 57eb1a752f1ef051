"""Signature Version 4, for a POST without a query: pure, its clock a parameter.

Checked against botocore's own signer in the tests.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "AWS4-HMAC-SHA256"
# "Do not include … headers that a proxy may change": the header is sent, but does not count.
UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})


class Credentials(NamedTuple):
    """Who signs. Never printed."""

    key_id: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"Credentials({self.key_id})"


class Scope(NamedTuple):
    """Where and when a signature counts: `at` in unix seconds."""

    region: str
    service: str
    at: float


def sign(path: str, headers: Mapping[str, str], body: bytes, by: Credentials, scope: Scope) -> dict[str, str]:
    """Return the headers of a POST with those that sign it.

    Args:
        path: of the URL, as it goes over the wire.
        headers: names in lower case, `host` among them.
        body: as it goes over the wire.
        by: who signs.
        scope: region, service and time.

    """
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(scope.at))
    sent = {**headers, "x-amz-date": moment, **({"x-amz-security-token": by.token} if by.token else {})}
    counted = sorted(sent.keys() - UNSIGNED)
    lines = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in counted)
    names = ";".join(counted)
    # "URI-encode the path": of what is encoded already, only the percent signs are left to encode
    request = "\n".join(("POST", path.replace("%", "%25"), "", lines, names, hashlib.sha256(body).hexdigest()))
    credential = f"{moment[:8]}/{scope.region}/{scope.service}/aws4_request"
    text = "\n".join((ALGORITHM, moment, credential, hashlib.sha256(request.encode()).hexdigest()))
    signature = hmac.new(_key(by.secret, moment[:8], scope), text.encode(), "sha256").hexdigest()
    said = f"{ALGORITHM} Credential={by.key_id}/{credential}, SignedHeaders={names}, Signature={signature}"
    return {**sent, "authorization": said}


def _key(secret: str, day: str, scope: Scope) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
