"""Where a function finds the modules that it imports: in its own folder, in layers/common, or in the runtime."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

COMMON = Path("layers/common/python")  # modules that functions share; on Lambda a layer
IN_THE_RUNTIME = sys.stdlib_module_names | {"awslambdaric", "mcp_functions"}


def common(directory: Path) -> Path:
    """Return the folder of the modules that the functions of a directory share."""
    return directory.resolve().parent / COMMON


def has_module(folder: Path, name: str) -> bool:
    """Whether a folder has a module or a package of this name."""
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


def elsewhere(name: str, project: Path) -> str:
    """Return the path of a module that is in the project, but not where Lambda would find it.

    It is "" if the module is installed, or is missing. The project's folder has its symbolic links resolved.
    """
    spec = PathFinder.find_spec(name, [*sys.path, str(project)])
    if spec is None:
        return ""
    # A package without an __init__.py has no origin, but a list of folders.
    places = [spec.origin] if spec.origin else spec.submodule_search_locations
    for place in places or ():
        path = Path(str(place)).resolve()
        if path.is_relative_to(project) and "site-packages" not in path.parts:
            return str(path.relative_to(project))
    return ""
