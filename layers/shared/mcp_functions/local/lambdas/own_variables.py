"""The variables of template.yaml in one process: as on Lambda, each function sees its own only.

`os.environ` keeps its data in a mapping. Here that is one with layers: over the process's variables are those of the
function that runs. A thread of the author's without a context sees the variables of all functions.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

running: ContextVar[str] = ContextVar("running", default="")  # the folder of the function that runs


class _Layers(MutableMapping[bytes, bytes]):
    """The data of `os.environ`: names and values as the platform encodes them."""

    def __init__(self, process: MutableMapping[bytes, bytes]) -> None:
        self.process = process
        self.functions: dict[str, dict[bytes, bytes | None]] = {}  # by folder; None hides another function's

    def _own(self) -> dict[bytes, bytes | None]:
        return self.functions.get(running.get(), {})

    def __getitem__(self, name: bytes) -> bytes:
        own = self._own()
        found = own[name] if name in own else self.process[name]
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: bytes, value: bytes) -> None:
        own = self._own()
        if name in own:
            own[name] = value
        else:
            self.process[name] = value

    def __delitem__(self, name: bytes) -> None:
        if self[name] is not None and name in self._own():
            self._own()[name] = None
        else:
            del self.process[name]

    def __iter__(self) -> Iterator[bytes]:
        own = self._own()
        return iter([name for name in {**self.process, **own} if own.get(name, b"") is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))


class OwnVariables:
    """Variables of functions, while the block of `layered` runs."""

    def __init__(self, layers: _Layers) -> None:
        """Start without variables."""
        self._layers, self._applied = layers, ExitStack()

    def set(self, variables: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the variables of every function, by folder."""
        everyones = {name: value for own in variables.values() for name, value in own.items()}
        encode: Any = vars(os.environ)
        name_of, value_of = encode["encodekey"], encode["encodevalue"]
        hidden = {name_of(name): None for name in everyones}
        self._layers.functions = {  # in one step: functions may run meanwhile
            folder: hidden | {name_of(name): value_of(value) for name, value in own.items()}
            for folder, own in variables.items()
        }
        self._applied.close()
        self._applied.enter_context(environment.applied(everyones))

    def clear(self) -> None:
        """Forget the variables of every function."""
        self._layers.functions = {}
        self._applied.close()


@contextmanager
def layered() -> Iterator[OwnVariables]:
    """Give `os.environ` its layers until the end of the block."""
    data = vars(os.environ)
    layers = _Layers(data["_data"])
    own = OwnVariables(layers)
    data["_data"] = layers
    try:
        yield own
    finally:
        own.clear()
        data["_data"] = layers.process
