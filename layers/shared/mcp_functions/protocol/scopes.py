"""Scopes of an access token, and their hierarchy: a broad scope may include narrower ones.

    MCP_SCOPE_HIERARCHY    "work:admin > work:write > work:read"
    scopes of a token      {"work:write"}
    scopes it may use      {"work:write", "work:read"}

"Servers MUST account for scope hierarchies, where a broader scope implies narrower ones, when deciding whether a token
is sufficient for an operation" (basic/authorization). Issuers name scopes freely, so the names do not tell the
hierarchy, and the operator sets it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Hierarchy: TypeAlias = "Mapping[str, set[str]]"  # for each scope, those that come next in the chains
SCOPE = r"[!#-\[\]-~]+"  # "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" (RFC 6749, section 3.3)


def read_hierarchy(text: str) -> dict[str, set[str]]:
    """Read chains of scopes, each with its broadest first: `admin > work:write > work:read, admin > mail:read`.

    Raise a ValueError with the chain that has only one scope, or a part that is no valid scope.
    """
    hierarchy: dict[str, set[str]] = {}
    for chain in filter(str.strip, text.split(",")):
        scopes = [scope.strip() for scope in chain.split(">")]
        are_valid = all(re.fullmatch(SCOPE, scope) for scope in scopes)
        if len(scopes) == 1 or not are_valid:
            raise ValueError(chain.strip())
        for broad, narrow in pairwise(scopes):
            hierarchy.setdefault(broad, set()).add(narrow)
    return hierarchy


def expand(scopes: Collection[str], hierarchy: Hierarchy) -> frozenset[str]:
    """Return the scopes of a token and all scopes that they include."""
    allowed: set[str] = set()
    to_visit = set(scopes)
    while to_visit:
        scope = to_visit.pop()
        allowed.add(scope)
        to_visit |= hierarchy.get(scope, set()) - allowed  # none twice, so a circle ends, too
    return frozenset(allowed)
