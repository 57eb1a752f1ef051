"""The wheel on each Python that this machine has: pip installs it, and a new project passes its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UV = Path.home() / ".local/share/uv/python"
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))


def interpreter(version: str) -> str | None:
    """Find a Python: on the PATH, or where pyenv or uv put it."""
    name = f"bin/python{version}"
    pyenv, uv = PYENV.glob(f"versions/{version}.*/{name}"), UV.glob(f"cpython-{version}.*/{name}")
    found = (shutil.which(f"python{version}"), *map(str, pyenv), *map(str, uv))
    return next((each for each in found if runs(each)), None)


def runs(python: str | None) -> bool:
    """Whether it makes environments; pyenv's shim on the PATH fails for a version that is not chosen."""
    command = [python or "", "-c", "import venv, ensurepip"]
    return python is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - a Python of this machine


def run(*command: str | Path, cwd: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "MAKE"))}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory, cwd=ROOT)
    return next(directory.glob("*.whl"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_is_installed_and_used_on_each_python(version: str, wheel: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    run(python, "-m", "venv", "own", cwd=tmp_path)
    own = tmp_path / "own/bin"
    pip = (own / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, f"mcp-functions[local] @ {wheel.as_uri()}", "pytest", cwd=tmp_path)

    run(own / "mcp-functions", "init", "my-server", cwd=tmp_path)
    project = tmp_path / "my-server"
    assert "passed" in run(own / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    answered = run(own / "mcp-functions", "call", "book_flight", "city=Lisbon", "--answer", "seat=aisle", cwd=project)
    assert "Lisbon, aisle" in answered
    assert run(own / "mcp-functions", "docs", "tasks", cwd=project).startswith("# Tasks")
