"""Parameters and docstrings are read as `inspect` reads them, without loading it."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions import parameters, signatures

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


def by_inspect(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.default, p.kind is p.KEYWORD_ONLY, p.kind is p.POSITIONAL_OR_KEYWORD, str(p)) for p in found]


def by_us(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    return [
        (p.name, inspect.Parameter.empty if p.required else p.default, p.keyword_only, p.plain, str(p))
        for p in parameters.read(function)
    ]


def defined(source: str) -> Any:  # noqa: ANN401 - a function
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - a signature that hypothesis wrote
    return namespace["function"]


@given(NAMES, st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_a_signature_is_read_as_inspect_reads_it(names: list[str], either: int, defaults: int, hints: int) -> None:
    written = [
        f"{name}{': int' if number < hints else ''}{f' = {number}' if number >= len(names) - defaults else ''}"
        for number, name in enumerate(names)
    ]
    after = ["*", *written[either:]] if written[either:] else []
    function = defined(f"def function({', '.join([*written[:either], *after])}): pass")
    assert by_us(function) == by_inspect(function)


def any_way(a: int, /, b: int = 2, *args: int, c: int, **more: int) -> None: ...


@functools.wraps(any_way)
def wrapped(*args: Any, **kwargs: Any) -> None: ...  # noqa: ANN401


@pytest.mark.parametrize("function", [any_way, wrapped, lambda *args: args, lambda: None])
def test_what_a_plain_function_cannot_say_is_asked_of_inspect(function: Callable[..., Any]) -> None:
    assert by_us(function) == by_inspect(function)


@given(st.text("ab \t\n"))
def test_a_docstring_is_cleaned_as_inspect_cleans_it(text: str) -> None:
    def function() -> None: ...

    function.__doc__ = text
    assert parameters.docstring(function) == inspect.cleandoc(text)


def test_without_a_docstring_there_is_none() -> None:
    assert parameters.docstring(lambda: None) is None


@pytest.mark.parametrize("word", signatures.CAPABILITIES)
def test_every_capability_has_its_home_and_name(word: str) -> None:
    from mcp_functions import capabilities  # noqa: PLC0415

    module, _dot, name = word.partition(".")
    found = getattr(__import__(f"mcp_functions.{module}", fromlist=[name]), name)
    assert issubclass(found, capabilities.Capability)
    assert (found.__module__, found.__qualname__) == (f"mcp_functions.{module}", name)
