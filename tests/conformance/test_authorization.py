"""The official suite's `authorization` command: the front's metadata, and a code grant through consent and sign-in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import pytest

from mcp_functions_harness import Harness
from tests.conformance import node
from tests.support import consent, modes, ports

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITE = node.MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SAMPLES = Path(__file__).parents[2] / "functions"
CHECKS = {
    "authorization-server-metadata",
    "authorization-server-metadata-cimd",
    "authorization-code-grant",
}


class Verdict(NamedTuple):
    """The result of the suite: its exit code, the end of its report, and the status of each check by its id."""

    exit_code: int
    report: str
    checks: dict[str, str]


@pytest.fixture(scope="module", params=modes.MODES)
def verdict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdict]:
    runtime = modes.is_runtime(request.param)
    state_dir = tmp_path_factory.mktemp("state")
    with Harness(SAMPLES, state_dir=state_dir, auth="oauth", runtime=runtime, reuse=False) as harness:
        yield judged(harness.url, tmp_path_factory.mktemp("suite"))


def judged(url: str, folder: Path) -> Verdict:
    front, port = url.removesuffix("/mcp"), str(ports.find_free_port())
    wanted = {"redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none"}
    client = httpx2.post(f"{front}/register", json=wanted).json()["client_id"]
    command = [str(node.needed()), str(SUITE), "authorization", "--url", front, "--client-id", client]
    command += ["--resource", url, "--port", port, "--output-dir", str(folder)]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:  # noqa: S603
        assert running.stdout
        for line in running.stdout:
            said.append(line)
            if line.startswith(f"{front}/authorize?"):
                httpx2.get(consent.sign_in(line.strip(), "ann").url)
        exit_code = running.wait(timeout=60)
    checks = [check for file in folder.glob("*/checks.json") for check in json.loads(file.read_text(encoding="utf-8"))]
    return Verdict(exit_code, "".join(said)[-4000:], {check["id"]: check["status"] for check in checks})


def test_every_check_of_an_authorization_server_passes(verdict: Verdict) -> None:
    assert verdict.checks == dict.fromkeys(CHECKS, "SUCCESS"), verdict.report
    assert verdict.exit_code == 0, verdict.report
