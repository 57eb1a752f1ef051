"""Scopes: words of an access token that say what it allows. A broader one may include narrower ones.

"Servers MUST account for scope hierarchies, where a broader scope implies narrower ones, when deciding whether a token
is sufficient for an operation" (basic/authorization). Scopes are the issuer's words, and no rule reads a hierarchy off
them: the operator writes it down, `work:admin > work:write > work:read`.
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
    """Read chains of scopes, in each the broadest first: `admin > work:write > work:read, admin > mail:read`.

    Returns:
        Every scope that includes others, with all that it includes, over any number of steps.

    Raises:
        ValueError: a chain is no chain; the message is the chain.

    """
    direct: dict[str, set[str]] = {}
    for chain in filter(str.strip, text.split(",")):
        links = [scope.strip() for scope in chain.split(">")]
        if len(links) == 1 or not all(re.fullmatch(SCOPE, scope) for scope in links):
            raise ValueError(chain.strip())
        for broad, narrow in pairwise(links):
            direct.setdefault(broad, set()).add(narrow)
    return {broad: frozenset(_below(direct, broad)) for broad in direct}


def expand(granted: Iterable[str], known: Hierarchy) -> frozenset[str]:
    """Say all that granted scopes allow: themselves, and what they include."""
    held = frozenset(granted)
    return held.union(*(known.get(scope, frozenset()) for scope in held))


def _below(direct: Mapping[str, set[str]], broad: str) -> set[str]:
    found: set[str] = set()
    ahead = set(direct[broad])
    while ahead:  # ends in a circle too: whatever was found is never looked at again
        found |= ahead
        ahead = {narrower for scope in ahead for narrower in direct.get(scope, ())} - found
    return found
