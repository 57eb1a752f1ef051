"""`doctor`: looks for the programs and packages that a build, a deployment and `sam local` need on this machine.

Interpreters are looked for by runtime. The layers need one that compiles. A function with a `requirements.txt` needs
one with pip, which SAM looks for on the PATH alone; so `make build` puts on SAM's PATH what is found here.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mcp_functions_harness import samconfig, template
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.runtime.intrinsics import Resolver, Unknown
from mcp_functions_harness.template import Template

SECONDS = 20  # longest time that a program may take to answer
# Lambda's names of architectures, by Python's names of machines.
ARCHITECTURES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
DEFAULTS = {"Runtime": "python3.13", "Architecture": "x86_64"}  # of the template that `init` writes
LAYERS = "layers"  # the subject of the finding about their interpreter
EXTRAS = {"moto": "local", "awslambdaric": "runtime", "mcp": "demo"}  # module -> its extra


class Finding(NamedTuple):
    """One thing that this machine has or lacks."""

    subject: str  # the commands that need it
    text: str  # what was found
    remedy: str = ""  # what to do; "" if nothing is missing


class Build(NamedTuple):
    """What `make build` needs."""

    findings: list[Finding]
    folders: list[str]  # of the interpreters, for SAM's PATH


def examine(root: Path) -> list[Finding]:
    """Look for each program and package. The template, if there is one, names the runtime and the architecture."""
    parsed = _template(root, "default")
    architecture = parsed["Parameters"]["Architecture"]["Default"]
    interpreters = _interpreters_of(root, parsed).findings
    return [_extras(), _sam(root), *interpreters, _architecture(architecture), _engine(), _aws(), *_parameters(root)]


def examine_for_build(root: Path, environment: str) -> Build:
    """Look for the interpreters that a build needs: for the layers, and for each function with a requirements.txt.

    The environment of samconfig.toml may name another runtime than the template.
    """
    return _interpreters_of(root, _template(root, environment))


def _template(root: Path, environment: str) -> Template:
    """Return the template with the parameters of an environment as defaults; without a template, those of `init`."""
    parsed = _written(root)
    overrides: Mapping[str, str] = {}
    with contextlib.suppress(Problem):  # without samconfig.toml, the template's own defaults count
        overrides = samconfig.Environment(root / samconfig.FILE, environment).parameters
    for name, default in DEFAULTS.items():
        parsed["Parameters"].setdefault(name, {"Type": "String"}).setdefault("Default", default)
    for name, value in overrides.items():
        parsed["Parameters"].setdefault(name, {})["Default"] = value
    return parsed


def _written(root: Path) -> Template:
    path = root / template.FILE
    return template.read(path) if path.is_file() else template.parse("Resources: {}")


def _parameters(root: Path) -> Iterator[Finding]:
    """Yield the parameters of the template without a value, which a deployment needs."""
    for name, environments in samconfig.without_value(root, _written(root)).items():
        text = f"the parameter {name} has no value in {', '.join(environments)}"
        yield Finding("deploy", text, samconfig.remedy(name, environments))


def _extras() -> Finding:
    missing = {extra for module, extra in EXTRAS.items() if find_spec(module) is None}
    if sys.platform != "linux":
        missing.discard("runtime")  # awslambdaric runs on Linux only
    if missing:
        names = sorted(missing)
        install = f"pip install 'mcp-functions[{','.join(names)}]'"
        return Finding("serve, demo", f"not installed: {', '.join(names)}", install)
    return Finding("serve, demo", f"Python {platform.python_version()}, with every extra that runs here")


def _sam(root: Path) -> Finding:
    project_sam = root / ".venv-sam/bin/sam"  # where the project's Makefile installs it
    version = _first_line("sam", "--version") or _first_line(str(project_sam), "--version")
    if not version:
        return Finding("build, deploy", "there is no SAM CLI", "make build installs it, or: pipx install aws-sam-cli")
    return Finding("build, deploy", version)


def _interpreters_of(root: Path, parsed: Template) -> Build:
    """Find the interpreter of the layers, and those of functions with packages of their own."""
    build = Build([], [])
    runtime = parsed["Parameters"]["Runtime"]["Default"]
    python, version = _find(runtime, module="compileall")
    if python:
        build.findings.append(Finding(LAYERS, f"are compiled with {python} ({version})"))
        build.folders.append(str(Path(python).parent))
    else:
        missing = f"there is no {runtime}, so they would not be compiled, and a cold start would take twice as long"
        build.findings.append(Finding(LAYERS, missing, f"{_install(runtime)}; or UNCOMPILED=1"))
    for folder, function_runtime in sorted(_runtimes_with_packages(root, parsed).items()):
        python, version = _find(function_runtime, module="pip")
        if python:
            build.findings.append(Finding(folder, f"gets the packages of its requirements.txt by {python} ({version})"))
            build.folders.append(str(Path(python).parent))
        else:
            missing = f"has a requirements.txt, and there is no {function_runtime} with pip to install it for its zip"
            remedy = f"{_install(function_runtime)}; or name its packages in layers/dependencies/requirements.txt"
            build.findings.append(Finding(folder, missing, remedy))
    return build._replace(folders=list(dict.fromkeys(build.folders)))


def _runtimes_with_packages(root: Path, parsed: Template) -> dict[str, str]:
    """Return the runtime of each function that has a requirements.txt, by its folder."""
    resolver = Resolver(parsed)
    runtimes: dict[str, str] = {}
    for resource in parsed["Resources"].values():
        properties = {**parsed["Globals"]["Function"], **resource["Properties"]}
        folder = str(properties.get("CodeUri")).rstrip("/")
        if resource["Type"] == template.FUNCTION and (root / folder / "requirements.txt").is_file():
            with contextlib.suppress(Unknown):  # only SAM knows it
                runtime = str(resolver.value(properties.get("Runtime")))
                if runtime.startswith("python"):
                    runtimes[folder] = runtime
    return runtimes


def _find(runtime: str, *, module: str) -> tuple[str, str]:
    """Find an interpreter that has a module, in the order of the layers' Makefile; return its path and its version."""
    for python in _interpreters(runtime):
        version = _first_line(python, "-c", f"import sys, {module}; print(*sys.version_info[:3], sep='.')")
        if version:
            return python, version
    return "", ""


