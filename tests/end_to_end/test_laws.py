"""A conversation under faults has the result that it has without faults; Hypothesis finds the faults.

CASES are functions that ask questions, in several versions. A `Client` plays a conversation: a `Person` answers, and an
`Act` is a fault of the client, the network or a deploy between two rounds (see tests/laws/client.py). `ideal_result`
runs the same function without faults, in one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.client import ACTS, Act, Client, result_of, run_without_faults
from tests.laws.corpus import CASES
from tests.laws.people import Person
from tests.laws.services import SERVICES

if TYPE_CHECKING:
    from tests.laws.corpus import Case

SEEDS = st.integers(0, 2**16)
TURNS = st.lists(st.booleans(), max_size=30)  # whose round is next: that of the second conversation, if true
LISTS_OF_ACTS = st.lists(st.builds(Act, st.sampled_from(sorted(ACTS)), st.integers(0, 255)), max_size=6)
MAX_ROUNDS = 9  # the most that every official client sends
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def create_client(case: Case, seed: int) -> Client:
    """Make a client whose person answers the questions of all versions."""
    questions: dict[str, object] = {}
    for version in range(len(case.versions)):
        questions |= run_without_faults(case, version, Person(seed, may_decline=False))[1]
    SERVICES.page_visits.clear()
    return Client(case, Person(seed, may_decline=case.may_decline), Person(seed + 1), questions)


def ideal_result(client: Client) -> dict[str, object]:
    SERVICES.page_visits.clear()
    return run_without_faults(client.case, client.version, client.person)[0]


def assert_has_ideal_result(client: Client) -> None:
    assert client.final
    assert result_of(client.final) == ideal_result(client)


@every_case
@settings(max_examples=40)
@given(SEEDS, LISTS_OF_ACTS)
def test_a_conversation_under_faults_has_the_result_of_one_without_faults(
    case: Case, seed: int, acts: list[Act]
) -> None:
    client = create_client(case, seed)
    for _round in client.play(acts):
        pass
    assert_has_ideal_result(client)


@settings(max_examples=100)
@given(
    st.sampled_from(CASES), st.tuples(SEEDS, SEEDS), st.tuples(LISTS_OF_ACTS, LISTS_OF_ACTS), st.lists(st.booleans())
)
def test_two_conversations_of_one_client_never_mix(
    case: Case, seeds: tuple[int, int], acts: tuple[list[Act], list[Act]], turns: list[bool]
) -> None:
    clients = [create_client(case, seed) for seed in seeds]
    opened = [SERVICES.page_visits.copy() for _client in clients]  # the pages that each person has opened
    plays = [client.play(faults) for client, faults in zip(clients, acts, strict=True)]
    for turn in [*turns, *[False] * 40, *[True] * 40]:  # at the end, each conversation has its turn until it is over
        SERVICES.page_visits = opened[turn]
        next(plays[turn], None)
    for client in clients:
        assert_has_ideal_result(client)


@every_case
@settings(max_examples=10)
@given(SEEDS)
def test_a_client_that_answers_every_question_finishes_in_few_rounds(case: Case, seed: int) -> None:
    assert len(list(create_client(case, seed).play([]))) <= MAX_ROUNDS
