"""Resolves CloudFormation's intrinsic functions, as far as environment variables need them.

A template value comes in, e.g. {"Fn::Sub": "${AWS::StackName}_add"}, and its plain value goes out. A value that only a
deployment knows raises `Unknown`: an import of another stack, or most attributes of a resource.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.local.environment import ACCOUNT, REGION, arn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.wire_types import JSONValue

NO_VALUE = object()  # AWS::NoValue: the property is left out
PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")  # ${Name} of Fn::Sub; ${!Name} is a literal ${Name}


class Unknown(ValueError):
    """Only a deployment knows this value; the text names the function or the resource."""


class Resolver:
    """Resolves the values of one template, for one stack."""

    def __init__(self, template: Mapping[str, Any], *, stack: str, key_arn: str) -> None:
        """Read the template's parameters, which have their defaults.

        Args:
            template: the parsed template, with its tags in their long form ({"Ref": …}).
            stack: the stack's name.
            key_arn: the ARN that replaces every KMS key of the template.
        """
        self._stack = stack
        self._key_arn = key_arn
        self._resources: Mapping[str, Any] = template.get("Resources") or {}
        self._conditions: Mapping[str, Any] = template.get("Conditions") or {}
        self._mappings: Mapping[str, Any] = template.get("Mappings") or {}
        parameters: Mapping[str, Any] = template.get("Parameters") or {}
        self._names: dict[str, Any] = {
            "AWS::AccountId": ACCOUNT,
            "AWS::NoValue": NO_VALUE,
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{stack}/local",
            "AWS::StackName": stack,
            "AWS::URLSuffix": "amazonaws.com",
        }
        for name, declared in parameters.items():
            if "Default" in declared:
                is_list = str(declared.get("Type")).startswith(("CommaDelimitedList", "List<"))
                self._names[name] = str(declared["Default"]).split(",") if is_list else declared["Default"]
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.is_true,
            "Fn::And": lambda conditions: all(map(self.value, conditions)),
            "Fn::Equals": lambda pair: text(self.value(pair[0])) == text(self.value(pair[1])),
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._attribute,
            "Fn::If": self._if,
            "Fn::Join": self._join,
            "Fn::Not": lambda conditions: not self.value(conditions[0]),
            "Fn::Or": lambda conditions: any(map(self.value, conditions)),
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._sub,
        }

    def value(self, expression: object) -> JSONValue:
        """Resolve a value and the values inside it.

        Raises:
            Unknown: only a deployment knows it.
        """
        if isinstance(expression, list):
            return [value for value in map(self.value, expression) if value is not NO_VALUE]
        if not isinstance(expression, dict):
            return expression
        if len(expression) == 1:
            (name,) = expression
            if name in self._functions:
                return self._functions[name](expression[name])
            if str(name).startswith("Fn::"):
                raise Unknown(name)
        resolved = {name: self.value(part) for name, part in expression.items()}
        return {name: value for name, value in resolved.items() if value is not NO_VALUE}

    def is_true(self, condition: str) -> bool:
        """Whether a condition of the template is true.

        Raises:
            Unknown: the template has no such condition.
        """
        if condition not in self._conditions:
            raise Unknown(condition)
        return bool(self.value(self._conditions[condition]))

    def _if(self, arguments: list[Any]) -> JSONValue:
        condition, yes, no = arguments
        return self.value(yes if self.is_true(condition) else no)

    def _join(self, arguments: list[Any]) -> str:
        separator, values = arguments
        return text(separator).join(map(text, self.value(values)))

    def _select(self, arguments: list[Any]) -> JSONValue:
        index, values = arguments
        return self.value(values)[int(self.value(index))]

    def _split(self, arguments: list[Any]) -> list[str]:
        separator, value = arguments
        return text(self.value(value)).split(separator)

    def _ref(self, name: str) -> object:
        if name in self._names:
            return self._names[name]
        resource = self._resource(name)
        match resource.get("Type"), resource.get("Properties") or {}:
            case "AWS::KMS::Key" | "AWS::KMS::ReplicaKey", _:
                return self._key_arn.rpartition("/")[2]
            case str(), {"FunctionName": name_} | {"TableName": name_} | {"BucketName": name_} | {"QueueName": name_}:
                return self.value(name_)
        return f"{self._stack}-{name}"  # CloudFormation's generated name, without its random end

    def _attribute(self, path: str | list[object]) -> str:
        dotted = path if isinstance(path, str) else ".".join(map(str, path))
        name, _, attribute = dotted.partition(".")
        type_ = self._resource(name).get("Type", "")
        if attribute == "Arn" and type_ in {"AWS::KMS::Key", "AWS::KMS::ReplicaKey"}:
            return self._key_arn
        if attribute == "Arn" and type_ in {"AWS::Serverless::Function", "AWS::Lambda::Function"}:
            return arn(text(self._ref(name)))
        unknown = f"{name}.{attribute}"
        raise Unknown(unknown)

    def _resource(self, name: str) -> Mapping[str, Any]:
        if name not in self._resources:
            raise Unknown(name)
        resource: Mapping[str, Any] = self._resources[name]
        return resource

    def _sub(self, expression: str | list[Any]) -> str:
        template, variables = (expression, {}) if isinstance(expression, str) else expression

        def value_of(placeholder: re.Match[str]) -> str:
            name = placeholder[1].strip()
            if name in variables:
                return text(self.value(variables[name]))
            if "." in name:
                return text(self._attribute(name))
            return text(self._ref(name))

        return PLACEHOLDER.sub(value_of, template).replace("${!", "${")

    def _find_in_map(self, path: list[Any]) -> JSONValue:
        first, second, third = (text(self.value(part)) for part in path[:3])
        try:
            return self._mappings[first][second][third]
        except KeyError:
            unknown = f"{first}.{second}.{third}"
            raise Unknown(unknown) from None  # the KeyError names one of the three only


def text(value: object) -> str:
    """Convert a resolved value to text as CloudFormation does."""
    if value is NO_VALUE:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(text, value))
    return str(value)
