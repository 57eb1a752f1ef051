"""`doctor`: looks for the programs and packages that a build, a deployment and `sam local` need on this machine."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mcp_functions_harness import template

SECONDS = 20  # longest time that a program may take to answer
# Lambda's names of architectures, by Python's names of machines
ARCHITECTURES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
DEFAULTS = {"Runtime": "python3.13", "Architecture": "x86_64"}  # the parameters of the template that `init` writes
EXTRAS = {"moto": "local", "awslambdaric": "runtime", "mcp": "demo"}  # module -> the extra that installs it


class Finding(NamedTuple):
    """One thing that this machine has or lacks."""

    subject: str  # the commands that need it
    text: str  # what was found
    remedy: str = ""  # what to do; "" if nothing is missing


def examine(root: Path) -> list[Finding]:
    """Look for each program and package.

    Args:
        root: the project's folder. Its template names the runtime and the architecture, if there is a template.
    """
    parameters = _parameters(root)
    return [
        _extras(),
        _sam(root),
        _compiler(parameters["Runtime"]),
        _architecture(parameters["Architecture"]),
        _engine(),
        _aws(),
    ]


def _parameters(root: Path) -> dict[str, str]:
    """Return the runtime and the architecture of the template, or those of a new project."""
    if not (root / template.FILE).is_file():
        return DEFAULTS
    declared = template.read(root / template.FILE).get("Parameters", {})
    return {name: str(declared.get(name, {}).get("Default", default)) for name, default in DEFAULTS.items()}


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


def _compiler(runtime: str) -> Finding:
    """Find the interpreter that compiles the layers, in the order of the layers' Makefile."""
    for python in _interpreters(runtime):
        version = _first_line(python, "-c", "import sys; print(*sys.version_info[:3], sep='.')")
        if version:
            return Finding("layers", f"are compiled with {python} ({version})")
    number = runtime.removeprefix("python")
    missing = f"there is no {runtime}, so they would not be compiled, and a cold start would take twice as long"
    return Finding("layers", missing, f"uv python install {number}, or: pyenv install {number}")


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
        process = subprocess.run([program, *words], capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603 - found on the PATH
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        return ""
    return re.sub(r"\s+", " ", lines[0])
