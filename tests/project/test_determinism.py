"""The same tests do the same in every run: the examples of Hypothesis, and the environment."""

from __future__ import annotations

import importlib
import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path


def draw_examples() -> list[tuple[str, int]]:
    drawn: list[tuple[str, int]] = []

    @settings(settings.get_profile("project"))
    @given(st.text(), st.integers())
    def draw(text: str, number: int) -> None:
        drawn.append((text, number))

    draw()
    return drawn


def test_hypothesis_draws_the_same_examples_whatever_was_imported_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = draw_examples()
    (tmp_path / "constants_of_an_author.py").write_text("NUMBERS = [918273645, 7331]\nTEXT = 'a text of an author'\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("constants_of_an_author")
    assert draw_examples() == before


@pytest.mark.parametrize("name", ["AWS_PROFILE", "MCP_PAGE_SIZE", "http_proxy", "FORCE_COLOR", "COLUMNS", "PORT"])
def test_no_test_has_what_the_shell_says(name: str) -> None:
    assert name not in os.environ


def test_every_test_runs_in_the_time_zone_of_lambda() -> None:
    assert time.localtime(0).tm_gmtoff == 0
