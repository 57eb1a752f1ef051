"""Reads IAM policies in a parsed template.yaml: the two that `init` writes, and those of an author.

    MaySeal   a function may use the KMS key, which encrypts the state of an unfinished call ("seals" it)
    MayKeep   a function may use the table and the bucket, where it keeps what must not be lost

Only these two policies may reach the key and the table. A function's tag TAG limits each function to its own entries.
"""

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness import fragments, template

SCAFFOLD = Path(__file__).parent.parent / "scaffold"  # with the template that `init` writes
ADDITIONS = ("table", "bucket")
PLACEHOLDER = re.compile(r"@\w+@")  # in that template, as in @stack@
SEAL = "MaySeal"
KEEP = "MayKeep"
TABLE = {"Ref": "Table"}  # the table in a policy or a variable
TAG = "mcp-function"  # the tag of a function and of its role; its value is the function's folder
MAY_INVOKE = {"LambdaInvokePolicy": {"FunctionName": {"Fn::Sub": "${AWS::StackName}_"}}}


class Statement(TypedDict, total=False):
    """A statement of a policy: one value may stand where a list of one is meant."""

    Effect: Literal["Allow", "Deny"]
    Action: str | list[str]
    NotAction: str | list[str]
    Resource: object
    NotResource: object
    Condition: dict[str, JSONObject]  # the operator -> the condition key -> its values


@cache
def _scaffold_template() -> template.Template:
    text = PLACEHOLDER.sub("", (SCAFFOLD / "project/template.yaml.in").read_text(encoding="utf-8"))
    for name in ADDITIONS:
        text = fragments.insert(text, (SCAFFOLD / f"additions/{name}.yaml.in").read_text(encoding="utf-8"))
    return template.parse(text)


def scaffold_properties(logical_id: str) -> JSONObject:
    """Return the properties of a resource as `init` and `add` write it."""
    return _scaffold_template()["Resources"][logical_id]["Properties"]


def scaffold_worker(folder: str, function_id: str) -> JSONObject:
    """Return the properties of a function's worker as `block` writes them."""
    text = (SCAFFOLD / "worker.yaml.in").read_text(encoding="utf-8")
    text = text.replace("@id@", function_id).replace("@name@", folder)
    return template.parse(f"Resources:\n{text}")["Resources"][f"{function_id}Worker"]["Properties"]


def scaffold_statements(policy: str) -> list[Statement]:
    """List the statements of MaySeal or MayKeep as `init` writes them."""
    return statements(scaffold_properties(policy)["PolicyDocument"])


def statements(policies: Any) -> list[Statement]:  # noqa: ANN401 - any JSON
    """List the statements of inline policies: for `!If`, of both branches; for the name of a policy, none."""
    match policies:
        case list():
            return [statement for policy in policies for statement in statements(policy)]
        case {"Fn::If": [_, yes, no]}:
            return statements([yes, no])
        case {"Statement": entries}:
            return statements(entries)
        case {"Effect": _}:
            return [policies]
    return []


def actions(statement: Statement) -> list[str]:
    """List a statement's actions."""
    return as_list(statement.get("Action", []))


def resources(statement: Statement) -> list[Any]:
    """List a statement's resources. NotResource names only exceptions, so it counts as all resources."""
    if "NotResource" in statement:
        return ["*"]
    return as_list(statement.get("Resource", []))


def has_action_of(statement: Statement, service: str) -> bool:
    """Whether a statement has an action of a service, e.g. "kms"; NotAction counts as all actions."""
    if "NotAction" in statement:
        return True
    return any(action == "*" or action.lower().startswith(f"{service}:") for action in actions(statement))


def resource_name(resource: object) -> str:
    """Return X for !GetAtt X.Arn, !Ref X and !Sub ${X.Arn}; return an ARN as it is."""
    match resource:
        case {"Fn::Sub": str(name)} if name.startswith("${"):
            return name.removeprefix("${").partition("}")[0].removesuffix(".Arn")
        case {"Fn::GetAtt": [str(name), *_]}:
            return name
        case {"Fn::GetAtt": str(name)} | {"Ref": str(name)}:
            return name.removesuffix(".Arn")
    return str(resource)


def includes(resource: object, logical_id: str, example: str) -> bool:
    """Whether the resource of a statement, a logical id or an ARN with wildcards, includes one of the template.

    `example` is an example of the end of its ARN, to try wildcards on; "" to compare logical ids only.
    """
    if resource_name(resource) == logical_id:
        return True
    if not example:
        return False
    end_of_arn = arn_pattern(resource).split(":", 5)[-1]  # arn:partition:service:region:account:END
    return fnmatchcase(example, end_of_arn)


def arn_pattern(resource: object) -> str:
    """Return the ARN of a resource, with STACK for the stack's name, and x for every other placeholder."""
    text = resource_text(resource)
    if isinstance(resource, dict) and "Ref" in resource:
        text = f"${{{text}}}"  # a placeholder too
    return re.sub(r"\$\{[^}]*\}", "x", text.replace("${AWS::StackName}", "STACK"))


def resource_text(resource: object) -> str:
    """Return a resource as its ARN, with placeholders as in `!Sub`; without an ARN, as its logical id."""
    match resource:
        case {"Fn::Sub": [str(text), *_]}:
            return text
        case {"Fn::Sub": str(text)} if not re.match(r"\$\{\w+(\.Arn)?\}", text):
            return text
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(part if isinstance(part, str) else f"${{{resource_name(part)}}}" for part in parts)
    return resource_name(resource)


def as_list(value: object) -> list[Any]:
    """Return a list; IAM allows a single value where it means a list of one."""
    return value if isinstance(value, list) else [value]
