"""What operators do with a stack that serves: verify, open, stop, change, break, sync."""

from __future__ import annotations

import io
import shlex
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.deployed import account as accounts
from tests.deployed import conversations
from tests.docs.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.protocol.wire_types import Params
    from tests.deployed.stack import Stack

TOLD: Params = {"name": "update_work_item", "arguments": conversations.RESOLVE}
ANSWER: dict[str, dict[str, Any]] = {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}}
BROKEN = """
  Broken: # has no Threshold
    Type: AWS::CloudWatch::Alarm
    DependsOn: Mcp
    Properties:
      Namespace: mcp-functions
      MetricName: Crashed
      Statistic: Sum
      Period: 60
      EvaluationPeriods: 1
      ComparisonOperator: GreaterThanThreshold
"""


def begin(shop: Stack) -> str:
    """Begin a conversation; the state that the client holds."""
    asked = shop.server().exchange("tools/call", TOLD)
    assert asked.state, asked
    return asked.state


def go_on(shop: Stack, state: str) -> Any:  # noqa: ANN401 - JSON
    """Answer the question of a state; the message of the server."""
    return shop.server().exchange("tools/call", {**TOLD, "requestState": state, "inputResponses": ANSWER}).message


def test_what_is_deployed_is_what_was_built(shop: Stack) -> None:
    client, built = shop.account.client("lambda"), shop.project.folder / ".aws-sam/build"
    folders = {path.parent.name for path in (shop.project.folder / "functions").glob("*/app.py")} - {"oauth"}
    assert set(shop.functions) == {f"{shop.name}_{name}" for name in [*folders, "audit_year-worker"]}
    layers = set[str]()
    for name in shop.functions:
        found = client.get_function(FunctionName=name)
        folder = name.removeprefix(f"{shop.name}_").removesuffix("-worker")
        assert unzipped(shop, found["Code"]["Location"]) == files(shop.project.folder / "functions" / folder)
        layers |= {layer["Arn"] for layer in found["Configuration"]["Layers"]}
        assert len(found["Configuration"]["Layers"]) == 2
        assert (found["Configuration"]["Handler"], found["Configuration"]["MemorySize"]) == ("app.handler", 512)
    urls = [client.get_layer_version_by_arn(Arn=arn)["Content"]["Location"] for arn in sorted(layers)]
    contents = [unzipped(shop, url) for url in urls]
    assert contents == [files(built / name) for name in ("DependenciesLayer", "SharedLayer")]
    size = sum(len(content) for each in contents for content in each.values())
    assert size < 250 * 1024 * 1024, "Lambda: the unzipped size of all layers and the function"


def unzipped(shop: Stack, url: str) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(shop.account.download(url))) as read:
        return {name: read.read(name) for name in read.namelist() if not name.endswith("/")}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_verify_finds_the_stack_as_it_is_meant(shop: Stack) -> None:
    said = shop.project.mcp_functions("verify", shop.name, "--auth", "iam", "--seconds", "60")
    assert "FAILED" not in said
    assert "mode iam" in said
    assert "with the line of request" in said


def test_open_explains_a_state_with_the_key_of_the_stack(shop: Stack) -> None:
    scope = ("--key", shop.outputs["RequestStateKey"], "--service", f"{shop.name}/update_work_item")
    said = shop.project.mcp_functions(
        "open", begin(shop), *scope, "--method", "tools/call", "--target", "update_work_item"
    )
    assert "resolution" in said


def test_a_function_stops_and_starts_by_calls_of_lambda_alone(shop: Stack) -> None:
    said = shop.project.mcp_functions("stop", "function", "default", "add", "--now")
    try:
        assert f"Lambda runs no invocation of {shop.name}_add" in said
        with pytest.raises(Exception):  # noqa: B017, PT011 - a failed assertion, or what its client raises
            conversations.add(shop)
        conversations.three_rounds(shop)
    finally:
        shop.project.mcp_functions("start", "function", "default", "add", "--now")
    conversations.add(shop)


def test_a_higher_generation_ends_all_states_at_once(shop: Stack) -> None:
    state = begin(shop)
    said = shop.project.mcp_functions("set", "default", "Generation=2", "--now")
    assert said.rstrip().endswith("Done")
    error = go_on(shop, state)["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid or expired requestState")
    conversations.three_rounds(shop)


def test_a_state_is_opened_by_the_code_and_the_layer_of_a_later_deployment(shop: Stack) -> None:
    state, project = begin(shop), shop.project
    before = [
        layer["PhysicalResourceId"] for layer in shop.resources.values() if "LayerVersion" in layer["ResourceType"]
    ]
    project.edit("functions/update_work_item/app.py", r'f"\{bug\} resolved as', 'f"{bug} was resolved as')
    toolkit = project.folder / "layers/shared/mcp_functions/__init__.py"
    toolkit.write_text(toolkit.read_text(encoding="utf-8") + "\nLATER = True\n", encoding="utf-8")
    project.build()
    project.deploy()
    after = [
        layer["PhysicalResourceId"] for layer in shop.resources.values() if "LayerVersion" in layer["ResourceType"]
    ]
    assert len(set(after) - set(before)) == 1
    (content,) = go_on(shop, state)["result"]["content"]
    assert content["text"] == "Bug #4522 was resolved as Fixed. State set to Resolved."


def test_a_broken_update_is_rolled_back_and_the_stack_serves_on(shop: Stack) -> None:
    path = shop.project.folder / ".aws-sam/build/template.yaml"
    good, variables = path.read_text(encoding="utf-8"), shop.functions[0]
    client = shop.account.client("lambda")
    before = client.get_function_configuration(FunctionName=variables)["Environment"]
    path.write_text(good.replace("\nOutputs:", f"{BROKEN}\nOutputs:", 1), encoding="utf-8")
    try:
        shop.project.deploy("--parameter-overrides", "LogDays=7 Generation=2", fails=True)
    finally:
        path.write_text(good, encoding="utf-8")
    assert shop.described["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert client.get_function_configuration(FunctionName=variables)["Environment"] == before
    conversations.add(shop)


def test_sam_sync_sends_changed_code_to_lambda_and_nothing_else(shop: Stack) -> None:
    client = shop.account.client("lambda")

    def hashes() -> dict[str, str]:
        return {name: client.get_function_configuration(FunctionName=name)["CodeSha256"] for name in shop.functions}

    (line,) = [line for line in Page.named("recipes.md").text.splitlines() if line.startswith("sam sync ")]
    words = shlex.split(line)[2:]
    words[words.index("--stack-name") + 1] = shop.name
    words[words.index("--resource-id") + 1] = "Add"
    before = hashes()
    shop.project.edit("functions/add/app.py", r"return a \+ b", "return a + b + 1000")
    shop.project.sam("sync", *words, told="y\n")
    after = hashes()
    assert {name for name in before if after[name] != before[name]} == {f"{shop.name}_add"}
    with pytest.raises(AssertionError, match="1005"):
        conversations.add(shop)
    shop.project.edit("functions/add/app.py", r" \+ 1000", "")
    shop.project.sam("sync", *words, told="y\n")
    conversations.add(shop)


def test_the_emulator_listens_on_loopback_alone(shop: Stack) -> None:
    if shop.account.emulator is None:
        pytest.skip("a real account")
    found = accounts.listening(shop.account.emulator.pid)
    assert f"127.0.0.1:{shop.account.emulator.address[1]}" in found
    assert [address for address in found if not address.startswith("127.0.0.1:")] == []
