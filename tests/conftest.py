"""The environment of every test: a deployment with its own KMS. Every response and every log line is checked."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import signal
import time
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.seal import kms
from mcp_functions.store import blobs, dynamodb
from mcp_functions.tasks import task_store
from mcp_functions_harness.recording import MOMENT
from mcp_functions_harness.testing import deployed
from tests.legacy import judging
from tests.support import planted, wire

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from mcp_functions.protocol.event_types import LambdaContext
    from mcp_functions_harness.api_gateway.events import Moment

ROOT = Path(__file__).parent.parent

# The same examples in every run of `make test`, and no timed assertion: a slow machine is not a failing one.
settings.register_profile(
    "project",
    settings.get_profile("default"),  # with CI=true, Hypothesis itself starts from another
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make fuzz` chooses this one. A check of a strategy's health may fail at random, so here none is made.
settings.register_profile("fuzz", settings.get_profile("project"), derandomize=False, suppress_health_check=HealthCheck)
settings.load_profile("project")

# Hypothesis tries the constants of the modules that are loaded, which depend on the tests that ran before.
providers._get_local_constants = Constants  # noqa: SLF001 - no setting turns this off


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start. A shell's job in the background (`make test &`) ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def moment() -> Callable[[], Moment]:
    return lambda: MOMENT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-events", action="store_true", help="write events/ from the conversations")
    parser.addoption("--shuffle", metavar="SEED", help="run the files, and the tests of each file, in a random order")


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put first what takes longest, or shuffle; `--no-loadscope-reorder` hands files out in this order."""
    if (seed := config.getoption("--shuffle")) is not None:
        draw = Random(seed)  # noqa: S311 - an order, not a secret
        files = [list(tests) for _path, tests in groupby(items, lambda item: item.path)]
        draw.shuffle(files)
        for tests in files:
            draw.shuffle(tests)
        items[:] = chain.from_iterable(files)
        return
    places = {ROOT / "tests" / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


# What tests have of the developer's shell: any other variable may change what the package, a library or a program does.
FROM_SHELL = re.compile(
    "PATH|HOME|USER|TMPDIR|(LD|DYLD|NIX)_.*"  # to start programs
    "|CI|CLIENTS|CONFORMANCE|BENCH_PYTHON|MCP_AWS_CLIENT|PYTEST_.*|PYTHON(DONTWRITEBYTECODE|HASHSEED)"  # how they run
    # what the suites of `make test-all` need to download packages, and to start containers
    "|(?i:https_proxy|no_proxy)|SSL_CERT_.*|[A-Z_]+_CA_(BUNDLE|CERTS)|(PIP|(?i:npm)|DOCKER|XDG)_.*"
)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart() -> None:
    """Give every test, and every process of pytest-xdist, the same environment, whatever the shell says."""
    for name in set(os.environ):
        if not FROM_SHELL.fullmatch(name):
            del os.environ[name]
    os.environ |= {"LANG": "C.UTF-8", "TZ": "UTC"}
    time.tzset()
    os.umask(0o022)


LIMITS_ON_AWS = {module: module.LIMITS for module in (kms, dynamodb, blobs, task_store)}


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Iterator[None]:
    """Wait longer than on AWS for the KMS and the table of this process, which on a busy machine may take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for module, limits in LIMITS_ON_AWS.items():
            patch.setattr(module, "LIMITS", limits._replace(connect_seconds=5, read_seconds=20))
        yield


@pytest.fixture
def limits_on_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for KMS and the table as on AWS."""
    for module, limits in LIMITS_ON_AWS.items():
        monkeypatch.setattr(module, "LIMITS", limits)


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
