"""Resolves CloudFormation's intrinsic functions, as far as environment variables need them.

    {"Fn::Sub": "${AWS::StackName}_add"}    -> "local_add"
    {"Ref": "SomeParameter"}                -> the parameter's default
    {"Fn::ImportValue": "other-stack"}      -> raises Unknown: only a deployment knows the value

Most attributes of a resource are unknown too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mcp_functions.local.environment import ACCOUNT, REGION, arn
from mcp_functions.protocol.wire_types import JSONValue

NO_VALUE = object()  # the value of AWS::NoValue, by which CloudFormation leaves a property out
KEY_TYPES = ("AWS::KMS::Key", "AWS::KMS::ReplicaKey")
FUNCTION_TYPES = ("AWS::Serverless::Function", "AWS::Lambda::Function")
NAME_PROPERTIES = ("FunctionName", "TableName", "BucketName", "QueueName")  # the properties that `Ref` returns
PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")  # ${Name} of Fn::Sub; ${!Name} is a literal ${Name}


class Unknown(ValueError):
    """Only a deployment knows this value; the text names the function or the resource."""


class Resolver:
    """Resolves the values of one template, for one stack."""

    def __init__(self, template: Mapping[str, Any], *, stack: str, key_arn: str) -> None:
        """Read the template's parameters; each has its default as value.

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
        # what `Ref` and `Fn::Sub` may name, apart from resources: pseudo parameters and parameters
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
            "Fn::And": self._and,
            "Fn::Equals": self._equals,
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._attribute,
            "Fn::If": self._if,
            "Fn::Join": self._join,
            "Fn::Not": self._not,
            "Fn::Or": self._or,
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
        if len(expression) == 1:  # perhaps a function: {"Fn::Join": […]}
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

    def _and(self, conditions: list[Any]) -> bool:
        return all(self.value(condition) for condition in conditions)

    def _or(self, conditions: list[Any]) -> bool:
        return any(self.value(condition) for condition in conditions)

    def _not(self, conditions: list[Any]) -> bool:
        return not self.value(conditions[0])

    def _equals(self, arguments: list[Any]) -> bool:
        return text(self.value(arguments[0])) == text(self.value(arguments[1]))

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
        if resource.get("Type") in KEY_TYPES:
            return self._key_arn.rpartition("/")[2]  # the key's id
        properties = resource.get("Properties") or {}
        for name_property in NAME_PROPERTIES:
            if name_property in properties:
                return self.value(properties[name_property])
        return f"{self._stack}-{name}"  # CloudFormation's generated name, without its random end

    def _attribute(self, path: str | list[object]) -> str:
        dotted = path if isinstance(path, str) else ".".join(map(str, path))
        name, _, attribute = dotted.partition(".")
        resource_type = self._resource(name).get("Type", "")
        if attribute == "Arn" and resource_type in KEY_TYPES:
            return self._key_arn
        if attribute == "Arn" and resource_type in FUNCTION_TYPES:
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

        return PLACEHOLDER.sub(value_of, template).replace("${!", "${")  # see PLACEHOLDER

    def _find_in_map(self, path: list[Any]) -> JSONValue:
        map_name, top_key, second_key = (text(self.value(part)) for part in path[:3])
        try:
            return self._mappings[map_name][top_key][second_key]
        except KeyError:
            unknown = f"{map_name}.{top_key}.{second_key}"
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
