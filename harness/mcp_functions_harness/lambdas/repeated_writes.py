"""Says when a round repeats a write that an earlier round of its call has made, outside of a step.

    1. a function charges a card and asks its user        round 1: POST https://pay.example/charges
    2. the user answers, and the function runs again      round 2: POST https://pay.example/charges, a second charge

A write is an HTTP request with another method than GET, a writing operation of boto3, or a file opened for writing. Its
line is the last one of the author's own code. Python tells an audit hook of `open` and `http.client`; httpx and aiohttp
have no audit events, so their methods that send are wrapped.
"""

import functools
import os
import re
import sys
import sysconfig
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from mcp_functions import observability
from mcp_functions.observability import PACKAGE
from mcp_functions.rounds.round import step_of_context
from mcp_functions_harness.lambdas.own_variables import running_function

MAX_CALLS = 500  # how many calls are remembered
READING_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
READING_OPERATIONS = re.compile(  # how AWS's operations begin that change nothing
    "Get|List|Describe|Head|Query|Scan|BatchGet|TransactGet|Select|Search|Lookup|Check|Estimate|Validate|Verify|Preview"
    "|Decrypt|Encrypt|Sign|GenerateDataKey|GenerateMac|GenerateRandom|Assume|Converse|Retrieve|Detect|Translate"
)
LIBRARIES = tuple(
    os.path.realpath(path) + os.sep for path in {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
)
HARNESS = str(Path(__file__).resolve().parents[1]) + os.sep
HTTPX = ("httpx", "httpx2")  # its successor has the same classes
WRITING_FLAGS = os.O_WRONLY | os.O_RDWR
REMEDY = 'if it must not happen twice, write step("key", function, …)'


class RepeatedWrites:
    """The writes of the calls in this process."""

    def __init__(self) -> None:
        """Remember no call yet."""
        # Flow -> write -> its first round.
        self._calls: OrderedDict[str, dict[tuple[str, str], int]] = OrderedDict()
        self._told: set[tuple[str, str]] = set()
        self._lock = Lock()

    def note(self, what: str) -> None:
        """Note a write, "POST https://pay.example/charges", and say so if an earlier round of the call has made it."""
        notes = observability.current()
        step = step_of_context.get()
        if not running_function.get() or notes.flow is None or notes.round is None or step is not None:
            return
        place = _authors_line()
        if not place:
            return
        write = (place, what)
        with self._lock:
            writes = self._calls.setdefault(notes.flow, {})
            self._calls.move_to_end(notes.flow)
            if len(self._calls) > MAX_CALLS:
                self._calls.popitem(last=False)
            first = writes.setdefault(write, notes.round)
            is_new = first < notes.round and write not in self._told
            if is_new:
                self._told.add(write)
        if is_new:
            short = "/".join(Path(place).parts[-3:])
            sys.stderr.write(f"{short}: round {notes.round} repeats what round {first} did: {what}; {REMEDY}\n")

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take an event of Python's audit hooks (`sys.addaudithook`)."""
        if event == "open" and running_function.get():
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & WRITING_FLAGS)
            if writes and isinstance(path, str | os.PathLike) and os.fspath(path) != os.devnull:
                self._note_file(os.fspath(path))
        elif event == "http.client.send" and running_function.get():
            connection, data = arguments
            sent = bytes(data[:2000]) if isinstance(data, bytes | bytearray) else b""
            request = re.match(rb"([A-Z]+) (\S+) HTTP/1", sent)
            if request:
                self._note_request(request[1].decode(), f"{connection.host}{urlsplit(request[2].decode()).path}")

    def _note_file(self, path: str | bytes) -> None:
        for frame in _frames():
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib") or not _is_library(file):
                if _is_authors(file):
                    self.note(f"a file is opened for writing, {Path(os.fsdecode(path)).name}")
                return
            if file.startswith(LIBRARIES) and "site-packages" in file:  # a cache of a library
                return

    def _note_request(self, method: str, target: str) -> None:
        operation = _operation_of_boto()
        if operation:
            if not READING_OPERATIONS.match(operation):
                self.note(f"the AWS call {operation}")
        elif method not in READING_METHODS:
            self.note(f"{method} {target}")

    def wrap_clients(self) -> None:
        """Hear the requests of httpx and aiohttp, if a function has imported them."""
        owners = [
            getattr(sys.modules.get(module), name, None) for module in HTTPX for name in ("Client", "AsyncClient")
        ]
        for owner in owners:
            if owner is not None and not hasattr(owner.send, "hears_writes"):
                owner.send = self._heard(owner.send, lambda request: (request.method, request.url))
        session = getattr(sys.modules.get("aiohttp"), "ClientSession", None)
        # Every method calls it.
        if session is not None and not hasattr(session._request, "hears_writes"):  # noqa: SLF001
            session._request = self._heard(session._request, lambda method, url: (method, url))  # noqa: SLF001

    def _heard(self, send: Any, read: Any) -> Any:  # noqa: ANN401 - methods of two libraries
        """Wrap a method that sends a request; `read` returns the method and the URL from its arguments."""

        @functools.wraps(send)
        def heard(client: object, *arguments: object, **options: object) -> Any:  # noqa: ANN401
            method, url = read(*arguments[: read.__code__.co_argcount])
            if str(method).upper() not in READING_METHODS:
                parts = urlsplit(str(url))
                self.note(f"{str(method).upper()} {parts.hostname}{parts.path}")
            return send(client, *arguments, **options)

        vars(heard)["hears_writes"] = True
        return heard


@functools.cache
def heard() -> RepeatedWrites:
    """Return the writes of this process, and begin to hear them: a hook cannot be taken away."""
    writes = RepeatedWrites()
    sys.addaudithook(writes.hear)
    return writes


def _frames() -> Iterator[FrameType]:
    """Yield the frames from the caller outwards, without those of this module."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - `inspect.stack` reads every file
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def _authors_line() -> str:
    """Return the innermost line of the author's code that the toolkit has called, "/…/pay/app.py:12"; or ""."""
    for frame in _frames():
        file = frame.f_code.co_filename
        if file.startswith((PACKAGE, HARNESS)):
            return ""
        if _is_authors(file):
            return f"{file}:{frame.f_lineno}"
    return ""


def _operation_of_boto() -> str:
    """Return the operation of boto3 that runs, "PutItem"; "" if none does."""
    for frame in _frames():
        if frame.f_code.co_name == "_make_api_call" and "botocore" in frame.f_code.co_filename:
            return str(frame.f_locals.get("operation_name", ""))
    return ""


def _is_library(file: str) -> bool:
    return file.startswith((*LIBRARIES, PACKAGE, HARNESS, "<"))


def _is_authors(file: str) -> bool:
    """Whether a file is in the folder of the running function, or in the shared code of the project."""
    parts = Path(file).parts
    name = running_function.get()
    in_function = ("functions", name) in (parts[index : index + 2] for index in range(len(parts) - 1))
    return not _is_library(file) and (in_function or f"layers{os.sep}common{os.sep}" in file)
