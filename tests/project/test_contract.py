"""docs/contract.json says what template.yaml does, and template.yaml does nothing that the file leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions.http.events import GATEWAY_SECONDS
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import AUTH_MODES, Settings
from mcp_functions_harness.auth import set_auth
from tests.policies.test_iam import FRONT_DOOR, FUNCTIONS_THAT_ASK, FUNCTIONS_WITH_TABLE, WORKERS, logical_id
from tests.policies.translated import ACCOUNT, NAME, REGION, Translated
from tests.project.test_translation import FOLDERS
from tests.support import settings_page
from tests.support.contract import CONTRACT, FILE, filled
from tests.support.translation import ROOT, translate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.settings import AuthMode

    Json = dict[str, Any]

SIGN_IN = "oauth"
VALUES = {
    "stack": NAME,
    "stage": "prod",
    "mode": "oauth",
    "key": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/RequestStateKey",
    "table": "Table",
    "table-arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/Table",
    "bucket": "Blobs",
    "partition": "aws",
    "region": REGION,
    "account": ACCOUNT,
}
# `sam local` and Powertools read the others, and no code of the toolkit.
PREFIX = "MCP_"


def kind_of(folder: str) -> str:
    """Return what the contract calls a function, by what its handlers do."""
    if folder in WORKERS:
        return "worker"
    special = {FRONT_DOOR: "endpoint", SIGN_IN: "sign-in"}
    if folder in special:
        return special[folder]
    if folder in FUNCTIONS_WITH_TABLE:
        return "keeps"
    return "asks" if folder in FUNCTIONS_THAT_ASK else "function"


EVERYTHING = [*FOLDERS, *WORKERS, SIGN_IN]
KINDS = {folder: kind_of(folder) for folder in EVERYTHING}


def values_of(folder: str) -> dict[str, str]:
    return {**VALUES, "folder": WORKERS.get(folder, folder)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """Translate the template in the mode that has the most: the sign-in front too."""
    path = tmp_path_factory.mktemp("oauth") / "template.yaml"
    path.write_text(set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth"), encoding="utf-8")
    return Translated(translate(path), {"BlobBucket": "new", "LogCallers": "on"})


def in_one_form(statements: Iterable[Json]) -> list[Json]:
    """Write each action as a list, because one action may be a text too."""
    return [
        {**one, "Action": [one["Action"]] if isinstance(one["Action"], str) else one["Action"]} for one in statements
    ]


def in_order(statement: Json) -> str:
    return json.dumps(statement, sort_keys=True)


def test_the_samples_are_of_every_kind_of_the_contract() -> None:
    assert set(KINDS.values()) == CONTRACT["kinds"].keys() == CONTRACT["ofKind"].keys()


def test_the_template_has_no_function_that_the_contract_does_not_know(template: Translated) -> None:
    assert template.of_type("AWS::Lambda::Function").keys() == {logical_id(folder) for folder in EVERYTHING}


@pytest.mark.parametrize("folder", EVERYTHING)
def test_a_function_has_the_properties_and_tags_of_its_kind(folder: str, template: Translated) -> None:
    own = template.of_type("AWS::Lambda::Function")[logical_id(folder)]
    promised = filled(CONTRACT["ofKind"][KINDS[folder]], values_of(folder))
    left_to_others = {"tags", "policies", "MaximumRetryAttempts"}
    for name in promised.keys() - left_to_others:
        assert template.resolved(own[name]) == promised[name], name
    may_differ = {"RecursiveLoop", "ReservedConcurrentExecutions"}
    assert own.keys() & may_differ <= promised.keys(), "the template sets what the contract leaves out"
    for tagged in (own, template.of_type("AWS::IAM::Role")[f"{logical_id(folder)}Role"]):
        tags = {tag["Key"]: template.resolved(tag["Value"]) for tag in tagged["Tags"]}
        assert {name: tags[name] for name in tags if name.startswith("mcp-")} == promised["tags"]


@pytest.mark.parametrize("folder", EVERYTHING)
def test_a_function_has_what_all_functions_have(folder: str, template: Translated) -> None:
    own = template.of_type("AWS::Lambda::Function")[logical_id(folder)]
    every = CONTRACT["function"]
    assert (own["Handler"], own["MemorySize"]) == (every["Handler"], every["MemorySize"])
    assert own["Runtime"] in every["Runtime"]
    assert set(own["Architectures"]) <= set(every["Architectures"])
    assert {name: own["LoggingConfig"][name] for name in every["LoggingConfig"]} == every["LoggingConfig"]
    # SAM appends a digest of ten digits to the logical id of a layer
    layers = [layer["Ref"][:-10] for layer in own["Layers"]]
    assert layers == every["Layers"] == list(CONTRACT["layers"])


def test_the_contract_lists_the_runtimes_and_processors_of_the_template(template: Translated) -> None:
    parameters = template.template["Parameters"]
    assert parameters["Runtime"]["AllowedValues"] == CONTRACT["function"]["Runtime"]
    assert parameters["Architecture"]["AllowedValues"] == CONTRACT["function"]["Architectures"]


@pytest.mark.parametrize("folder", EVERYTHING)
def test_a_role_has_the_statements_of_its_kind_and_no_others(folder: str, template: Translated) -> None:
    role = template.of_type("AWS::IAM::Role")[f"{logical_id(folder)}Role"]
    stacks_own = template.of_type("AWS::IAM::ManagedPolicy")
    named = [one["Ref"] for one in role["ManagedPolicyArns"] if isinstance(one, dict)]
    documents = [stacks_own[name]["PolicyDocument"] for name in named]
    documents += [one["PolicyDocument"] for one in role.get("Policies", ())]
    found = in_one_form(one for document in documents for one in template.resolved(document)["Statement"])
    policies = [*CONTRACT["ofKind"][KINDS[folder]]["policies"]]
    if "keep" in policies:
        policies.insert(policies.index("keep") + 1, "keepInBucket")
    promised = in_one_form(one for name in policies for one in filled(CONTRACT["policies"][name], values_of(folder)))
    assert sorted(found, key=in_order) == sorted(promised, key=in_order)
    of_aws = [one for one in role["ManagedPolicyArns"] if isinstance(one, str)]
    assert of_aws == filled(CONTRACT["managedPolicies"], VALUES)


def test_every_policy_of_the_contract_belongs_to_a_kind() -> None:
    of_kinds = {name for kind in CONTRACT["ofKind"].values() for name in kind["policies"]}
    assert CONTRACT["policies"].keys() == of_kinds | {"keepInBucket"}


@pytest.mark.parametrize(("name", "row"), [("RequestStateKey", "key"), ("CallerKey", "callerKey")])
def test_a_key_has_the_policy_of_the_contract(name: str, row: str, template: Translated) -> None:
    key, promised = template.of_type("AWS::KMS::Key")[name], filled(CONTRACT[row], VALUES)
    assert template.resolved(key["KeyPolicy"])["Statement"] == promised.pop("policy")
    assert {**key, **dict(template.resources())[name]}.items() >= promised.items()


def test_there_are_no_other_keys_tables_and_buckets(template: Translated) -> None:
    kept = {"AWS::KMS::Key", "AWS::DynamoDB::Table", "AWS::S3::Bucket"}
    assert {name for kind in kept for name in template.of_type(kind)} == {
        "RequestStateKey",
        "CallerKey",
        "Table",
        "Blobs",
    }


def test_the_table_has_the_keys_of_the_contract(template: Translated) -> None:
    table = {**template.of_type("AWS::DynamoDB::Table")["Table"], **dict(template.resources())["Table"]}
    assert {name: table[name] for name in CONTRACT["table"]} == CONTRACT["table"]


def test_the_bucket_deletes_objects_after_the_days_of_the_contract(template: Translated) -> None:
    (rule,) = template.of_type("AWS::S3::Bucket")["Blobs"]["LifecycleConfiguration"]["Rules"]
    assert {"ExpirationInDays": rule["ExpirationInDays"]} == CONTRACT["bucket"]


def test_a_worker_is_tried_as_often_as_the_contract_says(template: Translated) -> None:
    ((_, invoked),) = template.of_type("AWS::Lambda::EventInvokeConfig").items()
    assert invoked["MaximumRetryAttempts"] == CONTRACT["ofKind"]["worker"]["MaximumRetryAttempts"]


# ---- Variables


def test_the_contract_has_the_variables_of_the_table_of_settings() -> None:
    assert FILE.read_text(encoding="utf-8") == settings_page.contract()


@pytest.mark.parametrize("folder", EVERYTHING)
def test_a_function_has_the_variables_of_the_contract(folder: str, template: Translated) -> None:
    own = template.of_type("AWS::Lambda::Function")[logical_id(folder)]["Environment"]["Variables"]
    readers = {"every function", "sign-in"} if folder == SIGN_IN else {"every function"}
    promised = {name: row for name, row in CONTRACT["variables"].items() if row["readBy"] in readers}
    assert {name for name in own if name.startswith(PREFIX)} == {
        name for name, row in promised.items() if "oauth" in row["templateSets"]
    }
    valued = {name: filled(row["value"], values_of(folder)) for name, row in promised.items() if "value" in row}
    assert {name: template.resolved(own[name]) for name in valued} == valued


@pytest.mark.parametrize("mode", AUTH_MODES)
def test_a_function_refuses_to_work_without_a_variable_that_every_function_requires(mode: AuthMode) -> None:
    required = {
        name
        for name, row in CONTRACT["variables"].items()
        if row.get("required", {}).get("by") == "every function" and mode in row["required"]["modes"]
    }
    environ = {"MCP_AUTH_MODE": mode, **dict.fromkeys(required, "x")}
    assert Settings(environ).auth_mode == mode
    for name in required:
        with pytest.raises(Misconfigured) as caught:
            Settings({other: value for other, value in environ.items() if other != name})
        assert name in caught.value.reason


# ---- The API


def test_no_function_works_longer_than_the_gateway_waits(template: Translated) -> None:
    functions = template.of_type("AWS::Lambda::Function")
    routed = [functions[logical_id(folder)]["Timeout"] for folder in EVERYTHING if folder not in WORKERS]
    assert max(routed) == CONTRACT["ofKind"]["endpoint"]["Timeout"] < CONTRACT["api"]["timeoutSeconds"]
    assert CONTRACT["api"]["timeoutSeconds"] == GATEWAY_SECONDS


# ---- The page for people


def test_the_page_names_each_policy_layer_and_required_variable_and_the_row_of_each_kind() -> None:
    page = FILE.with_name("infrastructure-code.md").read_text(encoding="utf-8")
    required = [name for name, row in CONTRACT["variables"].items() if "required" in row]
    missing = [one for one in [*CONTRACT["policies"], *CONTRACT["layers"], *required] if f"`{one}`" not in page]
    assert missing == []
    for kind in CONTRACT["ofKind"].values():
        policies = ", ".join(f"`{one}`" for one in kind["policies"]) or "none"
        tag = f"`{kind['tags']['mcp-function']}`" if "mcp-function" in kind["tags"] else "none"
        assert f"| `{kind['FunctionName']}` | {kind['Timeout']} s | {tag} | {policies} |" in page
