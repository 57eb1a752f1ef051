"""The harness's two modes, for suites that hold in both: functions in process, and as processes of the real runtime."""

from __future__ import annotations

import importlib.util
import os

import pytest

IN_PROCESS, RUNTIME = "in process", "in the Lambda runtime"
MODES = [IN_PROCESS, RUNTIME]


def is_runtime(mode: str) -> bool:
    """Say which of `MODES` this is; skip the test where the runtime is not installed, but fail it in CI."""
    if mode == RUNTIME:
        skip_without_runtime()
    return mode == RUNTIME


def skip_without_runtime() -> None:
    """Skip the test where the runtime is not installed, but fail it in CI."""
    if importlib.util.find_spec("awslambdaric") is None:
        missing = "awslambdaric is not installed: pip install 'mcp-functions[runtime]'"
        if os.environ.get("CI", "") not in {"", "false"}:
            pytest.fail(f"{missing} (CI skips nothing)", pytrace=False)
        pytest.skip(missing)
