"""The lines of requirements.txt for an adopted server: the packages that its author has installed, in their versions.

A user may have installed another package than the one with the module: `fastmcp` has no modules, and needs
`fastmcp-slim[client,server]`, which has them. pip does not record an extra, as in psycopg[binary]. An extra counts as
installed if all that it needs is here, and a part of that is here for no other reason.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions_harness.checks.packages import (
    TOOLKIT_PACKAGES,
    extras_of,
    needs,
    normalized,
    read_lines,
    with_dependencies,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_BYTES = 262_144_000  # of a function with its layers, unzipped: Lambda's quota is 250 MiB
TOOLKIT = "mcp-functions"


def lines_for(modules: Iterable[str]) -> list[str]:
    """Return the lines for the packages of installed modules, which have dotted names."""
    names = {_installed_as(name) for module in modules for name in _packages_of(module)}
    return sorted(_line(name) for name in names - {TOOLKIT})


def local_packages(lines: Iterable[str]) -> list[str]:
    """Return those of the lines that name a folder of this machine, which Lambda's build cannot install."""
    return [line for line in lines if "@ file:" in line]


def files_of(lines: list[str]) -> Iterator[tuple[str, Path]]:
    """Return the installed files of packages, of what they need, and of the toolkit's layer.

    Each has its path in site-packages, and its path here.
    """
    for name in with_dependencies([*read_lines(TOOLKIT_PACKAGES), *lines]):
        try:
            files = metadata.distribution(name).files or []
        except metadata.PackageNotFoundError:  # a requirement of another platform
            continue
        for file in files:
            if ".." not in file.parts:  # a program in bin/
                yield str(file), Path(str(file.locate()))


def size_on_lambda(lines: list[str]) -> int:
    """Return the bytes that packages need on Lambda, with the toolkit's layer. Lambda's own boto3 does not count."""
    return sum(path.stat().st_size for name, path in files_of(lines) if not name.endswith(".pyc") and path.exists())


def _packages_of(module: str) -> set[str]:
    """Return the packages that contain a module; of several with its first part (a namespace), those that have it."""
    found = {normalized(name) for name in by_module().get(module.partition(".")[0], ())}
    if len(found) > 1:
        inside = module.replace(".", "/")
        exact = {name for name in found if any(str(file).startswith(inside) for file in metadata.files(name) or ())}
        return exact or found
    return found


def _installed_as(name: str) -> str:
    """Return the package that was installed to get this one: it has no module, and needs this one's exact version."""
    exact = f"=={metadata.version(name)}"
    for other, lines in needs_of_all().items():
        is_whole = any(normalized(line) == name and line.split(";")[0].rstrip(" )").endswith(exact) for line in lines)
        if is_whole and other not in packages_with_modules():
            return _installed_as(other)
    return name


def _line(name: str) -> str:
    distribution = metadata.distribution(name)
    extras = f"[{','.join(_extras(distribution))}]" if _extras(distribution) else ""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")  # PEP 610: an address
    if not origin:
        return f"{name}{extras}=={distribution.version}"
    source = origin.get("vcs_info")
    url = f"{source['vcs']}+{origin['url']}@{source['commit_id']}" if source else origin["url"]
    return f"{name}{extras} @ {url}"


def _extras(distribution: metadata.Distribution) -> list[str]:
    """Return the extras with which a package was installed, other than by packages that need it with an extra."""
    name = normalized(distribution.metadata["Name"])
    offered = {normalized(extra) for extra in distribution.metadata.get_all("Provides-Extra") or ()}
    of_others = {extra for lines in needs_of_all().values() for line in lines for extra in _extras_for(name, line)}
    found = []
    for extra in sorted(offered - of_others):
        added = {normalized(line) for line in needs(name, extra)} - {name}
        if added <= needs_of_all().keys() and any(_is_here_for_an_extra(each) for each in added):
            found.append(extra)
    return found


def _extras_for(name: str, line: str) -> list[str]:
    return extras_of(line) if normalized(line) == name else []


def _is_here_for_an_extra(name: str) -> bool:
    """Whether no package needs this one without an extra, and its user did not name it to pip (PEP 376, REQUESTED)."""
    needed = {normalized(line) for lines in needs_of_all().values() for line in lines}
    return name not in needed and metadata.distribution(name).read_text("REQUESTED") is None


@cache
def needs_of_all() -> dict[str, list[str]]:
    """Return what each installed package needs, without its extras."""
    names = {normalized(each.metadata["Name"]) for each in metadata.distributions()}
    return {name: needs(name) for name in names}


@cache
def by_module() -> Mapping[str, list[str]]:
    """Return the packages that contain each module, by the first part of its name."""
    return metadata.packages_distributions()


@cache
def packages_with_modules() -> frozenset[str]:
    """Return the names of the packages that contain a module."""
    return frozenset(normalized(name) for names in by_module().values() for name in names)
