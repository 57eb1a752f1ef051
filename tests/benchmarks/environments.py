"""The package trees of the contenders: compiled alike, on the PYTHONPATH of an interpreter without packages.

Lambda works like this: /opt/python and /var/task are folders of packages without a virtual environment. The Makefile of
layers/ builds this project's tree. peers/ pins all packages of each peer, so that all machines compare the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILT = ROOT / "build" / "bench"
RUNTIME = "3.13"  # Lambda's, of the template
PEERS = ("awslabs", "boto3", "mcp", "fastmcp", "runtime")
LAYERS = ("dependencies", "shared")
DEVELOPERS = {"attack", "local", "testing"}  # in no layer
COMPILE = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")


class Missing(Exception):
    """A tree cannot be made here; the text says why, for the table."""


class Interpreter(NamedTuple):
    """The Python that is measured: its binary, and its version."""

    binary: str
    version: str


def interpreter() -> Interpreter:
    """Find Lambda's version of Python; if it is not installed, use the one that runs this module."""
    asked = os.environ.get("BENCH_PYTHON")
    pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{RUNTIME}*/bin/python{RUNTIME}"))
    for binary in [asked] if asked else [f"python{RUNTIME}", *map(str, pyenv), sys.executable]:
        version = _said(binary, "-c", "import platform; print(platform.python_version())")
        if version:
            return Interpreter(_said(binary, "-c", "import sys; print(sys.executable)"), version)
    message = f"BENCH_PYTHON={asked} does not run"
    raise Missing(message)


class Trees:
    """The trees of one interpreter, made when they are first asked for, and kept in build/bench."""

    def __init__(self, measured: Interpreter) -> None:
        """Choose the folder; nothing is made yet."""
        self.measured = measured
        self._peers: dict[str, Path | Missing] = {}
        self.folder = BUILT / f"{measured.version}-{platform.machine()}"

    @cached_property
    def python(self) -> Path:
        """An interpreter without packages."""
        empty = self.folder / "python"
        binary = empty / "bin" / "python"
        if not binary.exists():
            _run(self.measured.binary, "-m", "venv", "--without-pip", str(empty))
        return binary

    def peer(self, name: str) -> Path:
        """Make one of PEERS.

        Raises:
            Missing: pip cannot install it.

        """
        if name not in self._peers:
            try:
                self._peers[name] = self._installed(self.folder / name, HERE / "peers" / f"{name}.txt", "--no-deps")
            except Missing as missing:
                self._peers[name] = missing
        tree = self._peers[name]
        if isinstance(tree, Missing):
            raise tree
        return tree

    @cached_property
    def layers(self) -> tuple[Path, ...]:
        """Build the trees of the two layers. The toolkit's tree is built each time, because its code changes."""
        if sys.platform != "linux" or not self.measured.version.startswith(RUNTIME):
            return self._like_layers()
        wheels, own = (self.folder / "layers" / name for name in LAYERS)
        if not _is_fresh(wheels, self._wheels_digest):
            self._built("DependenciesLayer", wheels)
            _mark(wheels, self._wheels_digest)
        shutil.rmtree(own, ignore_errors=True)
        self._built("SharedLayer", own)
        return own / "python", wheels / "python"

    @cached_property
    def contenders(self) -> Path:
        """The modules that are measured, copied and compiled as everything else is."""
        staged = self.folder / "contenders"
        shutil.rmtree(staged, ignore_errors=True)
        shutil.copytree(HERE / "contenders", staged, ignore=shutil.ignore_patterns("__pycache__"))
        self._compile(staged)
        return staged

    def path(self, trees: Iterable[Path]) -> str:
        """Write a PYTHONPATH."""
        return os.pathsep.join(map(str, (self.contenders, *trees)))

    @property
    def _wheels_digest(self) -> str:
        layers = ROOT / "layers"
        return _digest([layers / "dependencies" / "requirements.txt", layers / "Makefile"])

    def _built(self, target: str, artifacts: Path) -> None:
        """Build a layer as `sam build` does: the Makefile, called in the folder that the template names."""
        layers = ROOT / "layers"
        folder, makefile = layers / f"python{RUNTIME}" / _architecture(), layers / "Makefile"
        artifacts.mkdir(parents=True, exist_ok=True)
        names = (f"ARTIFACTS_DIR={artifacts}", f"PYTHON={sys.executable}", f"COMPILER={self.measured.binary}")
        _run("make", "--silent", "-C", str(folder), "-f", str(makefile), f"build-{target}", *names)

    def _like_layers(self) -> tuple[Path, ...]:
        """Make the same trees for another interpreter or system than Lambda's."""
        own, package = self.folder / "layers" / "shared", ROOT / "layers" / "shared" / "mcp_functions"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(
            package,
            own / "mcp_functions",
            ignore=lambda folder, _names: (
                {"__pycache__"} | ({"attack", "local", "testing"} if folder == str(package) else set())
            ),
        )
        self._compile(own)
        requirements = ROOT / "layers" / "dependencies" / "requirements.txt"
        return own, self._installed(self.folder / "layers" / "dependencies", requirements)

    def _installed(self, tree: Path, requirements: Path, *options: str) -> Path:
        digest = _digest([requirements])
        if not _is_fresh(tree, digest):
            shutil.rmtree(tree, ignore_errors=True)
            pip = ("-m", "pip", "--python", str(self.python), "install", "--quiet", "--disable-pip-version-check")
            _run(sys.executable, *pip, "--no-compile", *options, "--target", str(tree), "-r", str(requirements))
            shutil.rmtree(tree / "bin", ignore_errors=True)
            self._compile(tree)
            _mark(tree, digest)
        return tree

    def _compile(self, tree: Path) -> None:
        # packages may hold files that no Python compiles (templates): what cannot be compiled is not imported either
        subprocess.run([self.measured.binary, *COMPILE, str(tree)], check=False, capture_output=True)


def _architecture() -> str:
    return {"aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _is_fresh(tree: Path, digest: str) -> bool:
    mark = tree / ".made-from"
    return mark.exists() and mark.read_text(encoding="utf-8") == digest


def _mark(tree: Path, digest: str) -> None:
    (tree / ".made-from").write_text(digest, encoding="utf-8")


def _digest(files: Sequence[Path]) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line.upper() or "***" in line]
        raise Missing(" ".join((errors or done.stderr.splitlines() or ["it failed"])[-1].split())[:200])
