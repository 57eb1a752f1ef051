"""A deployment with the dialects that a test module names in DIALECTS, and connections to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.testing import deployed
from tests.dialects.functions import ALL_HANDLERS
from tests.dialects.wires import Events
from tests.support.placements import PLACEMENTS, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_functions.http.gateway import LambdaFunction
    from tests.support.strict_kms import Clock


@pytest.fixture(scope="module", autouse=True)
def _speaking(request: pytest.FixtureRequest) -> Iterator[None]:
    with deployed(MCP_DIALECTS=request.module.DIALECTS):
        yield


@pytest.fixture(scope="module", params=PLACEMENTS)
def placed_function(request: pytest.FixtureRequest, _speaking: None) -> tuple[str, LambdaFunction]:
    return request.param, place(request.param, *ALL_HANDLERS)


@pytest.fixture
def wire_to(placed_function: tuple[str, LambdaFunction]) -> Callable[..., Events]:
    """Reach the functions of these tests as a given caller, in both placements, and optionally with another clock."""
    placement, function = placed_function

    def as_(who: str = "alice", clock: Clock | None = None, *, fresh: bool = False) -> Events:
        return Events(place(placement, *ALL_HANDLERS, now=clock) if clock else function, who, fresh=fresh)

    return as_
