"""Knows how each function runs, from template.yaml and its files, and makes the environments that run it.

Of the developer's shell a process gets the variables in FROM_SHELL only: others would be missing on Lambda too.
"""

import importlib.util
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions_harness import environment
from mcp_functions_harness.environment import Variables
from mcp_functions_harness.lambdas.modules import common
from mcp_functions_harness.lambdas.service import Watcher
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.runtime import author_process, fingerprints
from mcp_functions_harness.runtime.configuration import Configuration, Configurations
from mcp_functions_harness.runtime.process import Process
from mcp_functions_harness.runtime.sandbox import Sandbox
from mcp_functions_harness.runtime.watchdog import Watchdog

WORKER_SECONDS = 900  # the timeout of a worker; Lambda allows no longer one
FROM_SHELL = (  # for a process to find its libraries, its proxy and its certificates
    "AWS_CA_BUNDLE", "HTTPS_PROXY", "HTTP_PROXY", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "http_proxy", "https_proxy",
)  # fmt: skip


@dataclass(eq=False, kw_only=True)
class Launcher:
    """Makes the environments of the functions in a directory."""

    directory: Path
    settings: Variables  # what a deployment sets (MCP_…), for a function without a block
    endpoints: Variables  # the harness's credentials and endpoints
    on_log: Callable[[str, str], None]  # called with a folder and a line of its log, in any thread
    watcher: Watcher | None  # None: processes neither report progress nor log whole tracebacks
    watchdog: Watchdog  # kills the processes if the harness is killed
    _configurations: dict[str, Configuration] = field(default_factory=dict, init=False)  # by folder

    def __post_init__(self) -> None:
        """Check that the runtime client is installed; no process starts yet."""
        if importlib.util.find_spec("awslambdaric") is None:
            raise Problem("awslambdaric is not installed: pip install 'mcp-functions[runtime]'")
        self.directory = self.directory.resolve()

    def configure(self, folders: Collection[str], template: Configurations | None) -> None:
        """Read the configuration of these functions and their workers from the template, if there is one.

        Raises:
            Problem: only a deployment knows a value.
        """
        configurations: dict[str, Configuration] = {}
        for folder in folders:
            worker = f"{folder}{WORKER_SUFFIX}"
            of_function = of_worker = None
            if template:
                of_function = template.of(self.directory / folder)
                of_worker = template.of(self.directory / folder, worker)
                if of_function is None:
                    self.on_log(folder, "template.yaml has no block for it: it runs with the harness's own settings")
            configurations[folder] = of_function or Configuration(variables=self.settings)
            configurations[worker] = of_worker or replace(configurations[folder], timeout=WORKER_SECONDS)
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
            variables=_variables(name, code, configuration, self.endpoints),
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


def _variables(name: str, folder: Path, configuration: Configuration, endpoints: Variables) -> dict[str, str]:
    """Return the environment of one process, to which `Process` adds the address of its Runtime API."""
    shell = {variable: os.environ[variable] for variable in FROM_SHELL if variable in os.environ}
    python_path = [str(common(folder.parent)), *filter(None, [shell.get("PYTHONPATH")])]
    variables = {  # a later entry replaces an earlier one of the same name
        **shell,
        "PYTHONPATH": os.pathsep.join(python_path),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONDONTWRITEBYTECODE": "1",  # SAM would package bytecode in the folder
        **configuration.variables,
        **endpoints,
        **_set_by_lambda(name, configuration),
        "LAMBDA_TASK_ROOT": str(folder),
        "_HANDLER": configuration.handler,
    }
    return {variable: text for variable, text in variables.items() if text is not None}


def _set_by_lambda(name: str, configuration: Configuration) -> dict[str, str]:
    """Return Lambda's defined runtime variables (Lambda Developer Guide, "Environment variables")."""
    day = time.strftime("%Y/%m/%d", time.gmtime())
    variables = {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration.memory),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": configuration.log_format,
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{day}/[$LATEST]{uuid.uuid4().hex}",
    }
    if configuration.log_format == "JSON":
        variables["AWS_LAMBDA_LOG_LEVEL"] = configuration.log_level
    return variables
