"""The environment of every test: a deployment with its own KMS. Every response and every log line is checked."""

from __future__ import annotations

import base64
import json
import logging
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import settings

from mcp_functions.http.gateway import LambdaFunction
from mcp_functions_harness.recording import MOMENT
from mcp_functions_harness.testing import deployed
from tests.legacy import judging
from tests.support import planted, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from mcp_functions.http.events import LambdaContext
    from mcp_functions_harness.api_gateway.events import Moment

ROOT = Path(__file__).parent.parent

# No timed assertions: a slow machine is not a failing one.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start. A shell's job in the background (`make test &`) ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def moment() -> Callable[[], Moment]:
    return lambda: MOMENT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-events", action="store_true", help="write events/ from the conversations")


# One worker runs a whole file. The longest files begin first, so that the workers finish at about the same time.
LONGEST = (
    "soak/test_soak.py",
    "project/test_build.py",
    "conformance/test_conformance.py",
    "http/test_bodies.py",
    "attack/test_checks.py",
    "harness/test_sign_in.py",
    "harness/test_demo.py",
    "clients/test_earlier_clients.py",
    "docs/test_recipes.py",
    "harness/runtime/test_conversations.py",
    "clients/test_python_client.py",
    "harness/test_pause.py",
    "store/test_blobs.py",
    "end_to_end/test_fuzz.py",
    "clients/test_driving_the_loop.py",
    "clients/test_fresh_processes.py",
    "harness/test_single_use.py",
    "harness/test_serve_command.py",
    "harness/test_scaffold.py",
    "simulation/test_simulation.py",
    "harness/testing/test_conversation.py",
    "soak/tasks/test_tasks_soak.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes longest; `--no-loadscope-reorder` hands files out in this order."""
    places = {ROOT / "tests" / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def _deployed() -> Iterator[None]:
    with deployed():
        yield


@pytest.fixture(scope="session", autouse=True)
def _judged() -> Iterator[None]:
    """Judge every message that a function emits, in any test, by the official types."""
    answer = LambdaFunction.__call__

    def judged(self: LambdaFunction, event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
        response = answer(self, event, context)
        if not response:
            return response  # a task worker sends no response
        planted.search_response(response)
        if judging.is_earlier(event, response):
            judging.judge(event, response)
            return response
        for message in wire.messages(response) if response["body"] and not _is_document(event) else ():
            if "error" in message or not _in_a_dialect(event):
                wire.check(message, _method(event))
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LambdaFunction, "__call__", judged)
        yield


@pytest.fixture(scope="session", autouse=True)
def _searched() -> Iterator[None]:
    """Search every log record of every test for planted secrets."""
    with planted.search_logs():
        yield


@pytest.fixture(scope="session", autouse=True)
def _descriptions_of_aws() -> Iterator[None]:
    """Let botocore read each description of a service once, and not again for each session."""
    read = cache(JSONFileLoader().load_file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _self, path: read(path))
        yield


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """Restore the log levels after every test."""
    loggers = [logging.getLogger(name) for name in (None, "mcp_functions")]
    before = [log.level for log in loggers]
    yield
    for log, level in zip(loggers, before, strict=True):
        log.setLevel(level)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return planted.fail_leaking_test(report)


def _is_document(event: Mapping[str, Any]) -> bool:
    return str(event.get("rawPath") or event.get("path")).startswith("/.well-known/")  # no JSON-RPC there


def _in_a_dialect(event: Mapping[str, Any]) -> bool:
    """Return whether its client uses a dialect, which the official types do not know; tests/dialects judges those."""
    body = str(event.get("body"))
    return '"sep-' in body or '"method"' not in body


def _method(event: Mapping[str, Any]) -> str:
    try:
        body = base64.b64decode(event["body"]) if event.get("isBase64Encoded") else event["body"]
        return str(json.loads(body)["method"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return ""  # no method, so no result either
