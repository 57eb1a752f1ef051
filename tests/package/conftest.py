"""`sam build`, `sam package`, SAM's transform and `sam deploy`, with moto for AWS: once for all tests here.

moto alone would be a false green: it has no SAM transform, and skips in silence what it would have to transform. So the
template is translated before it is deployed, by the code that the transform is; and whatever moto skips then is named.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.package.stack import NAME, REGION, Resolved, Stack, client
from tests.project.test_build import ROOT, SAM_BIN, TRANSLATE, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "zips"
PATIENCE = 120  # seconds


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run moto's server in another process, and return its URL and its output.

    The host is "localhost", because moto looks for this word to find the bucket in the URL of a template.
    """
    if not SAM_BIN.exists() and not os.environ.get("CI"):
        pytest.skip("no .venv-sam: make package prepares it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    log = tmp_path_factory.mktemp("moto") / "moto.log"
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # whatever ends us, moto ends with us
    with log.open("w") as said:
        serving = subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", port],
            env={**os.environ, "MOTO_IAM_LOAD_MANAGED_POLICIES": "true"},
            stdout=said,
            stderr=said,
        )
    try:
        until = time.monotonic() + PATIENCE
        while "Running on" not in log.read_text(encoding="utf-8"):
            assert serving.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < until, "moto does not start"
            time.sleep(0.1)
        yield f"http://localhost:{port}", log
    finally:
        serving.terminate()
        serving.wait()
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def built(moto: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 - who skips, skips first
    return build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def packaged(moto: tuple[str, Path], built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upload the build, and translate what refers to the upload; the template that CloudFormation gets."""
    url, _ = moto
    client("s3", url).create_bucket(Bucket=BUCKET)
    directory = tmp_path_factory.mktemp("packaged")
    template, translated = directory / "packaged.yaml", directory / "translated.json"
    source = ("--template-file", built / "template.yaml")
    _run(url, "sam", "package", *source, "--s3-bucket", BUCKET, "--output-template-file", template)
    written = json.loads(_run(url, "python", TRANSLATE, template))
    for name, resource in written["Resources"].items():
        if resource["Type"].startswith("AWS::IAM::"):  # moto leaves a null where `Fn::If` chose AWS::NoValue
            written["Resources"][name] = Resolved(written, {}).value(resource)
    translated.write_text(json.dumps(written), encoding="utf-8")
    return translated


@pytest.fixture(scope="session")
def stack(moto: tuple[str, Path], packaged: Path) -> Stack:
    url, log = moto
    asked = ("--no-confirm-changeset", "--capabilities", "CAPABILITY_IAM", "--s3-bucket", BUCKET, "--no-resolve-s3")
    _run(url, "sam", "deploy", "--template-file", packaged, "--stack-name", NAME, *asked)
    skipped = re.findall(r"No Moto CloudFormation support for (\S+)", log.read_text(encoding="utf-8"))
    return Stack(url, json.loads(packaged.read_text(encoding="utf-8")), frozenset(skipped))


def _run(url: str, program: str, *arguments: str | Path) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MCP_"))}
    nobody = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nobody", "AWS_DEFAULT_REGION": REGION}
    quiet = {"AWS_ENDPOINT_URL": url, "SAM_CLI_TELEMETRY": "0"}
    command = [SAM_BIN / program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ours | nobody | quiet, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        message = f"{done.stdout}\n{done.stderr}"
        pytest.fail(f"{program} {' '.join(map(str, arguments))}: {done.returncode}\n{message}", pytrace=False)
    return done.stdout
