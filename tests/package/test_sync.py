"""`sam sync` on a stack that was deployed, with moto for AWS."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.docs.pages import Page
from tests.package.conftest import BUCKET
from tests.package.stack import NAME, REGION, Stack
from tests.project.test_build import ROOT, SAM_BIN

if TYPE_CHECKING:
    from pathlib import Path


def test_sam_sync_sends_changed_code_to_lambda(stack: Stack, tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "template.yaml", tmp_path)
    app = tmp_path / "functions/add/app.py"
    app.write_text(app.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")

    before = hashes(stack)
    (command,) = [line for line in Page.named("recipes.md").text.splitlines() if line.startswith("sam sync ")]
    run(stack, tmp_path, *shlex.split(command)[1:], "--stack-name", NAME, "--s3-bucket", BUCKET)
    assert {name for name, digest in hashes(stack).items() if digest != before[name]} == {f"{NAME}_add"}


def hashes(stack: Stack) -> dict[str, str]:
    """Return what Lambda says of the code of each function."""
    functions = stack.client("lambda").list_functions(MaxItems=1000)["Functions"]
    return {one["FunctionName"]: one["CodeSha256"] for one in functions}


def run(stack: Stack, directory: Path, *arguments: str) -> None:
    """Run the SAM CLI in a directory; it asks whether this is a development stack."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MCP_"))}
    nobody = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nobody", "AWS_DEFAULT_REGION": REGION}
    quiet = {"AWS_ENDPOINT_URL": stack.url, "SAM_CLI_TELEMETRY": "0"}
    command: list[str | Path] = [SAM_BIN / "sam", *arguments]
    subprocess.run(command, cwd=directory, env=ours | nobody | quiet, input="y\n", text=True, check=True, timeout=300)  # noqa: S603 - our own words