def _install(runtime: str) -> str:
    number = runtime.removeprefix("python")
    return f"uv python install {number}, or: pyenv install {number}"


def _interpreters(runtime: str) -> Iterator[str]:
    """Yield candidates for the interpreter of a runtime, e.g. "python3.13"; "" may be one of them."""
    number = runtime.removeprefix("python")
    yield shutil.which(runtime) or ""
    yield _first_line("uv", "python", "find", number)
    pyenv_root = _first_line("pyenv", "root")
    if pyenv_root:
        yield from map(str, sorted(Path(pyenv_root).glob(f"versions/{number}*/bin/{runtime}")))


def _architecture(architecture: str) -> Finding:
    here = ARCHITECTURES.get(platform.machine(), platform.machine())
    if here == architecture:
        return Finding("architecture", f"{architecture}, as this machine's")
    text = f"the template's is {architecture}, and this machine's {here}: sam local emulates it, slowly"
    return Finding("architecture", text)


def _engine() -> Finding:
    for name in ("docker", "finch", "podman"):
        version = _first_line(name, "info", "--format", "{{.ServerVersion}}")
        if version:
            return Finding("sam local", f"{name} {version}")
    return Finding("sam local", "no container engine answers", "install Docker and start it; all else works without")


def _aws() -> Finding:
    names = (  # any one of these gives credentials
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    )
    files = [Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")), Path("~/.aws/config")]
    variables = [name for name in names if os.environ.get(name)]
    places = variables or [str(path) for path in files if path.expanduser().is_file()]
    if places:
        return Finding("credentials", f"of AWS in {', '.join(places)} (not tried)")
    return Finding("credentials", "none of AWS, which only a deployment needs", "aws configure sso, or set AWS_PROFILE")


def _first_line(program: str, *words: str) -> str:
    """Run a program, and return the first line that it wrote; "" if it fails, or if there is no such program."""
    try:
        process = subprocess.run([program, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        return ""
    return re.sub(r"\s+", " ", lines[0])
