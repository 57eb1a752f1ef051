"""The packages that a function finds on Lambda: the runtime's, the layer's, and those of its requirements.txt."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

LAYER = Path(__file__).parent.parent / "scaffold" / "layer.txt"  # what the toolkit needs
_installed = cache(metadata.packages_distributions)
REQUIREMENTS = "layers/dependencies/requirements.txt"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def shipped(root: Path, folder: str) -> set[str] | None:
    """Return the packages that a function finds, with what they need; None if a line does not name its package.

    Args:
        root: the folder of template.yaml.
        folder: of the function.
    """
    lines = ["boto3"]
    for file in (LAYER, root / REQUIREMENTS, root / "functions" / folder / "requirements.txt"):
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        lines += [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not all(NAME.match(line) for line in lines):
        return None  # e.g. -r other.txt
    return _with_dependencies(lines)


def distribution_of(module: str) -> set[str]:
    """Return the packages that install a module; its own name, if none is installed."""
    return {_normal(name) for name in _installed().get(module, [module])}


def _with_dependencies(lines: list[str]) -> set[str]:
    found: set[str] = set()
    for line in lines:  # it grows by what each package needs
        name = _normal(line)
        if name not in found:
            found.add(name)
            lines += [one for one in _requires(name) if "extra ==" not in one or "[" in line]
    return found


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _normal(requirement: str) -> str:
    """Return a package's name as the packaging specification normalizes names."""
    name = NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement
