"""Lists the packages that a function finds on Lambda.

They are in the runtime, in the layer of dependencies, or in the function's requirements.txt. What these packages need
is read from the packages that are installed on this machine.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

TOOLKIT_PACKAGES = Path(__file__).parent.parent / "scaffold" / "layer.txt"  # what the toolkit itself needs
REQUIREMENTS = "layers/dependencies/requirements.txt"  # in a project: the packages of all its functions
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_installed = cache(metadata.packages_distributions)  # module -> the packages that install it


def available_packages(root: Path, folder: str) -> set[str] | None:
    """Return the packages that a function finds, with their dependencies.

    None means unknown: a line of a requirements.txt names no package, such as `-r other.txt`.

    Args:
        root: the folder of template.yaml.
        folder: the function's folder.
    """
    lines = ["boto3"]  # the runtime has it
    for file in (TOOLKIT_PACKAGES, root / REQUIREMENTS, root / "functions" / folder / "requirements.txt"):
        if file.is_file():
            file_lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
            lines += [line for line in file_lines if line and not line.startswith("#")]
    if not all(NAME.match(line) for line in lines):
        return None
    return _with_dependencies(lines)


def distributions_of(module: str) -> set[str]:
    """Return the packages that install a module; if none is installed here, the name of the module itself."""
    return {_normalized(name) for name in _installed().get(module, [module])}


def _with_dependencies(requirements: list[str]) -> set[str]:
    """Return the names of packages and of those that they need, given lines of a requirements.txt."""
    names: set[str] = set()
    lines = list(requirements)
    for line in lines:  # the list grows by what each package needs
        name = _normalized(line)
        if name in names:
            continue
        names.add(name)
        dependencies = _dependencies(name)
        if "[" not in line:  # with an extra, as in name[extra], the dependencies of all its extras count
            dependencies = [dependency for dependency in dependencies if "extra ==" not in dependency]
        lines += dependencies
    return names


def _dependencies(name: str) -> list[str]:
    """Return what a package needs, as requirements; [] if it is not installed here."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def _normalized(requirement: str) -> str:
    """Return the package's name in a requirement, in its normalized form (PyPA, "Names and normalization")."""
    name = NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement
