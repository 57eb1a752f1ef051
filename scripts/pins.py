"""Raise the pins of this repository to the newest releases that install together on Python 3.11: `make pins`.

pip and npm resolve; this script loosens the pins before and writes them back after. uv and pip-tools would write lock
files beside the pins and leave pyproject.toml as it is.

A pin is held back by words in its own line, which are printed: `# held <2: the reason`, or `# held: the reason` for
this very release. A package.json has no comments: there "held" maps a package to `<2: the reason`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[1]
OLDEST_PYTHON = (3, 11)
# The extras of pyproject.toml that share an environment, and pip's options for it, as in the Makefile.
ENVIRONMENTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("local", "runtime", "demo", "dev"), ()),
    (("translator",), ("--no-deps",)),
    (("sam",), ()),
    (("lint",), ()),
    (("site",), ()),
)
# These repeat pins of pyproject.toml.
REPEATING = (
    "docs/recipes/github-actions.yml",
    "layers/dependencies/requirements.txt",
    "harness/mcp_functions_harness/scaffold/layer.txt",
    "scripts/sam-engine.sh",
)
# These pin a whole environment: what is wanted, and below a line of its own what that needs.
WHOLE = (
    "tests/benchmarks/peers/awslabs.txt",
    "tests/benchmarks/peers/boto3.txt",
    "tests/benchmarks/peers/fastmcp.txt",
    "tests/benchmarks/peers/mcp.txt",
    "tests/clients/python_1.txt",
)
NEEDED = "# What these need:\n"
PACKAGES = ("tests/conformance", "tests/policies/cdk")  # folders with a package.json
SECTIONS = ("dependencies", "optionalDependencies")
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed")
NPM = (
    "npm",
    "install",
    "--package-lock-only",
    "--ignore-scripts",
    "--omit-lockfile-registry-resolved",
    "--loglevel=error",
)
PIN = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(?P<operator>==|~=)(?P<version>\d[\w.]*)")
HELD = re.compile(r"# (?:.*\b)?held(?: (?P<range>[<>=~!][^:]*))?: (?P<reason>.+)")


def main() -> None:
    """Raise all pins, and print what changed and what is held back."""
    if sys.version_info[:2] != OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        sys.exit(f"The pins must install on Python {oldest}: make clean, then make PYTHON=python{oldest} pins")
    pins = raise_project(ROOT / "pyproject.toml")
    for name in REPEATING:
        text = (ROOT / name).read_text(encoding="utf-8")
        write(ROOT / name, text, with_versions(text, pins))
    for name in WHOLE:
        raise_environment(ROOT / name)
    for name in PACKAGES:
        raise_packages(ROOT / name)


def raise_project(file: Path) -> dict[str, str]:
    """Raise the pins of pyproject.toml; return the version of each by its canonical name."""
    text = file.read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    holds = holds_of(text)
    pins: dict[str, str] = {}
    for extras, options in ENVIRONMENTS:
        wanted = [line for extra in extras for line in project["optional-dependencies"][extra]]
        wanted = [line for line in wanted if not line.startswith(f"{project['name']}[")]
        needed = project["dependencies"] if "dev" in extras else []
        found = newest(loosened([*needed, *wanted], holds), options)
        pins |= {name: found[name] for name in versions_of("\n".join(wanted)) if name in found}
    write(file, text, with_versions(text, pins))
    return pins


def raise_environment(file: Path) -> None:
    """Raise the pins of a file that names every package of an environment."""
    text = file.read_text(encoding="utf-8")
    wanted = text.partition(NEEDED)[0]
    lines = [line.partition("#")[0].strip() for line in wanted.splitlines() if PIN.match(line)]
    found = newest(loosened(lines, holds_of(wanted)))
    needed = sorted(found.keys() - versions_of(wanted).keys())
    pinned = "".join(f"{name}=={found[name]}\n" for name in needed)
    write(file, text, f"{with_versions(wanted, found)}{NEEDED}{pinned}")


def raise_packages(folder: Path) -> None:
    """Raise the pins of a package.json, and write the package-lock.json if there is one."""
    file, lock_file = folder / "package.json", folder / "package-lock.json"
    package: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    held: dict[str, str] = package.get("held", {})
    sections = {key: package[key] for key in SECTIONS if key in package}
    before = {name: pin for section in sections.values() for name, pin in section.items()}
    for name in held.keys() - before.keys():
        sys.exit(f"{file.relative_to(ROOT)} holds {name}, which it does not pin")
    for section in sections.values():
        for name, pin in section.items():
            section[name] = alias_of(pin) + held.get(name, "latest").partition(": ")[0]
    found = lock(package)["packages"]
    for section in sections.values():
        for name in section:
            section[name] = alias_of(before[name]) + found[f"node_modules/{name}"]["version"]
            tell(file, name, before[name], section[name], held.get(name, ""))
    file.write_text(f"{json.dumps(package, indent=2, ensure_ascii=False)}\n", encoding="utf-8")
    if lock_file.exists():
        after = lock(package, lock_file.read_text(encoding="utf-8"))
        lock_file.write_text(f"{json.dumps(after, indent=2, ensure_ascii=False)}\n", encoding="utf-8")


def lock(package: Mapping[str, object], before: str = "") -> dict[str, Any]:
    """Return the package-lock.json of a package.json. What it needs stays as it was before, where that fits."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "package-lock.json"
        file.with_name("package.json").write_text(json.dumps(package), encoding="utf-8")
        if before:
            file.write_text(before, encoding="utf-8")
        subprocess.run(NPM, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own words
        after: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return after


def alias_of(pin: str) -> str:
    """Return what stands before the version in an alias: `npm:other@` of `npm:other@1.2.3`; "" of `1.2.3`."""
    return "".join(pin.rpartition("@")[:2])


def newest(wanted: list[str], options: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions that install together, and say which package keeps another one from a newer release."""
    together, alone = (reported(wanted, more) for more in (options, ["--no-deps"]))
    found: dict[str, str] = {canonicalize_name(metadata["name"]): metadata["version"] for metadata in together}
    for metadata in alone:
        name, latest = canonicalize_name(metadata["name"]), metadata["version"]
        if Version(found[name]) < Version(latest):
            asking = sorted(other["name"] for other in together if refuses(other, name, latest))
            sys.stdout.write(f"{name} {found[name]}, not {latest}: for {', '.join(asking) or 'the others'}\n")
    return found


def reported(wanted: list[str], options: Iterable[str]) -> list[dict[str, Any]]:
    """Return the metadata of each package that pip would install."""
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run([*PIP, "--report", report.name, *options, *wanted], check=True)  # noqa: S603 - of files in this repository
        return [item["metadata"] for item in json.load(report)["install"]]


def refuses(metadata: Mapping[str, Any], name: str, version: str) -> bool:
    """Return whether a package asks for other versions of `name`."""
    asked = map(Requirement, metadata.get("requires_dist", ()))
    return any(canonicalize_name(one.name) == name and not one.specifier.contains(version) for one in asked)


def versions_of(text: str) -> dict[str, str]:
    """Return the pinned versions in a text."""
    return {canonicalize_name(pin["name"]): pin["version"] for pin in PIN.finditer(text)}


def holds_of(text: str) -> dict[str, tuple[str, str]]:
    """Return the range and the reason of each pin that is held back."""
    lines = ((PIN.search(line), HELD.search(line)) for line in text.splitlines())
    return {
        canonicalize_name(pin["name"]): (held["range"] or f"=={pin['version']}", held["reason"])
        for pin, held in lines
        if pin and held
    }


def loosened(requirements: Iterable[str], holds: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return requirements without their pins; those that are held have their range."""

    def loose(pin: re.Match[str]) -> str:
        return pin["name"] + holds.get(canonicalize_name(pin["name"]), ("", ""))[0]

    return [PIN.sub(loose, requirement) for requirement in requirements]


def with_versions(text: str, versions: Mapping[str, str]) -> str:
    """Return the text with these versions in its pins."""

    def raised(pin: re.Match[str]) -> str:
        return pin["name"] + pin["operator"] + versions.get(canonicalize_name(pin["name"]), pin["version"])

    return PIN.sub(raised, text)


def write(file: Path, before: str, after: str) -> None:
    """Write a file whose pins were raised, and tell what changed."""
    file.write_text(after, encoding="utf-8")
    old, new, holds = versions_of(before), versions_of(after), holds_of(after)
    for name in sorted(old | new):
        tell(file, name, old.get(name, "nothing"), new.get(name, "nothing"), ": ".join(holds.get(name, ())))


def tell(file: Path, name: str, old: str, new: str, held: str) -> None:
    """Print a line about a pin that has changed or is held."""
    news = [f"{old} -> {new}"] * (old != new) + [f"held {held}"] * bool(held)
    if news:
        sys.stdout.write(f"{file.relative_to(ROOT)}: {name} {', '.join(news)}\n")


if __name__ == "__main__":
    main()
