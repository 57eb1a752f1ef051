"""Knows how each function runs, from template.yaml and its files, and makes the environments that run it."""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mcp_functions.local import environment, template
from mcp_functions.local.lambdas.modules import common
from mcp_functions.local.lambdas.service import Watcher
from mcp_functions.local.problems import stop
from mcp_functions.local.runtime import author_process, fingerprints, variables
from mcp_functions.local.runtime.configuration import Configuration, Template
from mcp_functions.local.runtime.process import Process
from mcp_functions.local.runtime.sandbox import Sandbox
from mcp_functions.local.runtime.watchdog import Watchdog
from mcp_functions.protocol.constants import WORKER_SUFFIX

WORKER_SECONDS = 900  # timeout of a worker, which continues a function's MCP tasks; Lambda allows no longer one


@dataclass(eq=False, kw_only=True)
class Launcher:
    """Makes the environments of the functions in a directory.

    Attributes:
        directory: contains a folder for each function.
        settings: the environment variables that a deployment sets (MCP_…). None: the variable is not set.
        endpoints: the environment variables with the harness's credentials and endpoints. None: not set.
        on_log: called with a folder and a line of its log, in any thread.
        watcher: sees the progress of calls. None: processes neither report progress nor log whole tracebacks.
        watchdog: kills the processes if the harness is killed.

    Raises:
        Problem: awslambdaric is not installed.
    """

    directory: Path
    settings: Mapping[str, str | None]
    endpoints: Mapping[str, str | None]
    on_log: Callable[[str, str], None]
    watcher: Watcher | None
    watchdog: Watchdog
    _settings: Mapping[str, str] = field(init=False)  # `settings` without None
    _shell: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), init=False)
    _configurations: dict[str, Configuration] = field(default_factory=dict, init=False)  # by folder

    def __post_init__(self) -> None:
        """Check that the runtime client is installed; no process starts yet."""
        if importlib.util.find_spec("awslambdaric") is None:
            stop("awslambdaric is not installed: pip install 'mcp-functions[runtime]'")
        self.directory = self.directory.resolve()
        self._settings = {name: value for name, value in self.settings.items() if value is not None}

    def configure(self, folders: Collection[str]) -> None:
        """Read the configuration of these functions and their workers from the template, as it is now.

        Raises:
            Problem: the template cannot be read.
        """
        path = template.find(self.directory)
        parsed = Template(path, self._settings, stack=environment.STACK, shell=self._shell) if path else None
        configurations: dict[str, Configuration] = {}
        for folder in folders:
            of_function = self._configuration(parsed, folder)
            of_worker = parsed.configuration(self.directory / folder, f"{folder}{WORKER_SUFFIX}") if parsed else None
            configurations[folder] = of_function
            configurations[f"{folder}{WORKER_SUFFIX}"] = of_worker or replace(of_function, timeout=WORKER_SECONDS)
        self._configurations = configurations  # all at once, because requests read them meanwhile

    def fingerprint(self, folder: str) -> object:
        """Return a value to compare: it changes with the files and the configuration that a process would load."""
        code = fingerprints.of_folder(self._code(folder)) + fingerprints.of_folder(common(self.directory))
        return (code, self._configurations[folder])

    def reserved(self, folder: str) -> int | None:
        """Return the reserved concurrency of a function; None if it has none."""
        return self._configurations[folder].reserved

    def make(self, folder: str, fingerprint: object) -> Sandbox:
        """Make an environment of a function, for files with this fingerprint; its process starts later."""
        configuration = self._configurations[folder]
        return Sandbox(configuration, fingerprint, partial(self._start, folder, configuration))

    def _configuration(self, parsed: Template | None, folder: str) -> Configuration:
        """Return a function's configuration in the template; without a block, the harness's own."""
        configuration = parsed.configuration(self.directory / folder) if parsed else None
        if parsed and configuration is None:
            self.on_log(folder, "template.yaml has no block for it: it runs with the harness's own settings")
        return configuration or Configuration(variables=self._settings)

    def _code(self, folder: str) -> Path:
        """Return the folder of the code; a worker runs the code of its function."""
        return self.directory / folder.removesuffix(WORKER_SUFFIX)

    def _start(self, folder: str, configuration: Configuration) -> Process:
        client = ["-m", "awslambdaric"] if self.watcher is None else [author_process.__file__]
        code = self._code(folder)
        name = environment.function_name(folder)
        return Process(
            [sys.executable, *client, configuration.handler],
            folder=code,
            variables=variables.of(name, code, configuration, self.endpoints),
            watchdog=self.watchdog,
            on_line=partial(self._write_log, folder),
        )

    def _write_log(self, folder: str, line: str) -> None:
        """Pass on a line of a process: to the log, or to the watcher if it says how far a call is."""
        if self.watcher and line.startswith(author_process.PROGRESS):
            done, total = json.loads(line.removeprefix(author_process.PROGRESS))
            self.watcher.show_progress(folder, done, total)
        else:
            self.on_log(folder, line)
