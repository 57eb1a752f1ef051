"""The package of `sam deploy`: the template is linted, built and translated, and the tests inspect the build.

SAM has its own environment (.venv-sam, made by `make test-all`) and a PATH with only the system's tools. Layers are
built without compiling, unless a test supplies an interpreter for it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import template
from mcp_functions_harness.lambdas.functions import SIGN_IN
from tests.docs.test_own_resources_page import write_project

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# that are deployed: the sign-in front is, with AuthMode oauth
FOLDERS = sorted(path.parent for path in (ROOT / "functions").glob("*/app.py") if path.parent.name != SIGN_IN)
SAM_BIN = ROOT / ".venv-sam" / "bin"
PACKAGE = ROOT / "layers" / "shared" / "mcp_functions"

# e_machine of an ELF file: for which processor a compiled module is
MACHINES = {"x86_64": 62, "arm64": 183}
UNCHECKED_HASH = 0b01  # the flags of a .pyc with an unchecked hash (PEP 552)

pytestmark = pytest.mark.skipif(
    not SAM_BIN.exists() and not os.environ.get("CI"), reason="no .venv-sam: make test-all prepares it"
)

TRANSLATE = ROOT / "scripts" / "translate.py"  # as CloudFormation's SAM transform does, offline


def run(*command: str | Path, path: str = "", uncompiled: str = "1") -> str:
    """Run a program of SAM's environment in the project, and return its output. An error shows all output."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    ours |= {
        "AWS_DEFAULT_REGION": "us-east-1",
        "SAM_CLI_TELEMETRY": "0",
        "UNCOMPILED": uncompiled,
        "PATH": os.pathsep.join(filter(None, [path, str(SAM_BIN), "/usr/bin", "/bin"])),
    }
    program, *arguments = command
    done = subprocess.run(  # noqa: S603 - our own words
        [SAM_BIN / program, *arguments], cwd=ROOT, env=ours, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{program} {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


def build(directory: Path, *arguments: str, path: str = "", uncompiled: str = "1") -> Path:
    """Build the project, or one resource of it, somewhere else than in .aws-sam."""
    run("sam", "build", *arguments, "--build-dir", directory / "build", path=path, uncompiled=uncompiled)
    return directory / "build"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sam"))


@pytest.fixture(scope="module")
def translated(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = tmp_path_factory.mktemp("translated") / "template.json"
    template.write_text(run("python", TRANSLATE, built / "template.yaml"), encoding="utf-8")
    return template


def sources(directory: Path) -> dict[str, bytes]:
    """Map the relative path of each source file to its content."""
    found = ((path.relative_to(directory), path) for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(name): path.read_bytes() for name, path in found if "__pycache__" not in name.parts}


def machines(layer: Path) -> set[int]:
    """For which processors the compiled modules of a layer are."""
    return {int.from_bytes(path.read_bytes()[18:20], "little") for path in layer.rglob("*.so")}


# ---- The template


def test_the_template_is_valid() -> None:
    assert "is a valid SAM Template" in run("sam", "validate")  # `make lint` lints it, and what it becomes


def test_the_linter_finds_an_unknown_runtime_in_the_translated_template(translated: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"  # linting the SAM template alone would let this pass
    wrong.write_text(translated.read_text(encoding="utf-8").replace("python3.13", "python3.99"), encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="W1030"):
        run("cfn-lint", wrong)


def test_only_resources_of_the_template_are_deployed(translated: Path) -> None:
    resources: dict[str, Any] = json.loads(translated.read_text(encoding="utf-8"))["Resources"]
    kinds = [resource["Type"] for resource in resources.values()]
    functions, workers = len(FOLDERS), 1
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "AWS::ApiGatewayV2::Api": 1,
        "AWS::ApiGatewayV2::Stage": 1,
        "AWS::Budgets::Budget": 1,
        "AWS::CloudWatch::Alarm": 6,
        "AWS::CloudWatch::Dashboard": 1,
        "AWS::DynamoDB::Table": 1,
        "AWS::IAM::ManagedPolicy": 2,
        "AWS::IAM::Role": functions + workers,
        "AWS::KMS::Key": 2,  # that of states, and that of callers' pseudonyms
        "AWS::Lambda::EventInvokeConfig": workers,
        "AWS::Lambda::Function": functions + workers,
        "AWS::Lambda::LayerVersion": 2,
        "AWS::Lambda::Permission": functions + 1,  # the API's, one for each route; a preflight has its own
        "AWS::Logs::LogGroup": 2,
        "AWS::Logs::MetricFilter": 11,
        "AWS::S3::Bucket": 1,
        "AWS::S3::BucketPolicy": 1,
    }


# ---- What was built


@pytest.mark.parametrize("source", FOLDERS, ids=lambda folder: folder.name)
def test_the_build_of_a_function_is_its_folder(source: Path, built: Path) -> None:
    logical_id = "".join(word.capitalize() for word in source.name.split("_"))
    assert sources(built / logical_id) == sources(source)
    assert sources(source).keys() <= {"app.py", "catalog.json", "chart.html", "skills.json"}


def test_the_shared_layer_is_the_package(built: Path) -> None:
    shipped = sources(built / "SharedLayer")
    assert shipped == {f"python/mcp_functions/{name}": text for name, text in sources(PACKAGE).items()}
    assert "python/mcp_functions/serving.py" in shipped


def test_the_dependencies_layer_is_small_and_has_no_boto3(built: Path) -> None:
    layer = built / "DependenciesLayer" / "python"
    there = {path.name for path in layer.iterdir()}
    assert {"cryptography", "jsonschema", "pydantic", "pydantic_core"} <= there
    assert there.isdisjoint({"bin", "boto3", "botocore", "mcp_functions"})
    assert [path for path in layer.rglob("tests") if path.is_dir()] == []


@pytest.mark.parametrize(
    ("layer", "sources_mb", "all_mb"),
    [("SharedLayer", 1.35, 2.4), ("DependenciesLayer", 34, 44)],
)
def test_the_size_of_a_layer_is_limited(built: Path, layer: str, sources_mb: float, all_mb: float) -> None:
    files = [path for path in (built / layer).rglob("*") if path.is_file()]
    compiled = sum(path.stat().st_size for path in files if path.suffix == ".pyc")
    together = sum(path.stat().st_size for path in files)
    assert together - compiled <= sources_mb * 1e6
    assert together <= all_mb * 1e6


def test_compiled_modules_are_for_lambdas_python_and_the_default_processor(built: Path) -> None:
    layer = built / "DependenciesLayer"
    assert machines(layer) == {MACHINES["x86_64"]}
    versions = {path.name.split(".")[1].split("-")[1] for path in layer.rglob("*.cpython-*.so")}
    assert versions == {"313"}


@pytest.mark.parametrize(("runtime", "version"), [("python3.13", "313"), ("python3.12", "312"), ("python3.14", "314")])
def test_another_runtime_and_another_architecture_get_their_own_wheels(
    runtime: str, version: str, tmp_path: Path
) -> None:
    chosen = f"Architecture=arm64 Runtime={runtime}"
    layer = build(tmp_path, "DependenciesLayer", "--parameter-overrides", chosen) / "DependenciesLayer"
    assert machines(layer) == {MACHINES["arm64"]}
    assert {path.name.split(".")[1].split("-")[1] for path in layer.rglob("*.cpython-*.so")} == {version}


@pytest.mark.parametrize("environment", ["default", "dev", "prod"])
def test_the_commands_of_an_environment_share_its_parameters(environment: str) -> None:
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))[environment]
    assert {one.partition("=")[0] for one in configured["global"]["parameters"]["parameter_overrides"]} >= {
        "Architecture",
        "Runtime",
    }
    others = {name: command["parameters"] for name, command in configured.items() if name != "global"}
    assert [name for name, own in others.items() if "parameter_overrides" in own] == [], "one list for both commands"


# ---- Compiled by Lambda's Python, and uncompiled only by request


def _interpreter(directory: Path, script: str) -> str:
    """Put a python3.13 on the PATH that does what a script says."""
    stand_in = directory / "bin" / "python3.13"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    stand_in.chmod(0o755)
    return str(stand_in.parent)


def test_modules_ship_compiled_and_their_hashes_are_not_checked(tmp_path: Path) -> None:
    path = _interpreter(tmp_path, f'exec "{sys.executable}" "$@"')
    layer = build(tmp_path, "SharedLayer", path=path, uncompiled="") / "SharedLayer"
    compiled = list(layer.rglob("*.pyc"))
    assert len(compiled) == len(list(layer.rglob("*.py")))
    assert {int.from_bytes(path.read_bytes()[4:8], "little") for path in compiled} == {UNCHECKED_HASH}
    assert all(b"/opt/python/mcp_functions/" in path.read_bytes() for path in compiled), "tracebacks must say /opt"
    assert not any(os.fsencode(tmp_path) in path.read_bytes() for path in compiled)


@pytest.mark.parametrize("layer", ["SharedLayer", "DependenciesLayer"])
def test_a_build_without_an_interpreter_fails_and_names_the_remedy(tmp_path: Path, layer: str) -> None:
    shim = _interpreter(tmp_path, "exit 127")
    with pytest.raises(pytest.fail.Exception, match=r"uv python install 3\.13.*pyenv install 3\.13.*UNCOMPILED=1"):
        build(tmp_path, layer, path=shim, uncompiled="")


def test_a_layer_ships_uncompiled_on_request(tmp_path: Path) -> None:
    layer = build(tmp_path, "SharedLayer", path=_interpreter(tmp_path, "exit 127"), uncompiled="1") / "SharedLayer"
    assert list(layer.rglob("*.py"))
    assert not list(layer.rglob("*.pyc"))


def _runtimes() -> Iterator[str]:
    """Every python3.13 here that really runs."""
    for candidate in ("python3.13", *map(str, Path.home().glob(".pyenv/versions/3.13*/bin/python3.13"))):
        found = shutil.which(candidate)
        if found and not subprocess.run([found, "-c", "pass"], capture_output=True, check=False).returncode:  # noqa: S603
            yield found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the default layer is built for x86_64")
@pytest.mark.parametrize("source", FOLDERS, ids=lambda folder: folder.name)
def test_a_function_loads_from_its_layers_alone(source: Path, built: Path) -> None:
    runtime = next(_runtimes(), None)
    if runtime is None:
        pytest.skip("no python3.13 here that runs")
    logical_id = "".join(word.capitalize() for word in source.name.split("_"))
    layers = [str(built / layer / "python") for layer in ("SharedLayer", "DependenciesLayer")]
    load = f"import sys; sys.path[:0] = {[str(built / logical_id), *layers]}; import app; assert callable(app.handler)"
    subprocess.run([runtime, "-I", "-S", "-c", load], check=True)  # noqa: S603 - our own words, and no site-packages


def test_a_function_ships_its_own_package_and_the_shared_code_is_a_layer(tmp_path: Path) -> None:
    python = next(_runtimes(), None)
    if python is None:
        pytest.skip("no python3.13 here that runs")
    project = tmp_path / "server"
    write_project(project)
    changed = template.read(project / "template.yaml")
    del changed["Resources"]["DependenciesLayer"]  # it pins a toolkit that no index has
    changed["Globals"]["Function"]["Layers"] = []
    (project / "template.yaml").write_text(json.dumps(changed), encoding="utf-8")
    built = build(tmp_path, "--template", str(project / "template.yaml"), path=str(Path(python).parent))
    assert {"app.py", "xmltodict.py"} <= {path.name for path in (built / "ReadRates").iterdir()}
    assert not (built / "Remember" / "xmltodict.py").exists()
    layer = template.read(built / "template.yaml")["Resources"]["CommonLayer"]["Properties"]
    assert (built / layer["ContentUri"] / "python" / "money.py").is_file()
