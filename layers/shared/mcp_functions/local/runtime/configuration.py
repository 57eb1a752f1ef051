"""Reads each function's configuration from template.yaml: handler, timeout, memory, concurrency and variables.

The value of a variable comes from the first of these that has one:
    1. the harness, for what a deployment decides: the stack, the authentication and the key (MCP_…)
    2. the developer's shell, as with `sam local`
    3. the template itself, whose intrinsic functions (!Ref, !Sub, …) are resolved
A variable that the template does not set is missing, as on Lambda.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_functions.local import auth, template
from mcp_functions.local.problems import Problem, stop
from mcp_functions.local.runtime.intrinsics import NO_VALUE, Resolver, Unknown, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_functions.protocol.wire_types import JSONValue

FUNCTION = "AWS::Serverless::Function"
KEYS = "MCP_KMS_KEYS"  # the template decides whether a function has a KMS key, the harness which key it is


@dataclass(frozen=True)
class Configuration:
    """How Lambda runs one function; the defaults are those of a project without a template."""

    handler: str = "app.handler"  # "module.attribute"
    timeout: int = 29  # seconds of one invocation
    memory: int = 512  # MB
    variables: Mapping[str, str] = field(default_factory=dict)  # its environment in the template
    reserved: int | None = None  # its reserved concurrency, if it has one
    log_format: str = "Text"  # the format of its log, "Text" or "JSON"
    log_level: str = "INFO"  # the least level that its log shows, if the format is JSON


class Template:
    """A SAM template, read for one stack on this machine."""

    def __init__(self, path: Path, harness_values: Mapping[str, str], *, stack: str, shell: Mapping[str, str]) -> None:
        """Read it.

        Args:
            path: the template's file.
            harness_values: the harness's values of variables (MCP_…); its KEYS replaces every key of the template.
            stack: the stack's name.
            shell: the variables of the developer's shell.

        Raises:
            Problem: the file is no template, or PyYAML is not installed.
        """
        self._path = path
        self._own = harness_values
        self._stack = stack
        self._shell = shell
        self._template = _read(path, harness_values)
        globals_: Mapping[str, Any] = self._template.get("Globals") or {}
        self._globals: Mapping[str, Any] = globals_.get("Function") or {}
        self._resolver = Resolver(self._template, stack=stack, key_arn=harness_values[KEYS])

    def configuration(self, folder: Path, name: str = "") -> Configuration | None:
        """Return the configuration of the function in a folder; None if the template has no block for it.

        Args:
            folder: the folder of its code.
            name: the name that the block must have, for a worker; "" for the function itself.

        Raises:
            Problem: a value of the block is known to a deployment only.
        """
        block = self._block(folder, name)
        return None if block is None else self._configured(block)

    def variables(self, folder: Path) -> tuple[dict[str, str], list[str]]:
        """Return the variables of the function in a folder, and a line for each that only a deployment knows."""
        block = self._block(folder, "")
        return ({}, []) if block is None else self._variables(block)

    def _block(self, folder: Path, name: str) -> Mapping[str, Any] | None:
        """Return the properties of the function with this code and name; without a name, any block of the code will do.

        The block of a worker has the same code as that of its function.
        """
        blocks = [block for block in self._blocks() if self._is_in(folder, block.get("CodeUri"))]
        function_name = f"{self._stack}_{name or folder.name}"
        for block in blocks:
            if self._value(block, "FunctionName", "") == function_name:
                return block
        if name or not blocks:
            return None
        return blocks[0]

    def _blocks(self) -> Iterator[Mapping[str, Any]]:
        resources: Mapping[str, Any] = self._template.get("Resources") or {}
        for resource in resources.values():
            if resource.get("Type") == FUNCTION and self._is_deployed(resource):
                yield resource.get("Properties") or {}

    def _is_deployed(self, resource: Mapping[str, Any]) -> bool:
        return "Condition" not in resource or bool(self._resolved("Condition", {"Condition": resource["Condition"]}))

    def _is_in(self, folder: Path, code_uri: object) -> bool:
        return isinstance(code_uri, str) and (self._path.parent / code_uri).resolve() == folder.resolve()

    def _configured(self, block: Mapping[str, Any]) -> Configuration:
        reserved = self._value(block, "ReservedConcurrentExecutions", None)
        logging = self._value(block, "LoggingConfig", {})
        variables, unknown = self._variables(block)
        if unknown:
            raise Problem(unknown[0])
        return Configuration(
            handler=text(self._value(block, "Handler", Configuration.handler)),
            timeout=int(self._value(block, "Timeout", 3)),  # Lambda's default
            memory=int(self._value(block, "MemorySize", 128)),  # Lambda's default
            variables=variables,
            reserved=None if reserved is None else int(reserved),
            log_format=text(logging.get("LogFormat", "Text")),
            log_level=text(logging.get("ApplicationLogLevel", "INFO")),  # Lambda's own default
        )

    def _value(self, block: Mapping[str, Any], name: str, default: object) -> JSONValue:
        template_value = block.get(name, self._globals.get(name))
        if template_value is None:
            return default
        value = self._resolved(name, template_value)
        return default if value is NO_VALUE else value

    def _variables(self, block: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
        # "Environment variables are additive": the block's own go over those of Globals
        known: dict[str, object] = {}
        unknown: list[str] = []
        for name, template_value in {**_declared_variables(self._globals), **_declared_variables(block)}.items():
            try:
                known[name] = self._variable(name, template_value)
            except Problem as problem:
                unknown.append(str(problem))
        return {name: text(value) for name, value in known.items() if value is not NO_VALUE}, unknown

    def _variable(self, name: str, template_value: object) -> object:
        known = {**self._shell, **self._own}
        if name in known and name != KEYS:
            return known[name]
        return self._resolved(name, template_value)

    def _resolved(self, name: str, template_value: object) -> JSONValue:
        try:
            return self._resolver.value(template_value)
        except (Unknown, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = error if isinstance(error, Unknown) else "it is not what CloudFormation takes there"
            stop(f"{self._path.name}: {name} has no value here ({reason}): set {name} in the environment", after=error)


def _read(path: Path, harness_values: Mapping[str, str]) -> dict[str, Any]:
    """Read a template; with AuthMode oauth, as it is after `mcp-functions auth oauth`.

    Only then does it deploy the sign-in front (functions/oauth), which this mode needs.
    """
    parsed = template.read(path)
    if harness_values.get("MCP_AUTH_MODE") != "oauth":
        return parsed
    return template.parse(auth.set_auth(path.read_text(encoding="utf-8"), "oauth"))


def _declared_variables(block: Mapping[str, Any]) -> dict[str, Any]:
    environment: Mapping[str, Any] = block.get("Environment") or {}
    return dict(environment.get("Variables") or {})
