"""The pytest plugin, loaded by its entry point: fixtures for conversations with functions."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mcp_functions_harness.testing import Conversation

FAILURES = "mcp_functions_harness.testing.failures"
STORY = "mcp_functions_harness.testing.story"


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Import functions/<name>/ in tests as Lambda imports it: what it finds there, and nothing more."""
    directory = early_config.rootpath / "functions"
    if any(directory.glob("*/app.py")):
        from mcp_functions_harness.lambdas.loading import Folder

        collecting = Collecting()
        early_config.pluginmanager.register(collecting)
        for app in sorted(directory.glob("*/app.py")):
            early_config.add_cleanup(Folder.in_tests(app.parent, partial(collecting.told, app)).close)


class Collecting:
    """Says once why a function does not load, however many tests import it, and without the frames of the import."""

    def __init__(self) -> None:
        """Collect nothing yet."""
        self._is_collecting = False
        self._told: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Know that pytest imports test modules, and not that a test runs."""
        self._is_collecting = True
        try:
            return (yield)
        finally:
            self._is_collecting = False

    def told(self, app: Path, error: Exception) -> Exception:
        """Return the exception for pytest of what an app.py raised: inside a test it is the module's own."""
        if not self._is_collecting or isinstance(error, pytest.Collector.CollectError):
            return error
        from mcp_functions_harness.lambdas import failures
        from mcp_functions_harness.lambdas.functions import why_not_loaded

        text = why_not_loaded(error, app)
        where = failures.place(error, app.parent) or text
        if where in self._told:
            return pytest.Collector.CollectError(f"{app.parent.name}/app.py does not load, as said above ({where})")
        self._told.add(where)
        return pytest.Collector.CollectError(text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the conversations of a test that failed, and what functions raised: no response or log has its text."""
    report = yield
    if call.when == "call" and STORY in sys.modules:
        talks = sys.modules[STORY].take()
        if report.failed:
            report.sections += [("the conversation" if len(talks) == 1 else "a conversation", text) for text in talks]
    if call.when == "call" and FAILURES in sys.modules:
        raised = sys.modules[FAILURES].take_raised()  # also after success, for the next test
        if report.failed:
            report.sections += [(f"{name} raised", text) for name, text in raised]
    return report


@pytest.fixture(scope="session")
def mcp_deployed() -> Iterator[None]:
    """Give the functions of a test session a deployment: the template's variables, and a KMS on loopback."""
    from mcp_functions_harness.testing import deployed

    with deployed():
        yield


@pytest.fixture
def converse(mcp_deployed: None) -> type[Conversation]:  # noqa: ARG001 - it is around the conversation
    """Return the class of conversations, inside the session's deployment."""
    from mcp_functions_harness.testing import Conversation

    return Conversation


@pytest.fixture(scope="session")
def _project(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    from mcp_functions_harness.testing.deployment import deployed_project

    with deployed_project(request.config.rootpath / "functions") as for_one_test:
        yield for_one_test


@pytest.fixture
def resources(_project: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Make the tables, buckets, queues and secrets of template.yaml for one test, and set its variables.

    They are moto's, and empty. A secret holds "local" until the test writes it. boto3 in the test finds them too.
    """
    with _project():
        yield
