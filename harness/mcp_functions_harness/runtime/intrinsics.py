"""Resolves CloudFormation's intrinsic functions, as far as environment variables need them.

    {"Fn::Sub": "${AWS::StackName}_add"}    -> "local_add"
    {"Ref": "SomeParameter"}                -> the parameter's default
    {"Fn::ImportValue": "other-stack"}      -> raises Unknown: only a deployment knows the value

Most attributes of a resource are unknown too.
"""

import re
from typing import Any

from mcp_functions.protocol.wire_types import JSONObject, JSONValue
from mcp_functions_harness.environment import ACCOUNT, REGION, STACK, arn
from mcp_functions_harness.template import FUNCTION, Resource, Template

NO_VALUE = object()  # the value of AWS::NoValue, by which CloudFormation leaves a property out
KEY_TYPES = ("AWS::KMS::Key", "AWS::KMS::ReplicaKey")
FUNCTION_TYPES = (FUNCTION, "AWS::Lambda::Function")
NAME_PROPERTIES = ("FunctionName", "TableName", "BucketName", "QueueName")  # `Ref` returns them
ARNS = {  # of resources whose attribute Arn functions may read, with {} for the name
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{{}}",
    "AWS::Serverless::SimpleTable": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{{}}",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{{}}",
}
PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")  # ${Name} of Fn::Sub; ${!Name} is a literal ${Name}
PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NoValue": NO_VALUE,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/local",
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}


class Unknown(ValueError):
    """Only a deployment knows this value; the text names the function or the resource."""


class Resolver:
    """Resolves the values of one template, for the stack of the harness."""

    def __init__(self, template: Template, *, key_arn: str = "") -> None:
        """Read the template's parameters; each has its default as value. `key_arn` replaces every KMS key."""
        self._template = template
        self._key_arn = key_arn
        self._parameters: dict[str, Any] = dict(PSEUDO_PARAMETERS)
        for name, declared in template["Parameters"].items():
            if "Default" in declared:
                is_list = str(declared.get("Type")).startswith(("CommaDelimitedList", "List<"))
                self._parameters[name] = str(declared["Default"]).split(",") if is_list else declared["Default"]

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
            ((name, argument),) = expression.items()
            if name in {"Ref", "Condition"} or str(name).startswith("Fn::"):
                return self._call(name, argument)
        resolved = {name: self.value(part) for name, part in expression.items()}
        return {name: value for name, value in resolved.items() if value is not NO_VALUE}

    def _call(self, function: str, argument: object) -> JSONValue:  # noqa: C901, PLR0911, PLR0912 - a case for each
        match function, argument:
            case "Ref", str(name):
                return self._ref(name)
            case "Condition", str(name):
                return self._is_true(name)
            case "Fn::And", [*conditions]:
                return all(map(self.value, conditions))
            case "Fn::Or", [*conditions]:
                return any(map(self.value, conditions))
            case "Fn::Not", [condition, *_]:
                return not self.value(condition)
            case "Fn::Equals", [left, right, *_]:
                return text(self.value(left)) == text(self.value(right))
            case "Fn::If", [str(condition), yes, no]:
                return self.value(yes if self._is_true(condition) else no)
            case "Fn::Join", [separator, parts]:
                return text(separator).join(map(text, self.value(parts)))
            case "Fn::Split", [separator, joined]:
                return text(self.value(joined)).split(text(separator))
            case "Fn::Select", [index, choices]:
                return self.value(choices)[int(self.value(index))]
            case "Fn::FindInMap", [*keys]:
                return self._find_in_map([text(self.value(key)) for key in keys])
            case "Fn::GetAtt", str(dotted):
                return self._attribute(dotted)
            case "Fn::GetAtt", [*path]:
                return self._attribute(".".join(map(text, path)))
            case "Fn::Sub", str(pattern):
                return self._substitute(pattern, {})
            case "Fn::Sub", [str(pattern), dict(variables)]:
                return self._substitute(pattern, variables)
        raise Unknown(function)

    def _is_true(self, condition: str) -> bool:
        conditions = self._template["Conditions"]
        if condition not in conditions:
            raise Unknown(condition)
        return bool(self.value(conditions[condition]))

    def _ref(self, name: str) -> JSONValue:
        if name in self._parameters:
            return self._parameters[name]
        resource_type = self._resource(name)["Type"]
        if resource_type in KEY_TYPES:
            return self._key_arn.rpartition("/")[2]  # the key's id
        if resource_type == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{self.name(name)}"
        return self.name(name)

    def name(self, logical_id: str) -> JSONValue:
        """Return the name of a resource: its own, or the one that CloudFormation generates, without its random end.

        Raises:
            Unknown: only a deployment knows it.
        """
        resource = self._resource(logical_id)
        is_secret = resource["Type"] == "AWS::SecretsManager::Secret"
        for name_property in ("Name",) if is_secret else NAME_PROPERTIES:
            if name_property in resource["Properties"]:
                return self.value(resource["Properties"][name_property])
        generated = f"{STACK}-{logical_id}"
        return generated.lower() if resource["Type"] == "AWS::S3::Bucket" else generated

    def _attribute(self, dotted: str) -> str:
        """Return an attribute of a resource, as "Key.Arn" names it."""
        name, _, attribute = dotted.partition(".")
        resource_type = self._resource(name)["Type"]
        if attribute == "Arn" and resource_type in KEY_TYPES:
            return self._key_arn
        if attribute == "Arn" and resource_type in FUNCTION_TYPES:
            return arn(text(self._ref(name)))
        if attribute == "Arn" and resource_type in ARNS:
            return ARNS[resource_type].format(self.name(name))
        if dotted == f"{name}.QueueName":
            return text(self.name(name))
        if dotted == f"{name}.QueueUrl":
            return text(self._ref(name))
        raise Unknown(dotted)

    def _resource(self, name: str) -> Resource:
        if name not in self._template["Resources"]:
            raise Unknown(name)
        return self._template["Resources"][name]

    def _substitute(self, pattern: str, variables: JSONObject) -> str:
        def value_of(placeholder: re.Match[str]) -> str:
            name = placeholder[1].strip()
            if name in variables:
                return text(self.value(variables[name]))
            return self._attribute(name) if "." in name else text(self._ref(name))

        return PLACEHOLDER.sub(value_of, pattern).replace("${!", "${")  # see PLACEHOLDER

    def _find_in_map(self, keys: list[str]) -> JSONValue:
        map_name, top_key, second_key = keys[:3]
        try:
            return self._template["Mappings"][map_name][top_key][second_key]
        except KeyError:
            raise Unknown(".".join(keys[:3])) from None  # the KeyError names one of the three only


def text(value: object) -> str:
    """Convert a resolved value to text as CloudFormation does."""
    if value is NO_VALUE:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(text, value))
    return str(value)
