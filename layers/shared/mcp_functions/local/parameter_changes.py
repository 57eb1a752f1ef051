"""`mcp-functions set`: changes template parameters in samconfig.toml, and with `--now` in the deployed stack too.

    [prod.global.parameters]                settings of the environment "prod" for every command of SAM
    stack_name = "orders"
    [prod.deploy.parameters]                settings for `sam deploy`, which replace those of "global"
    parameter_overrides = ["Stage=prod"]    the template's parameters

SAM reads the file in each later deployment. Its comments stay.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import tomlkit
from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions.local import template
from mcp_functions.local.problems import first_line, stop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tomlkit import TOMLDocument

    Parameters = dict[str, str]

FILE = "samconfig.toml"
KEY = "parameter_overrides"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]  # CloudFormation wants them for roles and SAM's transform
POLL = {"Delay": 5, "MaxAttempts": 360}  # seconds between two polls, and how many: half an hour
UNSAFE = re.compile(r"[\"'\\\n]")  # characters that samconfig.toml and the SAM CLI quote in different ways


def change(directory: Path, environment: str, words: Sequence[str], *, now: bool = False) -> Iterator[str]:
    """Write parameters into samconfig.toml, and yield texts for the terminal.

    Args:
        directory: the project's folder.
        environment: an environment of samconfig.toml, e.g. "prod".
        words: each is `NAME=VALUE`, or `NAME=` for the default of the template.
        now: whether to change these parameters of the deployed stack too.

    Raises:
        Problem: a name or a value is wrong, a file is not as expected, or AWS refuses the change.
    """
    path = directory / FILE
    document = _read(path)
    present = _effective_parameters(document, environment)
    changes = _read_changes(directory, words)
    _check_emergency_stops(directory, present, changes)
    _set_parameters(document, environment, changes)
    path.write_text(tomlkit.dumps(document), encoding="utf-8", newline="\n")
    for name, value in changes.items():
        old = f", instead of {present[name]}" if present.get(name) else ""
        yield f"{path} has {name}={value} for {environment}{old}"
    if not now:
        option = f"--config-env {environment}"
        yield f"Deploy it: sam build {option} && sam deploy {option}"
        return
    stack = str(_setting(document, environment, "stack_name"))
    yield f"CloudFormation changes the stack {stack}"
    profile = _setting(document, environment, "profile")
    region = _setting(document, environment, "region")
    try:
        session: Any = boto3.Session(profile_name=profile, region_name=region)  # its clients have no types
        _update(session.client("cloudformation"), stack, changes)
    except (BotoCoreError, ClientError) as error:
        reason = first_line(error)
        stop(f"the stack {stack} is not changed, and the next deployment will change it: {reason}", after=error)
    yield "Done"


def _update(cloudformation: Any, name: str, changes: Mapping[str, str]) -> None:  # noqa: ANN401 - boto3's
    """Change parameters of a stack, and nothing else of it; wait until this is done."""
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    keys = [parameter["ParameterKey"] for parameter in stack.get("Parameters", ())]
    unchanged = [{"ParameterKey": key, "UsePreviousValue": True} for key in keys if key not in changes]
    changed = [{"ParameterKey": key, "ParameterValue": value} for key, value in changes.items()]
    cloudformation.update_stack(
        StackName=name, UsePreviousTemplate=True, Capabilities=CAPABILITIES, Parameters=unchanged + changed
    )
    cloudformation.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig=POLL)


def _effective_parameters(document: TOMLDocument, environment: str) -> Parameters:
    """Return the parameters of an environment; those of one command replace those of "global"."""
    by_command = _parameters(document, environment)
    effective = by_command.pop("global", {})
    for of_command in by_command.values():
        effective = effective | of_command
    return effective


def _read_changes(directory: Path, words: Sequence[str]) -> Parameters:
    """Read the words as parameters of the template, and check them."""
    declared: dict[str, Any] = template.read(directory / template.FILE).get("Parameters", {})
    changes: Parameters = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            stop("each change is NAME=VALUE, or NAME= for the default")
        if name not in declared:
            stop(f"{template.FILE} has no parameter {name}")
        changes[name] = value or str(declared[name].get("Default", ""))
        _check_value(name, changes[name], declared[name])
    return changes


def _check_value(name: str, value: str, rules: Mapping[str, Any]) -> None:
    """Refuse what CloudFormation would refuse.

    Args:
        name: the parameter.
        value: its new value.
        rules: its declaration in the template.
    """
    allowed = rules.get("AllowedValues")
    if allowed and value not in map(str, allowed):
        stop(f"{name} must be one of {', '.join(map(str, allowed))}")
    if "AllowedPattern" in rules and not re.fullmatch(rules["AllowedPattern"], value):
        stop(f"{name} must match {rules['AllowedPattern']}")
    if rules["Type"] == "Number" and not re.fullmatch(r"\d+(\.\d+)?", value):
        stop(f"{name} must be a number")
    if UNSAFE.search(value):
        stop(f"{name} must have no quotes")


def _check_emergency_stops(directory: Path, present: Parameters, changes: Parameters) -> None:
    """Check the two parameters that stop something in an emergency, whose mistakes CloudFormation would accept.

    StoppedFunctions    names functions that refuse every call, with commas; an unknown name would stop nothing
    Generation          a higher number makes all earlier states invalid; a lower one would make them valid again
    """
    for folder in changes.get("StoppedFunctions", "").split(","):
        if folder and not (directory / "functions" / folder).is_dir():
            stop(f"there is no functions/{folder} to stop")
    before = present.get("Generation", "")
    after = changes.get("Generation", "")
    if before.isdigit() and after.isdigit() and int(after) < int(before):
        stop(f"Generation is {before}: with {after}, earlier states would be valid again")


def _read(path: Path) -> TOMLDocument:
    """Read the file.

    Raises:
        Problem: it is missing, or is not TOML.
    """
    try:
        return tomlkit.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        stop(f"{path} cannot be read: {first_line(error)}", after=error)


def _setting(document: TOMLDocument, environment: str, name: str) -> str | None:
    """Return a setting of an environment, e.g. "stack_name"; None if no table has it. The last table counts."""
    values = [table[name] for table in _tables(document, environment).values() if name in table]
    return str(values[-1]) if values else None


def _parameters(document: TOMLDocument, environment: str) -> dict[str, Parameters]:
    """Return the template's parameters in each table of an environment, by the command.

    Raises:
        Problem: the environment has none.
    """
    tables = _tables(document, environment)
    by_command = {command: _pairs(table[KEY]) for command, table in tables.items() if KEY in table}
    if not by_command:
        stop(f"{FILE} has no {KEY} for {environment}")
    return by_command


def _set_parameters(document: TOMLDocument, environment: str, changes: Parameters) -> None:
    """Change parameters in each table of an environment, because a command's table replaces "global" as a whole.

    Raises:
        Problem: an item of a list holds several parameters.
    """
    expected = {command: old | changes for command, old in _parameters(document, environment).items()}
    for table in _tables(document, environment).values():
        if isinstance(table.get(KEY), str):
            table[KEY] = [_item(name, value) for name, value in _pairs(table[KEY]).items()]
        if KEY in table:
            _set_items(table[KEY], changes)
    # `_set_items` expects one parameter in each item, but an item may be "A=1 B=2".
    if _parameters(document, environment) != expected:
        stop(f"an item of {KEY} of {environment} in {FILE} holds several parameters: give each an item of its own")


def _set_items(items: list[tomlkit.items.String], changes: Mapping[str, str]) -> None:
    for name, value in changes.items():
        names = [item.partition("=")[0] for item in items]
        if name in names:
            items[names.index(name)] = _item(name, value)
        else:
            items.insert(0, _item(name, value))


def _tables(document: TOMLDocument, environment: str) -> dict[str, Any]:
    """Return the tables of an environment by their commands."""
    commands = document.get(environment)
    if not isinstance(commands, dict):
        stop(f"{FILE} has no environment {environment}")
    return {name: command.get("parameters", {}) for name, command in commands.items()}


def _pairs(overrides: str | list[str]) -> Parameters:
    """Read parameters from a list of "A=b", or from one text "A=b C=d", as `sam deploy --guided` writes it."""
    texts = [overrides] if isinstance(overrides, str) else overrides
    items = [item.partition("=") for text in texts for item in shlex.split(text)]
    return {name: value for name, _, value in items}


def _item(name: str, value: str) -> tomlkit.items.String:
    """Write one parameter, in quotes if it has spaces, or is empty."""
    item = f"{name}={value}" if re.fullmatch(r"\S+", value) else f'{name}="{value}"'
    return tomlkit.string(item, literal='"' in item)
