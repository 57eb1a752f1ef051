"""What an author imports, and what the error says to one who looks in the wrong module."""

from __future__ import annotations

from importlib import import_module

import pytest

import mcp_functions
from mcp_functions import Question, RootsQuestion, SampleQuestion, annotated, content, hooks, low_level

ELSEWHERE = {name: module.__name__ for module in (annotated, content, hooks, low_level) for name in module.__all__}


def test_every_public_name_can_be_imported() -> None:
    for name, module in {**ELSEWHERE, **dict.fromkeys(mcp_functions.__all__, "mcp_functions")}.items():
        assert getattr(import_module(module), name), name


def test_the_root_has_at_most_24_names() -> None:
    assert len(mcp_functions.__all__) <= 24
    assert not ELSEWHERE.keys() & set(mcp_functions.__all__)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_error_for_a_name_of_another_module_says_where_it_is(name: str) -> None:
    with pytest.raises(ImportError) as raised:
        exec(f"from mcp_functions import {name}")  # noqa: S102 - an author's line
    assert str(raised.value) == f"{name} is in {ELSEWHERE[name]}: from {ELSEWHERE[name]} import {name}"


def test_a_misspelt_name_is_an_import_error() -> None:
    for module in ("mcp_functions", *ELSEWHERE.values()):
        with pytest.raises(ImportError, match="cannot import name 'Imagge'"):
            exec(f"from {module} import Imagge")  # noqa: S102 - an author's line


def test_the_names_of_the_specification_are_the_same_classes() -> None:
    assert low_level.ElicitRequest is Question
    assert low_level.CreateMessageRequest is SampleQuestion
    assert low_level.ListRootsRequest is RootsQuestion
