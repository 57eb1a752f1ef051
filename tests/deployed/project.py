"""A project on the disk, and the SAM CLI and `mcp-functions` in it, as a person runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.deployed.account import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.deployed.account import Account

SAM = [ROOT / ".venv-sam/bin/python", ROOT / ".venv-sam/bin/sam"]
COPIED = ("functions", "layers", "template.yaml", "samconfig.toml", "harness")
NAMES = ROOT / "harness/mcp_functions_harness/emulator/names.py"


@dataclass(frozen=True)
class Project:
    """A project for one stack of an account."""

    folder: Path
    account: Account

    @classmethod
    def copied(cls, folder: Path, account: Account, stack: str) -> Project:
        """Copy the clone's own project, for a stack of another name."""
        ignored = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=ignored)
            else:
                shutil.copy(source, folder / name)
        project = cls(folder, account)
        project.edit("samconfig.toml", r'stack_name = "mcp-functions"', f'stack_name = "{stack}"')
        return project

    def edit(self, name: str, pattern: str, text: str) -> None:
        """Replace the first match of a pattern in a file."""
        path = self.folder / name
        edited, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1)
        assert count == 1, f"{name} has no {pattern}"
        path.write_text(edited, encoding="utf-8")

    def sam(self, *words: str, fails: bool = False, told: str = "") -> str:
        """Run the SAM CLI."""
        return self.run([*SAM, *words], fails=fails, told=told)

    def build(self) -> None:
        """Build, with what did not change from the build before."""
        self.sam("build", "--cached")

    def deploy(self, *words: str, fails: bool = False) -> str:
        """Deploy the build without a question."""
        return self.sam("deploy", "--no-confirm-changeset", "--no-progressbar", *words, fails=fails)

    def mcp_functions(self, *words: str, fails: bool = False) -> str:
        """Run the command `mcp-functions`."""
        return self.run([sys.executable, "-m", "mcp_functions_harness", *words], fails=fails, named=True)

    def run(self, command: list[str | Path], *, fails: bool = False, named: bool = False, told: str = "") -> str:
        """Run a program in the project's folder, and return what it wrote. An error shows all of it.

        Args:
            command: the program and its arguments.
            fails: whether it must fail.
            named: whether it is the administrator's, whom AWS's host names lead to the emulator; else it is the root's.
            told: its standard input.
        """
        done = subprocess.run(  # noqa: S603 - our own words
            list(map(str, command)),
            cwd=self.folder,
            env=self.environment | (self.account.environment | self._names() if named else self.account.root),
            input=told,
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{done.stdout}\n{done.stderr}"
        if (done.returncode != 0) is not fails:
            words = " ".join(map(str, command))
            pytest.fail(f"{words}: {done.returncode}\n{said[-6000:]}", pytrace=False)
        return said

    @property
    def environment(self) -> dict[str, str]:
        """What a shell has, and the account; the Python of the runtime compiles the layers."""
        taken = ("AWS_", "MCP_", "PYTEST", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
        path = os.pathsep.join([str(SAM[0].parent), os.environ["PATH"], str(ROOT / ".venv-ministack/bin")])
        files = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        return {**kept, "SAM_CLI_TELEMETRY": "0", "PATH": path, **(files if self.account.emulator else {})}

    def _names(self) -> dict[str, str]:
        if self.account.certificate is None:
            return {}
        folder = self.account.certificate.parent / "names"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(NAMES, folder / "sitecustomize.py")
        return {
            "PYTHONPATH": str(folder),
            "SSL_CERT_FILE": str(self.account.certificate),
            "EMULATOR_TLS_PORT": str(self.account.tls_port),
        }
