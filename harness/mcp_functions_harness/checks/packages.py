"""Lists the packages that a function finds on Lambda.

They are in the runtime, in the layer of dependencies, or in the function's requirements.txt. What these packages need
is read from the packages that are installed on this machine.
"""

import re
from functools import cache
from importlib import metadata
from pathlib import Path

TOOLKIT_PACKAGES = Path(__file__).parent.parent / "scaffold" / "layer.txt"
REQUIREMENTS = "layers/dependencies/requirements.txt"  # of all functions of a project
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
EXTRAS = re.compile(r"\[([^\]]*)\]")  # of a requirement, as in name[one,two]
EXTRA_MARKER = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")  # of what only an extra needs
_installed = cache(metadata.packages_distributions)  # module -> the packages that install it


def available_packages(root: Path, folder: str) -> set[str] | None:
    """Return the packages that the function of a folder finds, with their dependencies.

    None means unknown: a line of a requirements.txt names no package, such as `-r other.txt`.
    """
    lines = ["boto3"]  # the runtime has it
    for file in (TOOLKIT_PACKAGES, root / REQUIREMENTS, root / "functions" / folder / "requirements.txt"):
        if file.is_file():
            lines += read_lines(file)
    if not all(NAME.match(line) for line in lines):
        return None
    return with_dependencies(lines)


def read_lines(file: Path) -> list[str]:
    """Return the lines of a requirements.txt that are no comments."""
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def distributions_of(module: str) -> set[str]:
    """Return the packages that install a module; if none is installed here, the name of the module itself."""
    return {normalized(name) for name in _installed().get(module, [module])}


def with_dependencies(requirements: list[str]) -> set[str]:
    """Return the names of packages and of those that they need, given lines of a requirements.txt."""
    seen: set[tuple[str, str]] = set()  # names of packages, each with "" or the name of an extra
    lines = list(requirements)
    for line in lines:  # the list grows by what each package needs
        name = normalized(line)
        for extra in ("", *extras_of(line)):
            if (name, extra) not in seen:
                seen.add((name, extra))
                lines += needs(name, extra)
    return {name for name, _extra in seen}


def extras_of(requirement: str) -> list[str]:
    """Return the extras of a requirement: "one" and "two" of name[one,two]."""
    found = EXTRAS.search(requirement.partition(";")[0])
    return [normalized(extra) for extra in found[1].split(",")] if found else []


def needs(name: str, extra: str = "") -> list[str]:
    """Return what a package needs, or what one of its extras adds, as requirements; [] if it is not installed here."""
    try:
        requirements = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    return [each for each in requirements if extra in ([*map(normalized, EXTRA_MARKER.findall(each))] or [""])]


def normalized(requirement: str) -> str:
    """Return the package's name in a requirement, in its normalized form (PyPA, "Names and normalization")."""
    name = NAME.match(requirement.strip())
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement
