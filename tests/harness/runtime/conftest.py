"""Small functions under the real Lambda runtime, so that the tests see what Lambda does around a function."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import boto3
import pytest
from botocore.config import Config

from mcp_functions_harness import Harness
from tests.support import modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")
PID = "import os\ndef handler(event, context):\n    return os.getpid()\n"


@pytest.fixture(scope="session", autouse=True)
def _skip_without_runtime() -> None:
    modes.skip_without_runtime()


def write_project(
    root: Path,
    apps: dict[str, str],
    properties: dict[str, str] | None = None,
    before: str = "",
    resources: str = "",
) -> Path:
    """Write functions/<folder>/app.py and a template with a block for each.

    Args:
        root: of the project.
        apps: the content of app.py, by folder.
        properties: of a function in the template, as YAML in one line, by folder.
        before: lines before the template's resources.
        resources: lines of other resources.

    """
    blocks = []
    for number, (folder, text) in enumerate(apps.items()):
        (root / "functions" / folder).mkdir(parents=True, exist_ok=True)
        (root / "functions" / folder / "app.py").write_text(text, encoding="utf-8")
        own = (properties or {}).get(folder, "{}")
        block = f"  F{number}:\n    Type: AWS::Serverless::Function\n    Properties:\n      <<: {own}\n"
        blocks.append(f"{block}      CodeUri: functions/{folder}/\n")
    (root / "template.yaml").write_text(f"{before}Resources:\n{''.join(blocks)}{resources}", encoding="utf-8")
    return root / "functions"


@dataclass
class Stack:
    """A running harness, asked as Lambda's Invoke API is; every line that was logged, by folder."""

    harness: Harness
    directory: Path
    lines: list[tuple[str, str]] = field(default_factory=list)

    def invoke(self, folder: str, event: object = None, how: str = "RequestResponse") -> dict[str, Any]:
        """Invoke once, and read the payload."""
        # another client per call: calls come from many threads, and each has a connection to close
        client: Any = boto3.session.Session().client("lambda", config=Config(retries={"total_max_attempts": 1}))
        try:
            payload = json.dumps(event).encode()
            answer = client.invoke(FunctionName=f"local_{folder}", Payload=payload, InvocationType=how)
            return {**answer, "Payload": json.loads(answer["Payload"].read() or b"null")}
        finally:
            client.close()

    def value(self, folder: str, event: object = None) -> Any:  # noqa: ANN401 - what the function returned
        """Invoke a function that returns."""
        answer = self.invoke(folder, event)
        assert "FunctionError" not in answer, answer["Payload"]
        return answer["Payload"]

    def start(self, folder: str, event: object = None) -> Answer[dict[str, Any]]:
        """Invoke in a thread."""
        return Answer(lambda: self.invoke(folder, event))

    def log(self, folder: str) -> list[str]:
        """Return the lines of one function."""
        return [line for where, line in self.lines if where == folder]


class Answer(Generic[T]):
    """The outcome of a call in a thread: its return value or its exception."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        threading.Thread(target=self._run, args=(call,)).start()

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self._future.set_result(call())
        except Exception as raised:  # noqa: BLE001 - raised again by `get`
            self._future.set_exception(raised)

    def get(self) -> T:
        return self._future.result()


@pytest.fixture
def deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stack]]:
    """Start a stack of some functions. It stops before the test's changes to the environment are undone."""
    assert monkeypatch
    running: list[Harness] = []

    def start(  # noqa: PLR0913 - a project, and how to run it
        apps: dict[str, str],
        properties: dict[str, str] | None = None,
        before: str = "",
        resources: str = "",
        *,
        template: bool = True,
        reuse: bool = True,
    ) -> Stack:
        lines: list[tuple[str, str]] = []
        directory = write_project(tmp_path, apps, properties, before, resources)
        if not template:
            (tmp_path / "template.yaml").unlink()
        harness = Harness(
            directory,
            state_dir=tmp_path / "state",
            runtime=True,
            reuse=reuse,
            on_log=lambda folder, line: lines.append((folder, line)),
        )
        running.append(harness.__enter__())
        return Stack(harness, directory, lines)

    yield start
    for harness in running:
        harness.__exit__()


def process_exists(pid: int) -> bool:
    """Return whether a process is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(truth: Callable[[], bool]) -> None:
    """Wait for what will be so."""
    waiting = threading.Event()
    while not truth():
        waiting.wait(0.01)
