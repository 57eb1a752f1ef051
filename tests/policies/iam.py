"""Permissions, evaluated by an independent IAM simulator (simulate.mjs)."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conformance import node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCRIPT = Path(__file__).with_name("simulate.mjs")
Policy = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """May a principal do this to that, e.g. "kms:Decrypt" to a key; "kms:*" asks which of all that KMS can do."""

    principal: str
    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """The policies of principals, those of resources, and what IAM knows of a principal, all by ARN."""

    policies: Mapping[str, Sequence[Policy]]
    resource_policies: Mapping[str, Policy]
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def allows(self, *questions: Question) -> list[list[str]]:
        """Answer each question with the actions that are allowed."""
        asked = {
            "policies": self.policies,
            "resourcePolicies": self.resource_policies,
            "questions": [self._asked(question) for question in questions],
        }
        done = subprocess.run(  # noqa: S603 - our own script
            [node.needed(), SCRIPT], input=json.dumps(asked), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        answers: list[list[str]] = json.loads(done.stdout)
        return answers

    def _asked(self, question: Question) -> dict[str, Any]:
        asked = asdict(question)
        return {**asked, "context": {**asked["context"], **self.tags.get(question.principal, {})}}

    def allows_any(self, *questions: Question) -> list[Question]:
        """Return the questions of which anything at all is allowed."""
        return [question for question, allowed in zip(questions, self.allows(*questions), strict=True) if allowed]
