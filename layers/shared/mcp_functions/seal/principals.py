"""Digests that stand for a caller, so that no state, item or counter names a person.

principal_digest    the owner of a state or of stored data: issuer, subject and client (envelope.md §9.2)
caller_id           the caller that a limit counts: issuer and subject, or the address (envelope.md §6.5)
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from mcp_functions.protocol.messages import Principal


def principal_digest(principal: Principal | None) -> str | None:
    """Return the digest of a principal; None without authentication."""
    return None if principal is None else _digest(b"ks1/principal\0", principal.iss, principal.sub, principal.client)


def caller_id(principal: Principal | None, address: str) -> str:
    """Return the id under which a caller's forged tokens are counted; without authentication, the IP address.

    The id leaves out the OAuth client, because one person may register any number of clients. It is never logged.
    """
    return address if principal is None else _digest(b"ks1/payer\0", principal.iss, principal.sub)


def _digest(label: bytes, *parts: str) -> str:
    """Return the digest of some texts. Each has its length before it, so that ("a", "bc") is not ("ab", "c")."""
    digest = hashlib.sha256(label)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(2, "big") + encoded)
    return base64url(digest.digest())
