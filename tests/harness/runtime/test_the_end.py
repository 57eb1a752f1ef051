"""All processes of the harness, and their child processes, end with the harness."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.runtime.process import Process
from mcp_functions_harness.runtime.watchdog import Watchdog

from .conftest import PID, process_exists, wait_until, write_project

if TYPE_CHECKING:
    from collections.abc import Iterable

# Starts a child that keeps running and reports both process ids. Keeps running itself on request.
STARTS = """
import json, os, pathlib, subprocess, sys, time
def handler(event, context):
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
    told = json.loads(event["body"])
    written = pathlib.Path(told["where"]) / "written"
    written.write_text(json.dumps([os.getpid(), child.pid]))
    written.rename(written.with_name("pids"))
    if told["stay"]:
        time.sleep(600)
"""
BOTH = pytest.mark.parametrize("stay", [False, True], ids=["idle", "at work"])
SERVE = [sys.executable, "-W", "error", "-m", "mcp_functions_harness", "serve", "--runtime", "--port", "0"]


class RequestRecord:
    """A request that is under way, and the processes that it started."""

    def __init__(self, url: str, where: Path, *, stay: bool) -> None:
        self._url, self._message = url, json.dumps({"where": str(where), "stay": stay})
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        wait_until((where / "pids").exists)
        self.pids: list[int] = json.loads((where / "pids").read_text(encoding="utf-8"))
        if not stay:
            self._thread.join()

    def _ask(self) -> None:
        connection = HTTPConnection(urlsplit(self._url).netloc, timeout=60)
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, HTTPException),
        ):  # the process that answers is killed
            connection.request("POST", "/mcp/starts", self._message, {"content-type": "application/json"})
            connection.getresponse().read()

    def is_over(self) -> None:
        self._thread.join()
        assert_processes_ended(self.pids)


def assert_processes_ended(pids: Iterable[int]) -> None:
    for pid in pids:
        wait_until(lambda pid=pid: _has_ended(pid))  # type: ignore[misc]


def _has_ended(pid: int) -> bool:
    """Return whether a process is gone, or is only a zombie that its new parent has not reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return not process_exists(pid)


@BOTH
def test_no_process_remains_after_the_harness_ended(tmp_path: Path, *, stay: bool) -> None:
    before = set(threading.enumerate())
    directory = write_project(tmp_path, {"starts": STARTS}, {"starts": "{Timeout: 60}"})
    with Harness(directory, state_dir=tmp_path / "s", runtime=True) as running:
        asked = RequestRecord(running.url, tmp_path, stay=stay)
    asked.is_over()
    assert set(threading.enumerate()) <= before


@BOTH
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_remains_when_serve_is_stopped_or_killed(tmp_path: Path, how: signal.Signals, *, stay: bool) -> None:
    write_project(tmp_path, {"starts": STARTS}, {"starts": "{Timeout: 60}"})
    with subprocess.Popen(SERVE, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as serving:  # noqa: S603
        assert serving.stdout
        asked = RequestRecord(serving.stdout.readline().split()[-1], tmp_path, stay=stay)
        children = _children(serving.pid)
        serving.send_signal(how)
        _, said = serving.communicate(timeout=60)
    asked.is_over()
    assert_processes_ended(children)
    assert asked.pids[0] in children
    if how != signal.SIGKILL:
        assert (serving.returncode, said) == (0, "")


def _children(pid: int) -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _parent(entry) == pid]


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return None  # it ended meanwhile


def test_a_child_process_of_a_function_ends_with_it(tmp_path: Path) -> None:
    directory = write_project(tmp_path, {"starts": STARTS}, {"starts": "{Timeout: 60}"})
    with Harness(directory, state_dir=tmp_path / "s", runtime=True) as running:
        asked = RequestRecord(running.url, tmp_path, stay=True)
        os.kill(asked.pids[0], signal.SIGKILL)
        asked.is_over()


def test_a_watchdog_kills_remaining_processes_after_its_harness_died() -> None:
    stays = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    left, released = (subprocess.Popen(stays, start_new_session=True) for _ in range(2))  # noqa: S603
    watchdog = Watchdog()
    watchdog.watch(left.pid)
    watchdog.watch(released.pid)
    watchdog.release(released.pid)
    watchdog.close()
    assert left.wait() == -signal.SIGKILL
    assert released.poll() is None
    released.kill()
    released.wait()


def test_the_harness_ends_its_processes_although_its_watchdog_was_killed(tmp_path: Path) -> None:
    directory = write_project(tmp_path, {"tells": PID})
    before = set(_children(os.getpid()))
    with Harness(directory, state_dir=tmp_path / "s", runtime=True) as running:
        (watchdog,) = set(_children(os.getpid())) - before
        os.kill(watchdog, signal.SIGKILL)
        wait_until(lambda: _has_ended(watchdog))
        connection = HTTPConnection(urlsplit(running.url).netloc, timeout=60)
        connection.request("POST", "/mcp/tells")
        pid = int(connection.getresponse().read())
        connection.close()
    assert_processes_ended([pid])


def test_a_process_that_cannot_start_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    descriptors = set(Path("/proc/self/fd").iterdir())
    with contextlib.closing(Watchdog()) as watchdog, pytest.raises(FileNotFoundError):
        Process(
            [sys.executable],
            folder=tmp_path / "missing",
            variables={},
            watchdog=watchdog,
            on_line=lambda _line: None,
        )
    assert set(threading.enumerate()) <= threads
    assert set(Path("/proc/self/fd").iterdir()) <= descriptors
