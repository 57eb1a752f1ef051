"""IAM statements: the exact ones that a function may have, and how to read those of a template."""

from __future__ import annotations

from typing import Any

INVOKE = "lambda:InvokeFunction"
KEY = {"Fn::GetAtt": "RequestStateKey.Arn"}


def may_seal_as(folder: str) -> dict[str, Any]:
    """Return the only KMS statement that a function may have."""
    return {
        "Effect": "Allow",
        "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
        "Resource": KEY,
        "Condition": {
            "StringEquals": {
                "kms:EncryptionContext:purpose": "mcp-request-state",
                "kms:EncryptionContext:service": {"Fn::Sub": f"${{AWS::StackName}}/{folder}"},
                "kms:EncryptionContext:stage": {"Ref": "Stage"},
            },
            "ForAllValues:StringEquals": {
                "kms:EncryptionContextKeys": ["purpose", "service", "stage", "generation", "born"]
            },
            "Null": {"kms:EncryptionContextKeys": "false"},
        },
    }


def may_keep_as(folder: str) -> dict[str, Any]:
    """Return the only DynamoDB statement that a function may have."""
    return {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"],
        "Resource": {"Fn::GetAtt": "Table.Arn"},
        "Condition": {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": {"Fn::Sub": f"${{AWS::StackName}}/{folder}/*"}},
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    }


def may_store_as(folder: str, bucket: object) -> dict[str, Any]:
    """Return the only S3 statement that a function may have: it reaches its own objects and cannot list them."""
    objects = f"arn:${{AWS::Partition}}:s3:::${{Bucket}}/${{AWS::StackName}}/{folder}/*"
    return {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": {"Fn::Sub": [objects, {"Bucket": bucket}]},
    }


def statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """List the inline statements of a function or a role."""
    inline = [policy for policy in as_list(properties.get("Policies", [])) if isinstance(policy, dict)]
    return [statement for policy in inline for statement in as_list(policy.get("Statement", []))]


def actions(statement: dict[str, Any]) -> list[str]:
    """List a statement's actions."""
    return as_list(statement.get("Action", []))


def resources(statement: dict[str, Any]) -> list[Any]:
    """List a statement's resources; YAML anchors may nest lists in lists."""
    return _flat(statement.get("Resource", []))


def without_resource(statement: dict[str, Any]) -> dict[str, Any]:
    """Return a statement without its resources."""
    return {name: value for name, value in statement.items() if name != "Resource"}


def touches(statement: dict[str, Any], service: str) -> bool:
    """Whether a statement has an action of a service, e.g. "kms"."""
    return any(action == "*" or action.startswith(f"{service}:") for action in actions(statement))


def invoked_functions(allowed: list[dict[str, Any]]) -> set[str]:
    """Return the logical ids of the functions that statements name."""
    return {function_name(resource) for statement in allowed for resource in resources(statement)}


def function_name(resource: object) -> str:
    """Return the logical id in !Sub ${X.Arn}${Qualifier}, !GetAtt X.Arn or !Ref X."""
    match resource:
        case {"Fn::Sub": str(name)}:
            return name.removesuffix("${Qualifier}").removeprefix("${").removesuffix("}").removesuffix(".Arn")
        case {"Fn::GetAtt": str(name)} | {"Ref": str(name)}:
            return name.removesuffix(".Arn").removesuffix(".Alias")
    return str(resource)


def substitution(value: object) -> object:
    """Return the text of a !Sub."""
    return value.get("Fn::Sub") if isinstance(value, dict) else value


def as_list(value: object) -> list[Any]:
    """Return a list; IAM allows a single value where it means a list of one."""
    return value if isinstance(value, list) else [value]


def _flat(value: object) -> list[Any]:
    if not isinstance(value, list):
        return [value]
    return [one for each in value for one in _flat(each)]
