"""Reads template.yaml as plain data. CloudFormation's short forms become long forms: `!Ref X` is {"Ref": "X"}."""

from pathlib import Path
from typing import Any, ClassVar, NotRequired, TypedDict, cast

import yaml

from mcp_functions.protocol.wire_types import JSONObject, JSONValue
from mcp_functions_harness.problems import Problem, first_line

FILE = "template.yaml"
FUNCTION = "AWS::Serverless::Function"


class Parameter(TypedDict, total=False):
    """What a template declares of a parameter."""

    Type: str
    Description: str
    Default: JSONValue
    AllowedValues: list[JSONValue]
    AllowedPattern: str


class Resource(TypedDict):
    """A resource, with its properties as AWS documents them for its type."""

    Type: str
    Properties: JSONObject
    Condition: NotRequired[str]
    DependsOn: NotRequired[str | list[str]]
    DeletionPolicy: NotRequired[str]
    UpdateReplacePolicy: NotRequired[str]


class Globals(TypedDict):
    """The properties that SAM gives to every resource of a kind."""

    Function: JSONObject


class Template(TypedDict):
    """A template. `parse` adds the required sections, empty, where the file leaves them out."""

    Description: NotRequired[str]
    Outputs: NotRequired[dict[str, JSONObject]]
    Parameters: dict[str, Parameter]
    Mappings: dict[str, dict[str, JSONObject]]
    Conditions: dict[str, JSONValue]
    Globals: Globals
    Resources: dict[str, Resource]


def _long_form(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    """Return the long form of a short one, e.g. of the tag "Sub" with a scalar."""
    name = tag if tag in {"Ref", "Condition"} else f"Fn::{tag}"
    match node:
        case yaml.SequenceNode():
            return {name: loader.construct_sequence(node, deep=True)}
        case yaml.MappingNode():
            return {name: loader.construct_mapping(node, deep=True)}
        case yaml.ScalarNode():
            return {name: loader.construct_scalar(node)}
    raise TypeError(node)


SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times as fast


class _Loader(SafeLoader):  # type: ignore[misc]
    """A SafeLoader that knows the short forms, which are tags that begin with "!"."""

    yaml_multi_constructors: ClassVar = {**yaml.SafeLoader.yaml_multi_constructors, "!": _long_form}


def find(directory: Path) -> Path | None:
    """Return the path of the template beside a directory of functions; None if there is none."""
    path = directory.resolve().parent / FILE
    return path if path.is_file() else None


def beside(directory: Path) -> Template | None:
    """Read the template beside a directory of functions; None if there is none.

    Raises:
        Problem: the file is not a template.
    """
    path = find(directory)
    return read(path) if path else None


def read(path: Path) -> Template:
    """Read a template.

    Raises:
        Problem: the file is missing, or is not a template.
    """
    try:
        return parse(text(path))
    except ValueError as error:
        raise Problem(f"{path} is no template: {error}") from None


def text(path: Path) -> str:
    """Return the text of a template.

    Raises:
        Problem: the file is missing.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"there is no {path}: start in the folder of template.yaml and functions/") from error


def line_of(path: Path, logical_id: str) -> int:
    """Return the line where a resource begins; 0 if there is none of this name."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(f"  {logical_id}:"):
            return number
    return 0


def parse(source: str) -> Template:
    """Parse a template's text.

    Raises:
        ValueError: the text is not YAML, or has no resources.
    """
    try:
        parsed = yaml.load(source, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        reason = getattr(error, "problem", None) or first_line(error)
        raise ValueError(place + reason) from None  # the reason is all that PyYAML's error says
    written = parsed.get("Resources") if isinstance(parsed, dict) else None
    if not isinstance(written, dict):
        raise ValueError("it has no Resources")  # noqa: TRY004 - as for what is not YAML
    sections = {name: parsed.get(name) or {} for name in ("Parameters", "Mappings", "Conditions", "Globals")}
    sections["Globals"]["Function"] = sections["Globals"].get("Function") or {}
    # An entry of another form is no resource: `Fn::ForEach` has a list.
    resources = {name: entry for name, entry in written.items() if isinstance(entry, dict)}
    for resource in resources.values():
        resource["Type"] = str(resource.get("Type") or "")
        resource["Properties"] = resource.get("Properties") or {}
    return cast("Template", {**parsed, **sections, "Resources": resources})
