"""IAM: policy variables, and the condition keys of KMS and DynamoDB that the template's policies name."""

import json
import re
from dataclasses import replace
from typing import Any

from .patch import Patch, module

EVALUATOR = "core.iam_evaluator"
ACTIONS = "core.iam_actions"
VARIABLE = re.compile(r"\$\{([^}]+)\}")


class _Unknown(Exception):
    """A variable has no value in this request."""


def _filled(value: Any, context: Any) -> Any:
    """Replace the variables in every text of a policy's element."""
    if isinstance(value, dict):
        return {key: _filled(one, context) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, context) for one in value]
    if not isinstance(value, str):
        return value

    def known(match: re.Match[str]) -> str:
        found = module(EVALUATOR)._resolve_condition_key(match[1], context)
        if found is None:
            raise _Unknown
        return str(found)

    return VARIABLE.sub(known, value)


def _variables() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html ."""
    evaluator = module(EVALUATOR)
    first_match = evaluator._first_match

    def filled(statement: Any, context: Any) -> Any:
        elements = {name: getattr(statement, name) for name in ("resources", "not_resources", "conditions")}
        try:
            return replace(statement, **{name: _filled(value, context) for name, value in elements.items()})
        except _Unknown:  # "the entire statement is ignored"; a Deny here has no variable
            return None

    def matched(context: Any, statements: list[Any], effect: str) -> Any:
        known = [one for statement in statements if (one := filled(statement, context)) is not None]
        return first_match(context, known, effect)

    evaluator._first_match = matched


def _kms_context() -> None:
    """https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html ."""
    actions = module(ACTIONS)
    request_tag_context = actions.request_tag_context

    def extended(service: str, iam_action: str, body: bytes, params: dict[str, Any]) -> dict[str, Any]:
        context: dict[str, Any] = dict(request_tag_context(service, iam_action, body, params))
        if service != "kms":
            return context
        encryption = _json(body).get("EncryptionContext") or {}
        context |= {f"kms:EncryptionContext:{key}": value for key, value in encryption.items()}
        if encryption:
            context["kms:EncryptionContextKeys"] = list(encryption)
        return context

    actions.request_tag_context = extended


def _leading_keys() -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html ."""
    actions = module(ACTIONS)
    dynamodb_service_context = actions.dynamodb_service_context

    def extended(body: bytes) -> dict[str, Any]:
        context: dict[str, Any] = dict(dynamodb_service_context(body))
        request = _json(body)
        key_schema = _partition_key(str(request.get("TableName", "")))
        item = request.get("Key") or request.get("Item") or {}
        if key_schema in item:
            context["dynamodb:LeadingKeys"] = [next(iter(item[key_schema].values()))]
        return context

    actions.dynamodb_service_context = extended


def _partition_key(table: str) -> str:
    """Return the name of a table's partition key; "" if there is no such table."""
    found = module("services.dynamodb")._tables.get(table) or {}
    return next((one["AttributeName"] for one in found.get("KeySchema", ()) if one["KeyType"] == "HASH"), "")


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


PATCHES = (
    Patch(
        "policy-variables",
        "IAM compares ${aws:PrincipalTag/…} as text; AWS replaces it by the caller's tag",
        {f"{EVALUATOR}:_first_match": "dc96ef4846c7", f"{EVALUATOR}:_resolve_condition_key": "15e26964cd38"},
        _variables,
    ),
    Patch(
        "kms-context",
        "the keys kms:EncryptionContext:… and kms:EncryptionContextKeys have no value",
        {f"{ACTIONS}:request_tag_context": "d46adb816e02"},
        _kms_context,
    ),
    Patch(
        "leading-keys",
        "the key dynamodb:LeadingKeys has no value",
        {f"{ACTIONS}:dynamodb_service_context": "0f0021bdc8a3"},
        _leading_keys,
    ),
)
