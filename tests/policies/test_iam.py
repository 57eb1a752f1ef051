"""Each role can do what its function must, and nothing else; no role can open another function's states.

The policies are those of the translated template; the judge is a simulator of IAM. `make deployed` asks another judge
the same, with each role's own keys.
"""

from __future__ import annotations

import importlib
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness.auth import set_auth
from tests.policies.iam import Account, Question
from tests.policies.translated import ACCOUNT, NAME, REGION, Translated, delivered, managed_policy
from tests.project.test_translation import FOLDERS
from tests.support.translation import ROOT, translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tests.policies.iam import Policy

FRONT_DOOR = "mcp"
HANDLERS = {folder: importlib.import_module(f"functions.{folder}.app").handler.handlers for folder in FOLDERS}
# The endpoint seals and keeps what clients of 2025 carry, under its own name like everybody.
FUNCTIONS_THAT_ASK = [
    FRONT_DOOR,
    *(folder for folder, made in HANDLERS.items() if any(one.needs_state for one in made)),
]
FUNCTIONS_WITH_TABLE = [
    FRONT_DOOR,
    *(folder for folder, made in HANDLERS.items() if any(one.needs_table for one in made)),
]
FUNCTIONS_WITH_WORKER = [folder for folder, made in HANDLERS.items() if any(getattr(one, "task", None) for one in made)]
WORKERS = {f"{folder}_worker": folder for folder in FUNCTIONS_WITH_WORKER}  # the same code under another role
ITEMS = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"]
SEALS = ["kms:Decrypt", "kms:GenerateDataKey"]
ADMIN, STRANGER = f"arn:aws:iam::{ACCOUNT}:role/admin", "arn:aws:iam::999999999999:role/stranger"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
LOGS = {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"}
TRACES = {
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "xray:PutSpans",
    "xray:PutSpansForIndexing",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:GetSamplingStatisticSummaries",
}


@dataclass(frozen=True)
class Deployed:
    """The account after the deployment, and what to call its things."""

    account: Account
    roles: dict[str, str]  # folder -> ARN
    key: str
    table: str

    def function(self, folder: str) -> str:
        name = f"{WORKERS[folder]}-worker" if folder in WORKERS else folder
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{NAME}_{name}"

    def item(self, folder: str, action: str, *keys: str) -> Question:
        """Ask whether a function's role may do something with items of the table."""
        return Question(self.roles[folder], action, self.table, {"dynamodb:LeadingKeys": list(keys)} if keys else {})

    def kms(self, folder: str, action: str, **context: str) -> Question:
        """Ask whether a function's role may use the key in an encryption context."""
        values = {f"kms:EncryptionContext:{name}": value for name, value in context.items()}
        keys = {"kms:EncryptionContextKeys": list(context)} if context else {}
        return Question(self.roles.get(folder, folder), action, self.key, {**values, **keys})


def context(folder: str, **other: str) -> dict[str, str]:
    """Return the encryption context of a function's seal."""
    service = {"purpose": "mcp-request-state", "service": f"{NAME}/{folder}", "stage": "prod"}
    return {**service, "generation": "1", "born": "1785000000", **other}


def logical_id(folder: str) -> str:
    return "".join(word.capitalize() for word in folder.split("_"))


@pytest.fixture(scope="module")
def template() -> Translated:
    return delivered()


@pytest.fixture(scope="module")
def deployed(template: Translated) -> Deployed:
    return deployed_by(template, {folder: f"{logical_id(folder)}Role" for folder in [*FOLDERS, *WORKERS]})


def deployed_by(template: Translated, named: Mapping[str, str]) -> Deployed:
    """Return the account after the deployment of a template.

    Args:
        template: as CloudFormation gets it.
        named: folder -> the logical id of its role.
    """
    written = {folder: template.of_type("AWS::IAM::Role")[name] for folder, name in named.items()}
    roles = {folder: template.arn(name) for folder, name in named.items()}
    key_id = only(template.of_type("AWS::KMS::Key"))
    key = template.arn(key_id)
    resources = {key: template.resolved(template.of_type("AWS::KMS::Key")[key_id]["KeyPolicy"])}
    resources |= {roles[folder]: role["AssumeRolePolicyDocument"] for folder, role in written.items()}
    policies = {roles[folder]: list(_of_role(template, role)) for folder, role in written.items()}
    tags = {roles[folder]: _tags(template, role) for folder, role in written.items()}
    account = Account({**policies, ADMIN: [EVERYTHING], STRANGER: [EVERYTHING]}, resources, tags)
    return Deployed(account, roles, key, template.arn(only(template.of_type("AWS::DynamoDB::Table"))))


def only(names: Iterable[str]) -> str:
    """Return the one name that there is."""
    (name,) = names
    return name


def _of_role(template: Translated, role: dict[str, Any]) -> Iterator[Policy]:
    """Yield the policies of a role: those of the stack and of AWS, and its own."""
    own = template.of_type("AWS::IAM::ManagedPolicy")
    for named in role["ManagedPolicyArns"]:
        is_own = isinstance(named, dict) and "Ref" in named
        document = own[named["Ref"]]["PolicyDocument"] if is_own else managed_policy(template.resolved(named))
        yield template.resolved(document)
    for inline in role.get("Policies", ()):
        yield template.resolved(inline["PolicyDocument"])


def _tags(template: Translated, role: dict[str, Any]) -> dict[str, str]:
    """Read the tags of a role as IAM shows them to a policy."""
    return {f"aws:PrincipalTag/{tag['Key']}": str(template.resolved(tag["Value"])) for tag in role["Tags"]}


def statements(written: Policy) -> list[dict[str, Any]]:
    """Return the statements of a policy, which may also be one that stands alone."""
    found = written["Statement"]
    return found if isinstance(found, list) else [found]


# ---- What each must


def test_the_samples_have_functions_that_ask_and_functions_that_do_not() -> None:
    assert set(FUNCTIONS_THAT_ASK) > {FRONT_DOOR}
    assert set(FOLDERS) - set(FUNCTIONS_THAT_ASK)


@pytest.mark.parametrize("folder", FUNCTIONS_THAT_ASK)
def test_a_function_that_asks_may_seal_and_open_its_own_states_and_do_nothing_else_with_the_key(
    folder: str, deployed: Deployed
) -> None:
    ((*allowed_actions,),) = deployed.account.allows(deployed.kms(folder, "kms:*", **context(folder)))
    assert sorted(allowed_actions) == SEALS
    ((*allowed_actions,),) = deployed.account.allows(deployed.kms(folder, "kms:*", **context(folder, generation="2")))
    assert sorted(allowed_actions) == SEALS, "a new generation needs no new policy"


def test_the_endpoint_may_invoke_the_functions_of_its_stack_and_do_nothing_else_with_any(deployed: Deployed) -> None:
    role = deployed.roles[FRONT_DOOR]
    everyone = [*FOLDERS, *WORKERS]
    allowed_actions = deployed.account.allows(
        *(Question(role, "lambda:*", deployed.function(folder)) for folder in everyone)
    )
    assert allowed_actions == [["lambda:InvokeFunction"]] * len(everyone)


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_lambda_can_assume_a_role(folder: str, deployed: Deployed) -> None:
    who = ["lambda.amazonaws.com", "apigateway.amazonaws.com", ADMIN, STRANGER, *deployed.roles.values()]
    questions = [Question(principal, "sts:AssumeRole", deployed.roles[folder]) for principal in who]
    assert [question.principal for question in deployed.account.allows_any(*questions)] == ["lambda.amazonaws.com"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_role_allows_only_the_expected_actions(folder: str, deployed: Deployed) -> None:
    named = {
        action
        for written in deployed.account.policies[deployed.roles[folder]]
        for statement in statements(written)
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    invokes = {"lambda:InvokeFunction"} if folder in FUNCTIONS_WITH_TABLE else set()  # its own worker
    special = (
        invokes
        | set(SEALS if folder in FUNCTIONS_THAT_ASK else [])
        | set(ITEMS if folder in FUNCTIONS_WITH_TABLE else [])
    )
    assert named - TRACES == LOGS | special


@pytest.mark.parametrize("folder", FUNCTIONS_WITH_TABLE)
def test_a_function_may_store_items_only_under_its_own_name(folder: str, deployed: Deployed) -> None:
    own = f"{NAME}/{folder}/task/-/1"
    ((*allowed_actions,),) = deployed.account.allows(deployed.item(folder, "dynamodb:*", own))
    assert sorted(allowed_actions) == ITEMS
    foreign = [f"{NAME}/ticket/task/-/1", f"{NAME}/{folder}x/task/-/1", f"another-{NAME}/{folder}/task/-/1", folder]
    asked = [deployed.item(folder, action, *keys) for action in ITEMS for keys in ([], *([key] for key in foreign))]
    assert deployed.account.allows_any(*asked, *(deployed.item(folder, one, own, foreign[0]) for one in ITEMS)) == []


@pytest.mark.parametrize(("worker", "folder"), WORKERS.items())
def test_a_worker_has_its_functions_permissions_and_no_others(worker: str, folder: str, deployed: Deployed) -> None:
    own = [*(deployed.kms(folder, action, **context(folder)) for action in SEALS)]
    own += [deployed.item(folder, action, f"{NAME}/{folder}/task/-/1") for action in ITEMS]
    own.append(Question(deployed.roles[folder], "lambda:InvokeFunction", deployed.function(worker)))
    for role in (worker, folder):
        asked = [replace(question, principal=deployed.roles[role]) for question in own]
        assert deployed.account.allows_any(*asked) == asked, role
    named = [{*s["Action"]} if isinstance(s["Action"], list) else {s["Action"]} for s in _named(deployed, worker)]
    assert set().union(*named) - TRACES - LOGS == {*SEALS, *ITEMS, "lambda:InvokeFunction"}


def _named(deployed: Deployed, folder: str) -> list[dict[str, Any]]:
    return [one for written in deployed.account.policies[deployed.roles[folder]] for one in statements(written)]


# ---- What none may


@pytest.mark.parametrize("folder", FUNCTIONS_THAT_ASK)
def test_no_other_role_can_open_a_functions_states(folder: str, deployed: Deployed) -> None:
    others = [other for other in [*FOLDERS, *WORKERS] if folder not in {other, WORKERS.get(other)}]
    asked = [deployed.kms(other, action, **context(folder)) for other in others for action in SEALS]
    assert deployed.account.allows_any(*asked) == []


@pytest.mark.parametrize("operator", ["StringEquals", "ForAllValues:StringEquals"])
def test_a_policy_without_its_condition_would_allow_an_attack(operator: str, deployed: Deployed) -> None:
    attacks = {"StringEquals": context("ticket"), "ForAllValues:StringEquals": context("briefing", more="of it")}
    wider = deepcopy(deployed.account.policies[deployed.roles["briefing"]])
    for statement in (one for written in wider for one in statements(written) if "Condition" in one):
        del statement["Condition"][operator]
    account = replace(deployed.account, policies={**deployed.account.policies, deployed.roles["briefing"]: wider})
    attack = deployed.kms("briefing", "kms:Decrypt", **attacks[operator])
    assert deployed.account.allows_any(attack) == []
    assert account.allows_any(attack) == [attack]


@pytest.mark.parametrize("folder", FUNCTIONS_THAT_ASK)
def test_a_role_may_use_the_key_in_its_own_context_only(folder: str, deployed: Deployed) -> None:
    own = context(folder)
    contexts = [
        {},
        {"purpose": own["purpose"]},
        context(folder, purpose="something else"),
        context(folder, stage="dev"),
        context(folder, service=f"another-{NAME}/{folder}"),
        context(folder, service=folder),
        context(folder, service=f"{NAME}/{folder}/"),
        context(folder, service=f"{NAME}/{folder}".upper()),
        context(folder, more="of it"),
        *(
            {name: value for name, value in own.items() if name != left_out}
            for left_out in ("purpose", "service", "stage")
        ),
    ]
    asked = [deployed.kms(folder, action, **one) for one in contexts for action in SEALS]
    assert deployed.account.allows_any(*asked) == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in FUNCTIONS_THAT_ASK])
def test_a_function_that_never_asks_may_do_nothing_with_the_key(folder: str, deployed: Deployed) -> None:
    contexts = [{}, *(context(other) for other in FOLDERS)]
    asked = [deployed.kms(folder, "kms:*", **one) for one in contexts]
    assert deployed.account.allows_any(*asked) == []


def test_no_function_may_invoke_another_or_change_one(deployed: Deployed) -> None:
    everyone = [*FOLDERS, *WORKERS]
    pairs = [
        (one, other)
        for one in everyone
        for other in everyone
        if one != FRONT_DOOR and WORKERS.get(other) not in {one, WORKERS.get(one, "")}
    ]
    asked = [Question(deployed.roles[folder], "lambda:*", deployed.function(other)) for folder, other in pairs]
    assert deployed.account.allows_any(*asked) == []


@pytest.mark.parametrize("other", ["another", f"{NAME}-2", f"{NAME}-prod", "s"])
def test_the_endpoint_may_invoke_nothing_of_another_stack(other: str, deployed: Deployed) -> None:
    elsewhere = deployed.function("add").replace(f"{NAME}_", f"{other}_")
    assert deployed.account.allows_any(Question(deployed.roles[FRONT_DOOR], "lambda:*", elsewhere)) == []


# ---- What the tag decides: who could change it could open another function's states


@pytest.mark.parametrize(
    "tags", [{}, {"aws:PrincipalTag/mcp-function": "ticket"}, {"aws:PrincipalTag/other": "briefing"}]
)
def test_a_role_without_the_tag_of_its_function_opens_no_state(tags: dict[str, str], deployed: Deployed) -> None:
    role = deployed.roles["briefing"]
    account = replace(deployed.account, tags={**deployed.account.tags, role: tags})
    asked = [deployed.kms("briefing", action, **context("briefing")) for action in SEALS]
    assert deployed.account.allows_any(*asked) == asked
    assert account.allows_any(*asked) == []


def test_only_an_administrator_can_change_the_tag_that_lets_a_role_open_states(deployed: Deployed) -> None:
    role = deployed.roles["briefing"]
    tagged = replace(
        deployed.account, tags={**deployed.account.tags, role: {"aws:PrincipalTag/mcp-function": "ticket"}}
    )
    attack = deployed.kms("briefing", "kms:Decrypt", **context("ticket"))
    assert deployed.account.allows_any(attack) == []
    assert tagged.allows_any(attack) == [attack], "docs/security.md: who may use iam:TagRole"
    asked = [Question(one, "iam:TagRole", role) for one in deployed.roles.values()]
    assert deployed.account.allows_any(*asked) == []


# ---- The key's own policy: whatever IAM says


def test_not_even_an_administrator_can_use_the_key_for_anything_but_request_states(deployed: Deployed) -> None:
    contexts = [{}, context("ticket", purpose="something else")]
    actions = [*SEALS, "kms:Encrypt", "kms:GenerateDataKeyPair", "kms:GenerateDataKeyWithoutPlaintext"]
    asked = [deployed.kms(ADMIN, action, **one) for one in contexts for action in actions]
    assert deployed.account.allows_any(*asked) == []


def test_only_an_administrator_of_the_account_can_open_states(deployed: Deployed) -> None:
    asked = [deployed.kms(who, "kms:Decrypt", **context("ticket")) for who in (ADMIN, STRANGER)]
    assert [question.principal for question in deployed.account.allows_any(*asked)] == [ADMIN], "docs: the threat model"


# ---- What parameters and modes add: their policies are in the translated template alone


BLOBS = "arn:aws:s3:::Blobs"


@pytest.mark.parametrize("folder", FUNCTIONS_WITH_TABLE)
def test_a_function_may_store_objects_only_under_its_own_name(
    folder: str, template: Translated, deployed: Deployed
) -> None:
    under = template.under(BlobBucket="new")
    written = under.resolved(under.of_type("AWS::IAM::ManagedPolicy")["MayKeep"]["PolicyDocument"])
    role = deployed.roles[folder]
    account = replace(deployed.account, policies={role: [written]})
    own = f"{BLOBS}/{NAME}/{folder}/task"
    assert account.allows(Question(role, "s3:*", own)) == [["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]]
    others = [f"{BLOBS}/{NAME}/ticket/task", f"{BLOBS}/{NAME}/{folder}x/task", BLOBS]
    assert account.allows_any(*(Question(role, "s3:*", other) for other in others)) == []


def test_a_payment_may_read_its_secret_and_no_other(template: Translated, deployed: Deployed) -> None:
    secret = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:bank-1A2B3C"
    under = template.under(BankSecret=secret)
    role = under.of_type("AWS::IAM::Role")["PayInvoiceRole"]
    policies = [under.resolved(one["PolicyDocument"]) for one in role["Policies"]]
    account = replace(deployed.account, policies={ADMIN: policies})
    asked = [
        Question(ADMIN, "secretsmanager:*", one) for one in (secret, f"{secret}x", secret.replace("bank", "other"))
    ]
    assert account.allows(*asked) == [["secretsmanager:GetSecretValue"], [], []]


def test_the_sign_in_front_opens_no_state_and_no_item_and_starts_no_function(
    deployed: Deployed, tmp_path: Path
) -> None:
    path = tmp_path / "template.yaml"
    path.write_text(set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth"), encoding="utf-8")
    resources = translate(path)["Resources"]
    properties = resources["OauthRole"]["Properties"]
    assert [one for one in properties["ManagedPolicyArns"] if isinstance(one, dict)] == [{"Ref": "MaySeal"}]
    assert {"Key": "mcp-function", "Value": "oauth"} in properties["Tags"]
    role = f"arn:aws:iam::{ACCOUNT}:role/front"
    sealing = [*deployed.account.policies[deployed.roles["ticket"]]]  # MaySeal, like every function that asks
    account = replace(
        deployed.account, policies={role: sealing}, tags={role: {"aws:PrincipalTag/mcp-function": "oauth"}}
    )
    front = replace(deployed, roles={"oauth": role})
    own = [front.kms("oauth", action, **context("oauth")) for action in SEALS]
    assert account.allows_any(*own) == own
    foreign = [front.kms("oauth", action, **context(folder)) for folder in FOLDERS for action in SEALS]
    foreign += [front.item("oauth", action, f"{NAME}/{folder}/1") for folder in FOLDERS for action in ITEMS]
    foreign += [Question(role, "lambda:*", deployed.function(folder)) for folder in [*FOLDERS, *WORKERS]]
    assert account.allows_any(*foreign) == []


def test_no_function_may_change_a_role_a_policy_or_a_layer(template: Translated, deployed: Deployed) -> None:
    layer = f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:SharedLayer"
    there = [*deployed.roles.values(), template.arn("MaySeal"), template.arn("MayKeep")]
    asked = [Question(role, "iam:*", one) for role in deployed.roles.values() for one in there]
    asked += [Question(role, "lambda:*", layer) for role in deployed.roles.values()]
    assert deployed.account.allows_any(*asked) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_session_of_a_role_cannot_set_session_tags(folder: str, deployed: Deployed) -> None:
    """A tag of a session counts before that of the role."""
    role = deployed.roles[folder]
    who = ["lambda.amazonaws.com", ADMIN, *deployed.roles.values()]
    assert deployed.account.allows_any(*(Question(one, "sts:TagSession", role) for one in who)) == []


# ---- The key that derives callers' names exists with LogCallers alone. Its policy opens it, and no role names it.

CALLER_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/CallerKey"


def caller_name_request(who: str, action: str, account: str = ACCOUNT) -> Question:
    """Ask whether somebody may use the key that derives callers' names."""
    return Question(who, action, CALLER_KEY, {"aws:PrincipalAccount": account})


@pytest.fixture(scope="module")
def account_with_log_callers(template: Translated, deployed: Deployed) -> Account:
    under = template.under(LogCallers="on")
    written = under.resolved(under.of_type("AWS::KMS::Key")["CallerKey"]["KeyPolicy"])
    known = {**deployed.account.resource_policies, CALLER_KEY: written}
    return replace(deployed.account, resource_policies=known)


@pytest.mark.parametrize("folder", [*FOLDERS, *WORKERS])
def test_every_function_may_compute_caller_names_and_do_nothing_else_with_the_hmac_key(
    folder: str, deployed: Deployed, account_with_log_callers: Account
) -> None:
    ((*allowed_actions,),) = account_with_log_callers.allows(caller_name_request(deployed.roles[folder], "kms:*"))
    assert allowed_actions == ["kms:GenerateMac"]


def test_no_principal_of_another_stack_or_account_may_compute_caller_names(
    deployed: Deployed, account_with_log_callers: Account
) -> None:
    role = deployed.roles["add"]
    elsewhere = {**account_with_log_callers.tags, role: {"aws:PrincipalTag/mcp-server": "another"}}
    stranger = {STRANGER: {"aws:PrincipalTag/mcp-server": NAME}}
    account = replace(account_with_log_callers, tags={**elsewhere, **stranger})
    asked = [
        caller_name_request(role, "kms:GenerateMac"),
        caller_name_request(STRANGER, "kms:GenerateMac", "999999999999"),
    ]
    assert account.allows_any(*asked) == []
    assert account_with_log_callers.allows_any(asked[0]) == [asked[0]]


def test_the_stack_has_no_hmac_key_without_the_parameter_log_callers(template: Translated) -> None:
    assert "CallerKey" not in dict(template.resources())


# ---- Who may call a function


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_role_but_the_endpoints_may_invoke_a_function(folder: str, deployed: Deployed) -> None:
    services = ["events.amazonaws.com", STRANGER]
    others = [role for name, role in deployed.roles.items() if name != FRONT_DOOR]
    asked = [Question(who, "lambda:InvokeFunction", deployed.function(folder)) for who in services + others]
    assert deployed.account.allows_any(*asked) == []
