"""Lists the packages that a function finds on Lambda: the runtime's, the layer's, and those of its requirements.txt.

The dependencies of these packages are read from the packages that are installed here.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

LAYER = Path(__file__).parent.parent / "scaffold" / "layer.txt"  # the packages that the toolkit needs
REQUIREMENTS = "layers/dependencies/requirements.txt"  # in a project: the packages of all its functions
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_installed = cache(metadata.packages_distributions)  # module -> the packages that install it


def shipped(root: Path, folder: str) -> set[str] | None:
    """Return the packages that a function finds, and their dependencies; None if a line does not name its package.

    Args:
        root: the folder of template.yaml.
        folder: the function's folder.
    """
    lines = ["boto3"]  # the runtime has it
    for file in (LAYER, root / REQUIREMENTS, root / "functions" / folder / "requirements.txt"):
        if file.is_file():
            file_lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
            lines += [line for line in file_lines if line and not line.startswith("#")]
    if not all(NAME.match(line) for line in lines):
        return None  # e.g. -r other.txt
    return _with_dependencies(lines)


def distributions_of(module: str) -> set[str]:
    """Return the packages that install a module; its own name, if none is installed."""
    return {_normal(name) for name in _installed().get(module, [module])}


def _with_dependencies(lines: list[str]) -> set[str]:
    names: set[str] = set()
    for line in lines:  # the list grows by what each package needs
        name = _normal(line)
        if name in names:
            continue
        names.add(name)
        has_extras = "[" in line  # e.g. name[extra]; all extras count then
        lines += [requirement for requirement in _requires(name) if has_extras or "extra ==" not in requirement]
    return names


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _normal(requirement: str) -> str:
    """Return a package's name as the packaging specification normalizes names."""
    name = NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement
