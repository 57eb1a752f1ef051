"""Many conversations at once, in the local runtime: every function a process, one environment for each request.

Measures conversations per second and the duration of a round for 1, 4 and 16 clients. They share the machine with the
functions' processes, so the figures show the parts under load, and not Lambda. With more than 16 clients, two cores
cannot start the processes within an API's 30 seconds.
"""

from __future__ import annotations

import http.client
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp_functions_harness import Harness
from tests.benchmarks import dialects
from tests.benchmarks.figures import decile

FUNCTIONS = Path(__file__).parents[2] / "functions"
PEOPLE = (1, 4, 16)
SECONDS = 10.0
APART = 0.5  # seconds between two people's first words: processes start one after the other
SETTLE = (
    1.0  # seconds for each client, in which processes start; a client without a process in time repeats its request
)
PATIENCE = 120.0  # seconds in which everybody must have had a first conversation
PARAMS = {"name": "get_weather", "arguments": {"location": "Lisbon"}}
ANSWER = {"action": "accept", "content": {"name": "octocat"}}


def measure(people: int, seconds: float = SECONDS) -> dict[str, float]:
    """Let so many people hold conversations of two rounds, one after the other.

    Args:
        people: at once.
        seconds: that are counted, from when everybody's processes run.

    Returns:
        People, conversations a second, and milliseconds of a round: half of them take less, nine in ten take less.

    """
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(FUNCTIONS, state_dir=Path(folder), runtime=True, on_log=lambda _folder, _line: None)
        with harness as running:
            return _crowd(running.url, people, seconds)


def _crowd(url: str, number: int, seconds: float) -> dict[str, float]:
    everybody = threading.Barrier(number)
    took: list[tuple[float, float]] = []
    wrong: list[Exception] = []

    def person() -> None:
        try:
            _first(url)
            everybody.wait(PATIENCE)
            counts_from = time.monotonic() + SETTLE * number
            while (began := time.monotonic()) < counts_from + seconds and not wrong:
                if began < counts_from:
                    _first(url)
                else:
                    took.append(_conversation(url))
        except Exception as error:  # noqa: BLE001 - raised again, where somebody waits
            wrong.append(error)

    threads = [threading.Thread(target=person) for _ in range(number)]
    for thread in threads:
        thread.start()
        time.sleep(APART)
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    rounds = [one * 1000 for both in took for one in both]
    half, most = (round(decile(rounds, tenth), 1) for tenth in (5, 9))
    return {"people": number, "conversations": round(len(took) / seconds, 2), "p50": half, "p90": most}


def _first(url: str) -> None:
    """Hold a conversation that does not count, and repeat it if no process answered in time.

    Raises:
        WrongAnswer: no correct response came in time.

    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            _conversation(url)
        except dialects.WrongAnswer:
            if time.monotonic() > until:
                raise
        else:
            return


def _conversation(url: str) -> tuple[float, float]:
    """Hold a conversation, check its result, and return the seconds of each round."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        began = time.monotonic()
        asked = _round(connection, place.path, PARAMS)
        middle = time.monotonic()
        responses = dict.fromkeys(asked["inputRequests"], ANSWER)
        again = {**PARAMS, "inputResponses": responses, "requestState": asked["requestState"]}
        told = _round(connection, place.path, again)
        ended = time.monotonic()
    finally:
        connection.close()
    if not dialects.text_of(told).startswith("Current weather in Lisbon"):
        raise dialects.WrongAnswer(str(told)[:300])
    return middle - began, ended - middle


def _round(connection: http.client.HTTPConnection, path: str, params: dict[str, Any]) -> dict[str, Any]:
    event = dialects.request(dialects.MODERN, "tools/call", params)
    kept = ("accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name")
    connection.request("POST", path, event["body"], {name: event["headers"][name] for name in kept})
    response = connection.getresponse()
    return dialects.result({"statusCode": response.status, "body": response.read().decode()})
