"""`--runtime`: every function is a process of the real `awslambdaric`, behind a Lambda Runtime API on loopback.

What Lambda does around a process is done here: environment, timeout and memory of template.yaml, one environment for
each concurrent request, cold starts, crashes, and what the Invoke API says of them. The interpreter is the harness's
own, not the template's, and nothing is a container.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from mcp_functions.local import environment as surroundings
from mcp_functions.local.problems import Problem
from mcp_functions.local.runtime import configuration as template
from mcp_functions.local.runtime import fingerprints, variables
from mcp_functions.local.runtime.configuration import Configuration, Template
from mcp_functions.local.runtime.fleet import IDLE_SECONDS, Fleet
from mcp_functions.local.runtime.process import Process
from mcp_functions.local.runtime.sandbox import Environment
from mcp_functions.local.runtime.watchdog import Warden
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from mcp_functions.local.lambdas import Outcome
    from mcp_functions.local.runtime.fingerprints import Stamp

__all__ = ["Runtime"]

WORKER_SECONDS = 900  # the longest that Lambda has
FEWEST_TURNS = 2  # processes that may begin at once, on the smallest machine: one that hangs does not stop all others


class Runtime:
    """The functions of a directory as processes, from the start of its block to the end of it."""

    def __init__(  # noqa: PLR0913 - what Lambda knows of a deployment
        self,
        directory: Path,
        folders: Collection[str],
        *,
        own: Mapping[str, str | None],
        pointed: Mapping[str, str | None],
        said: Callable[[str, str], None],
        reuse: bool = True,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Read what the template says of each function; nothing runs yet.

        Args:
            directory: that holds a folder for each function.
            folders: the functions.
            own: what a deployment decides: MCP_… by name.
            pointed: credentials and endpoints of the harness.
            said: called with a folder and a line of its log, in any thread.
            reuse: whether a process takes a second request.
            idle_seconds: after which a process without requests is ended.

        Raises:
            Problem: awslambdaric is not installed, or the template cannot be read.

        """
        if importlib.util.find_spec("awslambdaric") is None:
            missing = "awslambdaric is not installed: pip install 'mcp-functions[runtime]'"
            raise Problem(missing)
        self._directory, self._pointed, self._said = directory.resolve(), pointed, said
        self._own = {name: value for name, value in own.items() if value is not None}
        read = self._template()
        self._configurations = {folder: self._configuration(read, folder) for folder in folders}
        self._configurations |= {f"{folder}{WORKER}": self._worker(read, folder) for folder in folders}
        turns = max(FEWEST_TURNS, os.cpu_count() or 1)
        self._fleet = Fleet(
            self._make, self._stamp, self._reserved, turns=turns, reuse=reuse, idle_seconds=idle_seconds
        )
        self._running, self._compiled = ExitStack(), fingerprints.NOTHING

    def __enter__(self) -> Self:
        """Be ready; processes start with requests."""
        self._warden = Warden()
        self._running.callback(self._warden.close)
        self._running.enter_context(self._fleet)
        return self

    def __exit__(self, *_error: object) -> None:
        """End every process."""
        self._running.close()

    def run(self, folder: str, event: bytes) -> Outcome:
        """Run one request.

        Raises:
            Throttled: as many run already as may.

        """
        return self._fleet.run(folder, _name(folder), event)

    def kill(self, folder: str, *, alone: bool = False) -> int:
        """Kill the processes that run a request of a folder now, or (`alone`) the only one; say how many."""
        return self._fleet.kill(folder, alone=alone)

    def _template(self) -> Template | None:
        path = template.find(self._directory)
        return Template(path, self._own, stack=surroundings.STACK, shell=os.environ) if path else None

    def _configuration(self, read: Template | None, folder: str) -> Configuration:
        found = read.configuration(self._directory / folder) if read else None
        if read and not found:
            self._said(folder, "template.yaml has no block for it: it runs with the harness's own settings")
        return found or Configuration(variables=self._own)

    def _worker(self, read: Template | None, folder: str) -> Configuration:
        """Say how the worker of a function runs: as its block says, or like the function itself, but for longer."""
        found = read.configuration(self._directory / folder, f"{folder}{WORKER}") if read else None
        return found or replace(self._configurations[folder], timeout=WORKER_SECONDS)

    def _reserved(self, folder: str) -> int | None:
        return self._configurations[folder].reserved

    def _stamp(self, folder: str) -> Stamp:
        toolkit = fingerprints.of_toolkit()
        if toolkit != self._compiled:
            fingerprints.compile_toolkit()
            self._compiled = toolkit
        return fingerprints.of(self._code(folder)) + toolkit

    def _code(self, folder: str) -> Path:
        return self._directory / folder.removesuffix(WORKER)

    def _make(self, folder: str, stamp: Stamp, begun: Callable[[], None]) -> Environment:
        configuration, where = self._configurations[folder], self._code(folder)

        def said(line: str) -> None:
            self._said(folder, line)

        def start(address: str, ended: Callable[[int], None]) -> Process:
            environ = variables.of(_name(folder), where, configuration, self._pointed, address)
            command = (sys.executable, "-m", "awslambdaric", configuration.handler)
            return Process(command, folder=where, variables=environ, watched=self._warden, said=said, ended=ended)

        return Environment(configuration, stamp, start, said, begun)


def _name(folder: str) -> str:
    return f"{surroundings.STACK}-{folder}"
