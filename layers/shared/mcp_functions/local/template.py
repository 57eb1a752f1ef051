"""Reads template.yaml as plain data; short functions get their long form: `!Ref X` is {"Ref": "X"}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from mcp_functions.local.problems import first_line, stop

if TYPE_CHECKING:
    from pathlib import Path

FILE = "template.yaml"


def find(directory: Path) -> Path | None:
    """Return the path of the template beside a directory of functions; None if there is none."""
    path = directory.resolve().parent / FILE
    return path if path.is_file() else None


def read(path: Path) -> dict[str, Any]:
    """Read a template.

    Raises:
        Problem: the file is missing, or is not a template.
    """
    try:
        return parse(text(path))
    except ValueError as error:
        stop(f"{path} is no template: {error}")


def text(path: Path) -> str:
    """Return the text of a template.

    Raises:
        Problem: the file is missing.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        stop(f"there is no {path}: start in the folder of template.yaml and functions/", after=error)


def line_of(path: Path, logical_id: str) -> int:
    """Return the line where a resource begins; 0 if there is none of this name."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(f"  {logical_id}:"):
            return number
    return 0


def parse(source: str) -> dict[str, Any]:
    """Parse a template's text.

    Raises:
        ValueError: the text is not YAML, or has no resources.
    """

    class Loader(yaml.SafeLoader):
        """A SafeLoader that knows the short functions."""

    def long_form(loader: yaml.SafeLoader, tag: str, node: Any) -> dict[str, Any]:  # noqa: ANN401 - a kind of yaml.Node
        name = tag if tag in {"Ref", "Condition"} else f"Fn::{tag}"
        match node:
            case yaml.SequenceNode():
                return {name: loader.construct_sequence(node, deep=True)}
            case yaml.MappingNode():
                return {name: loader.construct_mapping(node, deep=True)}
        return {name: loader.construct_scalar(node)}

    Loader.add_multi_constructor("!", long_form)
    try:
        parsed = yaml.load(source, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        reason = getattr(error, "problem", None) or first_line(error)
        raise ValueError(place + reason) from None  # the reason is all that PyYAML's error says
    if isinstance(parsed, dict) and isinstance(parsed.get("Resources"), dict):
        return parsed
    nothing = "it has no Resources"
    raise ValueError(nothing)
