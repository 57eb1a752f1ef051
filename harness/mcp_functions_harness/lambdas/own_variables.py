"""Gives each function its own environment variables, though all functions run in one process.

Until the harness stops, `os.environ` is a mapping that looks up a name in two places:

1. the variables that template.yaml gives to the function that runs
2. the variables of the process

`running_function` is the function that runs. A thread that an author starts does not inherit this context variable, so
the process has the variables of all functions too.
"""

import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeAlias

from mcp_functions_harness import environment

running_function: ContextVar[str] = ContextVar("running_function", default="")  # its folder
SetOwn: TypeAlias = Callable[[Mapping[str, Mapping[str, str]]], None]  # takes variables by folder


class _Environment(MutableMapping[str, str]):
    """The mapping in place of `os.environ`."""

    def __init__(self, process: MutableMapping[str, str]) -> None:
        """Start with the variables of the process, the real `os.environ`."""
        self._process = process
        self._process_changes = ExitStack()  # restores the process's variables
        # The variables of each function, by folder. None hides a variable of the process, because only another
        # function has it.
        self._functions: dict[str, dict[str, str | None]] = {}

    def set_own(self, variables: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the variables of all functions, by folder."""
        of_all_functions: dict[str, str] = {}
        for own in variables.values():
            of_all_functions |= own
        hidden = dict.fromkeys(of_all_functions)  # None for each name
        # One assignment, because functions may run meanwhile.
        self._functions = {folder: hidden | dict(own) for folder, own in variables.items()}
        self._process_changes.close()
        self._process_changes.enter_context(environment.applied(of_all_functions))

    def _own(self) -> dict[str, str | None]:
        return self._functions.get(running_function.get(), {})

    def _visible(self) -> dict[str, str]:
        """Return the variables that the running function sees."""
        merged = {**self._process, **self._own()}
        return {name: value for name, value in merged.items() if value is not None}

    def __getitem__(self, name: str) -> str:
        own = self._own()
        value = own[name] if name in own else self._process[name]
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: str) -> None:
        own = self._own()
        if name in own:
            own[name] = value
        else:
            self._process[name] = value

    def __delitem__(self, name: str) -> None:
        own = self._own()
        if name not in own:
            del self._process[name]
        elif own[name] is None:  # hidden, or deleted already
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


@contextmanager
def separated() -> Iterator[SetOwn]:
    """Replace `os.environ` until the end of the block, which gets the function that sets the functions' variables."""
    os_module: Any = os  # a type checker refuses another type for os.environ
    process = os.environ
    os_module.environ = environ = _Environment(process)
    try:
        yield environ.set_own
    finally:
        environ.set_own({})
        os_module.environ = process
