"""The path of a new user, from the built wheel and without this repository: init, test, demo, new, build, upgrade.

The project's own Makefile does it. Where it would make an environment, one stands ready that runs this interpreter with
the wheel's content first on its path; one test lets it make its own.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project.test_build import MACHINES, SAM_BIN, machines, sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
NEXT = "99.0.0"


class Machine:
    """A stranger's machine: a folder, and an environment in which the clone cannot be found."""

    def __init__(self, site: Path) -> None:
        self.site = site

    def run(
        self,
        directory: Path,
        *command: str | Path,
        told: str = "",
        fails: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Run a program; what it wrote, or the test fails with all of it."""
        ours = ("AWS_", "PYTHON", "PYTEST", "MAKE")  # make hands PYTEST_ARGS on to whatever it runs
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])
        done = subprocess.run(  # noqa: S603 - our own words
            list(map(str, command)),
            cwd=directory,
            env={**kept, "PATH": path, "SAM_CLI_TELEMETRY": "0", **(variables or {})},
            input=told,
            capture_output=True,
            text=True,
            check=False,
        )
        if (done.returncode != 0) is not fails:
            pytest.fail(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
        return done.stdout

    def make(self, project: Path, *words: str, told: str = "", fails: bool = False) -> str:
        return self.run(project, "make", "--no-print-directory", *words, told=told, fails=fails)

    def prepare(self, project: Path) -> None:
        """Let make find the environment that it would make."""
        python = project / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{self.site}" exec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        (project / ".venv/.dev").touch()


def build(directory: Path) -> Path:
    """Build the toolkit's wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--wheel-dir", directory, ROOT], capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert done.returncode == 0, done.stderr
    return next(directory.glob("*.whl"))


def released(wheel: Path, directory: Path, version: str) -> Path:
    """Release the same toolkit as another version."""
    current = importlib.metadata.version("mcp-functions")
    later = directory / wheel.name.replace(f"-{current}-", f"-{version}-")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(later, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith(("/METADATA", "/RECORD")):
                text = text.replace(f"\nVersion: {current}\n".encode(), f"\nVersion: {version}\n".encode())
                text = text.replace(f"-{current}.dist-info".encode(), f"-{version}.dist-info".encode())
            new.writestr(name.replace(f"-{current}.dist-info", f"-{version}.dist-info"), text)
    return later


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def machine(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(site), str(wheel)], check=True)  # noqa: S603 - our own words
    return Machine(site)


@pytest.fixture(scope="module")
def new_project_dir(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project from the wheel; who changes it takes a copy."""
    empty = tmp_path_factory.mktemp("empty")
    init = (sys.executable, "-m", "mcp_functions_harness", "init", "own")
    assert machine.run(empty, *init, variables={"PYTHONPATH": str(machine.site)}).startswith("own is a project of ")
    return empty / "own"


@pytest.fixture
def project_dir(machine: Machine, new_project_dir: Path, tmp_path: Path) -> Path:
    project = tmp_path / "own"
    shutil.copytree(new_project_dir, project, ignore=shutil.ignore_patterns("__pycache__"))
    machine.prepare(project)
    return project


def test_the_wheel_holds_the_toolkit_the_harness_and_the_pages_and_nothing_else(wheel: Path) -> None:
    packages = (ROOT / "layers/shared/mcp_functions", ROOT / "harness/mcp_functions_harness")
    with zipfile.ZipFile(wheel) as opened:
        held = {name for name in opened.namelist() if ".dist-info/" not in name}
    pages = {name for name in held if name.startswith("mcp_functions_harness/manual/pages/")}
    assert held - pages == {f"{package.name}/{name}" for package in packages for name in sources(package)}
    assert {Path(name).suffix for name in pages} <= {".md", ".py", ".html", ".json", ".js", ".yaml", ".yml"}


def test_a_project_cannot_import_from_the_clone(machine: Machine, project_dir: Path) -> None:
    code = "import importlib.util as u, mcp_functions; print(mcp_functions.__file__, u.find_spec('tests.support'))"
    assert machine.run(project_dir, project_dir / ".venv/bin/python", "-c", code).split() == [
        str(machine.site / "mcp_functions/__init__.py"),
        "None",
    ]
    ours = sources(
        project_dir
    ).items()  # except its environment, which prepare() derived from the one that runs this test
    text_by_name = {name: text for name, text in ours if not name.startswith(".venv/") and not name.endswith(".whl")}
    assert "template.yaml" in text_by_name
    assert [name for name, text in text_by_name.items() if str(ROOT) in text.decode()] == []


def test_a_project_contains_the_wheel(wheel: Path, project_dir: Path) -> None:
    assert (project_dir / "layers/dependencies/wheels" / wheel.name).read_bytes() == wheel.read_bytes()


def test_a_new_project_passes_its_tests(machine: Machine, project_dir: Path) -> None:
    assert re.search(r" \d+ passed in ", machine.make(project_dir, "test"))


def test_the_demo_asks_the_user_at_the_terminal(machine: Machine, project_dir: Path) -> None:
    output = machine.make(project_dir, "demo", told="aisle\n")
    assert "Where would you like to sit on the way to Lisbon?\n" in output
    assert "  seat (window | aisle): \n" in output
    assert output.endswith("\nBooked: Lisbon, aisle seat.\n")


def test_functions_added_manually_or_by_new_can_be_called(machine: Machine, project_dir: Path) -> None:
    (project_dir / "functions/by_hand").mkdir()
    app = (project_dir / "functions/book_flight/app.py").read_text(encoding="utf-8").replace("book_flight", "by_hand")
    (project_dir / "functions/by_hand/app.py").write_text(app, encoding="utf-8")
    output = machine.make(project_dir, "test", "PYTEST_ARGS=tests/test_project.py", fails=True)
    assert "functions/by_hand has no block in template.yaml: add ByHand with CodeUri functions/by_hand/" in output
    assert "functions/by_hand offers nothing in functions/mcp/catalog.json: run make catalog" in output

    template = project_dir / "template.yaml"
    text = template.read_text(encoding="utf-8")
    block = text[text.index("  BookFlight:") : text.index("  # ---- What a function that asks")].rstrip("\n") + "\n"
    copied = block + block.replace("BookFlight", "ByHand").replace("book_flight", "by_hand")
    template.write_text(text.replace(block, copied), encoding="utf-8")
    for kind in ("tool", "asking", "prompt", "resource"):  # the catalog is written by the way
        machine.make(project_dir, "new", f"KIND={kind}", f"NAME=my_{kind}")
    output = machine.make(project_dir, "test", "PYTEST_ARGS=-rA")
    for name in ("book_flight", "my_tool", "my_asking", "my_prompt", "my_resource"):
        assert f"PASSED tests/functions/test_{name}.py::" in output
    arguments = """ARGUMENTS={"text": "a word"}"""
    assert "Done with a word." in machine.make(project_dir, "demo", "TOOL=my_asking", arguments, told="yes\n")


# ---- What a build needs


def test_make_build_names_a_function_that_cannot_be_built_before_sam_begins(
    machine: Machine, project_dir: Path, tmp_path: Path
) -> None:
    (project_dir / "functions/book_flight/requirements.txt").write_text("xmltodict==1.0.4\n", encoding="utf-8")
    programs = tmp_path / "programs"
    programs.mkdir()
    sam = program(programs / "sam", "echo SAM found $(command -v python3.13)")
    path = {"PATH": os.pathsep.join([str(programs), "/usr/bin", "/bin"])}
    program(programs / "python3.13", "exit 127 # a shim")
    build = ("sh", "-c", f"make build SAM={sam} 2>&1")
    output = machine.run(project_dir, *build, fails=True, variables=path)
    assert "functions/book_flight: has a requirements.txt, and there is no python3.13 with pip" in output
    assert "uv python install 3.13, or: pyenv install 3.13" in output
    assert "SAM found" not in output

    found = program(tmp_path / "python3.13", f'exec "{sys.executable}" "$@"')
    program(programs / "uv", f"echo {found}")
    assert f"SAM found {found}\n" in machine.run(project_dir, *build, variables=path)


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# ---- What the layer holds


def make_layer(machine: Machine, layers: Path, target: str, into: Path) -> dict[str, bytes]:
    """Make a layer where SAM does, and return the sources of the toolkit in it."""
    into.mkdir()
    # of what pip installs, the toolkit alone: the rest takes a minute
    toolkit_alone = into / "python"
    toolkit_alone.write_text(f'#!/bin/sh\ncase "$*" in *toolkit.txt*) exec "{sys.executable}" "$@";; esac\n', "utf-8")
    toolkit_alone.chmod(0o755)
    artifacts = into / "artifacts"
    words = (target, f"PYTHON={toolkit_alone}", f"ARTIFACTS_DIR={artifacts}", "UNCOMPILED=1")
    machine.run(layers / "python3.13/x86_64", "make", "--makefile", layers / "Makefile", *words)
    return sources(artifacts / "python/mcp_functions")


def test_a_project_and_the_repository_ship_the_toolkit_whole_and_nothing_else(
    machine: Machine, project_dir: Path, tmp_path: Path
) -> None:
    of_project = make_layer(
        machine, project_dir / "layers/dependencies", "build-DependenciesLayer", tmp_path / "project"
    )
    ours = make_layer(machine, ROOT / "layers", "build-SharedLayer", tmp_path / "ours")
    assert sorted(of_project) == sorted(ours)
    assert of_project == ours == sources(ROOT / "layers/shared/mcp_functions")


# ---- What SAM builds, and one version bump


@pytest.fixture(scope="module")
def sam() -> Path:
    found = SAM_BIN / "sam" if (SAM_BIN / "sam").exists() else shutil.which("sam")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no .venv-sam: make test-all prepares it")
    return Path(found)


@pytest.fixture(scope="module")
def upgraded(new_project_dir: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upgrade the toolkit: one version, in one file."""
    project = tmp_path_factory.mktemp("upgraded") / "own"
    shutil.copytree(new_project_dir, project)
    released(wheel, project / "layers/dependencies/wheels", NEXT)
    pin = project / "layers/dependencies/toolkit.txt"
    current = f"mcp-functions=={importlib.metadata.version('mcp-functions')}\n"
    pin.write_text(pin.read_text(encoding="utf-8").replace(current, f"mcp-functions=={NEXT}\n"), encoding="utf-8")
    return project


def test_make_installs_the_pinned_toolkit(machine: Machine, upgraded: Path) -> None:
    # the toolkit itself, pytest, and what the layer pins, none of it compiled: the rest takes a minute
    no_more = {"PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "1"}
    machine.run(upgraded, "make", ".venv/.dev", f"PYTHON={sys.executable}", variables=no_more)
    code = "from importlib.metadata import version as v; print(v('mcp-functions'), v('pydantic'), v('pytest') and 1)"
    shipped = (ROOT / "layers/dependencies/requirements.txt").read_text(encoding="utf-8")
    output = machine.run(upgraded, upgraded / ".venv/bin/python", "-c", code).split()
    assert output[::2] == [NEXT, "1"]
    assert f"\npydantic=={output[1]}\n" in shipped


def test_a_test_fails_while_the_tested_toolkit_differs_from_the_shipped_one(
    machine: Machine, project_dir: Path
) -> None:
    pin = project_dir / "layers/dependencies/toolkit.txt"
    pin.write_text(f"mcp-functions=={NEXT}\n", encoding="utf-8")
    (project_dir / ".venv/.dev").touch()
    output = machine.make(project_dir, "test", "PYTEST_ARGS=tests/test_project.py -k toolkit", fails=True)
    assert f"mcp-functions=={NEXT}" in output


@pytest.fixture(scope="module")
def built(machine: Machine, sam: Path, upgraded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("built") / "own"
    shutil.copytree(upgraded, project, ignore=shutil.ignore_patterns(".venv"))
    machine.prepare(project)
    machine.make(project, "new", "KIND=resource", "NAME=my_resource")
    machine.make(project, "build", f"SAM={sam}", "UNCOMPILED=1")
    return project


def test_sam_builds_each_folder_and_a_lean_layer_with_the_pinned_toolkit(built: Path) -> None:
    artifacts = built / ".aws-sam/build"
    for logical_id, folder in {"Mcp": "mcp", "BookFlight": "book_flight", "MyResource": "my_resource"}.items():
        assert sources(artifacts / logical_id) == sources(built / "functions" / folder)
    layer = artifacts / "DependenciesLayer/python"
    there = {path.name for path in layer.iterdir()}
    assert {"cryptography", "jsonschema", "pydantic", "mcp_functions"} <= there
    assert there.isdisjoint({"bin", "boto3", "botocore", "moto", "mcp", "mcp_functions_harness"})
    assert machines(layer) == {MACHINES["x86_64"]}


def test_the_template_of_a_project_is_valid(machine: Machine, sam: Path, built: Path) -> None:
    region = {"AWS_DEFAULT_REGION": "us-east-1"}
    assert "is a valid SAM Template" in machine.run(built, sam, "validate", "--lint", variables=region)


def _runtimes() -> Iterator[str]:
    from tests.project import test_build

    yield from test_build._runtimes()  # noqa: SLF001


def test_functions_load_from_their_layer_alone(built: Path) -> None:
    runtime = next(_runtimes(), None)
    if runtime is None:
        pytest.skip("no python3.13 here that runs")
    artifacts = built / ".aws-sam/build"
    for logical_id in ("Mcp", "BookFlight", "MyResource"):
        path = [str(artifacts / logical_id), str(artifacts / "DependenciesLayer/python")]
        load = f"import sys; sys.path[:0] = {path}; import app; assert callable(app.handler)"
        subprocess.run([runtime, "-I", "-S", "-c", load], check=True)  # noqa: S603 - our own words
