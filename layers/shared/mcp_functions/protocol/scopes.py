"""Scopes of an access token: each allows some operations, and a broader one may include narrower ones.

"Servers MUST account for scope hierarchies, where a broader scope implies narrower ones, when deciding whether a token
is sufficient for an operation" (basic/authorization). Issuers name scopes freely, so no rule finds their hierarchy. The
operator sets it, as in `work:admin > work:write > work:read`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Hierarchy: TypeAlias = "Mapping[str, frozenset[str]]"

SCOPE = r"[!#-\[\]-~]+"  # "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" (RFC 6749, section 3.3)


def read_hierarchy(text: str) -> dict[str, frozenset[str]]:
    """Read chains of scopes, each with its broadest first: `admin > work:write > work:read, admin > mail:read`.

    Returns:
        For each scope that includes others, all scopes that it includes, over any number of steps.

    Raises:
        ValueError: a chain has one link, or one that is no scope; the message is the chain.
    """
    direct: dict[str, set[str]] = {}  # for each scope, the next narrower ones
    for chain in filter(str.strip, text.split(",")):
        links = [scope.strip() for scope in chain.split(">")]
        if len(links) == 1 or not all(re.fullmatch(SCOPE, scope) for scope in links):
            raise ValueError(chain.strip())
        for broad, narrow in pairwise(links):
            direct.setdefault(broad, set()).add(narrow)
    return {broad: frozenset(_included(direct, broad)) for broad in direct}


def expand(scopes: Collection[str], hierarchy: Hierarchy) -> frozenset[str]:
    """Add to the scopes of a token all that they include."""
    allowed = set(scopes)
    for scope in scopes:
        allowed |= hierarchy.get(scope, frozenset())
    return frozenset(allowed)


def _included(direct: Mapping[str, set[str]], broad: str) -> set[str]:
    """Return all scopes that a scope includes, over any number of steps.

    Args:
        direct: the scopes that each scope includes in one step.
        broad: a scope that includes others.
    """
    found: set[str] = set()
    to_visit = set(direct[broad])
    while to_visit:  # a circle of scopes ends too, because no scope is visited twice
        scope = to_visit.pop()
        found.add(scope)
        to_visit |= direct.get(scope, set()) - found
    return found
