"""`make emulated` of a project: one command from a build to a URL; and what says that a patch does not fit."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness.client.tasks import TaskClient
from mcp_functions_harness.emulator.process import LAUNCHER
from tests.deployed.account import PYTHON, REAL, ROOT
from tests.deployed.test_6_own_project import answer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.deployed.stack import Stack

pytestmark = pytest.mark.skipif(REAL, reason="a real account needs no emulator")


def test_one_command_leads_from_a_build_to_a_url_and_ends_what_it_began(shop: Stack) -> None:
    folder = shop.project.folder
    (folder / ".venv-ministack").symlink_to(ROOT / ".venv-ministack")
    command = [sys.executable, "-m", "mcp_functions_harness", "emulator", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own words
        command, cwd=folder, env=shop.project.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout
        said = ""
        for line in running.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        found = re.search(r"Clients of MCP: (\S+)", said)
        assert found, said
        result = TaskClient(found[1], timeout=60).run("pay_invoice", {"number": "2026-002"}, answer)
        assert "Paid: transfer " in result["content"][0]["text"]
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0
    address = re.findall(r"AWS_ENDPOINT_URL=http://127.0.0.1:(\d+)", said)[0]
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(address)), timeout=5):
        pass


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
