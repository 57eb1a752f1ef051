"""`--runtime`: each function is a process of the real `awslambdaric`, behind a Lambda Runtime API on loopback.

    Runtime -> Fleet: the environments of all functions -> Sandbox: one environment, which Lambda reuses
            -> Process: an operating system's process -> RuntimeApi: gives it events, takes its results

This package does what Lambda does around a process: environment variables, timeout and memory from template.yaml, one
environment for each concurrent request, cold starts, crashes and the log lines around an invocation. The interpreter is
the harness's own, not the template's, and there are no containers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self

from mcp_functions.local import environment, template
from mcp_functions.local.lambdas.loading import common
from mcp_functions.local.problems import stop
from mcp_functions.local.runtime import author_process, fingerprints, variables
from mcp_functions.local.runtime.configuration import Configuration, Template
from mcp_functions.local.runtime.fleet import Fleet, physical_name
from mcp_functions.local.runtime.process import Process
from mcp_functions.local.runtime.sandbox import Sandbox
from mcp_functions.local.runtime.watchdog import Watchdog
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

__all__ = ["Runtime"]

WORKER_SECONDS = 900  # timeout of a worker, which continues a function's MCP tasks; Lambda allows no longer one
MIN_STARTS = 2  # processes that may start at once on the smallest machine, so that one that hangs does not block others


@dataclass(eq=False)
class Runtime:
    """The functions of a directory as processes, while its block runs.

    Attributes:
        directory: contains a folder for each function.
        folders: the names of the functions' folders.
        settings: the environment variables that a deployment sets (MCP_…).
        endpoints: credentials and endpoints of the harness, as environment variables.
        on_log: called with a folder and a line of its log, in any thread.
        on_progress: called with a folder, `progress` and `total`; only with `verbose_log`.
        reuse: whether a process takes a second request.
        verbose_log: whether processes also log whole tracebacks, and report their progress.
        fleet: the processes of the functions.

    Raises:
        Problem: awslambdaric is not installed, or the template cannot be read.
    """

    directory: Path
    folders: Collection[str]
    settings: Mapping[str, str | None] = field(kw_only=True)
    endpoints: Mapping[str, str | None] = field(kw_only=True)
    on_log: Callable[[str, str], None] = field(kw_only=True)
    on_progress: Callable[[str, float, float | None], None] = field(kw_only=True)
    reuse: bool = field(kw_only=True)
    verbose_log: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        """Read the template; no process starts yet."""
        if importlib.util.find_spec("awslambdaric") is None:
            stop("awslambdaric is not installed: pip install 'mcp-functions[runtime]'")
        self.directory = self.directory.resolve()
        self._settings = {name: value for name, value in self.settings.items() if value is not None}
        self._shell = dict(os.environ)
        self.configure(self.folders)
        self.fleet = Fleet(
            make=self._make,
            fingerprint=self._fingerprint,
            reserved=lambda folder: self._configurations[folder].reserved,
            starts=max(MIN_STARTS, os.cpu_count() or 1),
            reuse=self.reuse,
        )
        self._running = ExitStack()

    def __enter__(self) -> Self:
        """Get ready; a process starts with a request."""
        self._watchdog = Watchdog()
        self._running.callback(self._watchdog.close)
        self._running.enter_context(self.fleet)
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill every process, and the watchdog."""
        self._running.close()

    def configure(self, folders: Collection[str]) -> None:
        """Take these functions, with what the template says now; a process of another configuration ends.

        Raises:
            Problem: the template cannot be read.
        """
        path = template.find(self.directory)
        self._template = Template(path, self._settings, stack=environment.STACK, shell=self._shell) if path else None
        self._configurations: dict[str, Configuration] = {}
        for folder in folders:
            configured = self._configuration(folder)
            self._configurations[folder] = configured
            self._configurations[f"{folder}{WORKER}"] = self._worker(folder, configured)

    def _configuration(self, folder: str) -> Configuration:
        if self._template is None:
            return Configuration(variables=self._settings)
        configured = self._template.configuration(self.directory / folder)
        if configured is None:
            self.on_log(folder, "template.yaml has no block for it: it runs with the harness's own settings")
        return configured or Configuration(variables=self._settings)

    def _worker(self, folder: str, of_function: Configuration) -> Configuration:
        """Return a worker's own configuration, or the function's with Lambda's longest timeout."""
        code = self.directory / folder
        configured = self._template.configuration(code, f"{folder}{WORKER}") if self._template else None
        return configured or replace(of_function, timeout=WORKER_SECONDS)

    def _fingerprint(self, folder: str) -> object:
        """Return what differs once a process would load other code, or run with another configuration."""
        code = fingerprints.of_folder(self._code(folder)) + fingerprints.of_folder(common(self.directory))
        return (code, self._configurations[folder])

    def _code(self, folder: str) -> Path:
        return self.directory / folder.removesuffix(WORKER)

    def _make(self, folder: str, fingerprint: object, on_start: Callable[[], None]) -> Sandbox:
        configured = self._configurations[folder]
        code = self._code(folder)
        client = (author_process.__file__,) if self.verbose_log else ("-m", "awslambdaric")

        def log(line: str) -> None:
            if line.startswith(author_process.PROGRESS):
                done, total = json.loads(line.removeprefix(author_process.PROGRESS))
                self.on_progress(folder, done, total)
            else:
                self.on_log(folder, line)

        def start() -> Process:
            environ = partial(variables.of, physical_name(folder), code, configured, self.endpoints)
            command = (sys.executable, *client, configured.handler)
            return Process(command, folder=code, variables=environ, watchdog=self._watchdog, on_line=log)

        return Sandbox(configured, fingerprint, start, log, on_start)
