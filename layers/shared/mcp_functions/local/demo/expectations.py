"""The parts that two demos share: the call of `update_work_item`, its answers, the expected end, and the checks."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local import banner, catalog
from mcp_functions.local.problems import DemoError, Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.harness import Harness

TOOL = "update_work_item"
ARGUMENTS: dict[str, Any] = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
ANSWERS: dict[str, dict[str, Any]] = {
    "resolution": {"resolution": "Duplicate"},
    "duplicate_of": {"duplicateOfId": 4301},
}
ENDING = "Bug #4522 resolved as Duplicate of Bug #4301."
ROUNDS = 3


def expect(condition: object, otherwise: str) -> None:
    """Raise a DemoError with the text `otherwise` if the condition is false."""
    if not condition:
        raise DemoError(otherwise)


@contextlib.contextmanager
def stage() -> Iterator[Path]:
    """Hide the functions' logs, give a temporary folder, and report every unexpected exception as a DemoError."""
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet),
        contextlib.redirect_stderr(quiet),
        tempfile.TemporaryDirectory() as folder,
    ):
        try:
            yield Path(folder)
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if isinstance(cause, DemoError | Problem):
                raise cause from error
            raise DemoError(first_line(cause)) from error


def check_catalog(functions: Path, harness: Harness) -> None:
    """Check that catalog.json lists the functions as they are.

    Raises:
        Problem: it is out of date.
    """
    if catalog.differences(catalog.read(functions), catalog.describe(harness.functions.values())):
        raise Problem(banner.STALE)
