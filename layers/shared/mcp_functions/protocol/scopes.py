"""The hierarchy of scopes, in which a broader scope of an access token includes narrower ones.

"Servers MUST account for scope hierarchies, where a broader scope implies narrower ones, when deciding whether a token
is sufficient for an operation" (basic/authorization). A hierarchy cannot be derived from the names of scopes, so the
operator configures it: `work:admin > work:write > work:read`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Hierarchy: TypeAlias = "Mapping[str, frozenset[str]]"

SCOPE = r"[!#-\[\]-~]+"  # "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )" (RFC 6749, section 3.3)


def hierarchy(text: str) -> dict[str, frozenset[str]]:
    """Parse chains of scopes, each with its broadest scope first: `admin > work:write > work:read, admin > mail:read`.

    Returns:
        Each scope that includes others, with all scopes that it includes directly or indirectly.

    Raises:
        ValueError: a chain is malformed. The message is the chain.

    """
    direct: dict[str, set[str]] = {}
    for chain in filter(str.strip, text.split(",")):
        links = [scope.strip() for scope in chain.split(">")]
        if len(links) == 1 or not all(re.fullmatch(SCOPE, scope) for scope in links):
            raise ValueError(chain.strip())
        for broad, narrow in pairwise(links):
            direct.setdefault(broad, set()).add(narrow)
    return {broad: frozenset(_below(direct, broad)) for broad in direct}


def implied(granted: Iterable[str], known: Hierarchy) -> frozenset[str]:
    """Return the granted scopes and all scopes that they include."""
    scopes = frozenset(granted)
    return scopes.union(*(known.get(scope, frozenset()) for scope in scopes))


def _below(direct: Mapping[str, set[str]], broad: str) -> set[str]:
    below: set[str] = set()
    pending = set(direct[broad])
    while pending:  # a circle ends too, because no scope is visited twice
        below |= pending
        pending = {narrow for scope in pending for narrow in direct.get(scope, ())} - below
    return below
