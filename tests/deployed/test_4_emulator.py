"""Each patch of MiniStack knows what it replaces: with another source nothing starts."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.emulator.process import LAUNCHER
from tests.deployed.account import PYTHON, REAL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(REAL, reason="a real account needs no emulator")


def test_another_version_stops_with_the_list_of_patches_that_do_not_fit(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.argv = ['launcher']; sys.path.insert(0, {str(LAUNCHER.parent)!r})\n"
        "import ministack.services.apigateway as changed\n"
        "def _invoke_lambda_proxy(): ...\n"
        "changed._invoke_lambda_proxy = _invoke_lambda_proxy\n"
        "del changed._handle_execute_in_scope\n"
        "import launcher; sys.exit(launcher.main([]))"
    )
    path = tmp_path / "changed.py"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run([PYTHON, path], capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603
    assert done.returncode == 2
    assert "event: services.apigateway:_invoke_lambda_proxy has changed" in done.stderr
    assert "options-route: there is no services.apigateway:_handle_execute_in_scope" in done.stderr
