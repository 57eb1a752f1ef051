"""Each function in the process of the harness sees its own environment variables only."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.lambdas.own_variables import running_function, separated

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EVERYONES", "shell")
    with separated() as set_own:
        set_own({"a": {"WHO": "a", "ONLY": "a's"}, "b": {"WHO": "b", "EVERYONES": "b's"}, "c": {}})
        yield


def variables_of(folder: str) -> tuple[str | None, ...]:
    name = running_function.set(folder)
    try:
        return tuple(map(os.environ.get, ("WHO", "ONLY", "EVERYONES")))
    finally:
        running_function.reset(name)


@pytest.mark.usefixtures("variables")
def test_concurrent_functions_see_only_their_own_variables() -> None:
    at_once = Barrier(2)

    def look(folder: str) -> tuple[str | None, ...]:
        at_once.wait()
        return variables_of(folder)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(look, ["a", "b"])) == [("a", "a's", None), ("b", None, "b's")]
    assert variables_of("c") == (None, None, None)


@pytest.mark.usefixtures("variables")
def test_a_function_may_change_its_own_variables_and_lists_those_that_it_sees() -> None:
    name = running_function.set("a")
    try:
        assert os.environ["ONLY"] == "a's"
        os.environ["WHO"] = "changed"
        del os.environ["ONLY"]
        assert (os.environ["WHO"], "ONLY" in os.environ, "ONLY" in dict(os.environ)) == ("changed", False, False)
        assert len(os.environ) == len(dict(os.environ))
        assert (os.environ | {"ONLY": "mine"})["ONLY"] == "mine"
        assert ({"WHO": "first"} | os.environ)["WHO"] == os.environ.copy()["WHO"] == os.getenv("WHO") == "changed"
    finally:
        running_function.reset(name)
    assert variables_of("b")[0] == "b"


@pytest.mark.usefixtures("variables")
def test_a_function_cannot_delete_the_variable_of_another() -> None:
    name = running_function.set("b")
    try:
        with pytest.raises(KeyError, match="ONLY"):
            del os.environ["ONLY"]
        os.environ |= {"WHO": "changed"}
    finally:
        running_function.reset(name)
    assert variables_of("a")[:2] == ("a", "a's")


@pytest.mark.usefixtures("variables")
def test_a_thread_and_a_child_process_of_an_author_see_the_variables_of_all_functions() -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(os.environ.get, "ONLY").result() == "a's"
    code = "import os; print(os.environ['ONLY'])"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, text=True, capture_output=True, check=True).stdout == "a's\n"  # noqa: S603


def test_the_process_gets_its_variables_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERYONES", "shell")
    before = dict(os.environ)
    with separated() as set_own:
        set_own({"a": {"EVERYONES": "a's", "NEW": "1"}})
        set_own({"a": {"OTHER": "2"}})
        assert (os.environ["EVERYONES"], os.environ.get("NEW")) == ("shell", None)
    assert dict(os.environ) == before
