"""The table of mutants is the test: each change turns its conversation red, and without it all are green."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.deployed.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.deployed.mutants import Mutant
    from tests.deployed.stack import Stack

TALKS = sorted({mutant.talk for mutant in MUTANTS}, key=lambda talk: talk.__name__)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_changed_stack_turns_a_conversation_red(mutant: Mutant, shop: Stack) -> None:
    with mutant.applied(shop):
        shop.forget()  # no process knows a data key, or has a permission from before
        with pytest.raises(Exception):  # noqa: B017, PT011 - a failed assertion, or what its client raises
            mutant.talk(shop)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
def test_the_stack_is_green_after_all_changes_were_taken_back(talk: Callable[[Stack], None], shop: Stack) -> None:
    shop.forget()
    talk(shop)
