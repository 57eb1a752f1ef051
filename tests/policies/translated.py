"""The translated template under parameters, with a name and an ARN for each resource, as CloudFormation has it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.support.translation import ROOT, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "shop"
ACCOUNT, REGION = "123456789012", "us-east-1"
NO_VALUE = {"Ref": "AWS::NoValue"}
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": NAME,
    "AWS::URLSuffix": "amazonaws.com",
}
ARNS = {  # by type of resource: what stands between "arn:aws:" and the name
    "AWS::DynamoDB::Table": f"dynamodb:{REGION}:{ACCOUNT}:table/",
    "AWS::IAM::ManagedPolicy": f"iam::{ACCOUNT}:policy/",
    "AWS::IAM::Role": f"iam::{ACCOUNT}:role/",
    "AWS::KMS::Key": f"kms:{REGION}:{ACCOUNT}:key/",
    "AWS::Lambda::Function": f"lambda:{REGION}:{ACCOUNT}:function:",
    "AWS::S3::Bucket": "s3:::",
    "AWS::SNS::Topic": f"sns:{REGION}:{ACCOUNT}:",
}
REF_IS_ARN = {"AWS::IAM::ManagedPolicy", "AWS::SNS::Topic"}
VARIABLE = re.compile(r"\$\{([^!}][^}]*)\}")

Json = dict[str, Any]


@dataclass(frozen=True)
class Translated:
    """A template under parameters.

    Attributes:
        template: as SAM's transform translates it.
        given: parameters that differ from the defaults.
    """

    template: Json
    given: Mapping[str, str] = field(default_factory=dict)

    def under(self, **given: str) -> Translated:
        """Return the same template under other parameters."""
        return Translated(self.template, given)

    def arn(self, name: str) -> str:
        """Return the ARN of a resource."""
        kind = self.template["Resources"][name]["Type"]
        return f"arn:aws:{ARNS[kind]}{self.physical(name)}"

    def physical(self, name: str) -> str:
        """Return the name of a resource: its own, or its logical id."""
        properties = self.template["Resources"][name].get("Properties", {})
        return str(self.resolved(properties.get("FunctionName", name)))

    def of_type(self, kind: str) -> dict[str, Json]:
        """Logical id -> properties, of the resources of one type that are deployed."""
        return {name: one.get("Properties", {}) for name, one in self.resources() if one["Type"] == kind}

    def resources(self) -> Iterator[tuple[str, Json]]:
        """Every resource that is deployed, with its references as they are written."""
        for name, resource in self.template["Resources"].items():
            if self.is_deployed(resource):
                yield name, self.value(resource)

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
        """Decide `Fn::If`, and replace parameters; what refers to resources stays."""
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

    def resolved(self, written: Any) -> Any:  # noqa: ANN401, PLR0911 - JSON is any value; one line a function
        """Replace what refers to resources too, after `value`."""
        match self.value(written):
            case {"Ref": str(name)}:
                return self._reference(name)
            case {"Fn::GetAtt": [str(name), "Arn"]}:
                return self.arn(name)
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(map(str, self.resolved(parts)))
            case {"Fn::Sub": [str(text), dict(own)]}:
                return self._substituted(text, self.resolved(own))
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case dict(found):
                return {name: self.resolved(one) for name, one in found.items()}
            case list(found):
                return [self.resolved(one) for one in found]
            case other:
                return other

    def _reference(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        if name in self.template["Parameters"]:
            return str(self.value({"Ref": name}))
        return self.arn(name) if self.template["Resources"][name]["Type"] in REF_IS_ARN else self.physical(name)

    def _substituted(self, text: str, own: Mapping[str, Any]) -> str:
        def found(match: re.Match[str]) -> str:
            name, _dot, attribute = match[1].partition(".")
            if match[1] in own:
                return str(own[match[1]])
            return self.arn(name) if attribute else self._reference(name)

        return VARIABLE.sub(found, text).replace("${!", "${")


@cache
def delivered() -> Translated:
    """Translate the template as it is delivered."""
    return Translated(translate(ROOT / "template.yaml"))


@cache
def managed_policy(arn: str) -> Json:
    """Return a policy of AWS, as the library moto has it."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    document: Json = json.loads(aws_managed_policies_data)[arn.rpartition("/")[2]]["Document"]
    return document
