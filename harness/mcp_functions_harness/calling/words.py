"""Reads a call from the words of the command: finds the tool, the prompt or the resource, and reads its arguments."""

import difflib
import json
from collections.abc import Collection, Sequence

from mcp_functions.protocol.catalog_types import ListName
from mcp_functions.protocol.wire_types import JSONObject, ListEntry, Schema
from mcp_functions_harness.calling import values
from mcp_functions_harness.calling.server import CalledServer
from mcp_functions_harness.calling.terminal import InputEnded, QuestionRefused, Terminal
from mcp_functions_harness.client import messages
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.verification.calls import Call

METHODS: dict[ListName, str] = {"tools": "tools/call", "prompts": "prompts/get"}


def read_call(server: CalledServer, target: str, words: Sequence[str], terminal: Terminal) -> Call:
    """Find a tool or a prompt by its name, or a resource by its URI, and read its arguments from the words.

    Each word is `name=value`, or a JSON object of several arguments. The user is asked for missing required ones.

    Raises:
        Problem: there is no such name, or an argument is unknown, wrong or missing.
    """
    if "://" in target:
        return Call("resources/read", {"uri": target})
    list_name, entry = find_entry(server, target)
    schema = entry["inputSchema"] if list_name == "tools" else prompt_schema(entry)
    arguments = read_arguments(target, words, schema)
    for name in schema.get("required", ()):
        if name not in arguments:
            arguments[name] = _ask_argument(target, name, schema, terminal)
    problem = values.find_problem(arguments, schema)
    if problem:
        raise Problem(f"the arguments of {target} do not fit: {problem}")
    return Call(METHODS[list_name], {"name": target, "arguments": arguments}, messages.header_parameters(schema))


def _ask_argument(target: str, name: str, schema: Schema, terminal: Terminal) -> object:
    try:
        return terminal.ask_value(name, values.member(schema, name), required=True)
    except (QuestionRefused, InputEnded):
        raise Problem(f"{target} needs {name}: add {name}=...") from None


def find_entry(server: CalledServer, name: str) -> tuple[ListName, ListEntry]:
    """Find the entry of a tool or a prompt; return "tools" or "prompts", and the entry.

    Raises:
        Problem: there is no such name.
    """
    known_names: list[str] = []
    for list_name in METHODS:
        for entry in server.entries(list_name):
            if entry["name"] == name:
                return list_name, entry
            known_names.append(entry["name"])
    raise Problem(f"there is no tool or prompt {name}; {suggestion(name, known_names, 'there are')}")


def prompt_schema(prompt: ListEntry) -> Schema:
    """Return the JSON Schema of a prompt's arguments, which are all strings."""
    arguments = prompt.get("arguments", ())
    return {
        "type": "object",
        "properties": {argument["name"]: {"type": "string"} for argument in arguments},
        "required": [argument["name"] for argument in arguments if argument.get("required")],
    }


def read_arguments(target: str, words: Sequence[str], schema: Schema) -> JSONObject:
    """Read arguments, each as `name=value`, or several as a JSON object.

    Raises:
        Problem: a word is neither, or an argument is unknown or wrong.
    """
    properties = schema.get("properties", {})
    arguments: JSONObject = {}
    for word in words:
        arguments |= _read_word(target, word, schema)
    unknown_names = sorted(arguments.keys() - properties.keys())
    if unknown_names:
        first = unknown_names[0]
        raise Problem(f"{target} has no argument {first}; {suggestion(first, properties, 'it has')}")
    return arguments


def _read_word(target: str, word: str, schema: Schema) -> JSONObject:
    name, equals, text = word.partition("=")
    if word.lstrip().startswith("{"):
        try:
            arguments: JSONObject = json.loads(word)
        except (ValueError, RecursionError) as error:
            raise Problem(f"{word!r} is no argument of {target}: {error}") from None
        return arguments
    if not equals:
        how = "write arguments as key=value or as a JSON object"
        raise Problem(f"{word!r} is no argument of {target}: {how}")
    try:
        return {name: values.read(text, values.member(schema, name))}
    except ValueError as error:
        raise Problem(f"{name} of {target}: {error}") from None


def suggestion(unknown_name: str, known_names: Collection[str], introduction: str) -> str:
    """Return the known name that is most like the unknown one; if none is, the introduction and all known names."""
    similar = difflib.get_close_matches(unknown_name, known_names, n=1)
    if similar:
        return f"did you mean {similar[0]}?"
    return f"{introduction}: {', '.join(known_names) or 'none'}"
