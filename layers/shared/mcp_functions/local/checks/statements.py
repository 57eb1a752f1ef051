"""IAM statements: those of the two policies, which alone reach the key and the table, and how to read others."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

INVOKE = "lambda:InvokeFunction"
KEY = {"Fn::GetAtt": "RequestStateKey.Arn"}
TABLE = {"Ref": "Table"}
TAG = "mcp-function"  # of a function and of its role: the function's folder
OWN = f"${{!aws:PrincipalTag/{TAG}}}"  # IAM puts the tag of the caller's role here
LAMBDA = {"Lambda": {"Fn::Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}"}}
SEAL, KEEP = "MaySeal", "MayKeep"

MAY_SEAL: dict[str, Any] = {
    "Effect": "Allow",
    "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
    "Resource": KEY,
    "Condition": {
        "StringEquals": {
            "kms:EncryptionContext:purpose": "mcp-request-state",
            "kms:EncryptionContext:service": {"Fn::Sub": f"${{AWS::StackName}}/{OWN}"},
            "kms:EncryptionContext:stage": {"Ref": "Stage"},
        },
        "ForAllValues:StringEquals": {
            "kms:EncryptionContextKeys": ["purpose", "service", "stage", "generation", "born"]
        },
        "Null": {"kms:EncryptionContextKeys": "false"},
    },
}
MAY_KEEP: dict[str, Any] = {
    "Effect": "Allow",
    "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"],
    "Resource": {"Fn::GetAtt": "Table.Arn"},
    "Condition": {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": {"Fn::Sub": f"${{AWS::StackName}}/{OWN}/*"}},
        "Null": {"dynamodb:LeadingKeys": "false"},
    },
}
MAY_CALL_WORKER: dict[str, Any] = {
    "Effect": "Allow",
    "Action": INVOKE,
    "Resource": {"Fn::Sub": [f"${{Lambda}}:function:${{AWS::StackName}}_{OWN}-worker*", LAMBDA]},
}
MAY_STORE: dict[str, Any] = {
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
    "Resource": {
        "Fn::Sub": [
            f"${{Bucket}}/${{AWS::StackName}}/{OWN}/*",
            {
                "Bucket": {
                    "Fn::If": [
                        "HasOwnBlobs",
                        {"Fn::GetAtt": "Blobs.Arn"},
                        {"Fn::Sub": "arn:${AWS::Partition}:s3:::${BlobBucket}"},
                    ]
                }
            },
        ]
    },
}
MAY_INVOKE: dict[str, Any] = {"LambdaInvokePolicy": {"FunctionName": {"Fn::Sub": "${AWS::StackName}_"}}}
KEEP_STATEMENTS = [MAY_KEEP, MAY_CALL_WORKER, MAY_STORE]


def policies(properties: dict[str, Any]) -> list[Any]:
    """List the policies of a function."""
    return as_list(properties.get("Policies", []))


def managed(properties: dict[str, Any]) -> set[str]:
    """Return the logical ids of the managed policies that a function has."""
    return {policy["Ref"] for policy in policies(properties) if isinstance(policy, dict) and "Ref" in policy}


def statements(policy: object) -> list[dict[str, Any]]:
    """List the statements of an inline policy, also of one that `!If` chooses; a policy by its name has none here."""
    match policy:
        case {"Fn::If": [_, yes, no]}:
            return [*statements(yes), *statements(no)]
        case {"Statement": written}:
            return [one for each in as_list(written) for one in _chosen(each)]
    return []


def own_statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """List the inline statements of a function that allow something."""
    own = [statement for policy in policies(properties) for statement in statements(policy)]
    return [statement for statement in own if statement.get("Effect") != "Deny"]


def actions(statement: dict[str, Any]) -> list[str]:
    """List a statement's actions."""
    return as_list(statement.get("Action", []))


def resources(statement: dict[str, Any]) -> list[Any]:
    """List a statement's resources; with NotResource, it has all others."""
    return ["*"] if "NotResource" in statement else as_list(statement.get("Resource", []))


def without_resource(statement: dict[str, Any]) -> dict[str, Any]:
    """Return a statement without its resources."""
    return {name: value for name, value in statement.items() if name != "Resource"}


def touches(statement: dict[str, Any], service: str) -> bool:
    """Whether a statement has an action of a service, e.g. "kms"; with NotAction, it has all others."""
    return "NotAction" in statement or any(
        action == "*" or action.lower().startswith(f"{service}:") for action in actions(statement)
    )


def names(resource: object) -> str:
    """Return the logical id in !GetAtt X.Arn, !Ref X or !Sub ${X.Arn}; a written ARN as it is."""
    match resource:
        case {"Fn::Sub": str(name)} if name.startswith("${"):
            return name.removeprefix("${").partition("}")[0].removesuffix(".Arn")
        case {"Fn::GetAtt": [str(name), *_]}:
            return name
        case {"Fn::GetAtt": str(name)} | {"Ref": str(name)}:
            return name.removesuffix(".Arn")
    return str(resource)


def is_opened(resource: object, logical_id: str, example: str) -> bool:
    """Whether a statement's resource has a logical id, or matches an example of how its ARN ends (empty: none)."""
    if names(resource) == logical_id:
        return True
    return bool(example) and fnmatchcase(example, pattern(resource).split(":", 5)[-1])


def pattern(resource: object) -> str:
    """Return the text of a resource, with STACK for the stack's name, and x for what only a deployment knows."""
    text = shown(resource)
    if isinstance(resource, dict) and "Ref" in resource:
        text = f"${{{text}}}"
    return re.sub(r"\$\{[^}]*\}", "x", text.replace("${AWS::StackName}", "STACK"))


def shown(resource: object) -> str:
    """Return a resource as its logical id, or as the text of its ARN."""
    match resource:
        case {"Fn::Sub": [str(text), *_]}:
            return text
        case {"Fn::Sub": str(text)} if not re.match(r"\$\{\w+(\.Arn)?\}", text):
            return text
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(part if isinstance(part, str) else f"${{{names(part)}}}" for part in parts)
    return names(resource)


def substitution(value: object) -> object:
    """Return the text of a !Sub."""
    return value.get("Fn::Sub") if isinstance(value, dict) else value


def as_list(value: object) -> list[Any]:
    """Return a list; IAM allows a single value where it means a list of one."""
    return value if isinstance(value, list) else [value]


def _chosen(statement: dict[str, Any]) -> list[dict[str, Any]]:
    if "Fn::If" not in statement:
        return [statement]
    return [one for one in statement["Fn::If"][1:] if isinstance(one, dict) and "Effect" in one]
