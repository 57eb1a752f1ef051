"""The stack as it was deployed into moto, and the template that it is compared with."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "shop"
ACCOUNT, REGION = "123456789012", "us-east-1"
NO_VALUE = {"Ref": "AWS::NoValue"}

Json = dict[str, Any]


@dataclass(frozen=True)
class Stack:
    """The result of `sam deploy`.

    Attributes:
        url: of moto.
        template: the translated template.
        skipped: the types of resources that moto does not support.

    """

    url: str
    template: Json
    skipped: frozenset[str]

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
        return client(service, self.url)

    @property
    def physical(self) -> dict[str, str]:
        """Logical id -> physical id, of what moto made."""
        resources = self.client("cloudformation").describe_stack_resources(StackName=NAME)["StackResources"]
        return {
            one["LogicalResourceId"]: one.get("PhysicalResourceId", "") for one in resources if "ResourceType" in one
        }

    def of_type(self, kind: str) -> dict[str, Json]:
        """Logical id -> properties, of the resources of one type that are deployed, as the template's defaults say."""
        return {name: resource.get("Properties", {}) for name, resource in self.resources() if resource["Type"] == kind}

    def resources(self, **parameters: str) -> Iterator[tuple[str, Json]]:
        """Every resource that is deployed with these parameters."""
        template = Resolved(self.template, parameters)
        for name, resource in self.template["Resources"].items():
            if template.is_deployed(resource):
                yield name, template.value(resource)


@cache
def client(service: str, url: str) -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    """Make a client of moto."""
    session: Any = boto3.Session("nobody", "nobody", region_name=REGION)
    return session.client(service, endpoint_url=url)


@dataclass(frozen=True)
class Resolved:
    """A template under parameters: `Fn::If` is decided, a parameter is its value; what refers to resources stays."""

    template: Json
    given: Mapping[str, str]

    def is_deployed(self, resource: Json) -> bool:
        return "Condition" not in resource or self.holds(resource["Condition"])

    def holds(self, condition: str) -> bool:
        return bool(self.decided(self.template["Conditions"][condition]))

    def decided(self, written: Json) -> bool:
        """Whether a condition holds, as it is written."""
        match written:
            case {"Fn::Equals": [left, right]}:
                return bool(self.value(left) == self.value(right))
            case {"Fn::And": list(all_of)}:
                return all(self.decided(one) for one in all_of)
            case {"Fn::Not": [one]}:
                return not self.decided(one)
            case {"Condition": str(name)}:
                return self.holds(name)
        message = f"nobody here knows this condition: {written}"
        raise NotImplementedError(message)

    def value(self, written: Any) -> Any:  # noqa: ANN401 - JSON is any value
        match written:
            case {"Fn::If": [str(condition), yes, no]}:
                return self.value(yes if self.holds(condition) else no)
            case {"Ref": str(name)} if name in self.template["Parameters"]:
                return self.given.get(name, self.template["Parameters"][name].get("Default"))
            case dict():
                values = {name: self.value(one) for name, one in written.items()}
                return values if written == NO_VALUE else {k: v for k, v in values.items() if v != NO_VALUE}
            case list():
                return [value for one in written if (value := self.value(one)) != NO_VALUE]
        return written


def policy(text: str | Json) -> Json:
    """Read a policy document as moto gives it: JSON, or what Python prints of a dict.

    Where `Fn::If` chose `AWS::NoValue`, CloudFormation leaves a statement out; moto leaves a null.
    """
    read = text if isinstance(text, dict) else _parsed(text)
    match read:
        case {"Statement": list(statements)}:
            return {**read, "Statement": [one for one in statements if one is not None]}
    return read


def _parsed(text: str) -> Json:
    try:
        read: Json = json.loads(text)
    except ValueError:
        read = ast.literal_eval(text)
    return read
