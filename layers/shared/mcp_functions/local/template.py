"""template.yaml as plain data, with CloudFormation's short functions written out: `!Sub X` is {"Fn::Sub": "X"}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local.problems import Problem, first_line

if TYPE_CHECKING:
    from pathlib import Path

FILE = "template.yaml"


def read(path: Path) -> dict[str, Any]:
    """Read a template.

    Raises:
        Problem: it is not there, or no template.

    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        missing = f"there is no {path}: start where template.yaml and functions/ are"
        raise Problem(missing) from error
    except ValueError as error:
        broken = f"{path} is no template: {error}"
        raise Problem(broken) from error


def parse(text: str) -> dict[str, Any]:
    """Read a template's text.

    Raises:
        Problem: PyYAML is not installed.
        ValueError: it is no YAML, or has no resources.

    """
    try:
        import yaml  # noqa: PLC0415 - of the `local` extra: whoever only serves functions does without
    except ModuleNotFoundError as error:
        missing = "PyYAML is not installed: pip install 'mcp-functions[local]'"
        raise Problem(missing) from error

    class Loader(yaml.SafeLoader):
        """A SafeLoader that knows the short functions."""

    def short_function(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
        name = tag if tag in {"Ref", "Condition"} else f"Fn::{tag}"
        match node:
            case yaml.ScalarNode():
                return {name: loader.construct_scalar(node)}
            case yaml.SequenceNode():
                return {name: loader.construct_sequence(node, deep=True)}
        return {name: loader.construct_mapping(node, deep=True)} if isinstance(node, yaml.MappingNode) else {}

    Loader.add_multi_constructor("!", short_function)
    try:
        read_ = yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(first_line(error)) from error
    if not isinstance(read_, dict) or not isinstance(read_.get("Resources"), dict):
        nothing = "it has no Resources"
        raise ValueError(nothing)  # noqa: TRY004 - what a person wrote, not what a caller passed
    return read_
