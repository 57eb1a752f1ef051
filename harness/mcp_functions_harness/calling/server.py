"""The server that the command `call` calls: a URL, or the functions of a folder.

of a URL       the server lists its tools and prompts, and gets every call
of a folder    this module starts the functions and makes their catalog, which lists the tools and prompts with
               their functions; each call goes to the function's own route
"""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from mcp_functions.handlers import lookup
from mcp_functions.protocol.catalog_types import Catalog, ListName
from mcp_functions.protocol.constants import META_LOG_LEVEL
from mcp_functions.protocol.errors import McpError
from mcp_functions.protocol.wire_types import JSONRPCMessage, ListEntry, Params, ResultObject
from mcp_functions.tasks import task_requests
from mcp_functions_harness import catalog
from mcp_functions_harness.calling.terminal import Terminal, notification_text
from mcp_functions_harness.client.http import Response
from mcp_functions_harness.client.tasks import ENDED
from mcp_functions_harness.harness import TEMPLATE_LINES, Harness
from mcp_functions_harness.lambdas.service import Invocation
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.terminal import long_rounds
from mcp_functions_harness.terminal.function_output import redirected_to
from mcp_functions_harness.terminal.log_lines import shown_text
from mcp_functions_harness.terminal.safe_text import safe_line
from mcp_functions_harness.verification import lists
from mcp_functions_harness.verification.options import Access
from mcp_functions_harness.verification.server import Server, make_session


@dataclass(eq=False)
class CalledServer(Server):
    """A client of the called server. The user's terminal shows notifications, and how a task goes on."""

    terminal: Terminal = field(kw_only=True)
    catalog: Catalog | None = field(default=None, kw_only=True)  # of a folder; None for a URL
    _last_line: str = field(default="", init=False)  # the last line about a task

    def __post_init__(self) -> None:
        """Show the task after every poll."""
        self.told = self._write_status

    def entries(self, list_name: ListName) -> Sequence[ListEntry]:
        """Return the entries of a list."""
        project = lists.read(self, [list_name]) if self.catalog is None else self.catalog
        return list(project[list_name])

    def _write_status(self, task: ResultObject) -> None:
        """Write the status of a task that has not ended, if it has changed since the last poll."""
        if task["status"] in ENDED:
            return
        line = f"  task {task['taskId']}  {task['status']}"
        if task.get("statusMessage"):
            line += f"  {task['statusMessage']}"
        if line != self._last_line:
            self.terminal.write(safe_line(line), dim=True)
            self._last_line = line

    def _send(self, message: JSONRPCMessage, header_parameters: Sequence[tuple[str, str]]) -> Response:
        """Send a request that asks for notifications of progress and log messages, and show them."""
        params = message["params"]
        params["_meta"]["progressToken"] = message["id"]
        params["_meta"][META_LOG_LEVEL] = "info"
        folder = self._folder(message["method"], params)
        response = self._send_to(folder, message, header_parameters)
        for notification in response.messages:
            line = notification_text(notification)
            if line:
                self.terminal.write(safe_line(line), dim=True)
        return response

    def _folder(self, method: str, params: Params) -> str:
        """Return the folder of the function whose route gets a request; "" for a URL, which gets all of them."""
        if self.catalog is None:
            return ""
        if "taskId" in params:
            return task_requests.function_of(self.catalog, params["taskId"])
        try:
            if method == "completion/complete":
                return lookup.find_reference(self.catalog, params).folder
            return lookup.find(self.catalog, method, params).folder
        except McpError as error:
            named: Mapping[str, object] = params.get("ref", params)
            raise Problem(f"{error.message}: {named.get('uri') or named.get('name')}") from error


@contextlib.contextmanager
def of_folder(functions: Path, terminal: Terminal, *, runtime: bool) -> Iterator[CalledServer]:
    """Run the functions of a folder until the end of the block. What they print goes to stderr.

    Raises:
        Problem: moto is not installed, or a function does not load.
    """
    if find_spec("moto") is None:
        remedy = "pip install 'mcp-functions[local]', or --url"
        raise Problem(f"moto is not installed, which the functions here need: {remedy}")
    write_log = partial(_write_log, sys.stderr)
    logger = logging.getLogger("mcp_functions")
    level_before = logger.level
    logger.setLevel(logging.ERROR)  # the user sees the result, and needs no line of each request
    try:
        with (
            redirected_to(write_log, sys.stderr),
            TemporaryDirectory() as state_dir,  # no key or table of this call is kept
            Harness(
                functions,
                state_dir=Path(state_dir),
                runtime=runtime,
                on_log=write_log,
                on_invocation=partial(_warn, write_log),
            ) as harness,
        ):
            function_catalog: Any = catalog.describe(harness.functions.values(), harness.directory)
            yield CalledServer(harness.url, catalog=function_catalog, terminal=terminal)
    finally:
        logger.setLevel(level_before)


def _warn(write_log: Callable[[str, str], None], invocation: Invocation) -> None:
    """Say that a round took longer than Lambda allows."""
    warning = long_rounds.warning(invocation.folder, invocation)
    if warning:
        write_log(invocation.folder, warning)


def _write_log(out: TextIO, folder: str, line: str, _style: str = "") -> None:
    """Write what a function prints or logs, as a person reads it.

    The harness's lines about the template are left out: they name variables of all functions, and a call of one that
    misses its own fails with a remedy.
    """
    text = shown_text(line)
    if text is not None and folder != TEMPLATE_LINES:
        out.write(f"{text}\n")


def of_url(url: str, access: Access, terminal: Terminal) -> CalledServer:
    """Connect to a server at a URL, with the credentials that it asks for.

    Raises:
        Problem: it is no MCP server of 2026-07-28, or the credentials are missing.
    """
    server = CalledServer(url.rstrip("/"), token=access["token"], session=make_session(access), terminal=terminal)
    server.find_mode()
    return server
