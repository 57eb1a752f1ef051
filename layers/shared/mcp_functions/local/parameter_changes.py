"""`mcp-functions set`: changes parameters of the template in one environment, with `--now` in its stack too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import boto3
import tomlkit
from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions.local import samconfig, template
from mcp_functions.local.problems import first_line, stop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tomlkit import TOMLDocument

    from mcp_functions.local.samconfig import Parameters

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]  # CloudFormation wants them for roles and SAM's transform
POLL = {"Delay": 5, "MaxAttempts": 360}  # every 5 seconds, for half an hour
UNSAFE = re.compile(r"[\"'\\\n]")  # characters that samconfig.toml and the SAM CLI quote in different ways


def change(directory: Path, environment: str, words: Sequence[str], *, now: bool = False) -> Iterator[str]:
    """Write parameters into samconfig.toml, and yield texts for the terminal.

    Args:
        directory: the project's folder.
        environment: a table of samconfig.toml, for example "prod".
        words: each is `NAME=VALUE`, or `NAME=` for the default of the template.
        now: whether to change these parameters of the deployed stack too, and nothing else of it.

    Raises:
        Problem: a name or a value is wrong, a file is not as expected, or AWS refuses the change.
    """
    path = directory / samconfig.FILE
    document = samconfig.read(path)
    present = _present(document, environment)
    changes = _changes(directory, words, present)
    samconfig.set_parameters(document, environment, changes)
    path.write_text(tomlkit.dumps(document), encoding="utf-8", newline="\n")
    for name, value in changes.items():
        before = f", instead of {present[name]}" if present.get(name) else ""
        yield f"{path} has {name}={value} for {environment}{before}"
    if not now:
        option = f"--config-env {environment}"
        yield f"Deploy it: sam build {option} && sam deploy {option}"
        return
    stack = str(samconfig.setting(document, environment, "stack_name"))
    yield f"CloudFormation changes the stack {stack}"
    profile = samconfig.setting(document, environment, "profile")
    region = samconfig.setting(document, environment, "region")
    try:
        session: Any = boto3.Session(profile_name=profile, region_name=region)  # its clients have no types
        _update(session.client("cloudformation"), stack, changes)
    except (BotoCoreError, ClientError) as error:
        later = f"the stack {stack} is not changed, and the next deployment will change it: {first_line(error)}"
        stop(later, after=error)
    yield "Done"


def _update(cloudformation: Any, name: str, changes: Mapping[str, str]) -> None:  # noqa: ANN401 - boto3's
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    keys = [parameter["ParameterKey"] for parameter in stack.get("Parameters", ())]
    unchanged = [{"ParameterKey": key, "UsePreviousValue": True} for key in keys if key not in changes]
    changed = [{"ParameterKey": key, "ParameterValue": value} for key, value in changes.items()]
    cloudformation.update_stack(
        StackName=name, UsePreviousTemplate=True, Capabilities=CAPABILITIES, Parameters=unchanged + changed
    )
    cloudformation.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig=POLL)


def _present(document: TOMLDocument, environment: str) -> Parameters:
    """Return the parameters that count: those of one command replace those of every command."""
    by_command = samconfig.parameters(document, environment)
    present = by_command.pop("global", {})
    for of_command in by_command.values():
        present = present | of_command
    return present


def _changes(directory: Path, words: Sequence[str], present: Parameters) -> Parameters:
    """Read the words as parameters of the template, and check them."""
    known: dict[str, Any] = template.read(directory / template.FILE).get("Parameters", {})
    pairs = [word.partition("=") for word in words if "=" in word]
    if len(pairs) != len(words):
        stop("each change is NAME=VALUE, or NAME= for the default")
    changes = {name: value or str(known.get(name, {}).get("Default", "")) for name, _, value in pairs}
    for name, value in changes.items():
        _check(known, name, value)
    _check_stops(directory, changes, present)
    return changes


def _check(known: Mapping[str, Any], name: str, value: str) -> None:
    """Refuse what CloudFormation would refuse."""
    if name not in known:
        stop(f"{template.FILE} has no parameter {name}")
    rules = known[name]
    allowed = rules.get("AllowedValues")
    if allowed and value not in map(str, allowed):
        stop(f"{name} must be one of {', '.join(map(str, allowed))}")
    if "AllowedPattern" in rules and not re.fullmatch(rules["AllowedPattern"], value):
        stop(f"{name} must match {rules['AllowedPattern']}")
    if rules["Type"] == "Number" and not re.fullmatch(r"\d+(\.\d+)?", value):
        stop(f"{name} must be a number")
    if UNSAFE.search(value):
        stop(f"{name} must have no quotes")


def _check_stops(directory: Path, changes: Parameters, present: Parameters) -> None:
    """Refuse values that CloudFormation accepts, but that stop nothing, or undo a stop.

    StoppedFunctions names functions that refuse calls. A new Generation makes all earlier states invalid.
    """
    for folder in filter(None, changes.get("StoppedFunctions", "").split(",")):
        if not (directory / "functions" / folder).is_dir():
            stop(f"there is no functions/{folder} to stop")
    before = present.get("Generation", "")
    after = changes.get("Generation", "")
    if before.isdigit() and after.isdigit() and int(after) < int(before):
        stop(f"Generation is {before}: with {after}, earlier states would be valid again")
