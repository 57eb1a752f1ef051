"""The process under test: the shipped harness in `--runtime` mode, with a KMS that fails at random.

It prints its address in one line of JSON, and stops on an interrupt, as `serve --runtime` does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions_harness import Harness, catalog
from mcp_functions_harness.doubles.kms import MAX_REQUEST
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, Loopback
from tests.soak import plan
from tests.soak.placing import append

if TYPE_CHECKING:
    from mcp_functions_harness.lambdas.service import Invocation

PROJECT = Path(__file__).parent / "project"
TOKEN_SECONDS = 24 * 3600
LOOK_SECONDS = 0.05  # between two looks whether it should stop
SLOW_SECONDS, HANGING_SECONDS = 0.4, 1.5  # of a KMS call; the toolkit's client waits for one second


class Weather:
    """A KMS that throttles, fails, is slow and hangs, as planned; otherwise the harness's own."""

    def __init__(self, url: str, seed: int, journal: Path) -> None:
        """Prepare faults for the KMS at `url`."""
        self._place, self._seed, self._journal = urlsplit(url).netloc, seed, journal
        self._lock, self._calls = threading.Lock(), 0

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer one KMS request."""
        with self._lock:
            call, self._calls = self._calls, self._calls + 1
        weather = plan.weather(self._seed, call)
        append(self._journal, t=time.time(), kind="kms", weather=weather)
        match weather:
            case "throttled":
                return _refused(400, "ThrottlingException")
            case "failing":
                return _refused(500, "KMSInternalException")
            case "slow":
                time.sleep(SLOW_SECONDS)
            case "hanging":
                time.sleep(HANGING_SECONDS)
        return ask(self._place, request.body or b"", request.headers)


def ask(place: str, body: bytes, headers: tuple[tuple[str, str], ...]) -> HttpResponse:
    """Ask the harness's KMS."""
    connection = HTTPConnection(place, timeout=10)
    try:
        kept = {name: value for name, value in headers if name.lower() not in {"host", "connection", "content-length"}}
        connection.request("POST", "/", body, kept)
        answer = connection.getresponse()
        return HttpResponse(answer.status, (("content-type", "application/x-amz-json-1.1"),), answer.read())
    finally:
        connection.close()


def _refused(status: int, kind: str) -> HttpResponse:
    body = json.dumps({"__type": kind, "message": "as planned"}).encode()
    return HttpResponse(status, (("content-type", "application/x-amz-json-1.1"),), body)


def _second_key(url: str) -> str:
    headers = (("authorization", "AWS4-HMAC-SHA256 local"), ("x-amz-target", "TrentService.CreateKey"))
    return str(json.loads(ask(urlsplit(url).netloc, b"{}", headers).body)["KeyMetadata"]["Arn"])


def main(run: Path, seed: int) -> int:
    """Serve until SIGINT or SIGTERM.

    Args:
        run: an empty directory for this run.
        seed: of the plan.

    """
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: stopped.append(number))
    shutil.copytree(PROJECT, run / "project", ignore=shutil.ignore_patterns("__pycache__"))
    functions, journal = run / "project" / "functions", run / "journal"
    catalog.write(functions, catalog.generate(functions))
    os.environ["SOAK_RUN"] = str(run)  # template.yaml names it, so its value is the shell's

    def ended(invocation: Invocation) -> None:
        error, folder = invocation.error, invocation.folder
        append(journal, t=time.time(), kind="ended", folder=folder, pid=invocation.pid, error=error)

    def said(folder: str, line: str) -> None:
        append(run / "log", folder=folder, line=line)

    harness = Harness(functions, state_dir=run / "state", on_invocation=ended, runtime=True, on_log=said, auth="jwt")
    with harness, Loopback(max_body=MAX_REQUEST) as door:
        kms = os.environ["AWS_ENDPOINT_URL_KMS"]
        door.start(Weather(kms, seed, journal).answer)
        world = {"seed": seed, "kms": door.url, "keys": [os.environ["MCP_KMS_KEYS"], _second_key(kms)]}
        (run / "world").write_text(json.dumps(world), encoding="utf-8")
        told: dict[str, Any] = {"url": harness.url, "tokens": {name: _token(harness, name) for name in plan.PEOPLE}}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        while not stopped:
            time.sleep(LOOK_SECONDS)
    return 0


def _token(harness: Harness, subject: str) -> str:
    assert harness.issuer
    return harness.issuer.token(subject=subject, exp=int(time.time()) + TOKEN_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
