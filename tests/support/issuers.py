"""Local issuers that share one RSA key, because it takes 60 ms to make a key."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.issuer import Issuer, endpoints
from mcp_functions_harness.issuer.jwts import Signer

if TYPE_CHECKING:
    from collections.abc import Callable

shared_signer = cache(Signer)


def make_issuer(url: str, resource: str, *, now: Callable[[], float], **options: Any) -> Issuer:  # noqa: ANN401
    """Make an issuer with the shared key. `Issuer` makes one with a key of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoints, "Signer", shared_signer)
        return Issuer(url, resource, now=now, **options)
