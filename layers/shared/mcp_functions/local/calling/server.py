"""The server of a call: the functions of a folder, in this process, or a URL.

A URL is asked for its lists. For functions of a folder, the catalog is made here: it lists the tools, prompts and
resources with their folders, and each call goes to the function's own route.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypedDict

from mcp_functions.handlers import lookup
from mcp_functions.local import catalog, verification
from mcp_functions.local.calling.terminal import notification_text
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import stop
from mcp_functions.local.task_client import ENDED, TaskClient
from mcp_functions.local.terminal.log_lines import shown_text
from mcp_functions.local.verification import lists
from mcp_functions.local.verification.server import CAPABILITIES
from mcp_functions.protocol.constants import META_LOG_LEVEL
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_functions.attack.client import Response
    from mcp_functions.local.calling.terminal import Terminal


class Access(TypedDict):
    """What a URL may need: a token, or AWS credentials."""

    token: str | None
    region: str | None
    profile: str | None


class Server(TaskClient):
    """A server, as one client reaches it; the terminal shows its notifications and the states of a task."""

    def __init__(
        self, endpoint: verification.server.Server, known_catalog: Mapping[str, Any] | None, terminal: Terminal
    ) -> None:
        """Call an endpoint.

        Args:
            endpoint: sends requests.
            known_catalog: the catalog of the functions, whose own routes are called; None: the endpoint itself lists
                what it has, and is called.
            terminal: shows the user what happens.
        """
        super().__init__(endpoint.url, capabilities=CAPABILITIES, told=self._write_status)
        self._endpoint = endpoint
        self._catalog = known_catalog
        self._terminal = terminal
        self._last_status = ""  # the last line about a task

    def entries(self, list_name: str) -> Sequence[Mapping[str, Any]]:
        """List the tools or the prompts."""
        if self._catalog is not None:
            return list(self._catalog[list_name])
        return list(lists.read(self._endpoint, [list_name])[list_name])

    def _write_status(self, task: Mapping[str, Any]) -> None:
        """Write a line about a task that goes on, if it differs from the last one."""
        line = f"  task {task['taskId']}  {task['status']}"
        if task.get("statusMessage"):
            line += f"  {task['statusMessage']}"
        if line != self._last_status and task["status"] not in ENDED:
            self._terminal.write(line, dim=True)
            self._last_status = line

    def _send(self, message: dict[str, Any], header_parameters: Sequence[tuple[str, str]]) -> Response:
        params = message["params"]
        params["_meta"] |= {"progressToken": message["id"], META_LOG_LEVEL: "info"}
        folder = self._folder(message["method"], params)
        response = self._endpoint.send_message(message, folder, header_parameters)
        for notification in response.messages:
            line = notification_text(notification)
            if line:
                self._terminal.write(line, dim=True)
        return response

    def _folder(self, method: str, params: Mapping[str, Any]) -> str:
        """Return the folder of the function that answers; "" for the endpoint."""
        if self._catalog is None:
            return ""
        if "taskId" in params:
            return lookup.task_function(self._catalog, method, params)
        try:
            return lookup.find(self._catalog, method, params).function
        except McpError as error:
            stop(f"{error.message}: {params.get('uri') or params.get('name')}", after=error)


@contextlib.contextmanager
def of_folder(functions: Path, terminal: Terminal, *, runtime: bool) -> Iterator[Server]:
    """Run the functions of a folder; nothing of the call is kept, and what they print goes to stderr.

    Raises:
        Problem: moto is not installed, or a function does not load.
    """
    if find_spec("moto") is None:
        stop("moto is not installed, which the functions here need: pip install 'mcp-functions[local]', or --url")
    logger = logging.getLogger("mcp_functions")
    level_before = logger.level
    logger.setLevel(logging.ERROR)  # a call that succeeds needs no line beside its result
    try:
        with (
            contextlib.redirect_stdout(sys.stderr),
            TemporaryDirectory() as state_dir,
            Harness(functions, state_dir=Path(state_dir), runtime=runtime, on_log=_write_log) as harness,
        ):
            own_catalog = catalog.describe(harness.functions.values())
            yield Server(verification.server.Server(harness.url), own_catalog, terminal)
    finally:
        logger.setLevel(level_before)


def _write_log(folder: str, line: str) -> None:
    text = shown_text(line)
    if text is not None:
        sys.stderr.write(f"{folder}  {text}\n")


def of_url(url: str, access: Access, terminal: Terminal) -> Server:
    """Reach a server at a URL, with the credentials that it asks for.

    Raises:
        Problem: it is no MCP server of 2026-07-28, or the credentials are missing.
    """
    session = verification.server.session(access["region"], access["profile"])
    endpoint, _mode = verification.server.connect(url.rstrip("/"), access["token"], session)
    return Server(endpoint, None, terminal)
