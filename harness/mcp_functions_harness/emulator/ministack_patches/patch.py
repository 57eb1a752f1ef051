"""A patch: it replaces functions of MiniStack, and knows their source.

Where the source is not the known one, the patch does not fit: another version of MiniStack may have closed the gap, or
may have moved it. So nothing starts before somebody has looked.
"""

import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DIGITS = 12  # of the digest of a source


@dataclass(frozen=True)
class Patch:
    """One gap of MiniStack, and what closes it."""

    name: str
    gap: str  # what MiniStack does, and what AWS does
    replaced: Mapping[str, str]  # "module:function" of MiniStack -> the `digest` of its source
    apply: Callable[[], None]  # replaces the functions

    def problems(self) -> Iterator[str]:
        """Yield each function that is missing, or has another source than the patch was written for."""
        for place, known in self.replaced.items():
            try:
                found = digest(place)
            except (ImportError, AttributeError):
                yield f"there is no {place}"
                continue
            if found != known:
                yield f"{place} has changed ({found}, not {known})"


def module(name: str) -> Any:
    """Import a module of MiniStack."""
    return importlib.import_module(f"ministack.{name}")


def digest(place: str) -> str:
    """Return the first digits of the SHA-256 of a function's source."""
    name, _colon, function = place.partition(":")
    source = inspect.getsource(getattr(module(name), function))
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]


def rewrite(name: str, function: str, changes: Mapping[str, str]) -> None:
    """Replace texts that each occur once in a function's source, where it offers no other place for a change."""
    owner = module(name)
    source = textwrap.dedent(inspect.getsource(getattr(owner, function)))
    for old, new in changes.items():
        assert source.count(old) == 1, f"{name}:{function} has {source.count(old)} times {old!r}"  # noqa: S101
        source = source.replace(old, new)
    exec(compile(source, owner.__file__, "exec"), vars(owner))  # noqa: S102 - MiniStack's source
