"""Writes templates with @placeholders@ as new files. If one of the files exists already, it writes none."""

import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from mcp_functions_harness.problems import Problem, first_line

HERE = Path(__file__).parent
SUFFIX = ".in"  # the end of a template's file name
DOT = "dot-"  # stands for the dot of a hidden file, which a package would leave out
PLACEHOLDER = re.compile(r"@([a-z]+)@")


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace @placeholders@ by their values."""
    return PLACEHOLDER.sub(lambda match: values[match[1]], text)


def template(name: str, values: Mapping[str, str]) -> str:
    """Fill in one template of this package, e.g. "block.yaml"."""
    return filled((HERE / f"{name}{SUFFIX}").read_text(encoding="utf-8"), values)


def tree(folder: str, values: Mapping[str, str]) -> dict[str, str]:
    """Fill in a folder of templates; return the texts by relative path."""
    root = HERE / folder
    texts: dict[str, str] = {}
    for path in sorted(root.rglob(f"*{SUFFIX}")):
        name = path.relative_to(root).as_posix().removesuffix(SUFFIX).replace(DOT, ".")
        texts[name] = filled(path.read_text(encoding="utf-8"), values)
    return texts


def write(root: Path, texts: Mapping[str, str], copies: Mapping[str, Path] = MappingProxyType({})) -> None:
    """Write new files, and copies of files of the user, each by its path relative to `root`.

    Raises:
        Problem: a file exists already, so none was written; or the disk has an error.
    """
    names = [*copies, *texts]
    existing = [name for name in names if (root / name).exists() or (root / name).is_symlink()]
    if existing:
        raise Problem(f"{root / existing[0]} is there already: nothing was written")
    try:
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            if name in copies:
                shutil.copyfile(copies[name], root / name)
            else:
                (root / name).write_text(texts[name], encoding="utf-8", newline="\n")
    except OSError as error:
        take_back(root, names)
        raise Problem(f"{root} cannot be written: {first_line(error)}") from error


def take_back(root: Path, names: Iterable[str]) -> None:
    """Remove files that `write` has written, and the folders that are empty then."""
    for name in names:
        path = root / name
        with suppress(OSError):  # it was not written: the disk failed, or a folder's place is taken
            path.unlink()
        for folder in path.parents:
            if folder == root or not folder.is_dir() or any(each.name != "__pycache__" for each in folder.iterdir()):
                break
            shutil.rmtree(folder)
