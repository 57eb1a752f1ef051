"""The environment variables of template.yaml in one process: as on Lambda, each function sees only its own.

Until the harness stops, `os.environ` is a mapping with two layers: over the process's variables lie those of the
function that runs. A thread that the author starts without a context sees the variables of all functions.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from mcp_functions.local import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# the folder of the function that runs; "" for none
running_function: ContextVar[str] = ContextVar("running_function", default="")


class _Layers(MutableMapping[str, str]):
    """The mapping in place of `os.environ`."""

    def __init__(self, process: MutableMapping[str, str]) -> None:
        self.process = process
        # by folder: a function's own variables. None hides a variable of the process, which another function has.
        self.functions: dict[str, dict[str, str | None]] = {}

    def _own(self) -> dict[str, str | None]:
        return self.functions.get(running_function.get(), {})

    def _visible(self) -> dict[str, str]:
        return {name: value for name, value in {**self.process, **self._own()}.items() if value is not None}

    def __getitem__(self, name: str) -> str:
        return self._visible()[name]

    def __setitem__(self, name: str, value: str) -> None:
        own = self._own()
        if name in own:
            own[name] = value
        else:
            self.process[name] = value

    def __delitem__(self, name: str) -> None:
        own = self._own()
        if name not in own:
            del self.process[name]
        elif own[name] is None:
            raise KeyError(name)
        else:
            own[name] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._visible())

    def __len__(self) -> int:
        return len(self._visible())

    def __or__(self, others: Mapping[str, str]) -> dict[str, str]:
        return {**self, **others}

    def __ror__(self, first: Mapping[str, str]) -> dict[str, str]:
        return {**first, **self}

    def __ior__(self, others: Mapping[str, str]) -> Self:
        self.update(others)
        return self

    def copy(self) -> dict[str, str]:
        return dict(self)


class OwnVariables:
    """The variables of each function, while the block of `layered` runs."""

    def __init__(self, layers: _Layers) -> None:
        """Start without variables."""
        self._layers = layers
        self._process_variables = ExitStack()  # restores the process's variables

    def set(self, variables: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the variables of every function, by folder."""
        of_all_functions: dict[str, str] = {}
        for own in variables.values():
            of_all_functions |= own
        hidden = dict.fromkeys(of_all_functions)
        # Functions may run meanwhile, so one assignment replaces everything.
        self._layers.functions = {folder: hidden | dict(own) for folder, own in variables.items()}
        self._process_variables.close()
        self._process_variables.enter_context(environment.applied(of_all_functions))

    def clear(self) -> None:
        """Remove the variables of every function."""
        self._layers.functions = {}
        self._process_variables.close()


@contextmanager
def layered() -> Iterator[OwnVariables]:
    """Make `os.environ` a mapping with layers until the end of the block."""
    os_module: Any = os  # for a type checker os.environ is no MutableMapping
    layers = _Layers(os.environ)
    own = OwnVariables(layers)
    os_module.environ = layers
    try:
        yield own
    finally:
        own.clear()
        os_module.environ = layers.process
