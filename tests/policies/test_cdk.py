"""The roles of a CDK app, built from docs/contract.json, may do what those of template.yaml may, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance import node
from tests.policies.iam import Question
from tests.policies.test_iam import (
    ADMIN,
    FRONT_DOOR,
    ITEMS,
    SEALS,
    STRANGER,
    Deployed,
    context,
    deployed_by,
    logical_id,
)
from tests.policies.translated import NAME, Translated, delivered
from tests.project.test_translation import FOLDERS
from tests.support import contract

CDK = Path(__file__).with_name("cdk")
ASKS, NEVER_ASKS = "get_weather", "add"
SERVER = [FRONT_DOOR, ASKS, NEVER_ASKS]


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Synthesize the app with the functions of this repository, and with layers that hold a file."""
    program = node.needed(CDK)
    built, out = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("out")
    for name in [*map(logical_id, SERVER), *contract.CONTRACT["layers"]]:
        (built / name).mkdir()
        (built / name / "content").write_text(name, encoding="utf-8")
    command = [program, CDK / "app.js", built, out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own app
    assert done.returncode == 0, done.stderr
    return Translated(json.loads((out / f"{NAME}.template.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def by_cdk(synthesized: Translated) -> Deployed:
    functions = synthesized.of_type("AWS::Lambda::Function").values()
    roles = {
        str(synthesized.resolved(one["FunctionName"])).removeprefix(f"{NAME}_"): one["Role"]["Fn::GetAtt"][0]
        for one in functions
    }
    assert roles.keys() == set(SERVER)
    assert synthesized.of_type("AWS::IAM::Policy") == {}, "what CDK's grants write would be missing below"
    return deployed_by(synthesized, roles)


@pytest.fixture(scope="module")
def by_sam() -> Deployed:
    return deployed_by(delivered(), {folder: f"{logical_id(folder)}Role" for folder in SERVER})


def questions(account: Deployed, folder: str) -> list[Question]:
    """Ask what is asked of the roles of template.yaml: its own states, items and functions, and those of others."""
    role = account.roles[folder]
    contexts = [{}, {"purpose": "mcp-request-state"}, *(context(other) for other in [*FOLDERS, "oauth"])]
    own = context(folder)
    contexts += [context(folder, **other) for other in ({"stage": "dev"}, {"purpose": "else"}, {"more": "of it"})]
    contexts += [context(folder, service=text) for text in (folder, f"{own['service']}/", f"another-{own['service']}")]
    contexts += [{key: own[key] for key in own if key != gone} for gone in ("purpose", "service", "stage", "born")]
    asked = [account.kms(folder, "kms:*", **one) for one in contexts]
    keys = [f"{NAME}/{other}/task/-/1" for other in [*FOLDERS, f"{folder}x"]] + [f"another-{NAME}/{folder}/1", folder]
    asked += [account.item(folder, action, *one) for action in ITEMS for one in ([], *([key] for key in keys), keys)]
    asked += [account.item(folder, "dynamodb:*", f"{NAME}/{folder}/1")]
    functions = [account.function(other) for other in [*FOLDERS, "audit_year_worker"]]
    functions += [f"{account.function(folder)}-worker", account.function("add").replace(f"{NAME}_", "another_")]
    asked += [Question(role, "lambda:*", one) for one in functions]
    asked += [Question(role, action, there) for there in account.roles.values() for action in ("iam:*", "sts:*")]
    who = ["lambda.amazonaws.com", "apigateway.amazonaws.com", ADMIN, STRANGER]
    return asked + [Question(one, action, role) for one in who for action in ("sts:AssumeRole", "sts:TagSession")]


@pytest.mark.parametrize("folder", SERVER)
def test_a_role_of_the_cdk_app_may_do_what_that_of_the_template_may(
    folder: str, by_cdk: Deployed, by_sam: Deployed
) -> None:
    answers = [account.account.allows(*questions(account, folder)) for account in (by_cdk, by_sam)]
    assert answers[0] == answers[1]


def test_the_answers_tell_the_three_roles_apart(by_cdk: Deployed) -> None:
    asked = [by_cdk.kms(folder, "kms:*", **context(folder)) for folder in SERVER]
    asked += [by_cdk.item(folder, "dynamodb:*", f"{NAME}/{folder}/1") for folder in SERVER]
    asked += [Question(by_cdk.roles[folder], "lambda:*", by_cdk.function("ticket")) for folder in SERVER]
    answers = [sorted(allowed) for allowed in by_cdk.account.allows(*asked)]
    assert answers == [SEALS, SEALS, [], ITEMS, [], [], ["lambda:InvokeFunction"], [], []]


def test_the_routes_of_the_cdk_app_are_those_of_the_contract(synthesized: Translated) -> None:
    found = {
        one["RouteKey"]: one["AuthorizationType"] for one in synthesized.of_type("AWS::ApiGatewayV2::Route").values()
    }
    promised = contract.routes("iam", [ASKS, NEVER_ASKS])
    assert found == {
        key: "NONE" if row["caller"] == "anybody" else contract.CONTRACT["api"]["authorizers"]["iam"]
        for key, row in promised.items()
    }
    versions = {one["PayloadFormatVersion"] for one in synthesized.of_type("AWS::ApiGatewayV2::Integration").values()}
    assert versions == {contract.CONTRACT["api"]["payloadFormatVersion"]}
