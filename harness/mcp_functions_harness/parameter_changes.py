"""`mcp-functions set`: changes template parameters in samconfig.toml, and with `--now` in the deployed stack too.

Each later deployment finds them in samconfig.toml.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions_harness import samconfig, template
from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.samconfig import Parameters
from mcp_functions_harness.template import Parameter

CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]  # for roles and SAM's transform
POLL = {"Delay": 5, "MaxAttempts": 360}  # seconds between two polls, and how many: half an hour
UNSAFE = re.compile(r"[\"'\\\n]")  # samconfig.toml and the SAM CLI quote them in different ways


def change(directory: Path, environment: str, words: Sequence[str], *, now: bool = False) -> Iterator[str]:
    """Write parameters of an environment, e.g. "prod", into samconfig.toml, and yield texts for the terminal.

    Each word is `NAME=VALUE`, or `NAME=` for the default of the template. With `now`, the deployed stack changes too.

    Raises:
        Problem: a name or a value is wrong, a file is not as expected, or AWS refuses the change.
    """
    path = directory / samconfig.FILE
    settings = samconfig.Environment(path, environment)
    old_parameters = settings.parameters
    changes = _read_changes(directory, words)
    _check_emergency_stops(directory, old_parameters, changes)
    settings.change(changes)
    for name, value in changes.items():
        old = f", instead of {old_parameters[name]}" if old_parameters.get(name) else ""
        yield f"{path} has {name}={value} for {environment}{old}"
    if not now:
        option = f"--config-env {environment}"
        yield f"Deploy it: sam build {option} && sam deploy {option}"
        return
    stack = str(settings.setting("stack_name"))
    yield f"CloudFormation changes the stack {stack}"
    try:
        session: Any = boto3.Session(profile_name=settings.setting("profile"), region_name=settings.setting("region"))
        _update_stack(session.client("cloudformation"), stack, changes)
    except (BotoCoreError, ClientError) as error:
        reason = first_line(error)
        raise Problem(f"the stack {stack} is not changed, and the next deployment will change it: {reason}") from error
    yield "Done"


def _update_stack(cloudformation: Any, name: str, changes: Mapping[str, str]) -> None:  # noqa: ANN401
    """Change parameters of a stack, and nothing else of it; wait until this is done."""
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    keys = [parameter["ParameterKey"] for parameter in stack.get("Parameters", ())]
    unchanged = [{"ParameterKey": key, "UsePreviousValue": True} for key in keys if key not in changes]
    changed = [{"ParameterKey": key, "ParameterValue": value} for key, value in changes.items()]
    cloudformation.update_stack(
        StackName=name, UsePreviousTemplate=True, Capabilities=CAPABILITIES, Parameters=unchanged + changed
    )
    cloudformation.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig=POLL)


def _read_changes(directory: Path, words: Sequence[str]) -> Parameters:
    """Read the words as parameters of the template, and check them."""
    declared = template.read(directory / template.FILE)["Parameters"]
    changes: Parameters = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Problem("each change is NAME=VALUE, or NAME= for the default")
        if name not in declared:
            raise Problem(f"{template.FILE} has no parameter {name}")
        changes[name] = value or str(declared[name].get("Default", ""))
        _check_value(name, changes[name], declared[name])
    return changes


def _check_value(name: str, value: str, rules: Parameter) -> None:
    """Refuse what CloudFormation would refuse by the parameter's declaration, its `rules`."""
    allowed = rules.get("AllowedValues")
    if allowed and value not in map(str, allowed):
        raise Problem(f"{name} must be one of {', '.join(map(str, allowed))}")
    if "AllowedPattern" in rules and not re.fullmatch(rules["AllowedPattern"], value):
        raise Problem(f"{name} must match {rules['AllowedPattern']}")
    if rules.get("Type") == "Number" and not re.fullmatch(r"\d+(\.\d+)?", value):
        raise Problem(f"{name} must be a number")
    if UNSAFE.search(value):
        raise Problem(f"{name} must have no quotes")


def _check_emergency_stops(directory: Path, old_parameters: Parameters, changes: Parameters) -> None:
    """Check the two parameters that stop something in an emergency, whose mistakes CloudFormation would accept.

    StoppedFunctions    names functions that refuse every call, with commas; an unknown name would stop nothing
    Generation          a higher number makes all earlier states invalid; a lower one would make them valid again
    """
    for folder in changes.get("StoppedFunctions", "").split(","):
        if folder and not (directory / "functions" / folder).is_dir():
            raise Problem(f"there is no functions/{folder} to stop")
    before = old_parameters.get("Generation", "")
    after = changes.get("Generation", "")
    if before.isdigit() and after.isdigit() and int(after) < int(before):
        raise Problem(f"Generation is {before}: with {after}, earlier states would be valid again")
