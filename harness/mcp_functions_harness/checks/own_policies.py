"""Checks the policies that an author gives to a function: they may open anything but what all functions share.

All functions of a stack share the KMS key, the table and the bucket. A policy on one of these would let a function read
what belongs to another function. The same holds for policies on the functions themselves, and on their roles.

A policy names a resource by its logical id, or by an ARN that may have wildcards. To see what a wildcard includes, the
checks try it on an example of an ARN, in which STACK is the stack's name.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from fnmatch import fnmatchcase

from mcp_functions_harness.checks import iam
from mcp_functions_harness.checks.iam import Statement
from mcp_functions_harness.checks.project import Block, Project

SHARED = {  # service -> the id of its shared resource, and an example of the end of its ARN
    "kms": ("RequestStateKey", "key/1234abcd-12ab-34cd-56ef-1234567890ab"),
    "dynamodb": ("Table", "table/STACK-Table-1A2B3C4D5E6F"),
    "s3": ("Blobs", ""),
}
FUNCTION = "function:STACK_name"  # the example of a function
ROLE = "role/STACK-AddRole-1A2B3C4D5E6F"  # the example of a function's role
# Beginning of the name of a SAM policy template -> the end of the ARN that it opens for a value {}, and the example of
# a shared resource. LambdaInvokePolicy, for example, opens every function whose name begins with its value.
POLICY_TEMPLATES = {
    "DynamoDB": ("table/{}", SHARED["dynamodb"][1]),
    "KMS": ("key/{}", SHARED["kms"][1]),
    "Lambda": ("function:{}*", FUNCTION),
}
# A function that may change roles could give itself another tag or policy, and so open what other functions keep.
CHANGES_OF_ROLES = ("iam:TagRole", "iam:PutRolePolicy", "iam:AttachRolePolicy")
TRUST = [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]
# AWS's own policies with which a function may write its log. SAM adds the first to the roles that it makes.
LOGGING = (
    "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole",
    "arn:aws:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole",
)
AUDIENCE = "kms:EncryptionContext:service"  # whose value is the name for which the key encrypts
BROAD = frozenset({  # AWS's own policies that open every table, or invoke every function
    "AWSLambdaRole", "AWSLambda_FullAccess", "AdministratorAccess", "AmazonDynamoDBFullAccess",
    "AmazonDynamoDBFullAccess_v2", "IAMFullAccess", "PowerUserAccess",
})  # fmt: skip


def a_function_reaches_the_key_and_the_table_by_these_policies_only(project: Project) -> Iterator[str]:
    """Check that no policy of an author's opens the shared key, table or bucket, a function or a role."""
    shared_ids = {logical_id for logical_id, _example in SHARED.values()}
    toolkit_ids = shared_ids | {block.logical_id for block in project.functions.values()}
    for block in project.blocks:
        for statement in project.statements(block):
            yield from _complaints_about(block, statement)
        for policy in block.policies:
            if policy == iam.MAY_INVOKE and block == project.front_door:
                continue
            for name, value in _named_policies(policy):
                is_of_toolkit = iam.resource_name(value) in toolkit_ids
                if name in BROAD or is_of_toolkit or _opens_shared_resource(name, value):
                    text = iam.resource_text(value)
                    yield f"{block.logical_id} may not have {name} on {text}: name a resource of your own"


def a_role_of_its_own_is_in_the_template_and_for_one_function(project: Project) -> Iterator[str]:
    """Check a function's Role: SAM then ignores Tags and Policies, so the role has what the function needs.

    What its policies open, and its tag, are checked as those of every other function.
    """
    users: dict[str, str] = {}  # the first folder that names a role
    for block in project.blocks:
        if "Role" not in block.properties:
            continue
        if block == project.front_door:
            yield f"{block.logical_id} must have no Role: its one policy is SAM's"
            continue
        if not block.role_id:
            yield f"{block.logical_id} has a Role that is not in template.yaml, so no check can read it: declare it"
            continue
        first = users.setdefault(block.role_id, block.folder)
        if first != block.folder:
            yield f"{block.role_id} is the Role of functions/{first} and of functions/{block.folder}: give each its own"
        for ignored in sorted({"Tags", "Policies"} & block.properties.keys()):
            remedy = f"SAM ignores them beside Role; write them into {block.role_id}"
            yield f"{block.logical_id} must have no {ignored}: {remedy}"
        if block.role.get("AssumeRolePolicyDocument", {}).get("Statement") not in (TRUST, TRUST[0]):
            needed = f"its AssumeRolePolicyDocument needs {json.dumps(TRUST)}"
            yield f"{block.role_id} must be assumed by Lambda alone: {needed}"
        if not any(_may_log(policy) for policy in block.policies):
            yield f"{block.role_id} may not write the log: add {LOGGING[0]} to its ManagedPolicyArns"


