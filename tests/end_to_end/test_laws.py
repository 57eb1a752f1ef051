"""The laws of conversations, over a corpus of handlers, whatever happens between the rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.client import ACTS, Act, Client, comes_to, ideal
from tests.laws.corpus import CASES
from tests.laws.people import Person
from tests.laws.world import WORLD

if TYPE_CHECKING:
    from tests.laws.corpus import Case

seeds = st.integers(0, 2**16)
acts = st.lists(st.builds(Act, st.sampled_from(ACTS), st.integers(0, 255)), max_size=6)
corpus = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def client(case: Case, seed: int) -> Client:
    """Make a person who answers; `heard_of` are the questions of every version."""
    heard_of: dict[str, object] = {}
    for version in range(len(case.versions)):
        heard_of |= ideal(case, version, Person(seed, moods=False))[1]
    WORLD.opened.clear()
    return Client(case, Person(seed, moods=case.moods), Person(seed + 1), heard_of)


def should_come_to(talk: Client) -> dict[str, object]:
    WORLD.opened.clear()
    return ideal(talk.case, talk.version, talk.person)[0]


@corpus
@settings(max_examples=40)
@given(seeds, acts)
def test_a_conversation_under_faults_has_the_result_of_one_without_faults(
    case: Case, seed: int, acts: list[Act]
) -> None:
    talk = client(case, seed)
    for _round in talk.play(acts):
        pass
    assert talk.final
    assert comes_to(talk.final) == should_come_to(talk)


@settings(max_examples=100)
@given(st.sampled_from(CASES), st.tuples(seeds, seeds), st.tuples(acts, acts), st.lists(st.booleans(), max_size=30))
def test_two_conversations_of_one_client_never_mix(
    case: Case, seed: tuple[int, int], acts: tuple[list[Act], list[Act]], turns: list[bool]
) -> None:
    talks = [client(case, number) for number in seed]
    opened = [WORLD.opened.copy() for _talk in talks]  # each person opens other pages
    playing = [talk.play(acts[number]) for number, talk in enumerate(talks)]
    for turn in [*turns, *[False] * 40, *[True] * 40]:
        WORLD.opened = opened[turn]
        next(playing[turn], None)
    for talk in talks:
        assert talk.final
        assert comes_to(talk.final) == should_come_to(talk)


@corpus
@settings(max_examples=10)
@given(seeds)
def test_a_client_that_answers_every_question_finishes_in_few_rounds(case: Case, seed: int) -> None:
    talk = client(case, seed)
    assert len(list(talk.play([]))) <= 9  # the most that every official client goes along with
