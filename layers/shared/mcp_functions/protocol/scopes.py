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
    from collections.abc import Iterable, Mapping

Hierarchy: TypeAlias = "Mapping[str, frozenset[str]]"

SCOPE = r"[!#-\[\]-~]+"  # "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" (RFC 6749, section 3.3)


def read_hierarchy(text: str) -> dict[str, frozenset[str]]:
    """Read chains of scopes, each with its broadest first: `admin > work:write > work:read, admin > mail:read`.

    Returns:
        For each scope that includes others, all scopes that it includes, over any number of steps.

    Raises:
        ValueError: a chain has one link, or one that is no scope; the message is the chain.
    """
    direct: dict[str, set[str]] = {}
    for chain in filter(str.strip, text.split(",")):
        links = [scope.strip() for scope in chain.split(">")]
        if len(links) == 1 or not all(re.fullmatch(SCOPE, scope) for scope in links):
            raise ValueError(chain.strip())
        for broad, narrow in pairwise(links):
            direct.setdefault(broad, set()).add(narrow)
    return {broad: frozenset(_below(direct, broad)) for broad in direct}


def expand(scopes: Iterable[str], hierarchy: Hierarchy) -> frozenset[str]:
    """Add to the scopes of a token all that they include."""
    scopes = frozenset(scopes)
    return scopes.union(*(hierarchy.get(scope, frozenset()) for scope in scopes))


def _below(direct: Mapping[str, set[str]], broad: str) -> set[str]:
    below: set[str] = set()
    ahead = set(direct[broad])
    while ahead:  # ends in a circle too, because no scope is visited twice
        below |= ahead
        ahead = {narrower for scope in ahead for narrower in direct.get(scope, ())} - below
    return below
