"""Reads each function's configuration from template.yaml: handler, timeout, memory, concurrency and variables.

The value of a variable comes from the first of these that has one:
    1. the harness, for what a deployment decides: the stack, the authentication and the key (MCP_…)
    2. the developer's shell, as with `sam local`
    3. the template itself, whose intrinsic functions (!Ref, !Sub, …) are resolved
A variable that the template does not set is missing, as on Lambda.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from mcp_functions.protocol.wire_types import JSONValue
from mcp_functions_harness import auth, template
from mcp_functions_harness.environment import Variables, function_name
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.runtime.intrinsics import NO_VALUE, Resolver, Unknown, text
from mcp_functions_harness.template import FUNCTION, Resource, Template

# The ARN of the KMS key. The template decides which functions have it; the harness decides which key it is.
KMS_KEY_VARIABLE = "MCP_KMS_KEYS"


@dataclass(frozen=True)
class Configuration:
    """How Lambda runs one function; the defaults are those of a project without a template."""

    handler: str = "app.handler"  # "module.attribute"
    timeout: int = 29  # seconds of one invocation
    memory: int = 512  # MB
    variables: Mapping[str, str | None] = field(default_factory=dict)  # None: it is not set
    reserved: int | None = None  # its reserved concurrency, if it has one
    log_format: str = "Text"  # the format of its log, "Text" or "JSON"
    log_level: str = "INFO"  # the least level that its log shows, if the format is JSON
    system_log_level: str = "INFO"  # the least level of Lambda's own lines, if the format is JSON


class Configurations:
    """The configurations of the functions in a template, for the stack of the harness."""

    def __init__(self, path: Path, harness_values: Variables, shell: Mapping[str, str]) -> None:
        """Read a template. A value of the harness, or else of the developer's shell, replaces that of the template.

        Raises:
            Problem: the file is no template.
        """
        self._path = path
        self._harness_values = harness_values
        self._shell = shell
        self._template = _read(path, harness_values)
        self._resolver = Resolver(self._template, key_arn=str(harness_values[KMS_KEY_VARIABLE]))

    @classmethod
    def beside(cls, directory: Path, harness_values: Variables, shell: Mapping[str, str]) -> Self | None:
        """Read the template beside a directory of functions; None if there is none.

        Raises:
            Problem: the file is no template.
        """
        path = template.find(directory)
        return cls(path, harness_values, shell) if path else None

    def of(self, folder: Path, name: str = "") -> Configuration | None:
        """Return the configuration of the function in a folder, or by `name` of its worker; None if it has no block.

        Raises:
            Problem: a value of the block is known to a deployment only.
        """
        block = self._block(folder, name)
        if block is None:
            return None
        variables, unknown = self._variables(block)
        if unknown:
            raise Problem(unknown[0])  # the process would run without this variable
        reserved = self._value(block, "ReservedConcurrentExecutions", None)
        logging = self._value(block, "LoggingConfig", {})
        return Configuration(
            handler=text(self._value(block, "Handler", Configuration.handler)),
            timeout=int(self._value(block, "Timeout", 3)),  # Lambda's default
            memory=int(self._value(block, "MemorySize", 128)),  # Lambda's default
            variables=variables,
            reserved=None if reserved is None else int(reserved),
            log_format=text(logging.get("LogFormat", "Text")),
            log_level=text(logging.get("ApplicationLogLevel", "INFO")),  # Lambda's own default
            system_log_level=text(logging.get("SystemLogLevel", "INFO")),
        )

    def own_variables(self, directory: Path, folders: Iterable[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
        """Return the variables that only the template gives to functions, by folder, and a line for each missing one.

        Such a variable is missing because only a deployment knows its value.
        """
        variables: dict[str, dict[str, str]] = {}
        missing: list[str] = []
        for folder in folders:
            try:
                block = self._block(directory / folder, "")
                of_function, lines = self._variables(block) if block else ({}, [])
            except Problem as problem:  # its block has a condition that only a deployment knows
                of_function, lines = {}, [str(problem)]
            variables[folder] = {name: text_ for name, text_ in of_function.items() if name not in self._harness_values}
            missing += lines
        return variables, missing

    def _block(self, folder: Path, name: str) -> Resource | None:
        """Return the function with this code and name.

        A function and its worker have the same code, so their names tell them apart. Without a name, a function with
        another name than its folder is found by its code alone.
        """
        blocks = [block for block in self._blocks() if self._code_of(block) == folder.resolve()]
        for block in blocks:
            if self._value(block, "FunctionName", "") == function_name(name or folder.name):
                return block
        return None if name or not blocks else blocks[0]

    def _blocks(self) -> Iterator[Resource]:
        for resource in self._template["Resources"].values():
            condition = {"Condition": resource["Condition"]} if "Condition" in resource else True
            if resource["Type"] == FUNCTION and self._resolved("Condition", condition):
                yield resource

    def _code_of(self, block: Resource) -> Path | None:
        """Return the folder of a function's code; None if the template does not name one."""
        code_uri = block["Properties"].get("CodeUri")
        return (self._path.parent / code_uri).resolve() if isinstance(code_uri, str) else None

    def _value(self, block: Resource, name: str, default: object) -> JSONValue:
        """Return a property of a block, or else of Globals, or else the default."""
        template_value = block["Properties"].get(name, self._template["Globals"]["Function"].get(name))
        if template_value is None:
            return default
        value = self._resolved(name, template_value)
        return default if value is NO_VALUE else value

    def _variables(self, block: Resource) -> tuple[dict[str, str], list[str]]:
        """Return the variables of a block, and a line for each that only a deployment knows."""
        known: dict[str, str] = {}
        unknown: list[str] = []
        # SAM, "Globals": "Environment variables are additive", so a function has those of Globals and its own.
        declared: dict[str, JSONValue] = {}
        for properties in (self._template["Globals"]["Function"], block["Properties"]):
            declared |= (properties.get("Environment") or {}).get("Variables") or {}
        for name, template_value in declared.items():
            try:
                value = self._variable(name, template_value)
            except Problem as problem:
                unknown.append(str(problem))
            else:
                if value is not NO_VALUE:
                    known[name] = text(value)
        return known, unknown

    def _variable(self, name: str, template_value: object) -> object:
        """Return the value of a variable, by the order at the top of this file."""
        if name != KMS_KEY_VARIABLE:
            if self._harness_values.get(name) is not None:
                return self._harness_values[name]
            if name in self._shell:
                return self._shell[name]
        return self._resolved(name, template_value)

    def _resolved(self, name: str, template_value: object) -> JSONValue:
        try:
            return self._resolver.value(template_value)
        except (Unknown, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = error if isinstance(error, Unknown) else "it is not what CloudFormation takes there"
            missing = f"{self._path.name}: {name} has no value here ({reason})"
            raise Problem(f"{missing}: set {name} in the environment") from error


def _read(path: Path, harness_values: Variables) -> Template:
    """Read a template; with AuthMode oauth, as it is after `mcp-functions auth oauth`.

    Only then does it deploy the sign-in front (functions/oauth), which this mode needs.
    """
    parsed = template.read(path)
    if harness_values.get("MCP_AUTH_MODE") != "oauth":
        return parsed
    return template.parse(auth.set_auth(path.read_text(encoding="utf-8"), "oauth"))
