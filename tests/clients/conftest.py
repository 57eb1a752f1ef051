"""The harness in front of the sample functions, for official clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness
from tests.support import modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = Path(__file__).parents[2] / "functions"


@pytest.fixture(scope="module")
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Functions run in this process, unless a module is parametrised with `modes.MODES`."""
    runtime = modes.is_runtime(getattr(request, "param", modes.IN_PROCESS))
    with Harness(FUNCTIONS, state_dir=tmp_path_factory.mktemp("state"), runtime=runtime) as running:
        yield running


@pytest.fixture(params=["through the front door", "at the function's own endpoint"])
def url_of(request: pytest.FixtureRequest, harness: Harness) -> Callable[[str], str]:
    if request.param == "through the front door":
        return lambda _function: harness.url
    return lambda function: f"{harness.url}/{function}"
