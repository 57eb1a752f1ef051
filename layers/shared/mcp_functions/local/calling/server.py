"""The server of a call: the functions of a folder, in this process, or a URL."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO, TypedDict, TypeVar

import boto3
from botocore.exceptions import BotoCoreError

from mcp_functions.attack import messages
from mcp_functions.handlers import lookup
from mcp_functions.local import catalog
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import Problem, first_line
from mcp_functions.local.verification import lists, report, server
from mcp_functions.protocol.constants import META_LOG_LEVEL
from mcp_functions.protocol.errors import McpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mcp_functions.attack.client import Response

    Notice = Callable[[Mapping[str, Any]], None]

Result = TypeVar("Result")


class Access(TypedDict):
    """What a URL may need: a token, or AWS credentials."""

    token: str | None
    region: str | None
    profile: str | None


class Server:
    """A server, as one client reaches it."""

    def __init__(self, asked: server.Server, listed: Mapping[str, Any] | None, noticed: Notice) -> None:
        """Take a verified endpoint.

        Args:
            asked: sends requests.
            listed: the catalog of the functions, whose own routes are called; None: it is asked for its lists.
            noticed: called with each notification.

        """
        self._asked, self._listed, self._noticed, self._ids = asked, listed, noticed, count(1)

    def entries(self, list_name: str) -> Sequence[Mapping[str, Any]]:
        """List the tools or the prompts."""
        if self._listed is not None:
            return list(self._listed[list_name])
        return list(_failing(lambda: lists.read(self._asked, [list_name]))[list_name])

    def ask(self, method: str, params: Mapping[str, Any], repeated: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """Send a request, and return its result.

        Args:
            method: of the protocol.
            params: without `_meta`.
            repeated: arguments that headers repeat: property and `x-mcp-header`.

        Raises:
            Problem: the server answered with an error, or not at all.

        """
        number = next(self._ids)
        message = messages.message(method, params, number, server.CAPABILITIES)
        message["params"]["_meta"] |= {"progressToken": number, META_LOG_LEVEL: "info"}
        request = messages.write(message, repeated)
        if "taskId" in params:
            request = messages.with_header(request, "Mcp-Name", params["taskId"])
        url = self._asked.at(self._folder(method, params))
        response = self._asked.send(url, _failing(lambda: self._asked.authorize(url, request)))
        for notice in _notices(response):
            self._noticed(notice)
        if response.result is None:
            raise Problem(_refusal(response))
        return response.result

    def _folder(self, method: str, params: Mapping[str, Any]) -> str:
        """Return the folder of the function that answers; empty for the endpoint."""
        if self._listed is None:
            return ""
        if "taskId" in params:
            return lookup.task_function(self._listed, method, params)
        try:
            return lookup.find(self._listed, method, params).function
        except McpError as error:
            unknown = f"{error.message}: {params.get('uri') or params.get('name')}"
            raise Problem(unknown) from error


@contextlib.contextmanager
def of_folder(functions: Path, noticed: Notice, *, runtime: bool) -> Iterator[Server]:
    """Run the functions of a folder; nothing of the call is kept, and what they print goes to stderr."""
    aside = _Aside(sys.stderr)
    with (
        contextlib.redirect_stdout(aside),
        TemporaryDirectory() as state_dir,
        Harness(functions, state_dir=Path(state_dir), runtime=runtime, on_log=aside.log) as harness,
    ):
        listed = catalog.describe(harness.functions.values())
        yield Server(server.Server(harness.url, lambda _url, request: request), listed, noticed)


class _Aside(io.TextIOBase):
    """Where functions print, without the lines of the toolkit about requests that went well."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        if not _is_toolkits(text):
            self._out.write(text)
        return len(text)

    def flush(self) -> None:
        self._out.flush()

    def log(self, folder: str, line: str) -> None:
        """Write a line of the log of a function's process."""
        if not _is_toolkits(line):
            self._out.write(f"{folder}  {line}\n")


def _is_toolkits(line: str) -> bool:
    try:
        record = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and record.get("logger") == "mcp_functions" and record.get("level") == "INFO"


def of_url(url: str, access: Access, noticed: Notice) -> Server:
    """Reach a server at a URL, with the credentials that it asks for.

    Raises:
        Problem: it is no MCP server of 2026-07-28, or the credentials are missing.

    """
    asked = server.Server(url.rstrip("/"), lambda _url, request: request)
    mode = _failing(lambda: server.find_mode(asked))
    try:
        session = boto3.Session(profile_name=access["profile"], region_name=access["region"])
    except BotoCoreError as error:
        raise Problem(first_line(error)) from error
    asked.authorize = server.authorization(mode, asked.url, access["token"], session)
    return Server(asked, None, noticed)


def _failing(act: Callable[[], Result]) -> Result:
    try:
        return act()
    except (report.Failed, report.Skipped) as error:
        raise Problem(str(error)) from error


def _refusal(response: Response) -> str:
    if response.error is None:
        return str(response)
    return f"the server refuses: {response.error.get('message')} ({response.code})"


def _notices(response: Response) -> Iterator[dict[str, Any]]:
    """Yield the notifications before the result."""
    for line in response.body.decode(errors="replace").splitlines():
        if line.startswith("data:"):
            message = json.loads(line[5:])
            if isinstance(message, dict) and "method" in message:
                yield message
