"""The wheel and the source distribution: an index takes them, two builds are equal, and pipx or uvx can run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from tests.project.test_build import sources

ROOT = Path(__file__).parents[2]
PACKAGES = ("layers/shared/mcp_functions", "harness/mcp_functions_harness")
TEXTS = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")  # pages of the manual, which the wheel carries
CARRIED = ("docs", "functions")  # its other pages, and the samples that they lead to
BUILT_FROM = ("pyproject.toml", "LICENSE", *TEXTS, *PACKAGES, *CARRIED)
KINDS = ("*.whl", "*.tar.gz")


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a program without this session's Python variables; a failure shows all it wrote."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "MAKE"))}
    done = subprocess.run(command, cwd=cwd, env=kept | variables, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", directory, SOURCE_DATE_EPOCH="1785000000")
    return directory


def test_a_package_index_accepts_the_wheel_and_the_source_distribution(built: Path) -> None:
    files = [path for kind in KINDS for path in built.glob(kind)]
    assert len(files) == len(KINDS)
    run(sys.executable, "-m", "twine", "check", "--strict", *files)


def test_builds_of_the_same_sources_have_the_same_bytes(built: Path, tmp_path: Path) -> None:
    for name in BUILT_FROM:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(ROOT / name, tmp_path / name)  # so every file has a new time
    shutil.copyfile(ROOT / ".gitignore", tmp_path / ".gitignore")
    run(sys.executable, "-m", "hatchling", "build", "-d", "dist", cwd=tmp_path, SOURCE_DATE_EPOCH="1785000000")
    assert sources(tmp_path / "dist") == sources(built)


def test_the_source_distribution_holds_only_what_the_wheel_is_built_from(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as opened:
        held = {member.name.partition("/")[2] for member in opened.getmembers()}
    modules = {f"{package}/{name}" for package in PACKAGES for name in sources(ROOT / package)}
    carried = {f"{folder}/{name}" for folder in CARRIED for name in sources(ROOT / folder)}
    others = {".gitignore", "LICENSE", "PKG-INFO", "pyproject.toml", *TEXTS}
    assert held - modules - others <= carried
    assert modules | others <= held


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_runs_from_an_environment_that_has_only_the_distribution(
    kind: str, built: Path, tmp_path: Path
) -> None:
    """As `pipx install` and `uvx --from` do: an environment of its own, and the script in it."""
    run(sys.executable, "-m", "venv", tmp_path / "own")
    (site,) = (tmp_path / "own").glob("lib/python*/site-packages")
    # The dependencies are those installed here; a path in a .pth leads to no editable installation of ours.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    distribution = next(built.glob(kind))
    pip = (tmp_path / "own/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--force-reinstall", distribution, cwd=tmp_path)

    script = tmp_path / "own/bin/mcp-functions"
    assert run(script, "init", "my-server", cwd=tmp_path).startswith("my-server is a project of ")
    assert (tmp_path / "my-server/functions/book_flight/app.py").is_file()
    assert run(script, "catalog", "--check", cwd=tmp_path / "my-server") == "the catalog is up to date\n"
    page = run(script, "docs", "writing-a-conversation", cwd=tmp_path)
    assert page.startswith("# Writing a conversation\n")
    for reference in sorted(set(re.findall(r"`mcp-functions docs ([^`]+)`", page + run(script, "docs", "start")))):
        run(script, "docs", reference, cwd=tmp_path)
    assert "Commands:" in run(tmp_path / "own/bin/python", "-m", "mcp_functions_harness", "--help", cwd=tmp_path)