def _may_log(policy: object) -> bool:
    """Whether a policy lets a function write its log: one of AWS's own, or statements that allow it."""
    names = {name for name, _value in _named_policies(policy)}
    of_aws = {arn.rpartition("/")[2] for arn in LOGGING}
    allowed = [one for one in iam.statements(policy) if one.get("Effect") == "Allow"]
    return bool(names & of_aws) or any(_allows(statement, "logs:PutLogEvents") for statement in allowed)


def nobody_else_may_invoke_a_function(project: Project) -> Iterator[str]:
    """Check that only the API and the endpoint may invoke a function.

    A function trusts the identity in its event, so another caller could claim any identity.
    """
    function_ids = {block.logical_id for block in project.functions.values()}
    for block in project.blocks:
        if block == project.front_door:
            continue
        for statement in project.statements(block):
            functions = [resource for resource in iam.resources(statement) if _is_function(resource, function_ids)]
            if functions and iam.has_action_of(statement, "lambda"):
                text = iam.resource_text(functions[0])
                yield f"{block.logical_id} may use lambda on {text}: it could call a function as any user"
    for name, permission in project.of_type("AWS::Lambda::Permission").items():
        if iam.resource_name(permission.get("FunctionName")) in function_ids:
            yield f"{name} lets others than the API and the endpoint invoke a function: they could claim any identity"


def _is_function(resource: object, function_ids: set[str]) -> bool:
    text = iam.resource_text(resource)
    return text in function_ids or "${AWS::StackName}_" in text or iam.includes(resource, "", FUNCTION)


def _opens_shared_resource(name: str, value: object) -> bool:
    """Whether a SAM policy template with this value opens something that functions share."""
    text = iam.arn_pattern(value)
    if name == "LambdaInvokePolicy" and text.startswith("STACK_"):
        return True
    for prefix, (arn_end, example) in POLICY_TEMPLATES.items():
        if name.startswith(prefix) and fnmatchcase(example, arn_end.format(text)):
            return True
    return False


def _complaints_about(block: Block, statement: Statement) -> Iterator[str]:
    """Complain if a statement opens roles, or the key, the table or the bucket."""
    roles = [resource for resource in iam.resources(statement) if iam.includes(resource, "", ROLE)]
    if roles and any(_allows(statement, action) for action in CHANGES_OF_ROLES):
        text = iam.resource_text(roles[0])
        yield f"{block.logical_id} may use iam on {text}: it could open what other functions keep"
    if _is_for_an_audience(statement):
        return
    for service, (logical_id, example) in SHARED.items():
        reached = [resource for resource in iam.resources(statement) if iam.includes(resource, logical_id, example)]
        if reached and iam.has_action_of(statement, service):
            text = iam.resource_text(reached[0])
            policy = iam.SEAL if service == "kms" else iam.KEEP
            remedy = f"name a resource of your own, or !Ref {policy}"
            yield f"{block.logical_id} may use {service} on {text}, beyond its own name: {remedy}"


def _allows(statement: Statement, action: str) -> bool:
    """Whether a statement allows an action, such as "iam:TagRole"."""
    has_exceptions = "NotAction" in statement
    patterns = iam.as_list(statement["NotAction"]) if has_exceptions else iam.actions(statement)
    is_listed = any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)
    return is_listed != has_exceptions


def _is_for_an_audience(statement: Statement) -> bool:
    """Whether a statement is that of MaySeal, with an audience instead of the function's name.

    An audience is a name under which several functions share their states. No function has such a name, so the
    statement opens nothing that belongs to one function alone.
    """
    audience = statement.get("Condition", {}).get("StringEquals", {}).get(AUDIENCE)
    if not isinstance(audience, str) or not re.fullmatch(r"[\w-]+", audience):
        return False
    (allowed,) = deepcopy(iam.scaffold_statements(iam.SEAL))
    allowed["Condition"]["StringEquals"][AUDIENCE] = audience
    return bool(statement == allowed)


def _named_policies(policy: object) -> Iterator[tuple[str, object]]:
    """List the names of the policies that AWS or SAM wrote, each with the resource that it is on.

    For example:
    "arn:aws:iam::aws:policy/AdministratorAccess"       -> AdministratorAccess, "*"
    {"DynamoDBReadPolicy": {"TableName": "orders"}}     -> DynamoDBReadPolicy, "orders"
    """
    match policy:
        case str(arn) | {"Fn::Sub": str(arn)}:
            yield arn.rpartition("/")[2], "*"
        case {"Fn::If": [_, yes, no]}:
            yield from _named_policies(yes)
            yield from _named_policies(no)
        case {**template} if not template.keys() & {"Ref", "Statement"}:
            for name, parameters in template.items():
                if isinstance(parameters, dict):
                    for value in parameters.values():
                        yield str(name), value
