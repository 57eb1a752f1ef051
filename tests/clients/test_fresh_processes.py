"""Clients of 2025 complete conversations although a new process serves each request.

Every request is a process of the Lambda runtime, or two. So here the two clients that are of 2025 themselves hold one
conversation each; `make clients` has all of them hold all that tests/clients/test_earlier_clients.py does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Harness
from tests.clients.conftest import FUNCTIONS
from tests.clients.earlier import ASKED, EVERYTHING, HELD, SPEAKERS
from tests.clients.talks import PLACES, TALKS, end
from tests.support import modes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions_harness.lambdas.service import Invocation

SOME = {"Python `mcp` 1.30": ["a duplicate"], "TypeScript `sdk` 1.32": ["a booking"]}
CONVERSATIONS = dict.fromkeys(ASKED, HELD) if EVERYTHING else SOME


@pytest.fixture(scope="module")
def invocations() -> list[Invocation]:
    return []


@pytest.fixture(scope="module")
def fresh_harness(invocations: list[Invocation], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    modes.skip_without_runtime()
    state_dir = tmp_path_factory.mktemp("state")
    with Harness(
        FUNCTIONS, state_dir=state_dir, runtime=True, reuse=False, on_invocation=invocations.append
    ) as harness:
        yield harness


@pytest.mark.parametrize(("client", "names"), CONVERSATIONS.items(), ids=CONVERSATIONS)
def test_a_client_completes_its_conversation_although_no_process_serves_it_twice(
    fresh_harness: Harness, invocations: list[Invocation], client: str, names: list[str]
) -> None:
    heard = SPEAKERS[client].hold(fresh_harness.url, names, lists=EVERYTHING)
    heard.is_of(SPEAKERS[client], fresh_harness)
    came_of_it = {name: (heard.held[name, PLACES[0]]["asked"], end(heard.held[name, PLACES[0]])) for name in names}
    assert came_of_it == {name: (TALKS[name].asked, TALKS[name].end) for name in names}
    pids = [invocation.pid for invocation in invocations]
    assert None not in pids
    assert len(set(pids)) == len(pids) >= 10 * len(names)
